"""Which arms lie near 0 or near 1: a bet on one arm's mean, whatever the race does.

For rewards x in [0, 1] with mean theta >= e = EDGE and any m < e,

    E[(m / e)^x ((1 - m) / (1 - e))^(1 - x)] <= theta m / e + (1 - theta) (1 - m) / (1 - e),

as a power lies below its chord; that falls with theta and is 1 at e. So the product over the
rewards is a supermartingale, and so is a mean over a few m. It needs counts and sums only."""

import numpy as np
from scipy.special import logsumexp

from shortlist.arrays import FloatArray, IntArray

EDGE = 0.12  # arms whose means lie within this of 0, or of 1, have a small variance
BELOW = EDGE * np.array([0.6, 0.3, 0.1])  # means that are betted on, with the same weight


def log_capital(pulls: IntArray, sums: FloatArray) -> FloatArray:
    """Of bets against means of at least EDGE: (arm,)."""
    odds = np.log(BELOW / EDGE), np.log1p(-BELOW) - np.log1p(-EDGE)
    logs = np.outer(sums, odds[0]) + np.outer(pulls - sums, odds[1])  # (arm, mean)
    result: FloatArray = logsumexp(logs, axis=1) - np.log(BELOW.size)
    return result
