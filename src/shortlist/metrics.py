"""How good is a chosen set: the notions of optimality of Section 1.2."""

import numpy as np

from shortlist.search import FloatArray, IntArray


def aggregate_regret(means: FloatArray, top: IntArray) -> float:
    """R_T = (sum of the K best means - sum of the chosen means) / K."""
    k = top.size
    best = np.partition(means, means.size - k)[means.size - k :]
    return max(0.0, float(best.sum() - means[top].sum()) / k)
