"""Two arms with 0/1 rewards: what error is left, level by level, if N pulls of each end the run.

Let p and p + g be the means, m their average, and s the chance that a pull of each gives different
rewards. The lead of the better arm is a walk that moves with probability s, then up with
probability (1 + g/s) / 2. If it has stayed within +-c for all of N pulls each, its sign decides,
and that is wrong with a probability of

    E[phi(|lead|); the walk stayed inside],   phi(x) = 1 / (1 + rho^x),

rho = (1 + g/s) / (1 - g/s). This falls with g/s and with s. A *level* is a range of
2 m (1 - m) + epsilon^2 / 2, from `moves` up to the level before; every average mean lies in one. In
it g/s is at least epsilon over its upper end, and s at least its lower end. What is left of
delta is the error of choosing earlier: lead.py. docs/pairs.md has the proofs."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certification.design import ROUNDING, swap_failure
from shortlist.rounding import ROUNDED

FINEST, COARSEST = 1.001, 1.02  # ratio of the ends of a level: the first one, and the last ones
WIDENED = 1.2  # from one level to the next
LARGEST_GAP = 0.999  # nearer to 1 the odds lose their digits, and then there is no level left
MOST_PULLS = 10_000_000  # of an arm: up to there powers are exact to ROUNDING
LARGEST_EXPONENT = 300.0  # of odds at a place, on both sides of 1
MOST_TILT = 1 - 1e-9
MOST_DISTANCE = 1024  # ahead: up to there the sum over all places of a walk is short
REFUTED = 0.02  # share of the error at every level, at least, for evidence that it is another one
SURE = 1 - 1e-6  # of the error is used: what floats lose on the way to it is less


@dataclass(frozen=True, eq=False)
class Boundary:
    """When one of two arms is chosen: for every level of their average mean, from 1/2 down."""

    pulls: int  # of every arm, at most
    distance: int  # ahead: at every level that is far enough
    log_odds: FloatArray  # (level,) ln rho at its upper end, the least there
    means: FloatArray  # (level,) the least average mean in it
    moves: FloatArray  # (level,) the least s in it
    errors: FloatArray  # (level,) of choosing an arm before the last pull
    floors: FloatArray  # (level,) share of the error that `distance` needs


@cache
def boundary(gap: float, pulls: int, delta: float) -> Boundary | None:
    """The nearest boundary that chooses an arm worse by `gap` with probability <= delta."""
    if not 1 <= pulls <= MOST_PULLS or gap > LARGEST_GAP or swap_failure(gap, pulls) >= delta:
        return None
    ends = _level_ends(gap)
    low, high = 0, 1
    while not _is_far_enough(ends[:2], gap, pulls, high, delta):
        low, high = high, 2 * high
        if high > MOST_DISTANCE:
            return None
    while high - low > 1:  # a nearer boundary fails more often
        middle = (low + high) // 2
        enough = _is_far_enough(ends[:2], gap, pulls, middle, delta)
        low, high = (low, middle) if enough else (middle, high)
    while not _is_far_enough(ends, gap, pulls, high, delta):  # hardly ever
        high += 1
    return _made(ends, gap, pulls, high, delta)


def _level_ends(gap: float) -> FloatArray:
    """From the average mean 1/2, where 2 m (1 - m) + gap^2 / 2 is largest, down to gap / 2."""
    ends, ratio = [(1 + gap**2) / 2], FINEST
    while ends[-1] > gap:
        ends.append(max(gap, ends[-1] / ratio))
        ratio = min(1 + WIDENED * (ratio - 1), COARSEST)
    return np.array(ends)


def _is_far_enough(ends: FloatArray, gap: float, pulls: int, distance: int, delta: float) -> bool:
    """Whether choosing at `distance` leaves REFUTED of the error at all of these levels."""
    tilts = _tilts(ends, gap)
    left = SURE * delta - undecided(tilts, ends[1:], pulls, distance)
    return bool((mistaken(log_odds(tilts), distance) <= (1 - REFUTED) * left).all())


def _made(ends: FloatArray, gap: float, pulls: int, distance: int, delta: float) -> Boundary:
    tilts, moves = _tilts(ends, gap), ends[1:]
    errors = SURE * delta - undecided(tilts, moves, pulls, distance)
    odds = log_odds(tilts)
    # 2 m (1 - m) + gap^2 / 2 = moves, and m <= 1/2
    means = (1 - np.sqrt(np.maximum(1 - 2 * moves + gap**2, 0.0))) / 2
    floors = mistaken(odds, distance) / errors
    return Boundary(pulls, distance, odds, means, moves, errors, floors)


def _tilts(ends: FloatArray, gap: float) -> FloatArray:
    """The least g/s in every level, or less: odds are finite."""
    result: FloatArray = np.minimum(gap / ends[:-1], MOST_TILT)
    return result


def log_odds(tilts: FloatArray) -> FloatArray:
    """The logarithm of rho, for walks of tilt g/s."""
    result: FloatArray = np.log1p(tilts) - np.log1p(-tilts)
    return result


def mistaken(odds: FloatArray, lead: float) -> FloatArray:
    """phi: how likely it is that an arm so far ahead is the worse one."""
    result: FloatArray = 1 / (1 + np.exp(np.minimum(odds * lead, LARGEST_EXPONENT)))
    return result


def undecided(tilts: FloatArray, moves: FloatArray, pulls: int, c: int) -> FloatArray:
    """P(no lead of c, and the worse arm ahead at the end, or half of a tie): (level,), or more.

    Paths between +-c are counted by the eigenvectors of the walk: mode j has the shape
    sin(pi j (place + c) / 2c), and shrinks by cos(pi j / 2c) a move."""
    modes = np.arange(1, 2 * c, 2)  # even ones are 0 at the start
    angles = math.pi * modes / (2 * c)
    signs = np.sin(math.pi * modes / 2) / c  # (mode,)
    behind = np.arange(1 - c, 1)  # places
    shapes = np.sin(angles[:, None] * (behind + c))  # (mode, place)
    tilts = np.minimum(tilts, math.tanh(LARGEST_EXPONENT / c))  # that fails more often
    tilted = np.exp(np.outer(log_odds(tilts), behind) / 2)  # (level, place)
    tilted[:, -1] /= 2  # ties
    shrinking = np.sqrt(1 - tilts**2)[:, None] * np.cos(angles)  # (level, mode) a move
    left = signs * (1 - moves[:, None] + moves[:, None] * shrinking) ** pulls  # (level, mode)
    parts = left * (tilted @ shapes.T)
    rounding = ROUNDING * np.abs(parts) + ROUNDED * c**2 * np.abs(left)  # angles are up to pi c
    result: FloatArray = (parts + rounding).sum(1)
    return result
