"""Predict offsets of certificates at any strength, roughly and fast: the work that no strength
changes is done once.

No guarantee rests on it; certificate.py has the offsets that are declared."""

from typing import NamedTuple

import numpy as np
from scipy.special import betainc, log_ndtr, ndtr

from shortlist.arrays import BoolArray, FloatArray
from shortlist.certification.split.offsets import bounded_offset, subgaussian_offset
from shortlist.reward_models import RewardModel

SPREAD = np.linspace(0, 1, 20)  # where the moment of an arm is looked at, of what there is
EXACT_OFFSETS = 64  # up to so many pulls with binomial probabilities, above with normal ones
LEAST_VARIANCE = 1e-3  # of a reward, where a mean of 0 or 1 would have none
TINY = 1e-300  # stands in for what is too small for a float


class Shapes(NamedTuple):
    """How often arms are pulled and how they are charged, seen from outside the set: (sides, ways)
    each, or flat."""

    pulls: FloatArray
    start: FloatArray  # successes that are not charged; -inf: all are
    part: FloatArray  # the slope, as a part of the strength
    edge: FloatArray  # the boundary
    reach: FloatArray

    def only(self, those: BoolArray) -> "Shapes":
        """Some of the shapes, flat."""
        return Shapes(*(each[those] for each in self))

    def ways(self, those: slice) -> "Shapes":
        """Some of the ways, on both sides."""
        return Shapes(*(each[:, those] for each in self))


class PredictedOffsets:
    """The least offsets that are right for rewards of this kind."""

    def __init__(self, shapes: Shapes, variance: float, rewards: RewardModel) -> None:
        self.shapes, self.rewards = shapes, rewards
        pulls, start, _, edge, _ = shapes
        possible = (start >= 0) & (start < pulls)
        self.impossible: BoolArray = np.isfinite(start) & ~possible
        self.few: BoolArray = possible & (pulls <= EXACT_OFFSETS)
        self.many: BoolArray = possible & (pulls > EXACT_OFFSETS)
        self.binomial = BinomialOffsets(shapes.only(self.few))
        self.normal = NormalOffsets(shapes.only(self.many), variance)
        self.low: FloatArray = edge.copy()  # from where on the closed form is to hold
        self.low[self.many] += self.normal.last

    def at(self, strength: float) -> FloatArray:
        """The offsets at this strength; infinite where there is none."""
        pulls, _, part, edge, reach = self.shapes
        if not self.rewards.has_range:
            return subgaussian_offset(pulls, strength, reach, part * strength)
        offset = bounded_offset(pulls, edge, self.low, strength, reach, part * strength)
        offset[self.few] = self.binomial.at(strength)
        offset[self.many] = self.normal.at(strength, offset[self.many])
        offset[self.impossible] = np.inf
        return offset


class BinomialOffsets:
    """`binary_offset` at a few points only."""

    def __init__(self, shapes: Shapes) -> None:
        self.pulls, self.start, self.part, self.edge, reach = (each[:, None] for each in shapes)
        self.gap: FloatArray = reach * SPREAD**1.5  # (shapes, points)
        self.mean: FloatArray = self.edge + self.gap
        self.free = np.asarray(
            betainc(self.pulls - self.start, self.start + 1, 1 - self.mean), dtype=np.float64
        )

    def at(self, strength: float) -> FloatArray:
        """The offsets at this strength."""
        slope = self.part * strength
        step = slope / self.pulls
        left = np.maximum(1 + self.mean * np.expm1(-step), TINY)
        tilted = np.minimum(self.mean * np.exp(-step) / left, 1)
        above = np.maximum(betainc(self.start + 1, self.pulls - self.start, tilted), TINY)
        room = np.maximum(np.exp(-strength * self.gap) - self.free, 0)
        with np.errstate(divide="ignore", over="ignore"):  # no room: no offset
            offset: FloatArray = (
                self.pulls * np.log(left) + slope * self.edge + np.log(above / room)
            ).max(axis=1)
        return offset


class NormalOffsets:
    """`binary_offset` with normal probabilities at a few points; beyond the `last` the closed form
    counts."""

    def __init__(self, shapes: Shapes, variance: float) -> None:
        pulls, start, self.part, edge, self.reach = shapes
        free_up_to = ((start + 0.5) / pulls - edge)[:, None]
        # (shapes, points)
        gap = np.maximum(free_up_to + np.sqrt(variance / pulls)[:, None] * (9 * SPREAD - 3), 0)
        self.gap: FloatArray = np.minimum(gap, self.reach[:, None])
        self.last: FloatArray = self.gap[:, -1]
        mean = edge[:, None] + self.gap
        self.sigma: FloatArray = np.sqrt(
            np.maximum(mean * (1 - mean), LEAST_VARIANCE) / pulls[:, None]
        )
        self.beyond: FloatArray = (self.gap - free_up_to) / self.sigma
        self.log_free: FloatArray = log_ndtr(-self.beyond)

    def at(self, strength: float, closed: FloatArray) -> FloatArray:
        """The offsets at this strength, given the `closed` form beyond the last point."""
        slope = strength * self.part[:, None]
        free = np.exp(np.minimum(self.log_free + strength * self.gap, 0))  # of what is allowed
        log_charged = (strength - slope) * self.gap + (slope * self.sigma) ** 2 / 2
        with np.errstate(divide="ignore"):
            local = log_charged + np.log(
                np.maximum(ndtr(self.beyond - slope * self.sigma), TINY) / (1 - free)
            )
        offset: FloatArray = np.maximum(
            local.max(axis=1), np.where(self.last < self.reach, closed, -np.inf)
        )
        return offset
