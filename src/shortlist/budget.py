"""What a search has spent of its budget, and what it may still ask for."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.problem import Problem
from shortlist.search import Pulls, Rewards

ROUNDED = 1e-9  # of a budget: what sums of costs may exceed it by, as 3 * 0.1 does 0.3


def spending(
    pulls: IntArray, prices: FloatArray, said: Mapping[int, Sequence[float]]
) -> FloatArray:
    """What the pulls of every arm cost: (n,), whatever the order in which that was said.

    `said` are the costs of single calls of an arm; all other pulls cost what was declared."""
    total = pulls * prices
    for arm, costs in said.items():
        total[arm] = math.fsum([total[arm], *costs])
    return total


class Purse:
    """A budget in the unit of the costs: in pulls where every pull costs 1.

    What is asked for counts as declared; once it is paid, as what it did cost. Pulls are counted in
    whole numbers as long as nobody says that one cost anything else than 1."""

    def __init__(self, problem: Problem, budget: float | None = None) -> None:
        """`budget` instead of that of the problem, if it is given."""
        self.budget = problem.goal.budget if budget is None else budget
        self.costs = None if problem.costs is None else problem.prices  # (n,)
        self.spent: float = 0

    @property
    def left(self) -> float:
        """What is left; infinite without a budget."""
        if self.budget is None:
            return math.inf
        if self.costs is None:
            return math.floor(self.budget - self.spent)
        return self.budget * (1 + ROUNDED) - self.spent

    @property
    def usual(self) -> float:
        """What a pull costs in the mean of all arms."""
        return 1 if self.costs is None else float(self.costs.mean())

    @property
    def least(self) -> float:
        """What a pull of the cheapest arm costs."""
        return 1 if self.costs is None else float(self.costs.min())

    @property
    def most(self) -> float:
        """What a pull of the dearest arm costs."""
        return 1 if self.costs is None else float(self.costs.max())

    def price(self, arms: IntArray, times: IntArray) -> FloatArray | IntArray:
        """What every entry of a request is to cost: (entries,)."""
        return times if self.costs is None else times * self.costs[arms]

    def affords(self, arms: IntArray, times: IntArray) -> BoolArray:
        """The first entries of a request that are paid for: (entries,)."""
        if self.budget is None:
            return np.ones(times.size, dtype=np.bool_)
        spent = self.spent + np.cumsum(self.price(arms, times))
        result: BoolArray = spent <= self.budget * (1 + ROUNDED)
        return result

    def pay(self, request: Pulls, rewards: Rewards) -> None:
        """Pay for a request: what it is said to have cost, or what was declared."""
        costs = self.price(request.arms, request.times) if rewards.costs is None else rewards.costs
        self.spent += costs.sum().item()
