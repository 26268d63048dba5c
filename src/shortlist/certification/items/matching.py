"""From bounds on differences to a bound on what a set loses: the assignment bound.

K R_T is the sum over arms that are best and not in T less the sum over arms in T and not best: at
most the largest matching of (U_ij)+ between arms i in T and arms j outside it (docs/items.md,
Lemma 4)."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray

HALVINGS = 12  # of the interval in which the level is looked for
EXACT = 1e-12


def largest_matching(bounds: FloatArray) -> float:
    """The largest sum of bounds, one in a row and column at most; none is below 0."""
    from scipy.optimize import linear_sum_assignment  # takes long to load, and few need it

    positive = np.maximum(bounds, 0.0)
    rows, columns = linear_sum_assignment(positive, maximize=True)
    return float(positive[rows, columns].sum())


def doubtful(bounds: FloatArray, allowed: float) -> BoolArray:
    """The pairs to be settled: if all bounds were cut to a level, the largest there is, then no
    matching would exceed what is allowed. Those above the level are doubtful."""
    low = allowed / min(bounds.shape)  # at this level no matching exceeds it
    high = allowed
    for _ in range(HALVINGS):
        level = (low + high) / 2
        if largest_matching(np.minimum(bounds, level)) <= allowed:
            low = level
        else:
            high = level
    result: BoolArray = bounds > low + EXACT
    return result
