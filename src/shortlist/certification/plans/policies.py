"""When a plan stops an arm and how it labels it then: by expected loss under a blunt belief.

An arm goes on while the smaller of its two expected exponential losses, per pull, exceeds a
threshold. Exponential, since that is what (*) of docs/plans.md charges; blunt, since what the pilot
says is no proof: where it is sure, fresh rewards have to say it again."""

import math

import numpy as np

from shortlist.arrays import FloatArray, IntArray, product
from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Belief, Group
from shortlist.certification.plans.losses import FREE, IN, OUT, Stakes
from shortlist.certification.plans.stop_states import Level

LARGEST_EXPONENT = 40.0
LEAST_VARIANCE = 0.02  # of a reward at the boundary, where the width of bands is concerned
TINY = 1e-300


class Policy:
    """Levels and labels for a group of arms."""

    def __init__(self, group: Group, belief: Belief, stakes: Stakes) -> None:
        self.group = group
        self.stakes = stakes
        self.grid = belief.grid
        self.prior = (1 - tuning.SOFT) * group.blunt + tuning.SOFT * belief.all_arms
        self.believed = (1 - tuning.DOUBT) * group.sharp + tuning.DOUBT * belief.all_arms
        self._bands: list[_Band] = []

    def levels(self, threshold: float) -> list[Level]:
        """The levels up to the one at which all arms stop."""
        levels: list[Level] = []
        while not levels or not levels[-1].stops.all():
            if len(levels) == len(self._bands):
                self._bands.append(self._next_band())
            levels.append(self._bands[len(levels)].level(threshold))
        return [each for each in levels if each.stops.any()]  # the others are no levels

    def labels(
        self, pulls: FloatArray, successes: FloatArray, boundaries: FloatArray, band: float
    ) -> tuple[IntArray, FloatArray]:
        """Labels at every boundary, and by how much IN is better: (states, boundaries) each.

        FREE if the smaller expected loss exceeds the share `band` of the larger one."""
        posterior = self._posterior(pulls, successes)
        gaps = self.grid[:, None] - boundaries
        if_in = product(posterior, np.maximum(-gaps, 0))
        if_out = product(posterior, np.maximum(gaps, 0))
        close = np.minimum(if_in, if_out) > band * np.maximum(if_in, if_out)
        labels = np.where(close, FREE, np.where(if_in < if_out, IN, OUT))
        return labels, np.log(if_out + TINY) - np.log(if_in + TINY)

    def _posterior(self, pulls: FloatArray, successes: FloatArray) -> FloatArray:
        """(states, grid)."""
        log = successes[:, None] * np.log(self.grid)
        log += (pulls - successes)[:, None] * np.log1p(-self.grid)
        joint = np.exp(log - log.max(axis=1, keepdims=True)) * self.prior
        posterior: FloatArray = joint / joint.sum(axis=1, keepdims=True)
        return posterior

    def _next_band(self) -> "_Band":
        """Where arms may go on at the next level, and what speaks for it."""
        pulls = tuning.FIRST_LEVEL
        if self._bands:
            last = self._bands[-1].pulls
            pulls = max(last + 1, math.ceil(tuning.RATIO * last))
        b = self.stakes.boundary
        deviation = math.sqrt(pulls * max(b * (1 - b), LEAST_VARIANCE))
        low = max(0, math.floor(pulls * b - tuning.BAND * deviation - 1))
        high = min(pulls, math.ceil(pulls * b + tuning.BAND * deviation + 1))
        width = max(1, int(tuning.BIN * deviation))
        middles = np.minimum(np.arange(low, high + 1, width) + (width - 1) / 2, pulls)
        losses = self._least_loss(np.full(middles.size, float(pulls)), middles)
        drawn = min(tuning.BLUNT, self.group.pulls) + pulls
        return _Band(pulls, low, np.repeat(losses / drawn, width)[: high + 1 - low])

    def _least_loss(self, pulls: FloatArray, successes: FloatArray) -> FloatArray:
        """The smaller of the expected exponential losses of IN and OUT, in every state."""
        exponents = np.minimum(self.stakes.exponents(self.grid), LARGEST_EXPONENT)
        losses = np.expm1(exponents) / self.stakes.strength
        above = self.grid > self.stakes.boundary
        both = np.stack([losses * above, losses * ~above], axis=1)  # (grid, 2)
        least: FloatArray = product(self._posterior(pulls, successes), both).min(axis=1)
        return least


class _Band:
    """Successes at a level for which an arm may go on, with their expected loss per pull."""

    def __init__(self, pulls: int, low: int, loss: FloatArray) -> None:
        self.pulls = pulls
        self.low = low
        self.loss = loss

    def level(self, threshold: float) -> Level:
        stops = np.ones(self.pulls + 1, dtype=np.bool_)
        if self.pulls < tuning.MOST_PULLS:
            stops[self.low : self.low + self.loss.size] = self.loss <= threshold
        return Level(self.pulls, stops)
