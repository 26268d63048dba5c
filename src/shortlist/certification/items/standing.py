"""Where a race on items stands: cells seen, what they say of every arm, the choice, who is next."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.items import tuning
from shortlist.certification.items.capital import Capital, every
from shortlist.certification.items.matching import EXACT, doubtful
from shortlist.certification.items.verdicts import Verdicts
from shortlist.problem import Problem
from shortlist.purse import Purse


class Standing:
    """Every arm is scored on the first items of one order; `reached` says on how many."""

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        n, k = problem.n_arms, problem.k
        items = problem.items
        assert items is not None
        self.problem = problem
        self.size = items.size
        self.allowed = k * problem.sharp_epsilon
        self.scores: FloatArray = items.by_position(n)  # (arms, items), NaN where not seen
        self.known: BoolArray = ~np.isnan(self.scores)  # before the race began
        self.reached: IntArray = np.zeros(n, dtype=np.int64)
        self.purse = Purse(problem)
        self.pilot = 0  # items that all arms were scored on at first
        self.ties: IntArray = rng.permutation(n)
        grid = np.array(tuning.BOUNDS) * problem.epsilon
        grid = np.append(grid[grid < self.allowed - EXACT], self.allowed)
        weights = np.array(tuning.WEIGHTS if k == 1 else tuning.WEIGHTS_OF_SETS)
        gaps = np.array(tuning.GAPS)[: weights.size] * problem.epsilon * np.sqrt(k)
        self.capital = Capital(grid, gaps, weights, self.scores)
        self.verdicts = Verdicts(n, k, problem.delta)
        self.top: IntArray = np.empty(0, dtype=np.int64)
        self.outside: IntArray = np.arange(n)
        self.bounds: FloatArray = np.empty((0, n))  # (inside, outside): of differences
        # arms that others are compared with: whoever looks hopeless is no opponent any more
        self.opponents: BoolArray = np.ones(n, dtype=np.bool_)

    @property
    def finished(self) -> bool:
        """Whether every cell that can still matter was seen."""
        return bool((self.reached[~self.verdicts.out] == self.size).all())

    def missing(self, targets: IntArray) -> IntArray:
        """Cells that are to be scored for arms to reach these numbers of items: (arms,)."""
        places = np.arange(self.size)
        ahead = (places >= self.reached[:, None]) & (places < targets[:, None])
        return np.asarray((ahead & ~self.known).sum(1), dtype=np.int64)

    def take(self, targets: IntArray, scores: FloatArray) -> None:
        """Take in the missing cells, arm by arm in the order of items, and make all bets."""
        places = np.arange(self.size)
        ahead = (places >= self.reached[:, None]) & (places < targets[:, None])
        self.scores[ahead & ~self.known] = scores
        before = self.reached
        self.reached = np.maximum(before, targets)
        self._bet(before)
        if not before.any():
            self.pilot = int(self.reached.min())
            self.capital.variance = self._variance()

    def _bet(self, before: IntArray) -> None:
        alive = ~self.verdicts.out
        moved = self.reached > before
        for place in range(int(before[moved].min()), int(self.reached[moved].max())):
            there = alive & (self.reached > place)
            new = np.flatnonzero(there & (before <= place))
            old = np.flatnonzero(there & (before > place))
            here = np.concatenate([new, old])
            self._bet_at(place, here, new)
            self._bet_at(place, new, old)

    def _bet_at(self, place: int, rows: IntArray, columns: IntArray) -> None:
        rows = rows[self.opponents[rows]]
        if rows.size and columns.size:
            pairs = every(rows, columns)
            self.capital.bet(pairs, self.scores[:, place], self.known[:, place])
            self.verdicts.look(self.capital, pairs)

    def _variance(self) -> float:
        """Variance of a difference of two arms on the first items, pooled over all pairs."""
        seen = self.scores[:, : int(self.reached.min())]
        n, size = seen.shape
        around = seen - seen.mean(1, keepdims=True)
        pooled = 2 * n * (around**2).sum() - 2 * (around.sum(0) ** 2).sum()
        variance: float = max(0.0, pooled / (n * (n - 1) * size))
        return variance

    def means(self) -> FloatArray:
        """An estimate of every arm's mean, all as if on the items of the arm that has most.

        An arm that has fewer is credited with what the others gained on the rest."""
        farthest = int(self.reached.max())
        filled = np.where(np.arange(self.size) < self.reached[:, None], self.scores, 0.0)
        totals = np.cumsum(filled[:, :farthest], axis=1)  # (arms, items)
        reference = totals[self.reached == farthest].mean(0)
        rest = reference[-1] - reference[self.reached - 1]
        means: FloatArray = (totals[:, -1] + rest) / farthest
        return means

    def choose(self) -> None:
        """Keep the choice unless an arm outside looks clearly better than one inside."""
        means = self.means() - self.verdicts.out  # who is out comes last
        ranked = np.lexsort((self.ties, -means))
        spread = np.sqrt(self.capital.variance / np.maximum(self.reached, 1))
        least = means[ranked[self.problem.k - 1]] - tuning.HOPELESS * spread
        self.opponents &= means >= least
        top = list(self.top) or list(ranked[: self.problem.k])
        margin = 0.0 if self.finished else tuning.STICKY * self.problem.epsilon
        outside = [arm for arm in ranked if arm not in top]
        for arm in outside:
            worst = min(top, key=lambda each: means[each])
            if means[arm] - means[worst] <= margin:
                break
            top[top.index(worst)] = arm
        self.top = np.array(top, dtype=np.int64)
        self.outside, self.bounds = self._table()

    def _table(self) -> tuple[IntArray, FloatArray]:
        """The arms outside, and how much better each can be than one inside: (inside, outside)."""
        outside = np.setdiff1d(np.arange(self.problem.n_arms), self.top)
        where = np.ix_(self.top, outside)
        bounds = np.minimum(self.verdicts.bounds[where], self._certain(outside))
        bounds[:, self.verdicts.out[outside]] = 0.0
        return outside, bounds

    def _certain(self, outside: IntArray) -> FloatArray:
        """How much better arms outside can be if they win all that was not seen of both."""
        seen = self.known | (np.arange(self.size) < self.reached[:, None])
        filled = np.where(seen, self.scores, 0.0)
        inner, outer = seen[self.top].astype(np.float64), seen[outside].astype(np.float64)
        gained = inner @ filled[outside].T - filled[self.top] @ outer.T
        certain: FloatArray = (gained + self.size - inner @ outer.T) / self.size
        return certain

    def targets(self) -> IntArray:
        """How many items every arm is to have next: of doubtful pairs, whoever has not more."""
        arms = np.zeros((self.problem.n_arms,) * 2, dtype=np.bool_)
        arms[np.ix_(self.top, self.outside)] = doubtful(self.bounds, self.allowed)
        arms |= arms.T
        behind = arms & (self.reached[:, None] <= self.reached[None, :])
        behind &= self.reached[:, None] < self.size
        step = np.maximum(1, (tuning.GROWTH * self.reached).astype(np.int64))
        further = np.minimum(self.reached + step, self.size)
        return np.where(behind.any(1), further, self.reached)
