"""Bounds on differences of means over a test set, by bets without replacement (docs/items.md).

Let d = x_j - x_i on an item, S the sum of the d seen, `left` the number of items not seen. If the
mean of d over all N items is at least m, that of the items left is at least
m_t = (N m - S) / left, so that for a stake known beforehand

    W(m) = prod of 1 + stake (m_t - d),   0 <= stake < 1 / (1 - m_t),

is a supermartingale along the random order of the items (Lemma 1), and it grows with m on every
path (Lemma 2). So the event of Lemma 3 holds for every m at once, and the least m that was ever
rejected is a bound: `PairWealth` bets on every pair for a grid of m, `refined_bounds` looks between
the points of that grid, `BettingUpperBound` does the same for the scores of single arms.

Let B be the best K arms. For every j in B the wealths W_ij(m_ij) of all i outside B, m_ij at most
the true difference, add up to at most K (n - K) / delta at all times, for all j together with
probability 1 - delta (Lemma 3). So where W_ij(m) is more, j is better than i by less than m; and
where the W_ij(0) without the K - 1 largest add up to more, j is not in B.

K R_T is the sum over arms that are best and not in T less the sum over arms in T and not best: at
most the largest matching of (U_ij)+ between arms i in T and arms j outside it (Lemma 4)."""

from collections.abc import Callable
from copy import copy

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.problem import Items

# These cost cells; no bound rests on them.
MOST_BET = 0.98  # largest share of the wealth in a bet: no score ruins
PRIOR_ITEMS = 10.0  # differences that the variance of the first items counts for

EXACT = 1e-12  # tolerance of sums of scores
RICH = 1e250  # more wealth than any level asks for; the rest is given away
LEAST_ITEM_VARIANCE = 1e-6
SCORE_ROUNDING = 1e-9  # of an item: sums of scores are rounded
GRAINS = 2.0**20  # scores that are multiples of 1/GRAINS have exact sums
ROUNDINGS = 8  # of a mean besides those of its sum, each of 2^-53 at most
LAST_DIGIT = 2.0**-51  # more than the rounding of two means and of their difference
FEW_FRESH = 3.0  # items that the mean so far counts for, where few were not known before


def largest_matching(bounds: FloatArray) -> float:
    """The largest sum of bounds, at most one per row and column; none is below 0."""
    from scipy.optimize import linear_sum_assignment  # takes long to load, and few need it

    positive = np.maximum(bounds, 0.0)
    rows, columns = linear_sum_assignment(positive, maximize=True)
    return float(positive[rows, columns].sum())


def have_exact_sums(scores: FloatArray) -> bool:
    """Whether all are multiples of 2^-20, as 0/1 scores are: sums of them are not rounded."""
    grains = scores * GRAINS
    return bool((grains == np.floor(grains)).all())


def outward(differences: FloatArray) -> FloatArray:
    """Differences of means, rounded up; 0 stays 0.

    Means of exact sums that differ, differ by more than a float is rounded. Where sums are rounded,
    `ScoredCells.rounding` was added before."""
    return np.where(differences == 0, 0.0, differences + LAST_DIGIT)


class ScoredCells:
    """Scores by place in the order; every arm was scored on its first `reached` items."""

    @staticmethod
    def of(items: Items, n_arms: int, blur: float = 0.0) -> "ScoredCells":
        """The cells of a test set, or of groups of cells that are drawn whole.

        `blur` is the rounding error of a mean on the way to the unit scale."""
        kind = ScoredCells if items.widths is None else GroupedCells
        cells = kind(items, n_arms)
        cells.blur = blur
        return cells

    def __init__(self, items: Items, n_arms: int) -> None:
        self.size = items.size
        self.sampled = items.sampled
        self.cells_per_place = 1  # at most
        self.scores: FloatArray = items.by_position(n_arms)  # (arms, items), NaN: not seen
        self.known: BoolArray = ~np.isnan(self.scores)  # given with the problem
        self.any_known = bool(self.known.any())
        self.reached: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.pilot = 0  # items of all arms in the first batch
        self.blur = 0.0
        self.exact_sums = have_exact_sums(self.scores[self.known])
        # the place of the last known score, plus 1: (arms,)
        self.known_to: IntArray = ((np.arange(self.size) + 1) * self.known).max(1, initial=0)

    @property
    def rounding(self) -> float:
        """The rounding error of a mean; 0 as long as all scores have exact sums."""
        terms = self.size + self.cells_per_place + ROUNDINGS
        return 0.0 if self.exact_sums else terms * 2.0**-53 + self.blur

    def among(self, arms: IntArray) -> "ScoredCells":
        """The cells of these arms only."""
        some = copy(self)
        some.scores, some.known = self.scores[arms], self.known[arms]
        some.reached, some.known_to = self.reached[arms], self.known_to[arms]
        return some

    def with_known(self, means: FloatArray) -> FloatArray:
        """Estimates of means by all known scores, given estimates by the first items: (arms,).

        Cells that are not seen are like those that were not known before: an arm may be known on
        its easy items only. Nothing rests on it but the choice, which may look at anything."""
        arms = np.flatnonzero(self.known_to > self.reached)
        if not arms.size:
            return means
        reached = np.arange(self.size) < self.reached[arms, None]
        fresh, seen = reached & ~self.known[arms], reached | self.known[arms]
        scores = np.where(seen, self.scores[arms], 0.0)
        like = np.where(fresh, scores, 0.0).sum(1) + FEW_FRESH * means[arms]
        like /= fresh.sum(1) + FEW_FRESH
        estimated = means.copy()
        estimated[arms] = (scores.sum(1) + (~seen).sum(1) * like) / self.size
        return estimated

    def missing(self, targets: IntArray, since: IntArray | None = None) -> IntArray:
        """Cells to be scored for arms to get from `since` to these numbers of items: (arms,).

        By default from where they are."""
        start = self.reached if since is None else since
        if not self.any_known:
            return np.asarray(np.maximum(targets - start, 0), dtype=np.int64)
        new, _ = self._new(targets, start)
        return np.asarray(new.sum(1), dtype=np.int64)

    def take(self, targets: IntArray, scores: FloatArray) -> None:
        """Add the missing cells, arm by arm in the order of items."""
        new, places = self._new(targets, self.reached)
        self.scores[:, places][new] = scores
        self.exact_sums = self.exact_sums and have_exact_sums(scores)
        first = not self.reached.any()
        self.reached = np.maximum(self.reached, targets)
        if first:
            self.pilot = int(self.reached.min())

    def _new(self, targets: IntArray, since: IntArray) -> tuple[BoolArray, slice]:
        """The missing cells among some places, and these places: outside them none is missing."""
        moved = targets > since
        first = int(since[moved].min(initial=self.size))
        places = np.arange(first, max(first, int(targets[moved].max(initial=0))))
        ahead = (places >= since[:, None]) & (places < targets[:, None])
        columns = slice(first, first + places.size)
        return ahead & ~self.known[:, columns], columns

    def within(self, targets: IntArray, since: IntArray, pulls: IntArray) -> IntArray:
        """The farthest places up to `targets` that take no more than these numbers of pulls."""
        if not self.any_known:
            return np.asarray(np.minimum(targets, since + pulls))
        places = np.arange(int(since.min()), int(targets.max()))
        new = (places >= since[:, None]) * self._asked_at(places)
        kept = (np.cumsum(new, axis=1) <= pulls[:, None]).sum(1)  # (arms,)
        return np.asarray(np.maximum(since, np.minimum(targets, int(since.min()) + kept)))

    def _asked_at(self, places: IntArray) -> IntArray:
        """Cells to be scored at these places: (arms, places)."""
        return (~self.known[:, places]).astype(np.int64)

    def certain(self, top: IntArray, outside: IntArray) -> FloatArray:
        """Difference to each arm outside if it wins all cells not seen, rounded up: (top, outside).

        Of the distribution behind a sample nothing is certain."""
        if self.sampled:
            return np.ones((top.size, outside.size))
        seen = self.known | (np.arange(self.size) < self.reached[:, None])
        places = slice(0, int(np.flatnonzero(seen.any(axis=0)).max(initial=-1)) + 1)
        seen = seen[:, places]
        filled = np.where(seen, self.scores[:, places], 0.0)
        inner, outer = seen[top].astype(np.float64), seen[outside].astype(np.float64)
        gained = inner @ filled[outside].T - filled[top] @ outer.T
        differences = (gained + self.size - inner @ outer.T) / self.size
        return outward(differences + 2 * self.rounding)


class GroupedCells(ScoredCells):
    """The same where a place is a group of cells, which is drawn whole.

    Its score is the sum over its cells divided by the number of cells of the largest group. So it
    lies in [0, 1], and its mean over groups is that over cells times `Items.fullness`."""

    def __init__(self, items: Items, n_arms: int) -> None:
        assert items.widths is not None
        cells = items.by_position(n_arms)  # (arms, cells)
        starts = np.cumsum(items.widths) - items.widths
        self.largest = int(items.widths.max())
        known = ~np.isnan(cells)
        filled = np.where(known, cells, 0.0)
        # (arms, groups): cells that are not known, and the part of the score that is
        self.unknown: IntArray = np.add.reduceat((~known).astype(np.int64), starts, axis=1)
        self.given: FloatArray = np.add.reduceat(filled, starts, axis=1) / self.largest
        complete = self.unknown == 0
        whole_groups = Items(items.widths.size, np.where(complete, self.given, np.nan))
        super().__init__(whole_groups, n_arms)
        self.exact_sums = self.exact_sums and have_exact_sums(filled)
        self.sampled = items.sampled
        self.cells_per_place = self.largest
        self.any_known = True  # groups differ in size: places are not pulls

    def among(self, arms: IntArray) -> "ScoredCells":
        """The cells of these arms only."""
        some = super().among(arms)
        assert isinstance(some, GroupedCells)
        some.unknown, some.given = self.unknown[arms], self.given[arms]
        return some

    def missing(self, targets: IntArray, since: IntArray | None = None) -> IntArray:
        """Cells to be scored for arms to get from `since` to these numbers of groups: (arms,)."""
        new, places = self._new(targets, self.reached if since is None else since)
        return np.asarray((new * self.unknown[:, places]).sum(1), dtype=np.int64)

    def take(self, targets: IntArray, scores: FloatArray) -> None:
        """Add the missing cells, arm by arm in the order of cells."""
        new, places = self._new(targets, self.reached)
        counts = self.unknown[:, places][new]
        self.exact_sums = self.exact_sums and have_exact_sums(scores)
        sums = np.add.reduceat(scores, np.cumsum(counts) - counts) if counts.size else counts
        whole_groups = self.given[:, places][new] + sums / self.largest
        super().take(targets, np.clip(whole_groups, 0.0, 1.0))

    def _asked_at(self, places: IntArray) -> IntArray:
        return self.unknown[:, places]


Pairs = tuple[IntArray, IntArray]  # arms i as a column, arms j as a row: every i with every j


def every(rows: IntArray, columns: IntArray) -> Pairs:
    """Every pair of an arm of `rows` with one of `columns`."""
    return rows[:, None], columns[None, :]


class PairWealth:
    """The wealth against "j is better than i by m", [i, j], for every m of a grid.

    `known` are scores by place that were given with the problem, NaN elsewhere: (arms, items)."""

    def __init__(
        self,
        grid: FloatArray,
        gaps: FloatArray,
        weights: FloatArray,
        known: FloatArray,
        *,
        sampled: bool = False,
    ) -> None:
        n, size = known.shape
        self.size = size
        self.sampled = sampled  # the mean of what is left is that of the distribution
        if sampled:  # known scores are bet on like others
            known = np.full(known.shape, np.nan)
        self.grid = grid  # (bounds,): rising
        self.gaps = gaps  # (stakes,)
        self.weights = weights  # (stakes,): they add up to 1
        start = weights[:, None, None, None]
        # (stakes, bounds, arms, arms)
        self.by_stake: FloatArray = np.broadcast_to(start, (gaps.size, grid.size, n, n)).copy()
        filled = np.nan_to_num(known)
        both: FloatArray = (~np.isnan(known)).astype(np.float64)
        # (arms, arms) each: over items that both arms are known on, no bets are made there
        self.left: FloatArray = size - both @ both.T
        total = both @ filled.T  # [i, j]: sum of x_j
        self.sums: FloatArray = total - total.T
        squares = both @ (filled**2).T
        self.squares: FloatArray = squares + squares.T - 2 * filled @ filled.T

    def bet(self, pairs: Pairs, scores: FloatArray, known: BoolArray, variance: float) -> None:
        """Let pairs bet on one more item, on which arms have these scores.

        Two arms whose scores were `known` make no bet. `variance` is that expected of differences
        before this item."""
        rows, columns = pairs
        d = scores[columns] - scores[rows]  # (rows, columns)
        fresh = ~(known[rows] & known[columns]) | self.sampled
        d *= fresh
        left = self.left[pairs]
        sums = self.sums[pairs]
        means = self._means_left(sums, left)  # m_t: (bounds, ..)
        most = MOST_BET / np.maximum(1 - means, SCORE_ROUNDING)
        factors = np.minimum(self._stakes(pairs, left, variance)[:, None], most)
        factors *= (means - d) * fresh
        factors += 1  # Lemma 1
        factors *= self.by_stake[:, :, rows, columns]
        self.by_stake[:, :, rows, columns] = np.minimum(factors, RICH, out=factors)
        self.sums[pairs] = sums + d
        self.squares[pairs] += d * d
        self.left[pairs] = left - fresh

    def _means_left(self, sums: FloatArray, left: FloatArray) -> FloatArray:
        """The mean of what is left if that of all is m, for every m of the grid: (bounds, ..)."""
        grid = self.grid[:, None, None]
        if self.sampled:
            return np.broadcast_to(grid, (grid.size, *sums.shape))
        means: FloatArray = (self.size * grid - sums) / np.maximum(left, 1)
        return means

    def _stakes(self, pairs: Pairs, left: FloatArray, expected: float) -> FloatArray:
        """The stake gap / (variance + gap^2), which is best if m - D is the gap.

        A gap g over all items is a gap g N / left over those left: (stakes, ..)."""
        seen = self.size - left
        around = self.squares[pairs] - self.sums[pairs] ** 2 / np.maximum(seen, 1)
        variance = PRIOR_ITEMS * expected + np.maximum(around, 0.0)
        variance = np.maximum(variance / (PRIOR_ITEMS + seen), LEAST_ITEM_VARIANCE)
        gaps = self.gaps[:, None, None]
        if not self.sampled:
            gaps = gaps * (self.size / np.maximum(left, 1))
        stakes: FloatArray = gaps / (variance + gaps**2)
        return stakes

    def against(self, pairs: Pairs) -> FloatArray:
        """W(m) of pairs, all stakes together, infinite where m is impossible: (bounds, ..)."""
        rows, columns = pairs
        total: FloatArray = self.by_stake[:, :, rows, columns].sum(0)
        if self.sampled:
            return total
        missing = self.size * self.grid[:, None, None] - self.sums[pairs]
        total[missing > self.left[pairs] + SCORE_ROUNDING * self.size] = np.inf
        return total


class BettingUpperBound:
    """Upper bounds on the means of arms, by bets on their own scores.

    `scores` and `fresh`, those that are bet on, are (arms, places). `size` is the number of items,
    `held` and `gained` are the number and the sum of known scores: (arms,). `variances` are those
    expected at every place. With `sampled` the means are those of the distribution behind the
    items: the mean of what is left is the same, whatever was seen. `rounding` is that of a mean."""

    def __init__(
        self,
        scores: FloatArray,
        fresh: BoolArray,
        size: int,
        held: FloatArray,
        gained: FloatArray,
        variances: FloatArray,
        gaps: FloatArray,
        *,
        sampled: bool = False,
        rounding: float = 0.0,
    ) -> None:
        self.size = size
        self.sampled = sampled
        self.rounding = rounding
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

        A gap g over all items is a gap g N / left over those left: (gaps, arms, places)."""
        squares = np.cumsum(self.x**2, axis=1) - self.x**2
        around = np.maximum(squares - sums**2 / np.maximum(seen, 1), 0.0)
        variance = (PRIOR_ITEMS * variances + around) / (PRIOR_ITEMS + seen)
        wide = gaps[:, None, None] * (1.0 if self.sampled else self.size / self.left)
        stakes: FloatArray = wide / (np.maximum(variance, LEAST_ITEM_VARIANCE) + wide**2)
        return stakes

    def rejects(self, m: FloatArray, weights: FloatArray, level: float) -> BoolArray:
        """Whether W(m), the weighted mean over stakes, ever reached the level: (arms,)."""
        means = self._means_left(m)  # m_t
        most = MOST_BET / np.maximum(1 - means, SCORE_ROUNDING)
        factors = np.minimum(self.stakes, most)
        factors *= (means - self.x) * self.fresh
        factors += 1  # Lemma 1
        with np.errstate(over="ignore", under="ignore"):
            wealth = np.einsum("s,sap->ap", weights, np.cumprod(factors, axis=2))
        impossible = self.size * m[:, None] - self.after > self.rest + SCORE_ROUNDING * self.size
        impossible &= not self.sampled
        rejected: BoolArray = np.any((wealth >= (1 + SCORE_ROUNDING) * level) | impossible, axis=1)
        return rejected

    def _means_left(self, m: FloatArray) -> FloatArray:
        """The mean of what is left at every place if that of all is m: (arms, places)."""
        if self.sampled:
            return np.broadcast_to(m[:, None], self.before.shape)
        means: FloatArray = (self.size * m[:, None] - self.before) / self.left
        return means

    def upper(self, weights: FloatArray, level: float, most: FloatArray) -> FloatArray:
        """A bound on the mean of every arm, `most` or less.

        What the scores not seen leave open is a bound as it is rounded: see `outward`."""
        high = most
        if not self.sampled:
            left_open = (self.after[:, -1] + self.rest[:, -1]) / self.size
            high = np.minimum(most, left_open + self.rounding)
        low = np.minimum(self.after[:, -1] / self.size, high)
        for _ in range(14):
            middle = (low + high) / 2
            rejected = self.rejects(middle, weights, level)
            high = np.where(rejected, middle, high)
            low = np.where(rejected, low, middle)
        return high


def refined_bounds(
    before: PairWealth,
    level: float,
    cells: ScoredCells,
    top: IntArray,
    outside: IntArray,
    expected: Callable[[int], float],
) -> FloatArray:
    """Bounds of a grid that goes up to 1: (inside, outside).

    `expected` is the variance of a difference that was expected at a place of the order."""
    arms = np.concatenate([top, outside])
    inside, others = np.arange(top.size), np.arange(top.size, arms.size)
    known = np.where(cells.known, cells.scores, np.nan)[arms]
    grid = np.geomspace(max(before.grid[-1], 1e-6), 1.0, 24)
    wealth = PairWealth(grid, before.gaps, before.weights, known, sampled=cells.sampled)
    reached = cells.reached[arms]
    least = np.ones((inside.size, others.size))
    for place in range(int(reached.max())):
        rows, columns = inside[reached[inside] > place], others[reached[others] > place]
        if not rows.size or not columns.size:
            continue
        pairs = every(rows, columns)
        at_place = cells.scores[arms, place], cells.known[arms, place]
        wealth.bet(pairs, *at_place, expected(place))
        rejected = wealth.against(pairs) >= level
        steps = np.where(rejected, wealth.grid[:, None, None], 1.0).min(0)
        where = np.ix_(rows, columns - inside.size)
        least[where] = np.minimum(least[where], steps)
    return least


class DifferenceBounds:
    """Bounds on differences and arms that are out; neither is ever taken back."""

    def __init__(
        self, n_arms: int, k: int, delta: float, retired: int = 0, *, ranked: bool = True
    ) -> None:
        """`retired` arms took part at first, besides these `n_arms`.

        `ranked`: every arm of B is at least as good as every other one. That is false where not
        every set is feasible, and then no arm is put out by sums of wealth."""
        self.k = k
        self.ranked = ranked
        # Lemma 6, or 3 if none has; a wealth is a product of rounded factors
        self.level = (1 + SCORE_ROUNDING) * (k + retired) * (n_arms - k + retired) / delta
        # [i, j]: how much better than i can j be, at most
        self.bounds: FloatArray = np.ones((n_arms, n_arms))
        self.out: BoolArray = np.zeros(n_arms, dtype=np.bool_)

    def look(self, wealth: PairWealth, pairs: Pairs) -> None:
        """Read the wealth of pairs that have just bet on an item.

        All of them are at the same item: sums of wealth are valid only there."""
        rows, columns = pairs
        against = wealth.against(pairs)  # (bounds, rows, columns)
        against[:, rows == columns] = 0.0
        rejected = against >= self.level
        if rejected.any():
            steps = np.append(wealth.grid, 1.0)
            least = steps[wealth.grid.size - rejected.sum(0)]  # wealth grows with m: Lemma 2
            self.bounds[pairs] = np.minimum(self.bounds[pairs], least)
        promising = against[0].sum(0) >= self.level  # (columns,)
        if self.ranked and promising.any():
            fair = self._without_largest(against[0][:, promising])
            self.out[columns[0, promising]] |= fair >= self.level

    def _without_largest(self, wealth: FloatArray) -> FloatArray:
        """Sums over rows without the K - 1 largest: at most K - 1 rows are in B as well."""
        kept = max(0, wealth.shape[0] - (self.k - 1))
        result: FloatArray = np.sort(wealth, axis=0)[:kept].sum(0)
        return result
