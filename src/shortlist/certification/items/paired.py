"""Evidence from pairs of arms that are scored on the same items, for few arms.

Bets on their differences prove bounds on these, and put arms out (docs/items.md, Lemma 3)."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.items import tuning
from shortlist.certification.items.capital import Capital, every
from shortlist.certification.items.cells import Cells
from shortlist.certification.items.history import refined_bounds
from shortlist.certification.items.matching import EXACT
from shortlist.certification.items.verdicts import Verdicts
from shortlist.problem import Problem


class Paired:
    """The capital of every pair of arms, and what it proved."""

    def __init__(self, problem: Problem, cells: Cells, retired: int = 0) -> None:
        """`retired` arms were there at first, besides those of the problem."""
        n, k = problem.n_arms, problem.k
        self.k = k
        self.first = tuning.FIRST
        allowed = k * problem.sharp_epsilon
        grid = np.array(tuning.BOUNDS) * problem.epsilon
        grid = np.append(grid[grid < allowed - EXACT], allowed)
        weights = np.array(tuning.WEIGHTS if k == 1 else tuning.WEIGHTS_OF_SETS)
        gaps = np.array(tuning.GAPS)[: weights.size] * problem.epsilon * np.sqrt(k)
        before = np.where(cells.known, cells.scores, np.nan)
        self.capital = Capital(grid, gaps, weights, before)
        self.verdicts = Verdicts(n, k, problem.delta, retired)
        self.variance = tuning.VARIANCE  # expected of a difference after the first items
        # arms that others are compared with: whoever looks hopeless is no opponent any more
        self.opponents: BoolArray = np.ones(n, dtype=np.bool_)

    @property
    def out(self) -> BoolArray:
        """Arms that are not among the best."""
        return self.verdicts.out

    def take(self, cells: Cells, before: IntArray) -> None:
        """Make all bets on items that arms have come to."""
        alive = ~self.out
        moved = cells.reached > before
        for place in range(int(before[moved].min()), int(cells.reached[moved].max())):
            there = alive & (cells.reached > place)
            new = np.flatnonzero(there & (before <= place))
            old = np.flatnonzero(there & (before > place))
            here = np.concatenate([new, old])
            self._bet(cells, place, here, new)
            self._bet(cells, place, new, old)
        self._forget(cells)

    def learn(self, cells: Cells) -> None:
        """Learn the variance of differences when all arms have their first items."""
        self.variance = _variance(cells)

    def _bet(self, cells: Cells, place: int, rows: IntArray, columns: IntArray) -> None:
        rows = rows[self.opponents[rows]]
        if rows.size and columns.size:
            pairs = every(rows, columns)
            at_place = cells.scores[:, place], cells.known[:, place]
            self.capital.bet(pairs, *at_place, self.expected(place))
            self.verdicts.look(self.capital, pairs)

    def expected(self, place: int) -> float:
        """The variance of a difference that is expected at a place of the order.

        How many items were affordable at first may tell of known cells up to `first`: no stake on
        these looks at it."""
        return tuning.VARIANCE if place < self.first else self.variance

    def _forget(self, cells: Cells) -> None:
        """Let arms that look hopeless be no opponents any more."""
        means = self.means(cells) - self.out
        spread = np.sqrt(self.variance / np.maximum(cells.reached, 1))
        kth = np.sort(means)[-self.k]
        self.opponents &= means >= kth - tuning.HOPELESS * spread

    def means(self, cells: Cells) -> FloatArray:
        """An estimate of every arm's mean, all as if on the items of the arm that has most.

        An arm that has fewer is credited with what the others gained on the rest."""
        farthest = int(cells.reached.max())
        filled = np.where(np.arange(cells.size) < cells.reached[:, None], cells.scores, 0.0)
        totals = np.cumsum(filled[:, :farthest], axis=1)  # (arms, items)
        reference = totals[cells.reached == farthest].mean(0)
        rest = reference[-1] - reference[cells.reached - 1]
        means: FloatArray = (totals[:, -1] + rest) / farthest
        return means

    def bounds(self, _: Cells, top: IntArray, outside: IntArray) -> FloatArray:
        """How much better each arm outside can be than one inside: (inside, outside)."""
        proved: FloatArray = self.verdicts.bounds[np.ix_(top, outside)]
        return proved

    def refined(
        self, cells: Cells, top: IntArray, outside: IntArray, bounds: FloatArray
    ) -> FloatArray:
        """The same bounds between the points of the grid."""
        alive = ~self.out[outside]
        doubted = outside[alive]
        level = self.verdicts.level
        least = refined_bounds(self.capital, level, cells, top, doubted, self.expected)
        refined = bounds.copy()
        refined[:, alive] = np.minimum(refined[:, alive], least)
        return refined

    def targets(self, doubtful: BoolArray, cells: Cells) -> IntArray:
        """How many items every arm is to have next: of doubtful pairs, whoever has not more."""
        reached = cells.reached
        behind = doubtful & (reached[:, None] <= reached[None, :])
        step = np.maximum(1, (tuning.GROWTH * reached).astype(np.int64))
        return np.where(behind.any(1), np.minimum(reached + step, cells.size), reached)


def _variance(cells: Cells) -> float:
    """Variance of a difference of two arms on the first items, pooled over all pairs."""
    seen = cells.scores[:, : cells.pilot]
    n, size = seen.shape
    around = seen - seen.mean(1, keepdims=True)
    pooled = 2 * n * (around**2).sum() - 2 * (around.sum(0) ** 2).sum()
    variance: float = max(0.0, pooled / (n * (n - 1) * size))
    return variance
