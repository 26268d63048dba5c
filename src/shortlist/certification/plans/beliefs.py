"""What all rewards so far say about the means, finest next to the boundary.

One prior for all arms, by nonparametric maximum likelihood as in `exploration`, but on a grid that
resolves the boundary far better than the rewards so far do: plans will draw many more."""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray, IntArray, product
from shortlist.certification.plans import tuning
from shortlist.grouping import grouped_by

QUARTER = math.pi / 2  # the largest angle: a mean is sin(angle)^2
EDGE = 0.02  # least angle of a mean, and least distance from the largest angle
LEAST_SPREAD = 1e-5  # of a belief
OUTERMOST = 2e-3  # no boundary is nearer to 0 or 1


@dataclass(frozen=True, slots=True)
class Group:
    """Arms about which the same is believed, and the mean belief about them."""

    arms: IntArray
    pulls: float  # of an arm so far, on average
    sharp: FloatArray  # (grid,): the belief
    blunt: FloatArray  # (grid,): if no arm had been pulled more than BLUNT times


class Belief:
    """The posterior of every arm on a grid, and where the boundary is believed to be."""

    def __init__(self, pulls: IntArray, sums: FloatArray, k: int, guess: float) -> None:
        rows, self.row = grouped_by(pulls.astype(np.float64), sums)
        self.row_pulls, self.row_sums = rows  # (rows,) each
        self.sizes = np.bincount(self.row).astype(np.float64)  # (rows,): arms
        self.k = k
        self._fit(guess)
        self._fit(self._balance())
        self.boundary = float(np.clip(self._balance(), OUTERMOST, 1 - OUTERMOST))
        self.error = self._error()

    @property
    def all_arms(self) -> FloatArray:
        """The mean belief about all arms: (grid,)."""
        mean: FloatArray = self.expected / self.row.size
        return mean

    def groups(self) -> list[Group]:
        """Arms of similar pulls that are believed to be similarly far from the boundary."""
        means = np.einsum("rg,g->r", self.sharp, self.grid)
        variances = np.einsum("rg,g->r", self.sharp, self.grid**2) - means**2
        deviations = (means - self.boundary) / np.sqrt(np.maximum(variances, LEAST_SPREAD**2))
        place = np.digitize(deviations, tuning.ALIKE).astype(np.int64)  # (rows,)
        often = np.log(self.row_pulls / self.row_pulls.min()) / math.log(tuning.ALIKE_PULLS)
        kinds, group = grouped_by(place[self.row], often.astype(np.int64)[self.row])
        return [self._group(np.flatnonzero(group == each)) for each in range(kinds[0].size)]

    def _group(self, arms: IntArray) -> Group:
        shares = np.bincount(self.row[arms], minlength=self.sizes.size)[None] / arms.size
        pulls = product(shares, self.row_pulls[:, None])
        sharp = product(shares, self.sharp)[0]
        blunt = product(shares, self.blunt)[0]
        return Group(arms, float(pulls[0, 0]), sharp, blunt)

    def _fit(self, boundary: float) -> None:
        """Fit the prior on a grid around this boundary by EM, and every posterior."""
        self.grid = grid_around(boundary)  # (grid,)
        log = self.row_sums[:, None] * np.log(self.grid)
        log += (self.row_pulls - self.row_sums)[:, None] * np.log1p(-self.grid)
        log -= log.max(axis=1, keepdims=True)  # (rows, grid)
        prior = _prior(np.exp(log), self.sizes / self.sizes.sum(), self.grid)
        self.sharp = _normalised(np.exp(log) * prior)  # (rows, grid)
        power = np.minimum(1.0, tuning.BLUNT / self.row_pulls)[:, None]
        self.blunt = _normalised(np.exp(power * log) * prior)  # (rows, grid)
        self.expected = product(self.sizes[None], self.sharp)[0]  # (grid,): arms

    def _balance(self) -> float:
        """Where k arms are expected above."""
        above = np.cumsum(self.expected[::-1])[::-1] - self.expected / 2
        return float(np.interp(-self.k, -above, self.grid))

    def _error(self) -> float:
        """Standard deviation of the number of arms above, by the density of arms there."""
        density = self.expected / np.gradient(self.grid)
        here = float(np.interp(self.boundary, self.grid, density))
        above = self.sharp[:, self.grid > self.boundary].sum(axis=1)
        variance = float((self.sizes * above * (1 - above)).sum())
        least = tuning.LEAST_DENSITY * self.row.size
        return max(math.sqrt(variance) / max(here, least), LEAST_SPREAD)


def grid_around(boundary: float) -> FloatArray:
    """Means that are evenly spaced in angles, and many more next to the boundary."""
    even = np.linspace(EDGE, QUARTER - EDGE, tuning.EVEN)
    steps = np.linspace(-1, 1, tuning.NEAR)
    centre = math.asin(math.sqrt(boundary))
    near = centre + tuning.NEAR_ANGLE * np.sign(steps) * steps**2
    angles = np.concatenate([even, near[(near > EDGE) & (near < QUARTER - EDGE)]])
    return np.unique(np.round(np.sin(angles) ** 2, 9))


def _prior(likelihood: FloatArray, shares: FloatArray, grid: FloatArray) -> FloatArray:
    """Steps of EM from a flat prior: the mean posterior, mixed with a flat floor."""
    flat = np.gradient(grid) / np.gradient(grid).sum()
    prior: FloatArray = flat
    for _ in range(tuning.STEPS):
        evidence = np.einsum("rg,g->r", likelihood, prior)
        mean_posterior = np.einsum("r,rg->g", shares / evidence, likelihood) * prior
        prior = (1 - tuning.FLOOR) * mean_posterior + tuning.FLOOR * flat
    return prior


def _normalised(joint: FloatArray) -> FloatArray:
    weights: FloatArray = joint / joint.sum(axis=1, keepdims=True)
    return weights
