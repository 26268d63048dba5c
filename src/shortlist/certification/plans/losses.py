"""What it can cost to take an arm, or to leave it out: the loss L(state, mean) of docs/plans.md.

Every state has a *lead*: what is charged more for leaving the arm out than for taking it. The way
that is charged less costs the distance to the boundary if the mean is on the other side of it,
counted up to the reach. The other way costs as much, less the lead."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Stakes:
    """What a wrong choice weighs: boundary b, strength lambda and reach K epsilon."""

    boundary: float
    strength: float
    reach: float

    def distances(self, means: FloatArray) -> FloatArray:
        """min(|m - b|, reach)."""
        result: FloatArray = np.minimum(np.abs(means - self.boundary), self.reach)
        return result

    def losses(self, means: FloatArray, leads: FloatArray) -> FloatArray:
        """L(s, m): (means, states)."""
        above = (means > self.boundary)[:, None]
        charged = np.where(above, np.maximum(leads, 0.0), np.maximum(-leads, 0.0))
        lost: FloatArray = np.maximum(self.distances(means)[:, None] - charged, 0.0)
        return lost

    def capped(self, leads: FloatArray) -> FloatArray:
        """Leads no larger than what an arm can lose: a larger one would make no loss smaller."""
        out = min(self.boundary, self.reach)
        inside = min(1 - self.boundary, self.reach)
        result: FloatArray = np.clip(leads, -out, inside)
        return result
