"""Bets without replacement on the difference of two arms, for every pair and several bounds m.

Let d = x_j - x_i on an item, S the sum of the d seen, `left` the number of items not seen. If the
mean of d over all N items is at least m, that of the items left is at least
m_t = (N m - S) / left, so that for a stake known beforehand

    W(m) = prod of 1 + stake (m_t - d),   0 <= stake < 1 / (1 - m_t),

is a supermartingale along the random order of the items (docs/items.md, Lemma 1), and it grows with
m on every path (Lemma 2)."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.items import tuning

RICH = 1e250  # more capital than any level asks for; what is above is given away
LEAST_VARIANCE = 1e-6
NEARLY = 1e-9  # of an item: sums of scores are rounded
Pairs = tuple[IntArray, IntArray]  # arms i as a column, arms j as a row: every i with every j


def every(rows: IntArray, columns: IntArray) -> Pairs:
    """Every pair of an arm of `rows` with one of `columns`."""
    return rows[:, None], columns[None, :]


class Capital:
    """The capital against "j is better than i by m", [i, j], for every m of a grid.

    `known` are scores by position that were there before, NaN elsewhere: (arms, items)."""

    def __init__(
        self, grid: FloatArray, gaps: FloatArray, weights: FloatArray, known: FloatArray
    ) -> None:
        n, size = known.shape
        self.size = size
        self.grid = grid  # (bounds,): rising
        self.gaps = gaps  # (stakes,)
        self.weights = weights  # (stakes,): they add up to 1
        start = weights[:, None, None, None]
        # (stakes, bounds, arms, arms)
        self.wealth: FloatArray = np.broadcast_to(start, (gaps.size, grid.size, n, n)).copy()
        filled = np.nan_to_num(known)
        both: FloatArray = (~np.isnan(known)).astype(np.float64)
        # (arms, arms) each: over items that both arms are known on, no bets are made there
        self.left: FloatArray = size - both @ both.T
        total = both @ filled.T  # [i, j]: sum of x_j
        self.sums: FloatArray = total - total.T
        squares = both @ (filled**2).T
        self.squares: FloatArray = squares + squares.T - 2 * filled @ filled.T

    def bet(self, pairs: Pairs, scores: FloatArray, known: BoolArray, variance: float) -> None:
        """Let pairs bet on one item more, on which arms have these scores.

        `known` says of which arms they were known before: two such arms make no bet. `variance` is
        what was expected of differences before."""
        rows, columns = pairs
        d = scores[columns] - scores[rows]  # (rows, columns)
        fresh = ~(known[rows] & known[columns])
        d *= fresh
        left = self.left[pairs]
        sums = self.sums[pairs]
        means = (self.size * self.grid[:, None, None] - sums) / np.maximum(
            left, 1
        )  # m_t: (bounds, ..)
        most = tuning.STAKE / np.maximum(1 - means, NEARLY)
        factors = np.minimum(self._stakes(pairs, left, variance)[:, None], most)
        factors *= (means - d) * fresh
        factors += 1  # Lemma 1
        factors *= self.wealth[:, :, rows, columns]
        self.wealth[:, :, rows, columns] = np.minimum(factors, RICH, out=factors)
        self.sums[pairs] = sums + d
        self.squares[pairs] += d * d
        self.left[pairs] = left - fresh

    def _stakes(self, pairs: Pairs, left: FloatArray, expected: float) -> FloatArray:
        """The stake gap / (variance + gap^2), which is best if m - D is the gap.

        What is left of a gap g over all items is g N / left, whatever was seen: (stakes, ..)."""
        seen = self.size - left
        scatter = self.squares[pairs] - self.sums[pairs] ** 2 / np.maximum(seen, 1)
        variance = tuning.PRIOR * expected + np.maximum(scatter, 0.0)
        variance = np.maximum(variance / (tuning.PRIOR + seen), LEAST_VARIANCE)
        gaps = self.gaps[:, None, None] * (self.size / np.maximum(left, 1))
        stakes: FloatArray = gaps / (variance + gaps**2)
        return stakes

    def against(self, pairs: Pairs) -> FloatArray:
        """W(m) of pairs, all stakes together, infinite where m is impossible: (bounds, ..)."""
        rows, columns = pairs
        total: FloatArray = self.wealth[:, :, rows, columns].sum(0)
        missing = self.size * self.grid[:, None, None] - self.sums[pairs]
        total[missing > self.left[pairs] + NEARLY * self.size] = np.inf
        return total
