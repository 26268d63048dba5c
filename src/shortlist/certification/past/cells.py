"""Values that a mean may have, cut into cells that are narrow where it matters."""

import numpy as np

from shortlist.arrays import FloatArray

# standard errors from the mean reward, after the arcsine transformation
NEAR = np.linspace(-6.0, 6.0, 601)
FAR = np.geomspace(6.0, 56.0, 145)[1:]
# so far that no wide cell is left at 10^9 pulls, where it would decide at low prices
FARTHEST = np.geomspace(56.0, 1e5, 151)[1:]
STEPS = np.concatenate([NEAR, FAR, FARTHEST])


def cells(pulls: int, mean: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends of cells that together are [0, 1], about a mean of this many rewards."""
    angles = np.arcsin(np.sqrt(mean)) + STEPS / (2 * np.sqrt(pulls))
    inner = np.sin(np.clip(angles, 0.0, np.pi / 2)) ** 2
    edges = np.maximum.accumulate(np.concatenate([[0.0], inner, [1.0]]))
    return edges[:-1], edges[1:]
