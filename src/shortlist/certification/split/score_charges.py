"""The charge to expect where rewards in [0, 1] are not coin tosses: their spread gives a discount.

A candidate is a number of pulls and a bet: a share of strength / N, but never more than a share of
what can be lost. Means of rewards are taken as normal. Arms differ in their dispersion, the
variance of their rewards relative to 0/1 rewards of the same mean, and are planned in a few classes
of it. Predictions may be rough: no guarantee rests on them."""

import math

import numpy as np
from scipy.special import ndtr

from shortlist.arrays import FloatArray, IntArray, product
from shortlist.certification.split import tuning
from shortlist.certification.split.candidates import Candidates, pull_counts
from shortlist.certification.split.closed_offsets import bounded_offset
from shortlist.certification.split.discount import discount
from shortlist.exploration.posterior import Posterior

LEAST_VARIANCE = 1e-3  # of 0/1 rewards, where a mean of 0 or 1 would have none
NEAR = 1e-3  # distance of two means between which a discount is taken as linear
SURE = 1e-9  # standard deviation of an exponent that has none
NEGLIGIBLE = 1e-20  # charges below this are taken as zero: denormal numbers are slow


class ScoreCharges:
    """The candidates to certify an arm, and the charge to expect of them at any strength."""

    def __init__(self, posterior: Posterior, boundary: float, reach: float, most: int) -> None:
        counts = pull_counts(most, tuning.FINE_RATIO).astype(np.float64)
        bets = np.array(tuning.BETS)  # (bets, 2)
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
        bet = np.minimum(self.share * strength / pulls, self.risk / np.maximum(1 - edge, SURE))
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
        variance = dispersion * np.maximum(self.mean * (1 - self.mean), LEAST_VARIANCE)

        def exponent(mean: FloatArray) -> FloatArray:
            result: FloatArray = slope * mean - discount(count, mean, variance, slope)
            return result

        steepness = (exponent(self.mean + NEAR) - exponent(self.mean - NEAR)) / (2 * NEAR)
        spread = np.abs(steepness) * np.sqrt(variance / count) + SURE
        centre = exponent(self.mean) + fixed[:, None]
        z = centre / spread
        charge = centre * ndtr(z) + spread * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return np.where(charge > NEGLIGIBLE, charge, 0.0) / strength


def _classes(dispersions: FloatArray) -> tuple[IntArray, FloatArray]:
    """The class of every arm, and the dispersion of every class: (arms,), (classes,)."""
    least, most = float(dispersions.min()), float(dispersions.max())
    edges = np.geomspace(0.999 * least, 1.001 * most, tuning.CLASSES + 1)
    kind = np.searchsorted(edges, dispersions) - 1
    middle: FloatArray = np.sqrt(edges[1:] * edges[:-1])
    return kind, middle
