"""The candidates: all ways to certify an arm that a draft chooses from.

A candidate is a number of pulls N, a start (successes that are not charged) and a slope."""

from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.split import tuning
from shortlist.reward_models import RewardModel

FARTHEST = 2**62  # pulls beyond which no candidate is needed, as they could not be counted

Array = TypeVar("Array", IntArray, FloatArray)


class Candidates(NamedTuple):
    """The candidates, each seen from outside the set (rewards of arms inside are mirrored).

    Every array has the shape (sides, candidates), side 0 for arms outside and 1 for arms inside, or
    is flat where only some are picked."""

    pulls: FloatArray
    start: FloatArray  # -inf: every success is charged
    part: FloatArray  # the slope, as a part of the strength
    edge: FloatArray  # the boundary
    reach: FloatArray

    def where(self, those: BoolArray) -> "Candidates":
        """Those that are picked, flat."""
        return Candidates(*(each[those] for each in self))

    def between(self, those: slice) -> "Candidates":
        """A range of them, on both sides."""
        return Candidates(*(each[:, those] for each in self))


def all_candidates(
    most: int, boundary: float, reach: float, variance: float, rewards: RewardModel
) -> Candidates:
    """All candidates of up to about `most` pulls, fewest pulls first.

    `variance` is that of a reward at the boundary, in whose deviations starts are placed."""
    deviations = (-np.inf, *tuning.STARTS) if rewards.is_binary else (-np.inf,)
    parts = (1.0,) if reach >= tuning.STEEP_REACH else (1.0, tuning.FLAT)
    offered = pull_counts(most).size * len(deviations) * len(parts)
    table = _combinations(tuning.ONE_BY_ONE, tuning.RATIO, deviations, parts)
    pulls, beyond, part = table[:, :offered]  # (candidates,) each
    edge = np.array([[boundary], [1 - boundary]])  # (sides, 1)
    found = Candidates(*np.empty((5, 2, offered)))
    found.pulls[:] = pulls
    found.start[:] = np.floor(pulls * edge + beyond * np.sqrt(variance * pulls))
    found.part[:] = part
    found.edge[:] = edge
    found.reach[:] = np.minimum(reach, 1 - edge) if rewards.has_range else reach
    return found


def all_counts() -> IntArray:
    """The numbers of pulls of all candidates there can be, rising."""
    return _counts(tuning.ONE_BY_ONE, tuning.RATIO)


def pull_counts(most: int, ratio: float | None = None) -> IntArray:
    """The numbers of pulls that candidates have, the last no less than `most`."""
    counts = _counts(tuning.ONE_BY_ONE, ratio or tuning.RATIO)
    return counts[: int(np.searchsorted(counts, most)) + 1]


@lru_cache(maxsize=8)
def _counts(one_by_one: int, ratio: float) -> IntArray:
    counts = [1]
    while counts[-1] < FARTHEST:
        last = counts[-1]
        counts.append(last + 1 if last < one_by_one else int(last * ratio))
    return read_only(np.array(counts))


@lru_cache(maxsize=8)
def _combinations(
    one_by_one: int, ratio: float, deviations: tuple[float, ...], parts: tuple[float, ...]
) -> FloatArray:
    """All combinations of pulls, deviations of the start and part, by pulls: (3, candidates)."""
    counts = _counts(one_by_one, ratio)
    rows = [(count, z, part) for count in counts for z in deviations for part in parts]
    return read_only(np.array(rows).T)


def read_only(array: Array) -> Array:
    """The same array, which a cache can hand out because nobody can write to it."""
    array.flags.writeable = False
    return array
