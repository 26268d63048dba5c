"""Evidence from pairs of arms that are scored on the same items, for few arms.

Bets on their differences prove bounds on these, and put arms out (docs/items.md, Lemma 3).

Evidence from every arm by itself, for many arms of which few are to be chosen.

Arms of the choice are so few that they may be scored on most items. Then what is left to be proved
of an arm outside is a bound on its own mean, and there are K such statements to go wrong, not one
for every pair (docs/items.md, Lemma 5)."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.items import tuning
from shortlist.certificates.items.bound import (
    EXACT,
    Band,
    Capital,
    Cells,
    Verdicts,
    every,
    refined_bounds,
)
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


class Single:
    """Bounds on the means of arms: from above outside the choice, from below inside."""

    def __init__(self, problem: Problem, retired: int = 0) -> None:
        """`retired` arms were there at first, besides those of the problem."""
        n, k = problem.n_arms, problem.k
        self.first = tuning.SINGLE_FIRST
        self.gaps: FloatArray = np.array(tuning.SINGLE_GAPS) * problem.epsilon * np.sqrt(k)
        self.weights: FloatArray = np.array(tuning.SINGLE_WEIGHTS)
        # the levels of bounds from above and from below: Lemma 6, or 5 if no arm has retired
        self.above = (k + retired) / (tuning.ABOVE * problem.delta)
        self.below = (n - k + retired) / ((1 - tuning.ABOVE) * problem.delta)
        self.most: FloatArray = np.ones(n)
        self.least: FloatArray = np.zeros(n)
        # items that bounds rest on, from above and from below: (2, arms)
        self.looked: IntArray = np.zeros((2, n), dtype=np.int64)
        self.variance = tuning.SINGLE_VARIANCE  # expected of a score after the first items
        self.out: BoolArray = np.zeros(n, dtype=np.bool_)

    def take(self, cells: Cells, before: IntArray) -> None:
        """Nothing: bounds are worked out when they are looked at."""

    def learn(self, cells: Cells) -> None:
        """Learn the variance of scores when all arms have their first items."""
        if cells.pilot > 1:
            first = cells.scores[:, : cells.pilot]
            self.variance = float(first.var(axis=1, ddof=1).mean())

    def bounds(self, cells: Cells, top: IntArray, outside: IntArray) -> FloatArray:
        """How much better each arm outside can be than one inside: (inside, outside)."""
        arms = outside[self.looked[0, outside] < cells.reached[outside]]
        self.most[arms] = self._upper(cells, arms, self.above, self.most[arms])
        self.looked[0, arms] = cells.reached[arms]
        arms = top[self.looked[1, top] < cells.reached[top]]
        self.least[arms] = self._lower(cells, arms)
        self.looked[1, arms] = cells.reached[arms]
        self.out[outside] |= self.most[outside] < self.least[top].min()
        bounds: FloatArray = self.most[outside][None, :] - self.least[top][:, None]
        return bounds

    def _lower(self, cells: Cells, arms: IntArray) -> FloatArray:
        """Bounds from below: those from above of mirrored scores."""
        return 1 - self._upper(cells, arms, self.below, 1 - self.least[arms], mirror=True)

    def _upper(
        self, cells: Cells, arms: IntArray, level: float, most: FloatArray, *, mirror: bool = False
    ) -> FloatArray:
        if not arms.size:
            return most
        places = np.arange(cells.reached[arms].max())
        known = cells.known[arms]
        scores = 1 - cells.scores[arms] if mirror else cells.scores[arms]
        band = Band(
            scores[:, places],
            (places < cells.reached[arms, None]) & ~known[:, places],
            cells.size,
            known.sum(1),
            np.where(known, scores, 0.0).sum(1),
            # how many items were affordable at first may tell of known cells up to `first`: no
            # stake on these looks at it
            np.where(places < self.first, tuning.SINGLE_VARIANCE, self.variance),
            self.gaps,
        )
        return band.upper(self.weights, level, most)

    def means(self, cells: Cells) -> FloatArray:
        """The mean of what every arm was scored on."""
        seen = np.arange(cells.size) < cells.reached[:, None]
        means: FloatArray = np.where(seen, cells.scores, 0.0).sum(1) / cells.reached
        return means

    def targets(self, doubtful: BoolArray, cells: Cells) -> IntArray:
        """How many items every arm is to have next.

        An item more of an arm that is in many doubtful pairs helps all of them: if bounds fall with
        the number of items t, t proportional to the root of the number of pairs costs least."""
        reached = cells.reached
        worth = np.maximum(doubtful.sum(1), 1) ** tuning.FAVOUR
        pace = np.where(reached < cells.size, reached / worth, np.inf)
        slowest = np.where(doubtful, pace, np.inf).min(1)  # of its opponents
        behind = (doubtful & (pace[:, None] <= pace[None, :])).any(1)
        step = np.maximum(1, (tuning.SINGLE_GROWTH * reached).astype(np.int64))
        catching = np.minimum(slowest * worth, tuning.JUMP * reached).astype(np.int64)
        further = np.minimum(np.maximum(reached + step, catching), cells.size)
        return np.where(behind & (reached < cells.size), further, reached)
