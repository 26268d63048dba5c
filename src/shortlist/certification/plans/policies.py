"""When a plan stops an arm: by expected loss under a blunt belief.

An arm goes on while the smaller of its two expected exponential losses, by the root of its pulls,
exceeds a threshold. Exponential, since that is what (*) of docs/plans.md charges; blunt, since what
the pilot says is no proof: where it is sure, fresh rewards have to say it again."""

import math
from dataclasses import replace

import numpy as np

from shortlist.arrays import FloatArray, product
from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Belief, Group
from shortlist.certification.plans.losses import Stakes
from shortlist.certification.plans.priors import chances
from shortlist.certification.plans.stop_states import Level

LARGEST_EXPONENT = 40.0
LEAST_VARIANCE = 0.02  # of a reward at the boundary, where the width of bands is concerned

Nodes = list[tuple[float, float]]  # boundaries, and how much each of them counts


class Policy:
    """Levels for a group of arms."""

    def __init__(self, group: Group, belief: Belief, stakes: Stakes, nodes: Nodes) -> None:
        self.group = group
        self.stakes = stakes
        self.outlook = belief.outlook(group).smoothed(tuning.SMOOTHED * belief.deviation)
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

    def _next_band(self) -> "_Band":
        """Where arms may go on at the next level, and what speaks for it."""
        pulls = max(tuning.FIRST_LEVEL, int(tuning.FIRST_PART * self.group.pulls))
        if self._bands:
            last = self._bands[-1].pulls
            ratio = tuning.RATIO if self._in_doubt(last) > tuning.FEW_IN_DOUBT else tuning.FAR_RATIO
            pulls = min(max(last + 1, math.ceil(ratio * last)), tuning.MOST_PULLS)
        b = self.stakes.boundary
        deviation = math.sqrt(pulls * max(b * (1 - b), LEAST_VARIANCE))
        low = max(0, math.floor(pulls * b - tuning.BAND * deviation - 1))
        high = min(pulls, math.ceil(pulls * b + tuning.BAND * deviation + 1))
        width = max(1, int(tuning.BIN * deviation))
        middles = np.minimum(np.arange(low, high + 1, width) + (width - 1) / 2, pulls)
        losses = self._least_loss(np.full(middles.size, float(pulls)), middles)
        losses /= (min(tuning.BLUNT, self.group.pulls) + pulls) ** tuning.PER_PULL
        both = np.stack([losses, self._likely(pulls, middles)])
        return _Band(pulls, low, *np.repeat(both, width, axis=1)[:, : high + 1 - low])

    def _in_doubt(self, pulls: int) -> float:
        """How likely a mean is within two standard deviations of the boundary after so many."""
        b = self.stakes.boundary
        deviation = math.sqrt(max(b * (1 - b), LEAST_VARIANCE) / pulls)
        close = np.abs(self.outlook.grid - b) < 2 * deviation
        return float(self.outlook.believed[close].sum())

    def _likely(self, pulls: int, successes: FloatArray) -> FloatArray:
        """How likely numbers of successes after so many pulls are believed to be."""
        by_mean = chances(pulls, successes, self.outlook.grid)
        likely: FloatArray = product(by_mean, self.outlook.believed[:, None])[:, 0]
        return likely

    def _least_loss(self, pulls: FloatArray, successes: FloatArray) -> FloatArray:
        """The smaller of the expected exponential losses of taking and leaving, in every state.

        On average over the boundaries that plans are made for."""
        losses = product(self.outlook.posterior(pulls, successes), self._losses)
        both_ways = losses.reshape(pulls.size, len(self.nodes), 2)
        weights = np.array([weight for _, weight in self.nodes])
        least: FloatArray = product(both_ways.min(axis=2), weights[:, None])[:, 0]
        return least

    def _exponential_losses(self) -> FloatArray:
        """Of leaving and of taking at every boundary plans are made for: (grid, boundaries * 2)."""
        grid, columns = self.outlook.grid, []
        for boundary, _ in self.nodes:
            stakes = replace(self.stakes, boundary=boundary)
            exponents = np.minimum(stakes.strength * stakes.distances(grid), LARGEST_EXPONENT)
            losses = np.expm1(exponents) / stakes.strength
            above = grid > boundary
            columns += [losses * above, losses * ~above]
        return np.stack(columns, axis=1)


class _Band:
    """Successes at a level for which an arm may go on: what speaks for it, how likely they are."""

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
