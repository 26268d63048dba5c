"""The charge to expect of a candidate if the mean of its rewards is taken as normal."""

import math

import numpy as np
from scipy.special import ndtr

from shortlist.arrays import FloatArray
from shortlist.certification.split.candidates import Candidates


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
