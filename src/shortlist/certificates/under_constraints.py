"""Families of sets in a bound: which swap gains most, and what the best set gains at prices.

Sets whose families are the bases of a matroid have an `ExchangeGraph`: single swaps decide which is
best (docs/constraints.md, Theorem 2).

The *surplus* of prices is by how much an allowed set exceeds the chosen one T at these prices:

    surplus >= max over allowed sets S of p(S) - p(T)

Certificates with prices add it to their bound (docs/prices.md, Lemma 1). It is exact, or an
upper bound:

- The best set of a matroid is found by comparing prices. None are added, so no rounding error can
  make another set look best. The difference of the two totals is rounded once, and up.
- For matchings it follows from the prices of rows and columns, in whole multiples of the unit.
- For any other family it rests on `best` of that family, with a margin for its rounding errors."""

import math

import numpy as np

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray
from shortlist.constraints import (
    AnyArms,
    Constraint,
    Laminar,
    Matching,
    Matroid,
    MatroidConstraint,
    Quotas,
    best_set,
)
from shortlist.errors import InvalidInput
from shortlist.exploration.prices import PRICE_UNIT, Prices
from shortlist.problem import Problem
from shortlist.validation import shown

LARGEST_EXACT = 2.0**12  # multiples of the unit up to this are added and subtracted exactly
MOST_UNITS = 2.0**61  # total of prices in units, so that it is counted exactly


def check_matroid(family: object) -> MatroidConstraint:
    """Return the family, if its sets are linked by swaps of single arms."""
    if not isinstance(family, MatroidConstraint):
        raise InvalidInput(
            f"`constraint` is {shown(family)}, but pairs of arms prove nothing where sets are not"
            " linked by swaps of single arms: it has no `exchangeable`"
        )
    return family


class ExchangeGraph:
    """The feasible swaps of single arms, and the best sets, of a family that is a matroid."""

    def __init__(self, problem: Problem) -> None:
        self.family = check_matroid(problem.constraint)
        self.n_arms, self.k = problem.n_arms, problem.k
        self._chosen: BoolArray | None = None
        self._swaps: BoolArray = np.zeros((self.n_arms, self.n_arms), dtype=np.bool_)

    def swaps(self, chosen: BoolArray) -> BoolArray:
        """[j, i]: j outside may come in for i inside: (n, n)."""
        if self._chosen is None or not np.array_equal(chosen, self._chosen):
            self._chosen = chosen.copy()
            self._swaps = np.asarray(self.family.exchangeable(chosen), dtype=np.bool_)
        return self._swaps

    def first(self, order: IntArray) -> BoolArray:
        """The best set if arms are worth more the earlier they are in `order`, all arms.

        The best basis of a matroid depends on the order of the weights alone, and not on them."""
        weights = np.empty(self.n_arms)
        weights[order] = np.arange(self.n_arms, 0, -1)
        return best_set(self.family, weights, self.k)

    def largest(
        self, chosen: BoolArray, movable: BoolArray, gains: FloatArray
    ) -> tuple[FloatArray, BoolArray]:
        """The largest sum of gains over the arms that a feasible swap moves, and these arms."""
        return largest_swaps(self.family, chosen, movable, gains)


def largest_swaps(
    family: Constraint, chosen: BoolArray, movable: BoolArray, gains: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """The largest sum of gains over the arms that a feasible swap moves, and these arms.

    `gains` are (rows, n); only `movable` arms move, on either side of `chosen`. No sum is below 0,
    as no arm need move."""
    weights = np.where(chosen, -gains, gains)
    high = 1 + 2 * np.abs(gains).sum(1, keepdims=True)
    weights = np.where(movable, weights, np.where(chosen, high, -high))
    moved = _best_of_each(family, weights, int(chosen.sum())) ^ chosen
    sums = np.where(moved, gains, 0.0).sum(1)
    if (moved & ~movable).any() or (sums < -ROUNDED * high[:, 0]).any():
        raise InvalidInput("the constraint's `best` returned a set that is not the best one")
    return sums, moved


def _best_of_each(family: Constraint, weights: FloatArray, k: int) -> BoolArray:
    if isinstance(family, Quotas):
        return family.best_of_each(weights)
    return np.array([best_set(family, row, k) for row in weights])


def surplus(constraint: Constraint, chosen: BoolArray, prices: Prices) -> float:
    """An upper bound on the total price of any allowed set less that of the chosen one."""
    if isinstance(constraint, Matching):
        return _matching_surplus(constraint, chosen, prices)
    return _difference(constraint, chosen, prices.of_arms)


def _matching_surplus(family: Matching, chosen: BoolArray, prices: Prices) -> float:
    """The surplus of a matching, from prices of rows a and columns c that pairs are to cost.

    Let y = a + c of the row and the column of a pair, and T the chosen set. Every matching has K
    rows, so that no a(S) exceeds the K largest; likewise for columns. Where p is not y, p(S) - p(T)
    is larger than y(S) - y(T) by (p - y)+ outside T and (y - p)+ inside at most."""
    assert prices.of_rows is not None
    assert prices.of_columns is not None
    rows, columns, arms = (
        _whole(each) for each in (prices.of_rows, prices.of_columns, prices.of_arms)
    )
    made = rows[family.row_of] + columns[family.column_of]
    moved = np.where(chosen, made - arms, arms - made)
    total = int(moved[moved > 0].sum())
    for parts, own in ((rows, family.row_of), (columns, family.column_of)):
        total += int(np.sort(parts)[parts.size - family.k :].sum() - parts[own[chosen]].sum())
    return math.nextafter(total * PRICE_UNIT, math.inf) if total > 0 else 0.0


def reference_prices(
    constraint: Constraint, chosen: BoolArray, prices: Prices
) -> FloatArray | None:
    """Prices of a perfect matching before they were cut, where cutting cost nothing.

    At these no allowed set has a smaller total than the chosen one, so that the bound by swaps
    holds with the reach K epsilon (docs/prices.md, Theorem 2). None for other families."""
    if not (isinstance(constraint, Matching) and is_perfect(constraint)):
        return None
    assert prices.of_rows is not None
    assert prices.of_columns is not None
    made = prices.of_rows[constraint.row_of] + prices.of_columns[constraint.column_of]
    costly = np.where(chosen, made > prices.of_arms, made < prices.of_arms)
    return np.where(costly, prices.of_arms, made)


def is_perfect(family: Matching) -> bool:
    """Whether all rows and all columns are matched."""
    return family.height == family.width == family.k


def _whole(prices: FloatArray) -> IntArray:
    """Prices in units, which must be whole; their sums must fit into 64 bits."""
    units = prices / PRICE_UNIT
    whole = np.rint(units)
    if not (np.array_equal(whole, units) and np.abs(units).sum() < MOST_UNITS):
        raise ValueError(f"prices must be multiples of {PRICE_UNIT:g} and not too large")
    return whole.astype(np.int64)


def largest_gain(
    constraint: Constraint, chosen: BoolArray, prices: FloatArray, charges: FloatArray
) -> float:
    """The largest p(S) - p(T) over allowed S, if arms of only one of both add their charge.

    Weights are rounded outward to multiples of the unit. The assignment problem of a matching is
    solved by adding, subtracting and comparing them along paths that visit every row and column
    once at most, which is exact unless they are large: then nothing is claimed."""
    weights = np.where(chosen, prices - charges, prices + charges)
    units = weights / PRICE_UNIT
    outward = np.where(chosen, np.floor(units) - 1, np.ceil(units) + 1) * PRICE_UNIT
    if isinstance(constraint, Matching):
        longest = 2 * (constraint.height + constraint.width)
        if not longest * float(np.abs(outward).max()) < LARGEST_EXACT:
            return math.inf
    return _difference(constraint, chosen, outward)


def _difference(constraint: Constraint, chosen: BoolArray, weights: FloatArray) -> float:
    """Total weight of the family's best set less that of the chosen one, or more.

    `best` of the families here is exact: that of a matroid compares weights and adds none. What
    other families do is not known: rounding errors are added."""
    k = int(chosen.sum())
    best = best_set(constraint, weights, k)
    moved = np.concatenate([weights[best & ~chosen], -weights[chosen & ~best]])
    total = max(0.0, math.fsum(moved.tolist()))  # the exact sum, rounded once
    if not isinstance(constraint, AnyArms | Laminar | Matroid | Matching):
        total += ROUNDED * k * float(np.abs(weights).max())
    return math.nextafter(total, math.inf) if total > 0 else 0.0
