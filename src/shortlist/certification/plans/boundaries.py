"""The ways to label that are declared, each with its share of delta: boundaries and free bands.

They lie around the one that is believed in, evenly spaced at first and then ever wider apart, and
have shares like a Cauchy law: to declare many costs little, to miss the right one costs a look.
Each comes with some widths of the band in which arms are free: a wide one costs more charges, but
leaves more ways to choose k arms."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certification.plans import tuning

EDGE = 1e-3  # no boundary is nearer to 0 or 1


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Boundaries, rising, for every free band; ln(1/delta) of all; the deltas add up to delta."""

    values: FloatArray  # (boundaries,)
    errors: FloatArray  # (boundaries,): how far from the middle one
    thresholds: FloatArray  # (bands, boundaries)

    @classmethod
    def around(cls, middle: float, error: float, delta: float) -> "Boundaries":
        """Boundaries around `middle`, which is believed to be off by about `error`."""
        number = np.arange(-tuning.BOUNDARIES, tuning.BOUNDARIES + 1)
        errors = tuning.TURN * np.sinh(number * tuning.SPACE / tuning.TURN)
        values = middle + errors * error
        weights = np.gradient(errors) / (1 + (errors / tuning.WIDTH) ** 2)
        inside = (values > EDGE) & (values < 1 - EDGE)
        shares = weights[inside] / weights[inside].sum()
        of_bands = np.array([share for _, share in tuning.FREE_BANDS])[:, None]
        return cls(values[inside], errors[inside], -np.log(delta * of_bands * shares))
