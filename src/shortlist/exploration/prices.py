"""Prices: a boundary per arm, where not every set of k arms may be chosen.

A set T is best at prices p if no other allowed set has a larger total price. Among such prices
those with the least expected distance on the wrong side are wanted: of means above the price
outside T, below it inside. Its derivative by a price is the *excess*: arms inside expected below
the price less arms outside expected above it. It rises with the price.

Quotas, also of groups inside groups: the price of a group is at least that of the group around it
if it is full, at most that if it has its least number of arms, any if both, and the same if
neither. The least cost of a group, as a function of the price around it, has its own excess as
derivative, cut at 0 from below if the group is full, and from above if it has its least number. So
one pass from the inner groups to the outer ones adds up excesses, and one pass back finds prices.

A matching: the price of a pair is that of its row plus that of its column, by a linear program over
some quantiles of every posterior. The function has corners, where a descent by one price at a time
would end too early.

No guarantee rests on prices being good: certificates/prices.py computes the surplus of any
prices."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray
from shortlist.constraints import Constraint, Laminar, QuotaNode

PRICE_UNIT = 2.0**-40  # of which prices are multiples, so that sums of thousands are exact
UNCERTAIN = 1e-3  # expected number of arms on the wrong side that counts as none


@dataclass(frozen=True, slots=True)
class Prices:
    """A price per arm, and the prices it is made of if the family is a matching."""

    of_arms: FloatArray  # (arms,)
    of_rows: FloatArray | None = None
    of_columns: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class ArmBeliefs:
    """The posterior of every arm on a grid of means."""

    grid: FloatArray  # (grid,), rising
    weights: FloatArray  # (arms, grid)

    @property
    def edges(self) -> FloatArray:
        """The upper end of the cell of every point of the grid."""
        return np.append((self.grid[1:] + self.grid[:-1]) / 2, self.grid[-1])

    def excess(self, chosen: BoolArray) -> FloatArray:
        """The excess of every arm at every edge: (arms, grid)."""
        below = np.cumsum(self.weights, axis=1)
        return np.where(chosen[:, None], below, below - 1)


def best_prices(constraint: Constraint, chosen: BoolArray, beliefs: ArmBeliefs) -> Prices:
    """Prices at which `chosen` is best, or nearly, with about the least expected charge."""
    if isinstance(constraint, Laminar):
        return Prices(_quota_prices(constraint, chosen, beliefs))
    raise NotImplementedError


def in_units(prices: FloatArray) -> FloatArray:
    """Prices rounded to multiples of the unit."""
    rounded: FloatArray = np.rint(prices / PRICE_UNIT) * PRICE_UNIT
    return rounded


def _quota_prices(family: Laminar, chosen: BoolArray, beliefs: ArmBeliefs) -> FloatArray:
    """The price of its innermost group for every arm: (arms,)."""
    excess = beliefs.excess(chosen)
    edges = beliefs.edges
    prices = np.empty(chosen.size)

    def descend(group: "_GroupExcess", around: float) -> None:
        price = group.price(around, edges)
        prices[group.node.arms] = price
        for inner in group.inside:
            descend(inner, price)

    whole = _GroupExcess.of(family.root, chosen, excess)
    descend(whole, _root(whole.excess, edges))
    return in_units(prices)


@dataclass(frozen=True, slots=True)
class _GroupExcess:
    """A group, the excess of its arms and of groups inside it, and how its price may differ."""

    node: QuotaNode
    inside: list["_GroupExcess"]
    excess: FloatArray  # (edges,): if all its arms have this price, or groups inside their own
    number: int  # of its arms that are chosen

    @classmethod
    def of(cls, node: QuotaNode, chosen: BoolArray, excess: FloatArray) -> "_GroupExcess":
        """The excess of a group, from those of its arms: (arms, edges)."""
        inside = [cls.of(inner, chosen, excess) for inner in node.inside]
        total = excess[node.arms].sum(axis=0)
        for inner in inside:
            total = total + inner.passed_on
        number = int(chosen[node.arms].sum()) + sum(inner.number for inner in inside)
        return cls(node, inside, total, number)

    @property
    def passed_on(self) -> FloatArray:
        """The excess that the price around it has to balance."""
        excess = self.excess
        if self.number == self.node.most:
            excess = np.maximum(excess, 0.0)
        if self.number == self.node.least:
            excess = np.minimum(excess, 0.0)
        return excess

    def price(self, around: float, edges: FloatArray) -> float:
        """Its best price, if this is the price around it."""
        own = _root(self.excess, edges)
        low = -np.inf if self.number == self.node.least else around
        high = np.inf if self.number == self.node.most else around
        return float(np.clip(own, low, high))


def _root(excess: FloatArray, edges: FloatArray) -> float:
    """Where a rising function is 0; the middle if it is about 0 on an interval."""
    return float(np.interp([-UNCERTAIN, UNCERTAIN], excess, edges).mean())
