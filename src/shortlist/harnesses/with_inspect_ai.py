"""inspect_ai: models as arms, the samples of a task as items.

from shortlist.harnesses.with_inspect_ai import sample_ids, scorer_of

score = scorer_of(task)
shortlist.select(pull_many=score, arms=models, items=sample_ids(task), k=5, epsilon=0.02)
"""

from collections.abc import Callable, Sequence
from typing import Any

from shortlist.errors import EvaluationFailed, InvalidInput


def sample_ids(task: Any) -> list[int | str]:
    """Return the ids of a task's samples; samples without one are numbered from 1."""
    return [
        place if sample.id is None else sample.id for place, sample in enumerate(task.dataset, 1)
    ]


def scorer_of(
    task: Any, score: Callable[[Any], float] | None = None, **options: Any
) -> Callable[[Any, Sequence[Any]], list[float]]:
    """Return a function that scores a model on some samples, for `select(pull_many=...)`.

    Args:
        task: A task of inspect_ai. It is evaluated with one epoch.
        score: Turns the value of a score into a number; by default "C" is 1, "P" is 0.5, "I" and
            "N" are 0, and numbers stay.
        options: Passed to `inspect_ai.eval`.

    Returns:
        A function of a model and a list of sample ids that returns their scores."""
    from inspect_ai import eval as evaluate
    from inspect_ai.scorer import value_to_float

    number = value_to_float() if score is None else score

    def score_many(model: Any, ids: Sequence[Any]) -> list[float]:
        settings = {"display": "none", "epochs": 1, **options}
        (log,) = evaluate(task, model=model, sample_id=list(ids), **settings)
        if log.status != "success":
            why = log.error.message if log.error else "no message"
            raise EvaluationFailed(f"inspect_ai ended with {log.status}: {why}")
        values = {sample.id: _only_score(sample) for sample in log.samples or []}
        missing = [each for each in ids if each not in values]
        if missing:
            raise EvaluationFailed(f"inspect_ai has no score of sample {missing[0]!r}")
        return [float(number(values[each])) for each in ids]

    return score_many


def _only_score(sample: Any) -> Any:
    """The value of the one score a sample has."""
    scores = list((sample.scores or {}).values())
    if len(scores) != 1:
        raise InvalidInput(f"sample {sample.id!r} has {len(scores)} scores, but must have one")
    return scores[0].value
