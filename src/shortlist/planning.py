"""Plan a certificate: how often to pull every arm afresh, and how to charge it, before any of it is drawn.

For an arm the exploration gives a posterior; every way of certifying it has a price in pulls and an expected charge
(pricing.py). The plan minimises the pulls in all such that the expected bound reaches its target."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shortlist.certificate import Certificate, declare
from shortlist.posterior import Posterior, product
from shortlist.pricing import Ways, pull_counts, ways
from shortlist.problem import RewardModel
from shortlist.ranking import grouped
from shortlist.search import BoolArray, FloatArray, IntArray

MOST = 2**60  # pulls of an arm in a plan
HALVINGS = 12  # of the interval in which the worth of a charge is sought


@dataclass(frozen=True)
class Plan:
    """A certificate to be declared and what it is expected to cost and to show."""

    top: BoolArray
    boundary: float
    strength: float
    pulls: IntArray
    start: FloatArray
    slope: FloatArray
    cost: int  # pulls still to be made
    expected: float  # the bound on k * regret to expect

    def declare(self, delta: float, reach: float, rewards: RewardModel) -> Certificate:
        """Fix the certificate."""
        return declare(
            self.top,
            self.boundary,
            self.pulls,
            strength=self.strength,
            delta=delta,
            reach=reach,
            rewards=rewards,
            slope=self.slope,
            start=self.start,
        )


class Menu:
    """What every way of certifying costs and is expected to charge, for arms grouped where they are alike."""

    def __init__(self, posterior: Posterior, weights: FloatArray, top: BoolArray, made: IntArray, ways: Ways) -> None:
        keys, self.group = grouped(posterior.kinds(top) * (int(made.max()) + 1) + made)
        self.size = np.bincount(self.group).astype(np.float64)
        kind, made = np.divmod(keys, int(made.max()) + 1)
        side, row = np.divmod(kind, posterior.row_pulls.size)
        self.inside: BoolArray = side == 1
        # One pull more of an arm with N saves a charge of about strength / 8N^2, if noise is all that is charged.
        self.dearest = 2 + math.log10(8 * float(ways.shapes.pulls.max()) ** 2 / float(ways.shapes.slope.min()))
        self.half = ways.shapes.pulls.size // 2  # ways for one side
        more = ways.shapes.pulls[: self.half] - made[:, None]
        self.price: FloatArray = np.where(more >= 0, more, np.inf)  # (groups, ways for their side)
        self.charge: FloatArray = np.empty(self.price.shape)
        self.charge[~self.inside] = product(weights[row[~self.inside]], ways.charge[:, : self.half])
        self.charge[self.inside] = product(weights[row[self.inside]], ways.charge[:, self.half :])

    def choose(self, value: float) -> IntArray:
        """The best way for every group if a unit of charge is worth `value` pulls."""
        choice: IntArray = np.argmin(self.price + value * self.charge, axis=1)
        return choice

    def cost(self, choice: IntArray) -> float:
        """Pulls to be made."""
        return float(self.size @ self.price[np.arange(choice.size), choice])

    def total(self, choice: IntArray) -> float:
        """Total charge to expect."""
        return float(self.size @ self.charge[np.arange(choice.size), choice])

    def cheapest(self, spare: float) -> IntArray | None:
        """The choice of least cost whose total charge is at most `spare`."""
        _, high = self._search(lambda choice: self.total(choice) <= spare)
        return None if self.total(high) > spare else high

    def within(self, budget: int) -> IntArray | None:
        """The choice of least charge whose cost is at most `budget`."""
        low, high = self._search(lambda choice: self.cost(choice) > budget)
        best = high if self.cost(high) <= budget else low
        return best if self.cost(best) <= budget else None

    def _search(self, far_enough: Callable[[IntArray], bool]) -> tuple[IntArray, IntArray]:
        """The choices just before and just after `far_enough` becomes true as charge gets dearer."""
        low, high = -3.0, self.dearest
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if far_enough(self.choose(10**middle)) else (middle, high)
        return self.choose(10**low), self.choose(10**high)


def plan(
    posterior: Posterior,
    top: BoolArray,
    boundary: float,
    made: IntArray,
    *,
    level: float,
    strength: float,
    reach: float,
    target: float = math.inf,
    budget: int | None = None,
) -> Plan | None:
    """The cheapest plan whose bound on k * regret is expected at `target`, or the best one for `budget` more pulls.

    `level` is ln(1/delta); `made` are certification pulls made before, which a plan can only add to. None: no plan."""
    counts = pull_counts(max(int(made.max()), min(max(64, 40 * int(posterior.pulls.mean())), MOST)))
    grid, weights = posterior.thinned()
    offered = ways(posterior, grid, boundary, strength, reach, counts)
    menu = Menu(posterior, weights, top, made, offered)
    choice = menu.cheapest(target - level / strength) if budget is None else menu.within(budget)
    if choice is None:
        return None
    way = (choice + menu.half * menu.inside)[menu.group]
    pulls = offered.shapes.pulls[way].astype(np.int64)
    return Plan(
        top=top,
        boundary=boundary,
        strength=strength,
        pulls=pulls,
        start=offered.shapes.start[way],
        slope=offered.shapes.slope[way],
        cost=int((pulls - made).sum()),
        expected=menu.total(choice) + level / strength,
    )
