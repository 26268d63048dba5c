"""DSPy: programs as arms, the examples of a development set as items.

from shortlist.harnesses.with_dspy import scorer_of

score = scorer_of(programs, devset, metric)  # programs by label
shortlist.select(pull_many=score, arms=list(programs), items=len(devset), k=1, epsilon=0.05)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shortlist.errors import EvaluationFailed
from shortlist.validation import shown


def scorer_of(
    programs: Mapping[Any, Any],
    devset: Sequence[Any],
    metric: Callable[..., Any],
    **options: Any,
) -> Callable[[Any, Sequence[int]], list[float]]:
    """Return a function that scores a program on some examples, for `select(pull_many=...)`.

    Args:
        programs: Programs by label.
        devset: The examples; their positions are the items.
        metric: Scores an example and a prediction.
        options: Passed to `dspy.Evaluate`, for example num_threads.

    Returns:
        A function of a label and a list of positions that returns their scores. It raises
        `EvaluationFailed` if a program raises: a score of 0 instead would void the guarantee."""
    from dspy import Evaluate

    def score_many(label: Any, numbers: Sequence[int]) -> list[float]:
        examples = [devset[each] for each in numbers]
        settings = {"display_progress": False, "failure_score": float("nan"), **options}
        evaluated = Evaluate(devset=examples, metric=metric, **settings)(programs[label])
        scores = [float(score) for _, _, score in evaluated.results]
        if any(score != score for score in scores):
            raise EvaluationFailed(f"program {shown(label)} raised on an example")
        return scores

    return score_many
