"""Two arms with 0/1 rewards: stop when one is `distance` successes ahead, at the latest after N.

Let g be the gap of the means and s the chance that a pull of each gives different rewards. The lead
of the better arm is a walk that moves with probability s, then up with probability (1 + g/s) / 2.
Stopped at +-c or after N pulls each, the worse arm is chosen with probability

    phi(c) P(stopped before N) + E[phi(|lead|); not stopped],   phi(x) = 1 / (1 + rho^x),

rho = (1 + g/s) / (1 - g/s). It falls with g/s and with the number of moves, so means whose s lies
in a cell [low, high] fail at most as often as g/s = epsilon/high and Bin(N, low) moves do; and
s <= (1 + g^2) / 2. Later looks, at moments chosen in any way, make it smaller. docs/pairs.md has
the proof."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certification.design import ROUNDING, swap_failure
from shortlist.rounding import ROUNDED

FINEST, COARSEST = 1.001, 1.3  # ratio of the ends of a cell: the first one, and the last ones
WIDENED = 1.2  # from one cell to the next
MOST_PULLS = 1_000_000  # of an arm: up to there powers are exact to ROUNDING
LARGEST_EXPONENT = 300.0  # of odds at a place, on both sides of 1
MOST_DISTANCE = 1024  # ahead: up to there the sum over all places of a walk is short


@dataclass(frozen=True, slots=True)
class Boundary:
    """When one of two arms is chosen, and how likely it is the wrong one."""

    distance: int  # successes ahead
    pulls: int  # of every arm, at most
    failure: float  # at the least favourable means
    edge_failure: float  # the same if both means lie near 0, or both near 1


@cache
def boundary(gap: float, pulls: int, delta: float, edge: float) -> Boundary | None:
    """The nearest boundary that chooses an arm worse by `gap` with probability <= delta."""
    if not 1 <= pulls <= MOST_PULLS or gap >= 1 or swap_failure(gap, pulls) > delta:
        return None
    most_moves = (1 + gap**2) / 2
    low, high = 0, 1
    while not failure(gap, pulls, high, most_moves) <= delta:
        low, high = high, 2 * high
        if high > MOST_DISTANCE:
            return None
    while high - low > 1:  # a nearer boundary fails more often
        middle = (low + high) // 2
        enough = failure(gap, pulls, middle, most_moves) <= delta
        low, high = (low, middle) if enough else (middle, high)
    at_edge = failure(gap, pulls, high, 2 * edge * (1 - edge)) if gap < edge else 0.0
    return Boundary(high, pulls, failure(gap, pulls, high, most_moves), at_edge)


def failure(gap: float, pulls: int, distance: int, most_moves: float) -> float:
    """Bound on the probability that an arm worse by `gap` is chosen, if s <= `most_moves`."""
    ends = _cells(gap, most_moves)
    return float(_failures(gap / ends[:-1], ends[1:], pulls, distance).max())


def _cells(gap: float, most: float) -> FloatArray:
    """Ends of cells of s, from the largest down to the gap, which s is never below."""
    ends, ratio = [most], FINEST
    while ends[-1] > gap:
        ends.append(max(gap, ends[-1] / ratio))
        ratio = min(1 + WIDENED * (ratio - 1), COARSEST)
    return np.array(ends)


def _failures(tilt: FloatArray, moves: FloatArray, pulls: int, c: int) -> FloatArray:
    """P(the worse arm is chosen) for walks of tilt g/s that move with probability s: (cell,).

    Paths between +-c are counted by the eigenvectors of the walk: mode j has the shape
    sin(pi j (place + c) / 2c), and shrinks by cos(pi j / 2c) a move."""
    modes = np.arange(1, 2 * c, 2)  # even ones are 0 at the start
    angles = math.pi * modes / (2 * c)
    signs = np.sin(math.pi * modes / 2) / c  # (mode,)
    places = np.arange(1 - c, c)
    shapes = np.sin(angles[:, None] * (places + c))  # (mode, place)
    tilt = np.minimum(tilt, math.tanh(LARGEST_EXPONENT / c))  # that fails more often
    log_odds = np.log1p(tilt) - np.log1p(-tilt)  # (cell,) ln rho
    tilted = np.exp(np.outer(log_odds, places) / 2)  # (cell, place)
    shrinking = np.sqrt(1 - tilt**2)[:, None] * np.cos(angles)  # (cell, mode) a move
    left = signs * (1 - moves[:, None] + moves[:, None] * shrinking) ** pulls  # (cell, mode)
    inside = tilted @ shapes.T  # (cell, mode)
    behind = (tilted * np.where(places < 0, 1.0, np.where(places == 0, 0.5, 0.0))) @ shapes.T
    wrong = 1 / (1 + np.exp(log_odds * c))  # (cell,) at +-c
    parts = left * (behind - wrong[:, None] * inside)
    rounding = ROUNDING * np.abs(parts) + ROUNDED * 2 * c * np.abs(left)
    result: FloatArray = wrong * (1 + ROUNDING) + (parts + rounding).sum(1)
    return result
