"""The least offsets that are right, for every kind of rewards: inequality (1) of the proof.

For arms outside the set, as seen from the boundary; inside, mirror the rewards."""

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.split import tuning
from shortlist.certification.split.closed_offsets import bounded_offset, subgaussian_offset
from shortlist.certification.split.exact_offsets import binary_offset
from shortlist.reward_models import RewardModel


def offsets(
    pulls: FloatArray,
    boundary: float,
    strength: float,
    reach: float,
    rewards: RewardModel,
    *,
    slope: FloatArray,
    start: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Starts and least offsets of candidates, one for each entry of `pulls`, `slope` and `start`.

    A start so high that no offset is right is backed off until one is, or given up (-inf)."""
    if not rewards.has_range:
        return start, subgaussian_offset(pulls, strength, reach, slope)
    reach = min(reach, 1 - boundary)  # no mean lies beyond 1
    begin = start.copy()
    offset = bounded_offset(pulls, boundary, boundary, strength, reach, slope)
    open_: IntArray = np.flatnonzero(np.isfinite(start))  # candidates whose start has no offset yet
    for _ in range(1 + tuning.RETREATS):
        if not open_.size:
            break
        found = binary_offset(
            pulls[open_], boundary, strength, reach, slope=slope[open_], start=begin[open_]
        )
        right = np.isfinite(found)
        offset[open_[right]] = found[right]
        open_ = open_[~right]
        begin[open_] -= np.ceil(tuning.RETREAT * np.sqrt(pulls[open_]))
    begin[open_] = -np.inf
    return begin, offset
