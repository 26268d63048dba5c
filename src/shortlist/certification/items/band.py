"""The largest mean of an arm that bets without replacement leave possible.

Let S be the sum of the scores of an arm that are known or were seen, `left` the number of its items
that were not. If its mean over all N items is at least m, that of the items left is at least
m_t = (N m - S) / left, so that for a stake known beforehand

    W(m) = prod of 1 + stake (m_t - x),   0 <= stake < 1 / (1 - m_t),

is a supermartingale along the random order of the items, which grows with m on every path
(docs/items.md, Lemmas 1 and 2). So bisection finds the least m that was ever rejected."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray
from shortlist.certification.items import tuning

LEAST_VARIANCE = 1e-6
NEARLY = 1e-9  # of an item, and of a level: sums and products are rounded
HALVINGS = 14  # of the interval a bound is looked for in


class Band:
    """Arms on the first items of their order: `seen` of the `scores` count, `fresh` are betted on.

    All are (arms, places). `size` is the number of items, `held` and `gained` are the number and
    the sum of scores known before: (arms,). `variances` are those expected at every place."""

    def __init__(
        self,
        scores: FloatArray,
        fresh: BoolArray,
        size: int,
        held: FloatArray,
        gained: FloatArray,
        variances: FloatArray,
        gaps: FloatArray,
    ) -> None:
        self.size = size
        self.fresh = fresh
        self.x = np.where(fresh, scores, 0.0)
        sums = np.cumsum(self.x, axis=1)
        seen = np.cumsum(fresh, axis=1)
        self.after: FloatArray = gained[:, None] + sums  # S, the score at a place included
        self.before: FloatArray = self.after - self.x
        self.rest: FloatArray = size - held[:, None] - seen  # left, likewise
        self.left: FloatArray = np.maximum(self.rest + fresh, 1)
        self.stakes = self._stakes(sums - self.x, seen - fresh, variances, gaps)

    def _stakes(
        self, sums: FloatArray, seen: FloatArray, variances: FloatArray, gaps: FloatArray
    ) -> FloatArray:
        """The stake gap / (variance + gap^2), which is best if m - theta is the gap.

        What is left of a gap g over all items is g N / left: (gaps, arms, places)."""
        squares = np.cumsum(self.x**2, axis=1) - self.x**2
        scatter = np.maximum(squares - sums**2 / np.maximum(seen, 1), 0.0)
        variance = (tuning.PRIOR * variances + scatter) / (tuning.PRIOR + seen)
        wide = gaps[:, None, None] * (self.size / self.left)
        stakes: FloatArray = wide / (np.maximum(variance, LEAST_VARIANCE) + wide**2)
        return stakes

    def rejects(self, m: FloatArray, weights: FloatArray, level: float) -> BoolArray:
        """Whether W(m), the weighted mean over stakes, ever reached the level: (arms,)."""
        means = (self.size * m[:, None] - self.before) / self.left  # m_t
        most = tuning.STAKE / np.maximum(1 - means, NEARLY)
        factors = np.minimum(self.stakes, most)
        factors *= (means - self.x) * self.fresh
        factors += 1  # Lemma 1
        with np.errstate(over="ignore", under="ignore"):
            wealth = np.einsum("s,sap->ap", weights, np.cumprod(factors, axis=2))
        impossible = self.size * m[:, None] - self.after > self.rest + NEARLY * self.size
        rejected: BoolArray = np.any((wealth >= (1 + NEARLY) * level) | impossible, axis=1)
        return rejected

    def upper(self, weights: FloatArray, level: float, most: FloatArray) -> FloatArray:
        """A bound on the mean of every arm, `most` or less."""
        high = np.minimum(most, (self.after[:, -1] + self.rest[:, -1]) / self.size)
        low = np.minimum(self.after[:, -1] / self.size, high)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            rejected = self.rejects(middle, weights, level)
            high = np.where(rejected, middle, high)
            low = np.where(rejected, low, middle)
        return high
