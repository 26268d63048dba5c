"""lm-evaluation-harness: models as arms, the documents of a task as items.

from shortlist.harnesses.with_lm_eval import scorer_of

score = scorer_of("arc_easy", metric="acc", model="hf", model_args="pretrained={}")
shortlist.select(pull_many=score, arms=["gpt2", "distilgpt2"], items=500, k=1, epsilon=0.02)
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from shortlist.errors import EvaluationFailed
from shortlist.harnesses import Scorer, check_installed, in_turns
from shortlist.validation import whole

SIZES = ("batch_size", "max_batch_size", "device")  # options of a model, not of an evaluation


def scorer_of(
    task: Any,
    *,
    metric: str,
    model: Any,
    model_args: str = "",
    loaded: int | None = None,
    **options: Any,
) -> Scorer:
    """Return a function that scores an arm on some documents, for `select(pull_many=...)`.

    Args:
        task: Name of a task, or its configuration.
        metric: Name of the metric that is the score.
        model: Name of a model type, or a function of the arm that returns a model.
        model_args: Arguments of the model; {} is replaced by the arm.
        loaded: The most models that stay loaded; the one that was not used for longest makes room.
            Default: all, which is fastest.
        options: Passed to `lm_eval.simple_evaluate`.

    Returns:
        A function of an arm and a list of document numbers that returns their scores."""
    check_installed("lm_eval", "lm-eval")
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    name = task["task"] if isinstance(task, dict) else task
    limit = None if loaded is None else whole("loaded", loaded, at_least=1)
    model_of = lru_cache(limit)(_loader(model, model_args, options))
    settings = {"bootstrap_iters": 0, **options}
    if "metadata" not in settings:  # which the harness makes a manager of its own with
        settings.setdefault("task_manager", TaskManager())

    def score_once(arm: Any, documents: Sequence[int]) -> list[float]:
        # sorted: the harness takes documents in this order, but numbers them as listed
        asked = {name: sorted(int(each) for each in documents)}
        results = simple_evaluate(
            model=model_of(arm), tasks=[task], samples=asked, log_samples=True, **settings
        )
        values = {each["doc_id"]: each[metric] for each in results["samples"][name]}
        missing = [each for each in documents if each not in values]
        if missing:
            raise EvaluationFailed(f"lm_eval has no {metric} of document {missing[0]}")
        return [float(values[each]) for each in documents]

    return in_turns(score_once)


def _loader(model: Any, model_args: str, options: dict[str, Any]) -> Callable[[Any], Any]:
    """A function that loads the model of an arm."""
    if callable(model):
        return lambda arm: model(arm)
    from lm_eval.api.registry import get_model

    sizes = {each: options.get(each) for each in SIZES}

    def load(arm: Any) -> Any:
        return get_model(model).create_from_arg_string(model_args.replace("{}", str(arm)), sizes)

    return load
