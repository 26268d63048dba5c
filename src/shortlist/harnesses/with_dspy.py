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
    """A function of a program's label and a list of example numbers that returns their scores.

    `options` go to `dspy.Evaluate`, as num_threads does. A program that raises has failed, and is
    not scored 0: what is missing because of its value would void the promise."""
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
