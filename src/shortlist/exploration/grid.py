"""The means at which posteriors are held: an even grid at first, later finest at the boundary.

A grid has to resolve the posterior of the arms that are known best. It is made anew only when they
are known twice as well as when it was made, because a new grid means to fit the prior anew."""

import math

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.exploration import tuning

BEST_KNOWN = 0.9  # quantile of the pulls: the grid resolves all but the arms pulled most
# share of the span at both ends without a point: a mean of 0 or 1 would rule out all but one kind
# of rewards
EDGE = 1e-9

Span = tuple[float, float]


class Grid:
    """Points, the flat prior on them, and for which data they were made."""

    def __init__(self, *, has_range: bool) -> None:
        self.has_range = has_range
        self.points: FloatArray
        self.flat: FloatArray
        self.log_points: FloatArray  # log-likelihood of a success, and
        self.log_rest: FloatArray  # of a failure, where rewards have a range
        self.set((np.arange(tuning.EVEN) + 0.5) / tuning.EVEN)
        self._resolved = 2 * tuning.BLURRED / tuning.EVEN  # the standard error it was made for
        self._covered: Span = (0.0, 1.0)

    def set(self, points: FloatArray) -> None:
        """Hold posteriors at these points, rising."""
        self.points = points
        widths = np.gradient(points)
        self.flat = widths / widths.sum()
        if self.has_range:
            self.log_points = np.log(points)
            self.log_rest = np.log1p(-points)

    def fit(self, pulls: IntArray, sums: FloatArray, k: int, noise: float, span: Span) -> bool:
        """Make the grid anew if arms are known twice as well by now, or means lie beyond it.

        `noise` is the variance of a reward, `span` where means can be. Whether it was made anew."""
        error = standard_error(pulls, noise)
        low, high = span
        covered = self._covered[0] <= low and high <= self._covered[1]
        if covered and error > self._resolved / 2:
            return False
        self._resolved = error
        self._covered = span
        # arms that were never pulled are taken to be like all others
        means = np.where(pulls > 0, sums / np.maximum(pulls, 1), sums.sum() / pulls.sum())
        self.set(points_around(empirical_boundary(means, k), error, span))
        return True


def standard_error(pulls: IntArray, noise: float) -> float:
    """The standard error of the mean of an arm that is pulled as often as the best known ones."""
    rank = int(BEST_KNOWN * pulls.size)
    often = max(1, int(np.partition(pulls, rank)[rank]))
    return math.sqrt(noise / often)


def empirical_boundary(means: FloatArray, k: int) -> float:
    """Halfway between the k-th and the next empirical mean."""
    ordered = np.partition(means, -k)
    return float(ordered[-k] + ordered[:-k].max()) / 2


def points_around(boundary: float, error: float, span: Span) -> FloatArray:
    """Half of the points evenly over the span, the others geometrically away from the boundary.

    The nearest are a quarter of the standard error apart: there it matters on which side a mean
    lies, and elsewhere only that it is far."""
    low, high = span
    even = np.linspace(low, high, tuning.FINE // 2 + 2)[1:-1]
    distances = np.geomspace(error / 4, high - low, tuning.FINE // 4)
    distances = np.append(0.0, distances)
    points = np.concatenate([even, boundary - distances, boundary + distances])
    edge = EDGE * (high - low)
    inside = (points > low + edge) & (points < high - edge)
    return np.unique(points[inside])
