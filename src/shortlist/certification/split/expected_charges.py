"""Price the ways of certifying an arm: (pulls N, first charged success, slope) against the charge
to expect.

Predictions may be rough: no guarantee rests on them."""

import math
from functools import lru_cache
from typing import TypeVar

import numpy as np
from scipy.special import betaln, ndtr

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.split.predicted_offsets import LEAST_VARIANCE, PredictedOffsets, Shapes
from shortlist.exploration.posterior import Posterior

ONE_BY_ONE = 8  # up to here every number of pulls is offered,
RATIO = 1.4  # from here on neighbours of this ratio
STARTS = (0.3, 0.9, 1.5)  # first charged success, in standard deviations beyond the boundary
STEEP = 0.3  # from this reach on no slope but the steepest is offered; below also this part of it
# up to so many pulls charges are expected with binomial, above with normal probabilities
EXACT_CHARGES = 16
TINY = 1e-20  # charges below this are taken as zero: denormal numbers are slow
NEVER = 1e9  # charge of a way that cannot be declared; finite, so that zero weights stay zero

Array = TypeVar("Array", IntArray, FloatArray)


def _all_counts() -> IntArray:
    counts = [1]
    while counts[-1] < 2**62:
        counts.append(counts[-1] + 1 if counts[-1] < ONE_BY_ONE else int(counts[-1] * RATIO))
    return _shared(np.array(counts))


def _shared(array: Array) -> Array:
    array.flags.writeable = False
    return array


COUNTS = _all_counts()


def pull_counts(most: int) -> IntArray:
    """The numbers of pulls a plan chooses from, the last no less than `most`."""
    return COUNTS[: int(np.searchsorted(COUNTS, most)) + 1]


@lru_cache(maxsize=8)
def _combinations(starts: tuple[float, ...], parts: tuple[float, ...]) -> FloatArray:
    """All combinations of pulls, start and slope, by pulls: (3, ways)."""
    return _shared(
        np.array([(count, start, part) for count in COUNTS for start in starts for part in parts]).T
    )


class Prices:
    """The ways to certify an arm, and what to expect of them at any strength.

    First come the ways for arms outside the set, then the same for arms inside, in mirrored
    rewards."""

    def __init__(self, posterior: Posterior, boundary: float, reach: float, most: int) -> None:
        grid, rewards = posterior.grid, posterior.rewards
        if not rewards.has_range:
            spread, at_edge = np.full(grid.size, posterior.variance()), 0.25
        else:
            spread = np.maximum(grid * (1 - grid), LEAST_VARIANCE) * posterior.dispersion()
            at_edge = max(boundary * (1 - boundary), 0.01)
        starts = (-np.inf, *STARTS) if rewards.is_binary else (-np.inf,)
        parts = (1.0,) if reach >= STEEP else (1.0, STEEP)
        offered = pull_counts(most).size * len(starts) * len(parts)
        pulls, z, part = _combinations(starts, parts)[:, :offered]
        edge = np.array([[boundary], [1 - boundary]])
        self.shapes = Shapes(*np.empty((5, 2, offered)))
        self.shapes.pulls[:] = pulls
        self.shapes.start[:] = np.floor(pulls * edge + z * np.sqrt(at_edge * pulls))
        self.shapes.part[:] = part
        self.shapes.edge[:] = edge
        self.shapes.reach[:] = np.minimum(reach, 1 - edge) if rewards.has_range else reach
        self.offsets = PredictedOffsets(self.shapes, at_edge, rewards)
        few = int(np.searchsorted(pulls, EXACT_CHARGES, side="right")) if rewards.is_binary else 0
        self.normal = NormalCharges(self.shapes.ways(slice(few, None)), grid - boundary, spread)
        self.binomial = BinomialCharges(self.shapes.ways(slice(few)), grid) if few else None
        self.few = few

    def charges(self, strength: float) -> FloatArray:
        """The charge to expect of an arm of every mean on the grid: (sides, grid, ways)."""
        offset = self.offsets.at(strength) / strength
        possible = np.isfinite(offset)
        level = np.where(possible, offset, 0.0)
        charge = self.normal.at(level[:, self.few :])
        if self.binomial is not None:
            charge = np.concatenate([self.binomial.at(level[:, : self.few]), charge], axis=2)
        charge[charge < TINY] = 0.0
        charge.swapaxes(1, 2)[~possible] = NEVER
        return charge


class NormalCharges:
    """The charge to expect if the mean y of the rewards is normal around every mean on the grid.

    It is part * (y - edge) + level where that is positive and y is beyond the start."""

    def __init__(self, shapes: Shapes, gap: FloatArray, spread: FloatArray) -> None:
        self.part: FloatArray = shapes.part[0]
        self.first: FloatArray = (shapes.start + 0.5) / shapes.pulls - shapes.edge
        self.gap: FloatArray = np.array([gap, -gap])[:, :, None]  # (sides, grid, 1)
        sigma = np.sqrt(spread[:, None] / shapes.pulls[0])  # (grid, ways)
        self.precision: FloatArray = 1 / sigma
        self.scaled: FloatArray = self.gap * self.precision
        self.density: FloatArray = self.part * sigma / math.sqrt(2 * math.pi)

    def at(self, level: FloatArray) -> FloatArray:
        """The charges for such levels: (sides, grid, ways)."""
        beyond = self.scaled - np.maximum(self.first, -level / self.part)[:, None] * self.precision
        charge: FloatArray = (self.part * self.gap + level[:, None]) * ndtr(beyond)
        charge += self.density * np.exp(-beyond * beyond / 2)
        return charge


class BinomialCharges:
    """The same for y = S / N with S binomial."""

    def __init__(self, shapes: Shapes, grid: FloatArray) -> None:
        self.shapes = shapes
        self.moments = _upper_moments(grid.tobytes())
        self.side: IntArray = np.arange(2)[:, None]
        self.count: IntArray = np.searchsorted(COUNTS, shapes.pulls)

    def at(self, level: FloatArray) -> FloatArray:
        """The charges for such levels: (sides, grid, ways)."""
        pulls, start, part, edge, _ = self.shapes
        # the first success that is charged
        first = np.floor(np.maximum(start, pulls * (edge - level / part))) + 1
        first = np.minimum(np.maximum(first, 0), pulls).astype(np.int64)
        chance, successes = self.moments[:, self.side, self.count, first].swapaxes(2, 3)
        charge: FloatArray = (part / pulls)[:, None] * successes + (level - part * edge)[
            :, None
        ] * chance
        return charge


@lru_cache(maxsize=4)
def _upper_moments(grid: bytes) -> FloatArray:
    """P(S >= first) and E[S; S >= first] of a binomial S: (which, side, number of pulls, first,
    mean on the grid)."""
    mean, success = np.frombuffer(grid), np.arange(EXACT_CHARGES + 1.0)
    counts = COUNTS[COUNTS <= EXACT_CHARGES, None].astype(np.float64)
    failure = np.maximum(counts - success, 0)
    # ln of N over S
    ways = np.where(
        success <= counts, -np.log1p(counts) - betaln(failure + 1, success + 1), -np.inf
    )
    logs = [np.log(mean), np.log1p(-mean)]
    log = np.stack(
        [success[:, None] * one + failure[..., None] * other for one, other in (logs, logs[::-1])]
    )
    chance = np.exp(ways[..., None] + log)
    moments: FloatArray = np.stack([chance, success[:, None] * chance])
    for first in range(EXACT_CHARGES - 1, -1, -1):
        moments[..., first, :] += moments[..., first + 1, :]
    return _shared(moments)
