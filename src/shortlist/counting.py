"""Which rewards are counted while others are missing: those of every arm before its first gap.

Where slow means bad, the rewards that have arrived are the good ones, and their mean is too large
however many there are. So rewards of an arm are counted in the order in which its pulls were asked
for, up to the first that is missing. A confidence sequence holds at every length of that order at
once, thus also at a length that depends on the rewards: docs/late.md, "What is shown meanwhile"."""

import numpy as np

from shortlist.arrays import BoolArray, IntArray


def counted_pulls(arms: IntArray, told: BoolArray, n_arms: int) -> BoolArray:
    """Which pulls are counted: (pulls,), given in the order in which they were asked for.

    `told` says which have a reward that was drawn; an arm is counted up to the first without."""
    missing = np.flatnonzero(~told)
    gaps = np.full(n_arms, arms.size)  # (n,) the first pull of every arm that is missing
    gaps[arms[missing[::-1]]] = missing[::-1]  # the last to be written is the first
    counted: BoolArray = np.arange(arms.size) < gaps[arms]
    return counted
