"""The surplus of prices: by how much an allowed set exceeds the chosen one at these prices.

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
from shortlist.constraints import AnyArms, Constraint, Laminar, Matching, Matroid, best_set
from shortlist.exploration.prices import PRICE_UNIT, Prices

LARGEST_EXACT = 2.0**12  # multiples of the unit up to this are added and subtracted exactly
MOST_UNITS = 2.0**61  # total of prices in units, so that it is counted exactly


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
