"""Price the ways of certifying an arm: (pulls N, first charged success, slope) against the charge to expect.

Predictions may be rough: no guarantee rests on them."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, log_ndtr, ndtr

from shortlist.certificate import binary_moments, bounded_offset, least_offset, subgaussian_offset
from shortlist.posterior import Posterior
from shortlist.problem import Binary, RewardModel, SubGaussian
from shortlist.search import BoolArray, FloatArray, IntArray

RATIO = 1.25  # between neighbouring numbers of pulls
STARTS = (0.3, 0.9, 1.5)  # first charged success, in standard deviations beyond the boundary
EXACT = 64  # up to so many pulls charges are predicted with binomial, above with normal probabilities
COARSE = 12  # points at which an offset is predicted
TINY = 1e-20  # charges below this are taken as zero: denormal numbers are slow
NEVER = 1e9  # charge of a way that cannot be declared; finite, so that zero weights stay zero


class Shapes(NamedTuple):
    """How often an arm is pulled and how it is charged, for many ways at once."""

    pulls: FloatArray  # (ways,)
    start: FloatArray  # successes that are not charged; -inf: all are
    slope: FloatArray

    def only(self, those: BoolArray) -> "Shapes":
        """Some of the ways."""
        return Shapes(*(each[those] for each in self))


@dataclass(frozen=True)
class Ways:
    """The ways to certify an arm outside the set, seen from one boundary (inside: mirrored)."""

    shapes: Shapes
    charge: FloatArray  # (grid, ways): expected charge of an arm of that mean
    square: FloatArray  # (grid, ways): expected squared charge


def pull_counts(most: int) -> IntArray:
    """1, 2, 3, ... then growing by RATIO: the numbers of pulls a plan chooses from."""
    counts = [1]
    while counts[-1] < most:
        counts.append(max(counts[-1] + 1, int(counts[-1] * RATIO)))
    return np.array(counts)


def ways(posterior: Posterior, boundary: float, strength: float, reach: float, counts: IntArray, inside: bool) -> Ways:
    """Price every way of certifying an arm of unknown mean."""
    rewards = posterior.rewards
    edge, grid = (1 - boundary, 1 - posterior.grid) if inside else (boundary, posterior.grid)
    if isinstance(rewards, SubGaussian):
        spread, at_edge = np.full(grid.size, posterior.variance()), 0.25
    else:
        spread = np.maximum(grid * (1 - grid), 1e-3) * posterior.dispersion()
        at_edge = max(edge * (1 - edge), 0.01)
    shapes = _combinations(counts, edge, at_edge, strength, reach, rewards)
    reach = reach if isinstance(rewards, SubGaussian) else min(reach, 1 - edge)
    offset = _predicted_offset(shapes, edge, at_edge, strength, reach, rewards)
    charge, square = np.empty((2, grid.size, offset.size))
    few = (shapes.pulls <= EXACT) & isinstance(rewards, Binary)
    if few.any():  # means of sub-Gaussian rewards are no chances
        charge[:, few], square[:, few] = _binomial_charges(shapes.only(few), offset[few], edge, strength, grid)
    charge[:, ~few], square[:, ~few] = _normal_charges(shapes.only(~few), offset[~few], edge, strength, grid, spread)
    charge[:, ~np.isfinite(offset)] = NEVER
    square[:, ~np.isfinite(offset)] = 0.0
    charge[charge < TINY], square[square < TINY] = 0.0, 0.0
    return Ways(shapes, charge, square)


def _combinations(
    counts: IntArray, edge: float, variance: float, strength: float, reach: float, rewards: RewardModel
) -> Shapes:
    """All combinations of pulls, start and slope."""
    starts = [-np.inf, *STARTS] if isinstance(rewards, Binary) else [-np.inf]
    slopes = [1.0] if reach >= 0.3 else [1.0, 0.3]
    axes = np.meshgrid(counts.astype(float), starts, slopes, indexing="ij")
    pulls, z, part = (axis.ravel() for axis in axes)
    start = np.floor(pulls * edge + z * np.sqrt(variance * pulls))
    return Shapes(pulls, start, strength * part)


def _predicted_offset(
    shapes: Shapes, edge: float, variance: float, strength: float, reach: float, rewards: RewardModel
) -> FloatArray:
    pulls, start, slope = shapes
    if isinstance(rewards, SubGaussian):
        return subgaussian_offset(pulls, strength, reach, slope)
    offset = bounded_offset(pulls, edge, edge, strength, reach, slope)
    shaped = np.isfinite(start)
    possible = (start >= 0) & (start < pulls)
    few, many = possible & (pulls <= EXACT), possible & (pulls > EXACT)
    offset[shaped & ~possible] = np.inf
    offset[few] = _binomial_offset(shapes.only(few), edge, strength, reach)
    offset[many] = _normal_offset(shapes.only(many), edge, variance, strength, reach)
    return offset


def _binomial_offset(shapes: Shapes, edge: float, strength: float, reach: float) -> FloatArray:
    """`binary_offset` at a few points only."""
    pulls, start, slope = (each[:, None] for each in shapes)
    gap = reach * np.linspace(0, 1, COARSE) ** 1.5
    mean = np.broadcast_to(edge + gap, (pulls.size, COARSE))
    free, log_charged = binary_moments(pulls, slope, start, mean, edge)
    offset: FloatArray = least_offset(np.exp(-strength * gap) - free, log_charged).max(axis=1)
    return offset


def _normal_offset(shapes: Shapes, edge: float, variance: float, strength: float, reach: float) -> FloatArray:
    """`binary_offset` with normal probabilities."""
    pulls, start, slope = shapes
    sigma = np.sqrt(variance / pulls)[:, None]
    free_up_to = (start / pulls - edge)[:, None]
    gap = np.clip(free_up_to + sigma * np.linspace(-3, 6, COARSE), 0, reach)  # (ways, COARSE)
    steep = slope[:, None]
    free = np.exp(np.minimum(log_ndtr((free_up_to - gap) / sigma) + strength * gap, 0))  # of what is allowed
    log_charged = (strength - steep) * gap + steep**2 * sigma**2 / 2
    above = ndtr((gap - steep * sigma**2 - free_up_to) / sigma)
    with np.errstate(divide="ignore", invalid="ignore"):
        local = np.where(free >= 1, np.inf, log_charged + np.log(above) - np.log1p(-np.minimum(free, 1)))
    tail = bounded_offset(pulls, edge, edge + gap[:, -1], strength, reach, slope)
    offset: FloatArray = np.maximum(local.max(axis=1), np.where(gap[:, -1] < reach, tail, -np.inf))
    return offset


def _normal_charges(
    shapes: Shapes, offset: FloatArray, edge: float, strength: float, grid: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and mean square of the charge, for rewards whose mean y is normal around every mean on the grid.

    It is (slope * (y - edge) + offset) / strength where that is positive and y is beyond the start."""
    pulls, start, slope, offset = shapes.pulls, shapes.start, shapes.slope / strength, offset / strength
    gap = (grid - edge)[:, None]  # (grid, 1)
    sigma = np.sqrt(spread[:, None] / pulls)  # (grid, ways)
    z = (np.maximum((start + 0.5) / pulls - edge, -offset / slope) - gap) / sigma
    above, density = ndtr(-z), np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    level = np.where(np.isfinite(offset), slope * gap + offset, 0.0)
    step = slope * sigma
    charge = level * above + step * density
    square = (level**2 + step**2) * above + (2 * level + step * z) * step * density
    return np.maximum(charge, 0), np.maximum(square, 0)


def _binomial_charges(
    shapes: Shapes, offset: FloatArray, edge: float, strength: float, grid: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same for y = S / N with S binomial."""
    pulls, start, slope, offset = shapes.pulls, shapes.start, shapes.slope / strength, offset / strength
    with np.errstate(invalid="ignore"):
        first = np.floor(np.maximum(start, pulls * (edge - offset / slope))) + 1  # the first success that is charged
    first = np.where(np.isfinite(offset), np.clip(first, 0, pulls), pulls).astype(np.int64)
    counts = pull_counts(EXACT)
    zeroth, once, twice = _upper_moments(grid.tobytes())[:, np.searchsorted(counts, pulls), first].swapaxes(1, 2)
    by_success, fixed = slope / pulls, np.where(np.isfinite(offset), offset, 0.0) - slope * edge
    charge = by_success * once + fixed * zeroth
    square = by_success**2 * twice + 2 * by_success * fixed * once + fixed**2 * zeroth
    return np.maximum(charge, 0), np.maximum(square, 0)


@lru_cache(maxsize=4)
def _upper_moments(grid: bytes) -> FloatArray:
    """E[S^power; S >= first] of a binomial S: (power 0 to 2, number of pulls, first, mean on the grid)."""
    mean, counts, success = np.frombuffer(grid), pull_counts(EXACT)[:, None], np.arange(EXACT + 1)
    failure = np.maximum(counts - success, 0)
    ways = -np.log1p(counts) - betaln(failure + 1, success + 1)  # ln of N over S
    log = ways[..., None] + success[:, None] * np.log(mean) + failure[..., None] * np.log1p(-mean)
    chance = np.where(success <= counts, 1.0, 0.0)[..., None] * np.exp(log)
    powers = success[:, None] ** np.arange(3)[:, None, None, None]
    moments: FloatArray = np.cumsum((powers * chance)[:, :, ::-1], axis=2)[:, :, ::-1]
    return moments
