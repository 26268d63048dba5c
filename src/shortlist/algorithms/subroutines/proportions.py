"""The proportions of pulls that tell the best arm from all others soonest, were the means known.

With w_a, w_b the shares of pulls, the evidence that b is not better than a by epsilon grows at the
rate min over x of w_a d(mean_a, x) + w_b d(mean_b, x + epsilon). The proportions make the least
rate over all b as large as can be. Garivier, Kaufmann (2016), Lemma 3 and Theorem 5, for epsilon >
0: with g_b(r) = min over x of d(mean_a, x) + r d(mean_b, x + epsilon) and r = w_b / w_a, all g_b
are equal to one y, and sum over b of d(mean_a, x_b) / d(mean_b, x_b + epsilon) = 1."""

import numpy as np

from shortlist.algorithms.subroutines.divergence import Divergence
from shortlist.arrays import FloatArray

POINTS = 64  # of x in the table of every arm; the proportions come out right to about 1 %
HALVINGS = 30  # of the range of y


def best_proportions(
    divergence: Divergence, own: float, rivals: FloatArray, epsilon: float
) -> tuple[float, FloatArray]:
    """The share of the best arm, of mean `own`, and those of the others; they add up to 1.

    No guarantee rests on them, so they are read from a table: x_b runs from mean_b - epsilon up to
    mean_a, and gives r_b, g_b and the ratio of divergences in closed form, each monotone."""
    ratios, heights, sums = _table(divergence, own, rivals, epsilon)  # each (rivals, POINTS + 1)
    low, high = float(heights[0, 0]), float(heights[:, -1].min())
    for _ in range(HALVINGS):
        y = (low + high) / 2
        if _at(y, heights, sums).sum() < 1:  # Theorem 5
            low = y
        else:
            high = y
    relative = _at(low, heights, ratios)  # w_b / w_a
    total = 1 + relative.sum()
    return float(1 / total), relative / total


def _table(
    divergence: Divergence, own: float, rivals: FloatArray, epsilon: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """r, g and the ratio of divergences at points x from mean_a down, denser at both ends."""
    low = np.maximum(rivals - epsilon, divergence.low)[:, None]
    high = min(own, divergence.high - epsilon)
    steps = np.sin(np.pi / 2 * (np.arange(POINTS) + 0.5) / POINTS) ** 2
    x = high - steps * (high - low)  # (rivals, POINTS)
    mean, rival = np.full_like(x, own), np.broadcast_to(rivals[:, None], x.shape)
    near, far = divergence.between(mean, x), divergence.between(rival, x + epsilon)
    # the x that is least for r has slope 0
    ratios = -divergence.slope(mean, x) / divergence.slope(rival, x + epsilon)
    start = divergence.between(mean[:, :1], np.full((rivals.size, 1), high))  # where r = 0
    zero = np.zeros_like(start)
    return (
        np.hstack([zero, ratios]),
        np.hstack([start, near + ratios * far]),
        np.hstack([zero, near / far]),
    )


def _at(y: float, heights: FloatArray, values: FloatArray) -> FloatArray:
    """Per arm the value where its height is y, by linear interpolation."""
    arms = np.arange(heights.shape[0])
    right = np.clip((heights < y).sum(axis=1), 1, POINTS)
    left = right - 1
    below, above = heights[arms, left], heights[arms, right]
    part = np.clip((y - below) / (above - below), 0, 1)
    result: FloatArray = values[arms, left] + part * (values[arms, right] - values[arms, left])
    return result
