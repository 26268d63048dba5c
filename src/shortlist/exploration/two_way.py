"""Scores as an arm's ability plus an item's ease: least squares on the cells that were seen.

x_ai = mean_a + ease_i + noise. An arm that met easy items is not better for that, so arms that saw
different items can be compared; an arm that saw all items is known exactly."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray

SWEEPS = 6  # of alternating least squares; each cell belongs to one arm and one item
LEAST_NOISE = 1e-8


@dataclass(frozen=True, slots=True)
class TwoWay:
    """What the cells say: (arms,) each."""

    means: FloatArray  # over all items, those not seen filled in
    variances: FloatArray  # of these estimates; 0 for an arm that saw all items

    @classmethod
    def fit(cls, scores: FloatArray, seen: BoolArray) -> "TwoWay":
        """Fit the cells that were seen, of (arms, items); every arm must have one."""
        x = np.where(seen, scores, 0.0)
        per_arm = seen.sum(1)
        per_item = np.maximum(seen.sum(0), 1)
        ease = np.zeros(x.shape[1])
        for _ in range(SWEEPS):
            ability = (x.sum(1) - seen @ ease) / per_arm
            ease = (x.sum(0) - ability @ seen) / per_item
            ease -= ease[seen.any(0)].mean()
        fitted = ability[:, None] + ease  # an item that nobody saw is of average ease
        means = np.where(seen, x, fitted).mean(1)
        noise = cls._noise(np.where(seen, x - fitted, 0.0), seen)
        size = x.shape[1]
        return cls(means, noise * (1 / per_arm - 1 / size))

    @staticmethod
    def _noise(residuals: FloatArray, seen: BoolArray) -> float:
        """Variance of the noise, pooled over all cells."""
        freedom = seen.sum() - seen.shape[0] - int(seen.any(0).sum()) + 1
        return max(LEAST_NOISE, float((residuals**2).sum()) / max(int(freedom), 1))
