"""Choose one candidate for every group of arms: a multiple-choice knapsack.

Pulls are traded against expected charges by a Lagrange multiplier, the worth of a unit of charge in
pulls: each group takes the candidate of least pulls + multiplier * charge. The multiplier is found
by bisection of its logarithm."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.split import tuning

CHEAPEST = -3.0  # common logarithm of a multiplier so small that hardly any pull is worth it


@dataclass(frozen=True)
class Knapsack:
    """The pulls and the expected charge of every candidate for an arm of every group."""

    size: FloatArray  # (groups,): arms
    price: FloatArray  # (groups, candidates): pulls to be made; inf where some would be taken back
    charge: FloatArray  # (groups, candidates)
    dearest: float  # common logarithm of the largest multiplier that makes sense

    def choose(self, multiplier: float) -> IntArray:
        """The best candidate of every group at this multiplier: (groups,)."""
        choice: IntArray = np.argmin(self.price + multiplier * self.charge, axis=1)
        return choice

    def cost(self, choice: IntArray) -> float:
        """Pulls to be made in all."""
        return float(self.size @ self.price[np.arange(choice.size), choice])

    def total(self, choice: IntArray) -> float:
        """Charge to expect in all."""
        return float(self.size @ self.charge[np.arange(choice.size), choice])

    def cheapest(self, spare: float) -> IntArray | None:
        """The choice of least cost whose total charge is at most `spare`."""
        _, dear = self._bisect(lambda choice: self.total(choice) <= spare)
        return dear if self.total(dear) <= spare else None

    def within(self, budget: int) -> IntArray | None:
        """The choice of least charge whose cost is at most `budget`."""
        cheap, dear = self._bisect(lambda choice: self.cost(choice) > budget)
        if self.cost(dear) <= budget:  # every pull that is worth anything can be paid
            return dear
        return cheap if self.cost(cheap) <= budget else None

    def _bisect(self, far_enough: Callable[[IntArray], bool]) -> tuple[IntArray, IntArray]:
        """The choices on both sides of where `far_enough` becomes true as charge gets dearer."""
        low = CHEAPEST
        high = self.dearest
        for _ in range(tuning.HALVINGS):
            middle = (low + high) / 2
            if far_enough(self.choose(10**middle)):
                high = middle
            else:
                low = middle
        return self.choose(10**low), self.choose(10**high)
