"""What a search learned about one arm."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from shortlist.arms import OwnLabel
from shortlist.arrays import FloatArray, IntArray
from shortlist.confidence import estimates
from shortlist.driver import Outcome
from shortlist.problem import Problem


@dataclass(frozen=True, slots=True)
class ArmResult:
    """What a search learned about one arm.

    With probability 1 - delta all means lie between `low` and `high`, those of all arms."""

    label: OwnLabel  #: as it was given
    pulls: int  #: rewards that are counted: in the order of its pulls, up to the first missing
    #: the mean of these rewards; on a test set that over all items, estimated; None if unknown
    mean: float | None
    low: float  #: the lower end of the interval for its mean
    high: float  #: the upper end
    chosen: bool  #: whether it is in `top`
    limit: int | None = None  #: the most pulls that it may have; None if there is no limit
    cost: float = 1.0  #: of a pull, as declared
    spent: float = 0.0  #: what its pulls cost in all
    left: bool = False  #: whether it left before the end
    #: rewards that came in and are not counted: an earlier pull of the arm is missing
    waiting: int = 0
    #: scores of a test set that were known before the first pull; the mean includes them
    known: int = 0


def arms_of(
    outcome: Outcome,
    labels: Sequence[OwnLabel],
    problem: Problem,
    retired: Collection[int] = (),
) -> Iterator[ArmResult]:
    """Every arm, in the order they were given."""
    chosen = set(outcome.answer.top.tolist())
    means, low, high = estimates(problem, outcome.pulls, outcome.sums)
    columns = [column.tolist() for column in (outcome.pulls, means, low, high)]
    limits = problem.limits or (None,) * problem.n_arms
    money = [column.tolist() for column in (problem.prices, spending_of(outcome, problem))]
    besides = waiting_of(outcome).tolist(), problem.known_scores.counts.tolist()
    rows = zip(labels, *columns, limits, *money, *besides, strict=True)
    for arm, (label, pulls, mean, low_, high_, limit, cost, spent, *others) in enumerate(rows):
        shown = None if isnan(mean) else mean
        terms = limit, cost, spent, arm in retired, *others
        yield ArmResult(label, pulls, shown, low_, high_, arm in chosen, *terms)


def waiting_of(outcome: Outcome) -> IntArray:
    """Rewards of every arm that are not counted: (n,)."""
    return np.zeros_like(outcome.pulls) if outcome.waiting is None else outcome.waiting


def spending_of(outcome: Outcome, problem: Problem) -> FloatArray:
    """What the pulls of every arm cost: (n,)."""
    if outcome.spending is not None:
        return outcome.spending
    result: FloatArray = outcome.pulls * problem.prices
    return result
