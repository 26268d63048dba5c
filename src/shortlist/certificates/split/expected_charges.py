"""The candidates for certifying an arm, and their expected charges at any strength.

A candidate is a number of pulls N, a start (successes that are not charged) and a slope. Its charge
is predicted for every mean on the posterior's grid: with binomial probabilities for few pulls, with
a normal mean of rewards for many. What does not depend on the strength is computed once.

Where rewards in [0, 1] are not 0/1, a candidate is a number of pulls and a bet: a share of
strength / N, but never more than a share of the largest loss. Their variance gives a discount. Arms
differ in their dispersion, the variance of their rewards relative to 0/1 rewards of the same mean,
and are planned in a few classes of it.

Predictions may be rough: no guarantee rests on them. offsets.py has the offsets that are
declared."""

import math
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.special import betainc, betaln, log_ndtr, ndtr

from shortlist.arrays import BoolArray, FloatArray, IntArray, product
from shortlist.certificates.split.bound import discount
from shortlist.certificates.split.offsets import TINY, bounded_offset, subgaussian_offset
from shortlist.exploration.posterior import Posterior
from shortlist.reward_models import RewardModel

# These cost pulls or time; no bound rests on them.
ONE_BY_ONE = 8  # pulls up to which every number of pulls is a candidate, ...
PULLS_RATIO = 1.4  # ... and ratio of the pulls of two candidates from there on ...
FINE_RATIO = 1.2  # ... where rewards are not 0 or 1
STARTS = (0.3, 0.9, 1.5)  # standard deviations beyond the boundary that are not charged
FLAT_SLOPE = 0.3  # slope of the candidates that are not steep, as a part of the strength ...
STEEP_REACH = 0.3  # ... which are not tried from this reach on, in units of the range
OFFSET_POINTS = 20  # means at which a predicted moment is computed
EXACT_OFFSETS = 64  # pulls up to which predicted offsets are binomial, not normal
EXACT_CHARGES = 16  # pulls up to which expected charges are binomial, not normal
# bets on rewards that are not 0 or 1: a share of strength / N, and the largest loss
BETS = ((1.0, 0.95), (0.5, 0.8), (0.25, 0.6), (0.1, 0.35))
CLASSES = 5  # classes of dispersion in which arms are planned

MOST_COUNTED = 2**62  # pulls beyond which no candidate is needed, as they could not be counted
LEAST_BIT_VARIANCE = 1e-3  # of 0/1 rewards, where a mean of 0 or 1 would have none
NEAR_MEANS = 1e-3  # distance of two means between which a discount is taken as linear
NO_DEVIATION = 1e-9  # standard deviation of an exponent that has none
NEGLIGIBLE_CHARGE = 1e-20  # charges below this are taken as zero: denormal numbers are slow
NO_OFFSET = 1e9  # charge where no offset is right; finite, so that 0 times it is 0
# of a reward at the boundary: with less, starts would be no farther than the boundary
LEAST_AT_BOUNDARY = 0.01
BELOW_START, ABOVE_START = 3, 6  # deviations around the start where a normal moment is computed

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
    deviations = (-np.inf, *STARTS) if rewards.is_binary else (-np.inf,)
    parts = (1.0,) if reach >= STEEP_REACH else (1.0, FLAT_SLOPE)
    offered = pull_counts(most).size * len(deviations) * len(parts)
    table = _combinations(ONE_BY_ONE, PULLS_RATIO, deviations, parts)
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
    return _counts(ONE_BY_ONE, PULLS_RATIO)


def pull_counts(most: int, ratio: float | None = None) -> IntArray:
    """The numbers of pulls that candidates have, the last no less than `most`."""
    counts = _counts(ONE_BY_ONE, ratio or PULLS_RATIO)
    return counts[: int(np.searchsorted(counts, most)) + 1]


@lru_cache(maxsize=8)
def _counts(one_by_one: int, ratio: float) -> IntArray:
    counts = [1]
    while counts[-1] < MOST_COUNTED:
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
    """The same array, made read-only so that a cache can return it."""
    array.flags.writeable = False
    return array


class BinomialCharges:
    """E[part (S/N - edge) + intercept ; S >= first], S binomial with every mean on the grid."""

    def __init__(self, candidates: Candidates, grid: FloatArray) -> None:
        self.candidates = candidates
        counts = all_counts()
        counts = counts[counts <= EXACT_CHARGES]
        # (2, sides, counts, first, grid)
        self.moments = _upper_moments(grid.tobytes(), tuple(counts.tolist()))
        self.side: IntArray = np.arange(2)[:, None]  # (sides, 1)
        self.count: IntArray = np.searchsorted(counts, candidates.pulls)  # (sides, candidates)

    def at(self, intercept: FloatArray) -> FloatArray:
        """The charges for such intercepts, (sides, candidates): (sides, grid, candidates)."""
        pulls, start, part, edge, _ = self.candidates
        free = np.maximum(start, pulls * (edge - intercept / part))  # no charge is negative
        first = np.minimum(np.maximum(np.floor(free) + 1, 0), pulls).astype(np.int64)
        # (2, sides, candidates, grid), then (sides, grid, candidates) each
        chance, successes = self.moments[:, self.side, self.count, first].swapaxes(2, 3)
        slope = (part / pulls)[:, None]
        at_none = (intercept - part * edge)[:, None]  # what S = 0 would be charged
        charge: FloatArray = slope * successes + at_none * chance
        return charge


@lru_cache(maxsize=4)
def _upper_moments(grid: bytes, counts: tuple[int, ...]) -> FloatArray:
    """P(S >= first) and E[S; S >= first] for S binomial, of every number of pulls and every mean.

    Shape (2, sides, counts, first, grid); inside the set failures count, so the mean is mirrored.
    The grid is passed as bytes, by which the cache can find it."""
    mean = np.frombuffer(grid)
    successes = np.arange(counts[-1] + 1.0)
    pulls = np.array(counts, dtype=np.float64)[:, None]  # (counts, 1)
    chance = np.stack(
        [
            _chances(pulls, successes, np.log(mean), np.log1p(-mean)),
            _chances(pulls, successes, np.log1p(-mean), np.log(mean)),
        ]
    )  # (sides, counts, successes, grid)
    moments: FloatArray = np.stack([chance, successes[:, None] * chance])
    for first in range(successes.size - 2, -1, -1):  # sums from above, smallest terms first
        moments[..., first, :] += moments[..., first + 1, :]
    return read_only(moments)


def _chances(
    pulls: FloatArray, successes: FloatArray, log_mean: FloatArray, log_rest: FloatArray
) -> FloatArray:
    """P(S = successes) for S binomial: (counts, successes, grid)."""
    failures = np.maximum(pulls - successes, 0)  # (counts, successes)
    log_choose = -np.log1p(pulls) - betaln(failures + 1, successes + 1)
    log_choose = np.where(successes <= pulls, log_choose, -np.inf)
    log_power = successes[:, None] * log_mean + failures[..., None] * log_rest
    return np.exp(log_choose[..., None] + log_power)


class NormalCharges:
    """E[(part (y - edge) + intercept)_+ ; y beyond the start], y normal around every mean.

    With z the distance of the mean from the first charged y in standard deviations sigma, it is
    (part * gap + intercept) Phi(z) + part * sigma * phi(z)."""

    def __init__(self, candidates: Candidates, gap: FloatArray, variance: FloatArray) -> None:
        """`gap` is the distance of every mean on the grid from the boundary: (grid,)."""
        pulls = candidates.pulls[0]  # (candidates,): the same on both sides
        self.part: FloatArray = candidates.part[0]  # (candidates,)
        # (sides, candidates): where charging begins, from the boundary; 1/2 corrects for continuity
        self.start: FloatArray = (candidates.start + 0.5) / candidates.pulls - candidates.edge
        self.gap: FloatArray = np.array([gap, -gap])[:, :, None]  # (sides, grid, 1)
        sigma = np.sqrt(variance[:, None] / pulls)  # (grid, candidates)
        self.precision: FloatArray = 1 / sigma
        self.scaled_gap: FloatArray = self.gap * self.precision  # (sides, grid, candidates)
        self.peak: FloatArray = self.part * sigma / math.sqrt(2 * math.pi)  # (grid, candidates)

    def at(self, intercept: FloatArray) -> FloatArray:
        """The charges for such intercepts, (sides, candidates): (sides, grid, candidates)."""
        first = np.maximum(self.start, -intercept / self.part)  # no charge is negative
        z = self.scaled_gap - first[:, None] * self.precision
        charge: FloatArray = (self.part * self.gap + intercept[:, None]) * ndtr(z)
        charge += self.peak * np.exp(-z * z / 2)
        return charge


class ScoreCharges:
    """The candidates to certify an arm, and the charge to expect of them at any strength."""

    def __init__(self, posterior: Posterior, boundary: float, reach: float, most: int) -> None:
        counts = pull_counts(most, FINE_RATIO).astype(np.float64)
        bets = np.array(BETS)  # (bets, 2)
        self.share, self.risk = np.tile(bets, (counts.size, 1)).T  # (candidates,) each
        edge = np.array([[boundary], [1 - boundary]])  # (sides, 1)
        self.candidates = Candidates(*np.empty((5, 2, self.share.size)))
        self.candidates.pulls[:] = np.repeat(counts, len(bets))
        self.candidates.start[:] = -np.inf
        self.candidates.edge[:] = edge
        self.candidates.reach[:] = np.minimum(reach, 1 - edge)
        self.mean: FloatArray = np.array([posterior.grid, 1 - posterior.grid])[:, :, None]
        self.weights = posterior.weights  # (rows, grid)
        self.kind, self.dispersion = _classes(posterior.dispersions())  # (rows,), (classes,)

    def slopes(self, strength: float) -> FloatArray:
        """The slope of every candidate: (sides, candidates).

        That for which the product of 1 - u X is, up to a constant, that of 1 + bet (edge - X)."""
        pulls, _, _, edge, _ = self.candidates
        bet = np.minimum(
            self.share * strength / pulls, self.risk / np.maximum(1 - edge, NO_DEVIATION)
        )
        slopes: FloatArray = pulls * (np.log1p(bet * edge) - np.log1p(-bet * (1 - edge)))
        return slopes

    def expected(self, strength: float, side: IntArray, row: IntArray) -> FloatArray:
        """The charge to expect of groups of arms: (groups, candidates)."""
        charge = np.empty((row.size, self.share.size))
        for kind in np.unique(self.kind[row]):
            sides = self.at(strength, float(self.dispersion[kind]))
            for here, of_side in enumerate(sides):
                those = (self.kind[row] == kind) & (side == here)
                charge[those] = product(self.weights[row[those]], of_side)
        return charge

    def at(self, strength: float, dispersion: float) -> FloatArray:
        """The charge at every mean of the grid: (sides, grid, candidates).

        The exponent is taken as normal, with its slope at the mean."""
        pulls, _, _, edge, reach = self.candidates
        slope = self.slopes(strength)
        fixed = bounded_offset(pulls, edge, edge, strength, reach, slope) - slope * edge
        slope, count = slope[:, None], pulls[0]
        variance = dispersion * np.maximum(self.mean * (1 - self.mean), LEAST_BIT_VARIANCE)

        def exponent(mean: FloatArray) -> FloatArray:
            return slope * mean - discount(count, mean, variance, slope)

        steepness = (exponent(self.mean + NEAR_MEANS) - exponent(self.mean - NEAR_MEANS)) / (
            2 * NEAR_MEANS
        )
        spread = np.abs(steepness) * np.sqrt(variance / count) + NO_DEVIATION
        centre = exponent(self.mean) + fixed[:, None]
        z = centre / spread
        charge = centre * ndtr(z) + spread * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return np.where(charge > NEGLIGIBLE_CHARGE, charge, 0.0) / strength


def _classes(dispersions: FloatArray) -> tuple[IntArray, FloatArray]:
    """The class of every arm, and the dispersion of every class: (arms,), (classes,)."""
    least, most = float(dispersions.min()), float(dispersions.max())
    edges = np.geomspace(0.999 * least, 1.001 * most, CLASSES + 1)
    kind = np.searchsorted(edges, dispersions) - 1
    middle: FloatArray = np.sqrt(edges[1:] * edges[:-1])
    return kind, middle


class PredictedOffsets:
    """The least offsets that are right for rewards of this kind: (sides, candidates)."""

    def __init__(self, candidates: Candidates, variance: float, rewards: RewardModel) -> None:
        self.candidates = candidates
        self.rewards = rewards
        pulls, start, _, edge, _ = candidates
        possible = (start >= 0) & (start < pulls)
        exact = pulls <= EXACT_OFFSETS
        self.impossible: BoolArray = np.isfinite(start) & ~possible
        self.few: BoolArray = possible & exact
        self.many: BoolArray = possible & ~exact
        self.binomial = BinomialOffsets(candidates.where(self.few))
        self.normal = NormalOffsets(candidates.where(self.many), variance)
        self.low: FloatArray = edge.copy()  # the mean from which on the closed form is to hold
        self.low[self.many] += self.normal.last

    def at(self, strength: float) -> FloatArray:
        """The offsets at this strength; infinite where there is none."""
        pulls, _, part, edge, reach = self.candidates
        slope = part * strength
        if not self.rewards.has_range:
            return subgaussian_offset(pulls, strength, reach, slope)
        offset = bounded_offset(pulls, edge, self.low, strength, reach, slope)
        offset[self.few] = self.binomial.at(strength)
        offset[self.many] = self.normal.at(strength, offset[self.many])
        offset[self.impossible] = np.inf
        return offset


class BinomialOffsets:
    """`binary_offset` at a few means, without what makes it right between them."""

    def __init__(self, candidates: Candidates) -> None:
        # (candidates, 1) each
        self.pulls, self.start, self.part, self.edge, reach = (each[:, None] for each in candidates)
        # (candidates, points), denser near the boundary
        self.gap: FloatArray = reach * np.linspace(0, 1, OFFSET_POINTS) ** 1.5
        self.mean: FloatArray = self.edge + self.gap
        # A of offsets.py
        self.free = np.asarray(
            betainc(self.pulls - self.start, self.start + 1, 1 - self.mean), dtype=np.float64
        )

    def at(self, strength: float) -> FloatArray:
        """The offsets at this strength: (candidates,)."""
        slope = self.part * strength
        tilt = slope / self.pulls
        moment = np.maximum(1 + self.mean * np.expm1(-tilt), TINY)  # of one reward
        tilted = np.minimum(self.mean * np.exp(-tilt) / moment, 1)
        above = np.maximum(betainc(self.start + 1, self.pulls - self.start, tilted), TINY)
        room = np.maximum(np.exp(-strength * self.gap) - self.free, 0)
        log_moment = self.pulls * np.log(moment) + slope * self.edge
        with np.errstate(divide="ignore", over="ignore"):  # no room: no offset
            offset: FloatArray = (log_moment + np.log(above / room)).max(axis=1)
        return offset


class NormalOffsets:
    """`binary_offset` with normal probabilities at a few means around the start.

    Beyond the `last` of them the closed form counts. All quantities are relative to what is
    allowed, exp(-strength * gap), so that none of them underflows."""

    def __init__(self, candidates: Candidates, variance: float) -> None:
        pulls, start, self.part, edge, self.reach = candidates  # (candidates,) each
        # (candidates, 1): how far beyond the boundary nothing is charged; 1/2 is for continuity
        free_up_to = ((start + 0.5) / pulls - edge)[:, None]
        sigma = np.sqrt(variance / pulls)[:, None]
        deviations = (BELOW_START + ABOVE_START) * np.linspace(0, 1, OFFSET_POINTS) - BELOW_START
        gap = np.maximum(free_up_to + sigma * deviations, 0)
        self.gap: FloatArray = np.minimum(gap, self.reach[:, None])  # (candidates, points)
        self.last: FloatArray = self.gap[:, -1]
        mean = edge[:, None] + self.gap
        variances = np.maximum(mean * (1 - mean), LEAST_BIT_VARIANCE)
        self.sigma: FloatArray = np.sqrt(variances / pulls[:, None])
        self.beyond: FloatArray = (self.gap - free_up_to) / self.sigma
        self.log_free: FloatArray = log_ndtr(-self.beyond)  # ln A

    def at(self, strength: float, closed: FloatArray) -> FloatArray:
        """The offsets at this strength, given the `closed` form beyond the last point."""
        slope = strength * self.part[:, None]
        free = np.exp(np.minimum(self.log_free + strength * self.gap, 0))
        # a tilted normal distribution is normal with another mean, by slope sigma^2
        log_moment = (strength - slope) * self.gap + (slope * self.sigma) ** 2 / 2
        above = np.maximum(ndtr(self.beyond - slope * self.sigma), TINY)
        with np.errstate(divide="ignore"):  # no room: no offset
            local = (log_moment + np.log(above / (1 - free))).max(axis=1)
        tail = np.where(self.last < self.reach, closed, -np.inf)
        offset: FloatArray = np.maximum(local, tail)
        return offset


class ExpectedCharges:
    """The candidates to certify an arm, and the charge to expect of them at any strength."""

    def __init__(self, posterior: Posterior, boundary: float, reach: float, most: int) -> None:
        rewards = posterior.rewards
        self.weights = posterior.weights  # (rows, grid)
        at_boundary = _variance_at(boundary, posterior)
        self.candidates = all_candidates(most, boundary, reach, at_boundary, rewards)
        self.offsets = PredictedOffsets(self.candidates, at_boundary, rewards)
        # candidates come by pulls: the first `few` have few enough for binomial probabilities
        pulls = self.candidates.pulls[0]
        few = int(np.searchsorted(pulls, EXACT_CHARGES, side="right"))
        self.few = few if rewards.is_binary else 0
        self.normal = NormalCharges(
            self.candidates.between(slice(self.few, None)),
            posterior.grid - boundary,
            _variances(posterior),
        )
        self.binomial = (
            BinomialCharges(self.candidates.between(slice(self.few)), posterior.grid)
            if self.few
            else None
        )

    def slopes(self, strength: float) -> FloatArray:
        """The slope of every candidate: (sides, candidates)."""
        return self.candidates.part * strength

    def expected(self, strength: float, side: IntArray, row: IntArray) -> FloatArray:
        """The charge to expect of groups of arms, those outside first: (groups, candidates)."""
        of_sides = self.at(strength)  # (sides, grid, candidates)
        parts = [product(self.weights[row[side == here]], of_sides[here]) for here in (0, 1)]
        return np.concatenate(parts)

    def at(self, strength: float) -> FloatArray:
        """The charges at this strength: (sides, grid, candidates)."""
        intercept = self.offsets.at(strength) / strength  # (sides, candidates)
        possible = np.isfinite(intercept)
        intercept = np.where(possible, intercept, 0.0)
        charge = self.normal.at(intercept[:, self.few :])
        if self.binomial is not None:
            exact = self.binomial.at(intercept[:, : self.few])
            charge = np.concatenate([exact, charge], axis=2)
        charge[charge < NEGLIGIBLE_CHARGE] = 0.0
        charge.swapaxes(1, 2)[~possible] = NO_OFFSET
        return charge


def _variance_at(boundary: float, posterior: Posterior) -> float:
    """The variance of a reward whose mean is at the boundary, as large as it can be."""
    if not posterior.rewards.has_range:
        return 0.25
    return max(boundary * (1 - boundary), LEAST_AT_BOUNDARY)


def _variances(posterior: Posterior) -> FloatArray:
    """The variance of a reward at every mean of the grid, as the rewards seen suggest: (grid,)."""
    grid = posterior.grid
    if not posterior.rewards.has_range:
        return np.full(grid.size, posterior.variance())
    largest = np.maximum(grid * (1 - grid), LEAST_BIT_VARIANCE)
    return largest * posterior.dispersion()
