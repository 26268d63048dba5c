"""What a search learned about one arm."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import isnan

from shortlist.arms import OwnLabel
from shortlist.arrays import FloatArray
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
    limit: int | None = None  #: the most pulls that it may have; None if there is no limit
    cost: float = 1.0  #: of a pull, as declared
    spent: float = 0.0  #: what its pulls cost in all
    #: whether it left before the end: then worst rewards that nobody drew are among its pulls
    left: bool = False


def arms_of(
    outcome: Outcome,
    labels: Sequence[OwnLabel],
    problem: Problem,
    retired: Collection[int] = (),
) -> Iterator[ArmResult]:
    """Every arm, in the order they were given."""
    chosen = set(outcome.answer.top.tolist())
    low, high = intervals(problem, outcome.pulls, outcome.means)
    columns = [column.tolist() for column in (outcome.pulls, outcome.means, low, high)]
    limits = problem.limits or (None,) * problem.n_arms
    money = [column.tolist() for column in (problem.prices, spending_of(outcome, problem))]
    rows = zip(labels, *columns, limits, *money, strict=True)
    for arm, (label, pulls, mean, below, above, limit, cost, spent) in enumerate(rows):
        known = None if isnan(mean) else mean
        terms = limit, cost, spent, arm in retired
        yield ArmResult(label, pulls, known, below, above, arm in chosen, *terms)


def spending_of(outcome: Outcome, problem: Problem) -> FloatArray:
    """What the pulls of every arm cost: (n,)."""
    if outcome.spending is not None:
        return outcome.spending
    result: FloatArray = outcome.pulls * problem.prices
    return result
