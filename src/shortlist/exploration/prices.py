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

from dataclasses import dataclass, field

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.constraints import Constraint, Laminar, Matching
from shortlist.exploration.price_programs import free_prices, matching_parts, quantiles_of

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
    span: tuple[float, float]  # of the means

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
    quantiles = quantiles_of(beliefs.grid, beliefs.weights)
    low, high = beliefs.span
    if not isinstance(constraint, Matching):
        prices = free_prices(constraint, chosen, quantiles, beliefs.span)
        return Prices(in_units(np.clip(prices, low, high)))
    rows, columns = (in_units(each) for each in matching_parts(constraint, chosen, quantiles))
    together = rows[constraint.row_of] + columns[constraint.column_of]
    return Prices(in_units(np.clip(together, low, high)), rows, columns)


def in_units(prices: FloatArray) -> FloatArray:
    """Prices rounded to multiples of the unit."""
    rounded: FloatArray = np.rint(prices / PRICE_UNIT) * PRICE_UNIT
    return rounded


def _quota_prices(family: Laminar, chosen: BoolArray, beliefs: ArmBeliefs) -> FloatArray:
    """The price of its innermost group for every arm: (arms,)."""
    excess = beliefs.excess(chosen)
    edges = beliefs.edges
    groups = _groups_of(family, chosen)
    for group in groups:  # inner ones first
        group.excess = excess[group.own].sum(axis=0) + sum(
            (inner.passed_on for inner in group.inside), start=np.zeros(edges.size)
        )
    prices = np.empty(chosen.size)
    common = _root(groups[-1].excess, edges)
    found = {id(groups[-1]): common}  # by group
    for group in reversed(groups):  # outer ones first
        prices[group.own] = found[id(group)]
        for inner in group.inside:
            found[id(inner)] = inner.price(found[id(group)], edges)
    return in_units(prices)


@dataclass(slots=True)
class _Group:
    """A group with those inside it, and how its price may differ from that of the group around."""

    arms: frozenset[int]
    own: IntArray  # arms in no group inside it
    inside: list["_Group"]
    full: bool
    at_least: bool  # no arm fewer may be chosen
    excess: FloatArray = field(default_factory=lambda: np.empty(0))  # (edges,)

    @property
    def passed_on(self) -> FloatArray:
        """The excess that the price around it has to balance."""
        excess = self.excess
        if self.full:
            excess = np.maximum(excess, 0.0)
        if self.at_least:
            excess = np.minimum(excess, 0.0)
        return excess

    def price(self, around: float, edges: FloatArray) -> float:
        """Its best price, if this is the price around it."""
        low = -np.inf if self.at_least else around
        high = np.inf if self.full else around
        return float(np.clip(_root(self.excess, edges), low, high))


def _groups_of(family: Laminar, chosen: BoolArray) -> list[_Group]:
    """All groups with arms, inner ones before outer ones; the last one holds all arms."""
    named = sorted(family.groups, key=lambda name: len(family.groups[name]))
    groups: list[_Group] = []
    top: list[_Group] = []  # those that lie in no other group so far
    every = [(family.groups[name], family.limits[name]) for name in named]
    for arms, (least, most) in [*every, (frozenset(range(chosen.size)), (0, family.k))]:
        inside = [each for each in top if each.arms <= arms]
        top = [each for each in top if not each.arms <= arms]
        own = arms.difference(*(each.arms for each in inside))
        number = int(chosen[list(arms)].sum())
        listed = np.array(sorted(own), dtype=np.int64)
        group = _Group(arms, listed, inside, number == most, number == least)
        groups.append(group)
        top.append(group)
    return groups


def _root(excess: FloatArray, edges: FloatArray) -> float:
    """Where a rising function is 0; the middle if it is about 0 on an interval."""
    return float(np.interp([-UNCERTAIN, UNCERTAIN], excess, edges).mean())
