"""When a plan stops an arm and how it labels it then: by expected loss under a blunt belief.

An arm goes on while the smaller of its two expected exponential losses, per pull, exceeds a
threshold. Exponential, since that is what (*) of docs/plans.md charges; blunt, since what the pilot
says is no proof: where it is sure, fresh rewards have to say it again."""

import math
from dataclasses import replace

import numpy as np
from scipy.special import gammaln

from shortlist.arrays import FloatArray, IntArray, product
from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Belief, Group
from shortlist.certification.plans.losses import FREE, IN, OUT, Stakes
from shortlist.certification.plans.stop_states import Level

LARGEST_EXPONENT = 40.0
LEAST_VARIANCE = 0.02  # of a reward at the boundary, where the width of bands is concerned
TINY = 1e-300

Nodes = list[tuple[float, float]]  # boundaries, and how much each of them counts


class Policy:
    """Levels and labels for a group of arms."""

    def __init__(self, group: Group, belief: Belief, stakes: Stakes, nodes: Nodes) -> None:
        self.group = group
        self.stakes = stakes
        self.grid = belief.grid
        self.prior = (1 - tuning.SOFT) * group.blunt + tuning.SOFT * belief.all_arms
        self.believed = (1 - tuning.DOUBT) * group.sharp + tuning.DOUBT * belief.all_arms
        self.nodes = nodes
        self._losses = self._exponential_losses()
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
        self, pulls: FloatArray, successes: FloatArray, boundaries: FloatArray, bands: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Labels at every boundary, and by how much IN is better: (states, boundaries) each.

        FREE if the smaller expected loss exceeds its share `bands` of the larger one."""
        posterior = self._posterior(pulls, successes)
        gaps = self.grid[:, None] - boundaries
        if_out = product(posterior, np.maximum(gaps, 0))
        means = product(posterior, self.grid[:, None])
        if_in = np.maximum(if_out - (means - boundaries), 0)  # they differ by the expected gap
        close = np.minimum(if_in, if_out) > bands * np.maximum(if_in, if_out)
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
        losses /= min(tuning.BLUNT, self.group.pulls) + pulls
        both = np.stack([losses, self._likely(pulls, middles)])
        return _Band(pulls, low, *np.repeat(both, width, axis=1)[:, : high + 1 - low])

    def _likely(self, pulls: int, successes: FloatArray) -> FloatArray:
        """How likely numbers of successes after so many pulls are believed to be."""
        failures = pulls - successes
        log_paths = gammaln(pulls + 1) - gammaln(successes + 1) - gammaln(failures + 1)
        log = successes[:, None] * np.log(self.grid) + failures[:, None] * np.log1p(-self.grid)
        likely: FloatArray = product(np.exp(log + log_paths[:, None]), self.believed[:, None])[:, 0]
        return likely

    def _least_loss(self, pulls: FloatArray, successes: FloatArray) -> FloatArray:
        """The smaller of the expected exponential losses of IN and OUT, in every state.

        On average over the boundaries that plans are made for."""
        losses = product(self._posterior(pulls, successes), self._losses)
        of_labels = losses.reshape(pulls.size, len(self.nodes), 2)
        weights = np.array([weight for _, weight in self.nodes])
        least: FloatArray = product(of_labels.min(axis=2), weights[:, None])[:, 0]
        return least

    def _exponential_losses(self) -> FloatArray:
        """Of OUT and of IN at every boundary that plans are made for: (grid, boundaries * 2)."""
        columns = []
        for boundary, _ in self.nodes:
            stakes = replace(self.stakes, boundary=boundary)
            exponents = np.minimum(stakes.exponents(self.grid), LARGEST_EXPONENT)
            losses = np.expm1(exponents) / stakes.strength
            above = self.grid > boundary
            columns += [losses * above, losses * ~above]
        return np.stack(columns, axis=1)


class _Band:
    """Successes at a level for which an arm may go on: expected loss per pull, how likely."""

    def __init__(self, pulls: int, low: int, loss: FloatArray, likely: FloatArray) -> None:
        self.pulls = pulls
        self.low = low
        self.loss = loss
        self.likely = likely

    def level(self, threshold: float) -> Level:
        """Where arms stop: nowhere, if they rarely would. Ever fewer stop, the less may be lost."""
        stops = np.ones(self.pulls + 1, dtype=np.bool_)
        goes_on = self.loss > threshold
        if self.pulls >= tuning.MOST_PULLS or not goes_on.any():
            return Level(self.pulls, stops)
        if math.fsum(self.likely[goes_on]) > 1 - tuning.RARE:  # exact: it grows with `goes_on`
            return Level(self.pulls, np.zeros_like(stops))
        stops[self.low : self.low + goes_on.size] = ~goes_on
        return Level(self.pulls, stops)
