"""The surplus of prices: by how much an allowed set exceeds the chosen one at these prices.

    surplus >= max over allowed sets S of p(S) - p(T)

Certificates with prices add it to their bound (docs/constraints.md, Lemma 1). It is exact, or an
upper bound:

- The best set of a matroid is found by comparing prices. None are added, so no rounding error can
  make another set look best. The difference of the two totals is rounded once, and up.
- For matchings it follows from the prices of rows and columns, in whole multiples of the unit.
- For any other family it rests on `best` of that family, with a margin for its rounding errors."""

import math

import numpy as np

from shortlist.arrays import ROUNDED, BoolArray, FloatArray
from shortlist.constraints import AnyArms, Constraint, Laminar, Matroid, best_set
from shortlist.exploration.prices import Prices


def surplus(constraint: Constraint, chosen: BoolArray, prices: Prices) -> float:
    """An upper bound on the total price of any allowed set less that of the chosen one."""
    by_comparisons = isinstance(constraint, AnyArms | Laminar | Matroid)
    found = best_difference(constraint, chosen, prices.of_arms)
    if by_comparisons:
        return found
    largest = float(np.abs(prices.of_arms).max())
    return found + ROUNDED * int(chosen.sum()) * largest


def best_difference(constraint: Constraint, chosen: BoolArray, weights: FloatArray) -> float:
    """Total weight of the family's best set less that of the chosen one, rounded up."""
    best = best_set(constraint, weights, int(chosen.sum()))
    moved = np.concatenate([weights[best & ~chosen], -weights[chosen & ~best]])
    total = math.fsum(moved.tolist())  # the exact sum, rounded once
    return math.nextafter(total, math.inf) if total > 0 else 0.0
