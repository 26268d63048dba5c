"""The result of one arm."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from shortlist.arms import OwnLabel
from shortlist.arrays import FloatArray, IntArray
from shortlist.confidence import estimates
from shortlist.driver import Outcome
from shortlist.problem import Problem

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    LabelT = TypeVar("LabelT", default=Any)
else:  # typing knows defaults from Python 3.13 on
    from typing import TypeVar

    LabelT = TypeVar("LabelT")


@dataclass(frozen=True, slots=True)
class ArmResult(Generic[LabelT]):
    """The result of one arm; generic in the type of its label.

    With probability at least 1 - delta, the true means of all arms are between `low` and `high`."""

    label: LabelT  #: label, as it was given
    pulls: int  #: number of rewards that count: in the order of its pulls, up to the first missing
    #: mean of these rewards, on a test set the estimated mean over all items; None if unknown
    mean: float | None
    low: float  #: lower end of the confidence interval of its mean
    high: float  #: upper end of that interval
    chosen: bool  #: whether it is in `top`
    limit: int | None = None  #: maximum number of pulls; None without a limit
    cost: float = 1.0  #: declared cost of a pull
    spent: float = 0.0  #: total cost of its pulls
    retired: bool = False  #: whether it was retired before the end
    #: number of rewards that do not count, because an earlier pull of the arm is missing
    waiting: int = 0
    #: number of scores on a test set known before the first pull; the mean includes them
    known: int = 0


def arms_of(
    outcome: Outcome,
    labels: Sequence[OwnLabel],
    problem: Problem,
    retired: Collection[int] = (),
) -> Iterator[ArmResult]:
    """Yield the results of all arms, in the order in which they were given."""
    chosen = set(outcome.answer.top.tolist())
    means, low, high = estimates(problem, outcome.pulls, outcome.sums)
    columns = [column.tolist() for column in (outcome.pulls, means, low, high)]
    limits = problem.limits or (None,) * problem.n_arms
    costs = [column.tolist() for column in (problem.prices, spending_of(outcome, problem))]
    more = waiting_of(outcome).tolist(), problem.known_scores.counts.tolist()
    rows = zip(labels, *columns, limits, *costs, *more, strict=True)
    for arm, (label, pulls, mean, low_, high_, limit, cost, spent, *others) in enumerate(rows):
        shown = None if isnan(mean) else mean
        terms = limit, cost, spent, arm in retired, *others
        yield ArmResult(label, pulls, shown, low_, high_, arm in chosen, *terms)


def waiting_of(outcome: Outcome) -> IntArray:
    """(n,) Number of rewards per arm that do not count."""
    return np.zeros_like(outcome.pulls) if outcome.waiting is None else outcome.waiting


def spending_of(outcome: Outcome, problem: Problem) -> FloatArray:
    """(n,) Total cost of the pulls per arm."""
    if outcome.spending is not None:
        return outcome.spending
    result: FloatArray = outcome.pulls * problem.prices
    return result
