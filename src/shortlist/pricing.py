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
EXACT_OFFSETS = 64  # up to so many pulls offsets are predicted with binomial, above with normal probabilities,
EXACT_CHARGES = 16  # and charges
COARSE = 12, 24  # points at which an offset is predicted, at least and at most
TINY = 1e-20  # charges below this are taken as zero: denormal numbers are slow
NEVER = 1e9  # charge of a way that cannot be declared; finite, so that zero weights stay zero


class Shapes(NamedTuple):
    """How often an arm is pulled and how it is charged, for many ways at once.

    The first half are ways for arms outside the set, the second half the same for arms inside, in mirrored rewards."""

    pulls: FloatArray  # (ways,)
    start: FloatArray  # successes that are not charged; -inf: all are
    slope: FloatArray
    edge: FloatArray  # the boundary
    reach: FloatArray

    def only(self, those: BoolArray) -> "Shapes":
        """Some of the ways."""
        return Shapes(*(each[those] for each in self))


@dataclass(frozen=True)
class Ways:
    """The ways to certify an arm and what to expect of them."""

    shapes: Shapes
    charge: FloatArray  # (grid, ways): expected charge of an arm of that mean


@lru_cache(maxsize=4)
def pull_counts(most: int) -> IntArray:
    """1, 2, 3, ... then growing by RATIO: the numbers of pulls a plan chooses from."""
    counts = [1]
    while counts[-1] < most:
        counts.append(max(counts[-1] + 1, int(counts[-1] * RATIO)))
    shared = np.array(counts)
    shared.flags.writeable = False
    return shared


def ways(
    posterior: Posterior, grid: FloatArray, boundary: float, strength: float, reach: float, counts: IntArray
) -> Ways:
    """Price every way of certifying an arm for every mean on `grid`."""
    rewards = posterior.rewards
    if isinstance(rewards, SubGaussian):
        spread, at_edge = np.full(grid.size, posterior.variance()), 0.25
    else:
        spread = np.maximum(grid * (1 - grid), 1e-3) * posterior.dispersion()
        at_edge = max(boundary * (1 - boundary), 0.01)
    shapes = _combinations(counts, boundary, at_edge, strength, reach, rewards)
    gap = (grid - boundary)[:, None] * np.repeat([1.0, -1.0], shapes.pulls.size // 2)  # (grid, ways)
    offset = _predicted_offset(shapes, at_edge, strength, rewards)
    charge = np.empty((grid.size, offset.size))
    few = (shapes.pulls <= EXACT_CHARGES) & isinstance(rewards, Binary)  # means of sub-Gaussian rewards are no chances
    many = ~few
    if few.any():
        charge[:, few] = _binomial_charge(shapes.only(few), offset[few], strength, grid)
    charge[:, many] = _normal_charge(shapes.only(many), offset[many], strength, gap[:, many], spread[:, None])
    charge[charge < TINY] = 0.0
    charge[:, ~np.isfinite(offset)] = NEVER
    return Ways(shapes, charge)


def _combinations(
    counts: IntArray, boundary: float, variance: float, strength: float, reach: float, rewards: RewardModel
) -> Shapes:
    """All combinations of pulls, start and slope."""
    starts = [-np.inf, *STARTS] if isinstance(rewards, Binary) else [-np.inf]
    slopes = [1.0] if reach >= 0.3 else [1.0, 0.3]
    pulls = np.repeat(counts.astype(np.float64), len(starts) * len(slopes))
    z, slope = np.array([(z, strength * part) for z in starts for part in slopes] * counts.size).T
    edges = boundary, 1 - boundary
    within = [reach if isinstance(rewards, SubGaussian) else min(reach, 1 - edge) for edge in edges]
    return Shapes(
        pulls=np.concatenate([pulls, pulls]),
        start=np.floor(np.concatenate([pulls * edge + z * np.sqrt(variance * pulls) for edge in edges])),
        slope=np.concatenate([slope, slope]),
        edge=np.repeat(edges, pulls.size),
        reach=np.repeat(within, pulls.size),
    )


def _predicted_offset(shapes: Shapes, variance: float, strength: float, rewards: RewardModel) -> FloatArray:
    pulls, start, slope, edge, reach = shapes
    if isinstance(rewards, SubGaussian):
        return subgaussian_offset(pulls, strength, reach, slope)
    offset = bounded_offset(pulls, edge, edge, strength, reach, slope)
    possible = (start >= 0) & (start < pulls)
    few, many = possible & (pulls <= EXACT_OFFSETS), possible & (pulls > EXACT_OFFSETS)
    offset[np.isfinite(start) & ~possible] = np.inf
    points = min(COARSE[0] + int(strength * float(reach.max()) / 2), COARSE[1])
    offset[few] = _binomial_offset(shapes.only(few), strength, points)
    offset[many] = _normal_offset(shapes.only(many), variance, strength, points)
    return offset


def _binomial_offset(shapes: Shapes, strength: float, points: int) -> FloatArray:
    """`binary_offset` at a few points only."""
    pulls, start, slope, edge, reach = (each[:, None] for each in shapes)
    gap = reach * (np.arange(points) / (points - 1)) ** 1.5  # (ways, points)
    free, log_charged = binary_moments(pulls, slope, start, edge + gap, edge)
    offset: FloatArray = least_offset(np.exp(-strength * gap) - free, log_charged).max(axis=1)
    return offset


def _normal_offset(shapes: Shapes, variance: float, strength: float, points: int) -> FloatArray:
    """`binary_offset` with normal probabilities."""
    pulls, start, slope, edge, reach = shapes
    sigma = np.sqrt(variance / pulls)[:, None]
    free_up_to = (start / pulls - edge)[:, None]
    gap = np.maximum(free_up_to + sigma * (9 * np.arange(points) / (points - 1) - 3), 0)  # (ways, points)
    gap = np.minimum(gap, reach[:, None])
    steep = slope[:, None]
    free = np.exp(np.minimum(log_ndtr((free_up_to - gap) / sigma) + strength * gap, 0))  # of what is allowed
    log_charged = (strength - steep) * gap + steep**2 * sigma**2 / 2
    above = ndtr((gap - steep * sigma**2 - free_up_to) / sigma)
    with np.errstate(divide="ignore", invalid="ignore"):
        local = np.where(free >= 1, np.inf, log_charged + np.log(above) - np.log1p(-np.minimum(free, 1)))
    tail = bounded_offset(pulls, edge, edge + gap[:, -1], strength, reach, slope)
    offset: FloatArray = np.maximum(local.max(axis=1), np.where(gap[:, -1] < reach, tail, -np.inf))
    return offset


def _normal_charge(
    shapes: Shapes, offset: FloatArray, strength: float, gap: FloatArray, spread: FloatArray
) -> FloatArray:
    """The charge to expect if the mean y of the rewards is normal around every mean on the grid.

    It is (slope * (y - edge) + offset) / strength where that is positive and y is beyond the start."""
    pulls, start, slope, offset = shapes.pulls, shapes.start, shapes.slope / strength, offset / strength
    sigma = np.sqrt(spread / pulls)  # (grid, ways)
    z = (np.maximum((start + 0.5) / pulls - shapes.edge, -offset / slope) - gap) / sigma
    level = slope * gap + np.where(np.isfinite(offset), offset, 0.0)
    charge: FloatArray = level * ndtr(-z) + slope * sigma * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return charge


def _binomial_charge(shapes: Shapes, offset: FloatArray, strength: float, grid: FloatArray) -> FloatArray:
    """The same for y = S / N with S binomial."""
    pulls, start, edge = shapes.pulls, shapes.start, shapes.edge
    slope, offset = shapes.slope / strength, np.where(np.isfinite(offset), offset, 0.0) / strength
    first = np.floor(np.maximum(start, pulls * (edge - offset / slope))) + 1  # the first success that is charged
    first = np.minimum(np.maximum(first, 0), pulls).astype(np.int64)
    side = np.repeat([0, 1], pulls.size // 2)
    count = np.searchsorted(pull_counts(EXACT_CHARGES), pulls)
    chance, successes = _upper_moments(grid.tobytes())[:, side, count, first].swapaxes(1, 2)
    charge: FloatArray = slope / pulls * successes + (offset - slope * edge) * chance
    return charge


@lru_cache(maxsize=4)
def _upper_moments(grid: bytes) -> FloatArray:
    """P(S >= first) and E[S; S >= first] of a binomial S: (which, side, number of pulls, first, mean on the grid)."""
    mean, success = np.frombuffer(grid), np.arange(EXACT_CHARGES + 1.0)
    counts = pull_counts(EXACT_CHARGES)[:, None].astype(np.float64)
    failure = np.maximum(counts - success, 0)
    ways = np.where(success <= counts, -np.log1p(counts) - betaln(failure + 1, success + 1), -np.inf)  # ln of N over S
    logs = [np.log(mean), np.log1p(-mean)]
    log = np.stack([success[:, None] * one + failure[..., None] * other for one, other in (logs, logs[::-1])])
    chance = np.exp(ways[..., None] + log)
    moments: FloatArray = np.stack([chance, success[:, None] * chance])
    for first in range(EXACT_CHARGES - 1, -1, -1):
        moments[..., first, :] += moments[..., first + 1, :]
    return moments
