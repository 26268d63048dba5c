"""The charge to expect of every candidate, for an arm of every mean on the posterior's grid.

Predictions may be rough: no guarantee rests on them."""

import numpy as np

from shortlist.arrays import FloatArray, IntArray, product
from shortlist.certification.split import tuning
from shortlist.certification.split.binomial_charges import BinomialCharges
from shortlist.certification.split.candidates import all_candidates
from shortlist.certification.split.normal_charges import NormalCharges
from shortlist.certification.split.predicted_offsets import LEAST_VARIANCE, PredictedOffsets
from shortlist.exploration.posterior import Posterior

NEGLIGIBLE = 1e-20  # charges below this are taken as zero: denormal numbers are slow
NEVER = 1e9  # charge where no offset is right; finite, so that a weight of zero times it is zero
# of a reward at the boundary: with less, starts would be no farther than the boundary
LEAST_AT_BOUNDARY = 0.01


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
        few = int(np.searchsorted(pulls, tuning.EXACT_CHARGES, side="right"))
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
        slopes: FloatArray = self.candidates.part * strength
        return slopes

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
        charge[charge < NEGLIGIBLE] = 0.0
        charge.swapaxes(1, 2)[~possible] = NEVER
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
    largest = np.maximum(grid * (1 - grid), LEAST_VARIANCE)
    variances: FloatArray = largest * posterior.dispersion()
    return variances
