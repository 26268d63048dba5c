"""The mixture of clocks: which gaps are betted on, and how much of the capital on each.

It is settled by the problem alone, before any reward: the weights are part of the theorem. Most of
the capital is on gaps near the least one that matters; the rest is on larger ones, so that arms
that are far apart are told soon, however small epsilon is."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray

NEAR = (1.0, 2.0, 5.0)  # gaps near the least one, in units of it,
NEAR_WEIGHTS = (0.78, 0.16, 0.06)  # and their weights
RATIO = 2.5  # of a farther gap to the one before
FAR_WEIGHT = 0.06  # of all farther gaps together, where there are any
FARTHEST = 0.6  # gap up to which there are more, on the unit scale
LARGE = 3.0  # the least one, in the same units, where something else takes care of those near it


@dataclass(frozen=True, slots=True)
class Mixture:
    """Gaps betted on, in units of the least, and their weights: (clocks,) each."""

    multiples: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, least: float) -> "Mixture":
        """The mixture where `least` is the least gap betted on."""
        farther = _farther(RATIO * NEAR[-1], least)
        if not farther:
            return cls(np.array(NEAR), np.array(NEAR_WEIGHTS))
        near = (1 - FAR_WEIGHT) * np.array(NEAR_WEIGHTS)
        far = np.full(len(farther), FAR_WEIGHT / len(farther))
        return cls(np.array([*NEAR, *farther]), np.concatenate([near, far]))

    @classmethod
    def of_large(cls, least: float) -> "Mixture":
        """A mixture of gaps well above `least` alone."""
        multiples = _farther(LARGE, least) or [LARGE]
        return cls(np.array(multiples), np.full(len(multiples), 1 / len(multiples)))


def _farther(first: float, least: float) -> list[float]:
    """Multiples of `least` from `first` on, as far as they are gaps."""
    multiples = []
    while first * least < FARTHEST:
        multiples.append(first)
        first *= RATIO
    return multiples
