"""lm-evaluation-harness: models as arms, the documents of a task as items.

from shortlist.harnesses.with_lm_eval import scorer_of

score = scorer_of("arc_easy", metric="acc", model="hf", model_args="pretrained={}")
shortlist.select(pull_many=score, arms=["gpt2", "distilgpt2"], items=500, k=1, epsilon=0.02)
"""

from collections.abc import Callable, Sequence
from typing import Any

from shortlist.errors import EvaluationFailed


def scorer_of(
    task: Any, *, metric: str, model: Any, model_args: str = "", **options: Any
) -> Callable[[Any, Sequence[int]], list[float]]:
    """Return a function that scores an arm on some documents, for `select(pull_many=...)`.

    Args:
        task: Name of a task, or its configuration.
        metric: Name of the metric that is the score.
        model: Name of a model type, or a function of the arm that returns a model.
        model_args: Arguments of the model; {} is replaced by the arm.
        options: Passed to `lm_eval.simple_evaluate`.

    Returns:
        A function of an arm and a list of document numbers that returns their scores."""
    from lm_eval import simple_evaluate

    name = task["task"] if isinstance(task, dict) else task

    def score_many(arm: Any, documents: Sequence[int]) -> list[float]:
        # sorted: the harness takes documents in this order, but numbers them as listed
        asked = {name: sorted(int(each) for each in documents)}
        results = simple_evaluate(
            model=model(arm) if callable(model) else model,
            model_args=model_args.replace("{}", str(arm)),
            tasks=[task],
            samples=asked,
            log_samples=True,
            **{"bootstrap_iters": 0, **options},
        )
        values = {each["doc_id"]: each[metric] for each in results["samples"][name]}
        missing = [each for each in documents if each not in values]
        if missing:
            raise EvaluationFailed(f"lm_eval has no {metric} of document {missing[0]}")
        return [float(values[each]) for each in documents]

    return score_many
