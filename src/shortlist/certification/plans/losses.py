"""What a label can cost: the loss L(state, mean) of docs/plans.md.

An arm labelled IN is taken, OUT is not, FREE may be either. A label is wrong for means on the other
side of the boundary, FREE for all of them. A wrong label costs the distance to the boundary,
counted up to the reach."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray

OUT, IN, FREE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Stakes:
    """What a wrong label weighs: boundary b, strength lambda and reach K epsilon."""

    boundary: float
    strength: float
    reach: float

    def exponents(self, means: FloatArray) -> FloatArray:
        """Strength * min(|m - b|, reach): what a wrong label adds to the exponent."""
        distance = np.minimum(np.abs(means - self.boundary), self.reach)
        result: FloatArray = self.strength * distance
        return result


def wrong(labels: IntArray, *, above: bool) -> BoolArray:
    """Which labels are wrong for means above the boundary, or below."""
    right = IN if above else OUT
    result: BoolArray = labels != right
    return result
