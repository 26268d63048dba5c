"""The rewards of a request: each checked once, all added up in one order."""

import numpy as np

from shortlist.arrays import FloatArray, IntArray


def sums_by_entry(
    sums: FloatArray, times: IntArray, first: FloatArray, entries: IntArray, size: int
) -> FloatArray:
    """Add up the sums of several parts by the entry that each belongs to, around the `first` reward
    of its first part.

    Rewards far from 0 would lose their digits in a long sum, and always in the same direction."""
    pivots = np.zeros(size)
    pivots[entries[::-1]] = first[::-1]
    around = np.bincount(entries, sums - times * pivots[entries], size)
    total: FloatArray = around + np.bincount(entries, times, size) * pivots
    return total
