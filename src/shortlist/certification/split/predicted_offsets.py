"""Predict the offsets of candidates at any strength, fast: what no strength changes is done once.

Predictions look at a few means only, and no guarantee rests on them; offsets.py has the offsets
that are declared."""

import numpy as np
from scipy.special import betainc, log_ndtr, ndtr

from shortlist.arrays import BoolArray, FloatArray
from shortlist.certification.split import tuning
from shortlist.certification.split.candidates import Candidates
from shortlist.certification.split.closed_offsets import TINY, bounded_offset, subgaussian_offset
from shortlist.reward_models import RewardModel

LEAST_VARIANCE = 1e-3  # of a reward, where a mean of 0 or 1 would have none
# standard deviations around the start between which a normal moment is looked at
BELOW, ABOVE = 3, 6


class PredictedOffsets:
    """The least offsets that are right for rewards of this kind: (sides, candidates)."""

    def __init__(self, candidates: Candidates, variance: float, rewards: RewardModel) -> None:
        self.candidates = candidates
        self.rewards = rewards
        pulls, start, _, edge, _ = candidates
        possible = (start >= 0) & (start < pulls)
        exact = pulls <= tuning.EXACT_OFFSETS
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
        self.gap: FloatArray = reach * np.linspace(0, 1, tuning.POINTS) ** 1.5
        self.mean: FloatArray = self.edge + self.gap
        # A of exact_offsets.py
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
        deviations = (BELOW + ABOVE) * np.linspace(0, 1, tuning.POINTS) - BELOW
        gap = np.maximum(free_up_to + sigma * deviations, 0)
        self.gap: FloatArray = np.minimum(gap, self.reach[:, None])  # (candidates, points)
        self.last: FloatArray = self.gap[:, -1]
        mean = edge[:, None] + self.gap
        variances = np.maximum(mean * (1 - mean), LEAST_VARIANCE)
        self.sigma: FloatArray = np.sqrt(variances / pulls[:, None])
        self.beyond: FloatArray = (self.gap - free_up_to) / self.sigma
        self.log_free: FloatArray = log_ndtr(-self.beyond)  # ln A

    def at(self, strength: float, closed: FloatArray) -> FloatArray:
        """The offsets at this strength, given the `closed` form beyond the last point."""
        slope = strength * self.part[:, None]
        free = np.exp(np.minimum(self.log_free + strength * self.gap, 0))
        # a tilted normal law is a normal law of another mean, by slope sigma^2
        log_moment = (strength - slope) * self.gap + (slope * self.sigma) ** 2 / 2
        above = np.maximum(ndtr(self.beyond - slope * self.sigma), TINY)
        with np.errstate(divide="ignore"):  # no room: no offset
            local = (log_moment + np.log(above / (1 - free))).max(axis=1)
        tail = np.where(self.last < self.reach, closed, -np.inf)
        offset: FloatArray = np.maximum(local, tail)
        return offset
