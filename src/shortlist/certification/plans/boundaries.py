"""The ways to label that are declared, each with its share of delta.

Boundaries lie around the one that is believed in, evenly spaced at first and then ever wider apart,
and have shares like a Cauchy law: to declare many costs little, to miss the right one costs a look.
At each of them there are some ways to come to k arms inside. Labels may change a little beside the
boundary: arms on the wrong side of it are charged more, but only on one side. Or the band in which
arms are free may be wider: that is charged on both sides, but leaves many sets of k arms."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.losses import Stakes

EDGE = 1e-3  # no boundary is nearer to 0 or 1


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Boundaries, rising, for every way; ln(1/delta) of all; the deltas add up to delta."""

    values: FloatArray  # (boundaries,)
    errors: FloatArray  # (boundaries,): how far from the middle one
    asides: FloatArray  # (ways,): where labels change, less the boundary
    bands: FloatArray  # (ways,): see `Policy.labels`
    thresholds: FloatArray  # (ways, boundaries)

    @classmethod
    def around(cls, middle: float, error: float, delta: float) -> "Boundaries":
        """Boundaries around `middle`, which is believed to be off by about `error`."""
        number = np.arange(-tuning.BOUNDARIES, tuning.BOUNDARIES + 1)
        errors = tuning.TURN * np.sinh(number * tuning.SPACE / tuning.TURN)
        values = middle + errors * error
        weights = np.gradient(errors) / (1 + (errors / tuning.WIDTH) ** 2)
        inside = (values > EDGE) & (values < 1 - EDGE)
        shares = weights[inside] / weights[inside].sum()
        asides, bands, of_ways = np.array(tuning.WAYS).T
        thresholds = -np.log(delta * of_ways[:, None] * shares)
        return cls(values[inside], errors[inside], asides * error, bands, thresholds)

    @property
    def least_threshold(self) -> float:
        """Of the boundary and the way with the largest share."""
        return float(self.thresholds.min())

    def left_for_charges(self, stakes: Stakes) -> float:
        """What charges may come to at the boundary and the way with the largest share."""
        return stakes.reach - self.least_threshold / stakes.strength
