"""The exponential moment of a plan at *every* mean: the check of (*) in docs/plans.md.

With q = exp(-strength * charge) it is M(m) = sum over s of p_m(s) exp(strength L(s, m)) q(s). Cut
[0, 1] into cells that straddle neither the boundary nor the ends of the reach. In a cell of centre
c and half-width h each ln p_m(s) is concave in m, hence below its tangent at c, of slope(s), and L
is convex in m, hence below its chord. So for |t| <= h

    M(c + t) <= sum over s of p_c(s) q(s) exp(slope(s) t + strength * chord(s, t)).

That is convex in t: the larger of its values at the ends of the cell, where the chord is L, bounds
M in all of it. (Lemma 2) Cells whose bound exceeds the largest moment at any centre are halved,
again and again."""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.losses import Stakes
from shortlist.certification.plans.stop_states import StopStates

ROUNDING = 1e-7  # more than all roundings in a moment, relative
QUARTER = math.pi / 2  # the largest angle: a mean is sin(angle)^2


@dataclass(frozen=True, slots=True)
class Moments:
    """What a moment is made of: states with their leads, q > 0 and stakes."""

    states: StopStates
    leads: FloatArray  # (states,)
    q: FloatArray  # (states,)
    stakes: Stakes

    def in_cells(self, cells: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds on M in cells, (cells, 2), that L is convex on, and M at their centres."""
        centres = cells.mean(axis=1)  # (cells,)
        half = (cells[:, 1:] - cells[:, :1]) / 2  # (cells, 1)
        log = self.states.log_probability(centres)
        left, middle, right = (self._lost(each) for each in (cells[:, 0], centres, cells[:, 1]))
        slopes = self._slopes(centres) * half  # (cells, states)
        with np.errstate(over="ignore"):  # an infinite bound is one, too
            up = np.einsum("cs,s->c", np.exp(log + slopes + right), self.q)
            down = np.einsum("cs,s->c", np.exp(log - slopes + left), self.q)
            inside = np.einsum("cs,s->c", np.exp(log + middle), self.q)
        return np.maximum(down, up), inside

    def _lost(self, means: FloatArray) -> FloatArray:
        """Strength * L(s, m): (means, states)."""
        result: FloatArray = self.stakes.strength * self.stakes.losses(means, self.leads)
        return result

    def _slopes(self, centres: FloatArray) -> FloatArray:
        """Derivative at the centres of ln p_m(s): (cells, states)."""
        means = centres[:, None]
        failures = self.states.pulls - self.states.successes
        slopes: FloatArray = self.states.successes / means - failures / (1 - means)
        return slopes


def worst_moment(
    states: StopStates, leads: FloatArray, q: FloatArray, stakes: Stakes, excess: float
) -> float:
    """A bound on M at all means in [0, 1], rounded up.

    Cells are halved until it exceeds the largest moment by `excess` at most, relative."""
    charged = q > 0  # the others add nothing
    if not charged.any():
        return math.inf
    moments = Moments(states.only(charged), leads[charged], q[charged], stakes)
    cells = _cells(stakes, float(states.pulls.max()))
    worst, largest = 0.0, 0.0
    for _ in range(tuning.HALVINGS):
        bounds, at_centres = moments.in_cells(cells)
        if np.isnan(bounds).any():  # what is not a number bounds nothing
            return math.inf
        largest = max(largest, float(at_centres.max()))
        wide = bounds > (1 + excess) * largest
        worst = max(worst, float(bounds[~wide].max(initial=0.0)))
        if not wide.any():
            return worst * (1 + ROUNDING)
        cells = _halved(cells[wide])
    return max(worst, float(bounds[wide].max())) * (1 + ROUNDING)


def _halved(cells: FloatArray) -> FloatArray:
    """Both halves of every cell: (2 cells, 2)."""
    middle = cells.mean(axis=1)
    left = np.stack([cells[:, 0], middle], axis=1)
    right = np.stack([middle, cells[:, 1]], axis=1)
    return np.concatenate([left, right])


def _cells(stakes: Stakes, pulls: float) -> FloatArray:
    """Cells that cover [0, 1] and straddle neither the boundary nor the ends of the reach."""
    b = stakes.boundary
    corners = np.clip([0.0, b - stakes.reach, b, b + stakes.reach, 1.0], 0.0, 1.0)
    edges = np.unique(np.concatenate([corners, _edges(b, pulls)]))
    return np.stack([edges[:-1], edges[1:]], axis=1)


def _edges(boundary: float, pulls: float) -> FloatArray:
    """Means between 0 and 1, geometrically away from the boundary in angles.

    The first is some standard deviations away, of which one is 1 / (2 sqrt(N)) after N pulls."""
    near = tuning.CELL / (2 * math.sqrt(pulls))
    further = 1 + np.arange(0.0, 1 + math.log(QUARTER / near) / math.log1p(tuning.WIDER))
    distances = near * np.expm1(further * math.log1p(tuning.WIDER)) / tuning.WIDER
    centre = math.asin(math.sqrt(boundary))
    angles = np.concatenate([centre - distances, centre + distances])
    result: FloatArray = np.sin(angles[(angles > 0) & (angles < QUARTER)]) ** 2
    return result
