"""What a search has spent of its budget, and what it may still ask for."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.problem import Problem
from shortlist.search import Pulls, Rewards

ROUNDED = 1e-9  # of a budget: what sums of costs may exceed it by, as 3 * 0.1 does 0.3


def spending(
    pulls: IntArray, prices: FloatArray, actual: Mapping[int, Sequence[float]]
) -> FloatArray:
    """Total cost of the pulls of every arm: (n,), the same for any order of the reports.

    `actual` are reported costs of single calls of an arm; all other pulls have the declared
    cost."""
    total = pulls * prices
    for arm, costs in actual.items():
        total[arm] = math.fsum([total[arm], *costs])
    return total


class Budget:
    """A budget in the unit of the costs: in pulls where every pull costs 1.

    A batch counts at its declared cost; once it is paid, at its actual cost. Pulls are counted in
    whole numbers as long as every pull costs 1."""

    def __init__(self, problem: Problem, budget: float | None = None, *, spent: float = 0) -> None:
        """`budget` instead of that of the problem, if it is given; `spent` of it already."""
        self.total = problem.goal.budget if budget is None else budget
        self.costs = None if problem.costs is None else problem.declared_costs  # (n,)
        self.spent: float = spent

    @property
    def left(self) -> float:
        """The remaining budget; infinite without one."""
        if self.total is None:
            return math.inf
        if self.costs is None:
            return math.floor(self.total - self.spent)
        return self.total * (1 + ROUNDED) - self.spent

    @property
    def usual(self) -> float:
        """Mean cost of a pull over all arms."""
        return 1 if self.costs is None else float(self.costs.mean())

    @property
    def least(self) -> float:
        """Lowest cost of a pull."""
        return 1 if self.costs is None else float(self.costs.min())

    @property
    def most(self) -> float:
        """Highest cost of a pull."""
        return 1 if self.costs is None else float(self.costs.max())

    def price(self, arms: IntArray, times: IntArray) -> FloatArray | IntArray:
        """Declared cost of every entry of a batch: (entries,)."""
        return times if self.costs is None else times * self.costs[arms]

    def affords(self, arms: IntArray, times: IntArray) -> BoolArray:
        """The first entries of a batch that the budget pays for: (entries,)."""
        return self.covers(np.cumsum(self.price(arms, times)))

    def covers(self, costs: npt.NDArray[Any]) -> BoolArray:
        """Whether the rest of the budget pays for each of these costs."""
        total = math.inf if self.total is None else self.total * (1 + ROUNDED)
        result: BoolArray = self.spent + costs <= total
        return result

    def pay(self, request: Pulls, rewards: Rewards) -> None:
        """Pay for a batch: its actual cost if reported, else the declared one."""
        costs = self.price(request.arms, request.times) if rewards.costs is None else rewards.costs
        self.spent += costs.sum().item()

    def commit(self, request: Pulls) -> None:
        """Count a batch at its declared cost when it is asked for; `settle` it once answered."""
        self.spent += self.price(request.arms, request.times).sum().item()

    def settle(self, request: Pulls, rewards: Rewards) -> None:
        """Correct a batch that was committed by its actual cost, if that was reported."""
        if rewards.costs is not None:
            declared = self.price(request.arms, request.times).sum().item()
            self.spent += rewards.costs.sum().item() - declared
