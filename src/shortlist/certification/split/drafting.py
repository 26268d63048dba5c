"""Plan a certificate: how often to pull every arm afresh, and how to charge it, before any of it is
drawn.

For an arm the exploration gives a posterior; every way of certifying it has a price in pulls and an
expected charge (pricing.py). The plan minimises the pulls in all such that the expected bound
reaches its target."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, product
from shortlist.certification.split.certificate import Certificate, declare
from shortlist.certification.split.expected_charges import Prices
from shortlist.exploration.posterior import Posterior
from shortlist.grouping import grouped_by
from shortlist.reward_models import RewardModel

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


class Case:
    """A set at a boundary, to be proved good: what is known of its arms and what every way to
    certify them costs.

    `made` are certification pulls made before, which a plan can only add to. Arms that are alike
    form a group."""

    def __init__(
        self, posterior: Posterior, top: BoolArray, boundary: float, made: IntArray, reach: float
    ) -> None:
        self.top, self.boundary, self.made = top, boundary, made
        offered = max(int(made.max()), min(max(64, 40 * int(posterior.pulls.mean())), MOST))
        self.prices = Prices(posterior, boundary, reach, offered)
        (kind, before), self.group = grouped_by(posterior.kinds(top), made)
        # groups outside the set come first
        self.side, row = np.divmod(kind, posterior.row_pulls.size)
        inside = int(self.side.sum())
        self.weights = posterior.weights[row[:-inside]], posterior.weights[row[-inside:]]
        self.size: FloatArray = np.bincount(self.group).astype(np.float64)
        more = self.prices.shapes.pulls[0] - before[:, None]
        self.price: FloatArray = np.where(more >= 0, more, np.inf)  # (groups, ways)

    def plan(
        self, strength: float, level: float, *, target: float = math.inf, budget: int | None = None
    ) -> Plan | None:
        """The cheapest plan whose bound on k * regret is expected at `target`, or the best for
        `budget` more pulls.

        `level` is ln(1/delta). None: no plan."""
        menu = self._menu(strength)
        choice = menu.cheapest(target - level / strength) if budget is None else menu.within(budget)
        if choice is None:
            return None
        shapes, way = self.prices.shapes, (self.side[self.group], choice[self.group])
        pulls = shapes.pulls[way].astype(np.int64)
        return Plan(
            top=self.top,
            boundary=self.boundary,
            strength=strength,
            pulls=pulls,
            start=shapes.start[way],
            slope=shapes.part[way] * strength,
            cost=int((pulls - self.made).sum()),
            expected=menu.total(choice) + level / strength,
        )

    def _menu(self, strength: float) -> "Menu":
        charges = self.prices.charges(strength)
        charge = np.concatenate(
            [product(known, of_side) for known, of_side in zip(self.weights, charges, strict=True)]
        )
        # One pull more of an arm with N saves a charge of about strength / 8N^2, if noise is all
        # that is charged.
        least = (
            strength
            * float(self.prices.shapes.part.min())
            / (8 * float(self.prices.shapes.pulls.max()) ** 2)
        )
        return Menu(self.size, self.price, charge, dearest=2 - math.log10(least))


@dataclass(frozen=True)
class Menu:
    """What every way of certifying costs and is expected to charge at some strength, for groups of
    arms."""

    size: FloatArray  # (groups,)
    price: FloatArray  # (groups, ways)
    charge: FloatArray
    dearest: float  # the common logarithm of what a unit of charge may be worth

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
        """The choices just before and just after `far_enough` becomes true as charge gets
        dearer."""
        low, high = -3.0, self.dearest
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if far_enough(self.choose(10**middle)) else (middle, high)
        return self.choose(10**low), self.choose(10**high)
