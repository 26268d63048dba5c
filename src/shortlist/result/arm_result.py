"""What a search learned about one arm."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan

from shortlist.arms import OwnLabel
from shortlist.confidence import intervals
from shortlist.driver import Outcome
from shortlist.problem import Problem


@dataclass(frozen=True, slots=True)
class ArmResult:
    """What a search learned about one arm.

    With probability 1 - delta all means lie between `low` and `high`, those of all arms."""

    label: OwnLabel  #: as it was given
    pulls: int  #: how often it was pulled
    mean: float | None  #: its mean reward; None if it was never pulled
    low: float  #: the lower end of the interval for its mean
    high: float  #: the upper end
    chosen: bool  #: whether it is in `top`


def arms_of(outcome: Outcome, labels: Sequence[OwnLabel], problem: Problem) -> Iterator[ArmResult]:
    """Every arm, in the order they were given."""
    chosen = set(outcome.answer.top.tolist())
    low, high = intervals(problem, outcome.pulls, outcome.means)
    columns = (outcome.pulls, outcome.means, low, high)
    rows = zip(labels, *(column.tolist() for column in columns), strict=True)
    for arm, (label, pulls, mean, below, above) in enumerate(rows):
        yield ArmResult(label, pulls, None if isnan(mean) else mean, below, above, arm in chosen)
