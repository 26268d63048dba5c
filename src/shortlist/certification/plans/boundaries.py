"""The boundaries that are declared, each with its share of delta.

They lie around the one that is believed in, evenly spaced at first and then ever wider apart, and
have shares like a Cauchy law: to declare many costs little, to miss the right one costs a look.
What several of them say about the same set is put together (claims.py)."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.losses import Stakes

EDGE = 1e-3  # no boundary is nearer to 0 or 1


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Boundaries, rising, and ln(1 / share) of each; the shares add up to delta."""

    values: FloatArray  # (boundaries,)
    thresholds: FloatArray  # (boundaries,)

    @classmethod
    def around(cls, middle: float, error: float, delta: float) -> "Boundaries":
        """Boundaries around `middle`, which is believed to be off by about `error`."""
        number = np.arange(-tuning.BOUNDARIES, tuning.BOUNDARIES + 1)
        errors = tuning.TURN * np.sinh(number * tuning.SPACE / tuning.TURN)
        values = middle + errors * error
        weights = np.gradient(errors) / (1 + (errors / tuning.WIDTH) ** 2)
        inside = (values > EDGE) & (values < 1 - EDGE)
        shares = weights[inside] / weights[inside].sum()
        return cls(values[inside], -np.log(delta * shares))

    @property
    def least_threshold(self) -> float:
        """Of the boundary with the largest share."""
        return float(self.thresholds.min())

    def left_for_charges(self, stakes: Stakes) -> float:
        """What charges may come to at the boundary with the largest share."""
        return stakes.reach - self.least_threshold / stakes.strength
