"""The state of a race on items: cells seen, what they prove, and the present choice.

Few arms: bets on differences of two arms on the same items bound these, and put arms out
(docs/items.md, Lemma 3). Many arms of which few are to be chosen: the chosen arms are so few that
they may be scored on most items. Then an upper bound on the mean of every arm outside is all that
is missing, and there are K such statements, not one for every pair (Lemma 5)."""

from dataclasses import replace

import numpy as np

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray
from shortlist.budget import Budget
from shortlist.certificates.frame import Retired, agreeing, tiers_of
from shortlist.certificates.items.bound import (
    EXACT,
    BettingUpperBound,
    DifferenceBounds,
    PairWealth,
    ScoredCells,
    every,
    outward,
    refined_bounds,
)
from shortlist.certificates.under_constraints import ExchangeGraph
from shortlist.exploration.items import ItemEffects, ItemSums
from shortlist.problem import FixedConfidence, Items, Problem
from shortlist.search import Tiers

# These cost cells; no bound rests on them.
# pairs of arms:
FIRST_ITEMS = 10  # items per arm in the first batch
ITEM_GROWTH = 0.03  # further items of an arm at a time, as a share of those it has
GAPS = (1.5, 3.0, 6.0, 12.0)  # gaps that are bet on, in units of epsilon sqrt(K)
GAP_WEIGHTS = (0.3, 0.3, 0.25, 0.15)  # shares of the wealth on each, for K = 1 ...
WEIGHTS_OF_SETS = (0.45, 0.4, 0.15)  # ... and for larger K, where a pair may be off by K epsilon
VARIANCE = 0.25  # of a difference before any score is seen: about that of 0/1 scores
BOUNDS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 9.0, 16.0)  # bounds tried, in units of epsilon, up to K
STICKY = 0.5  # an arm leaves the choice for one better by this, in units of epsilon
HOPELESS_ARM = 2.5  # standard deviations below the K-th arm at which an arm is no opponent any more
# single arms:
LOPSIDED = 7  # arms outside per arm inside from which on arms are judged one by one, ...
MANY_ARMS = 40  # ... as they are with this many arms
SINGLE_FIRST = 5  # items per arm in the first batch
ABOVE = 0.75  # share of delta for upper bounds: there are K, and most arms need no others
SINGLE_GAPS = (3.0, 6.0, 12.0)  # gaps that are bet on, in units of epsilon sqrt(K)
SINGLE_WEIGHTS = (0.35, 0.35, 0.3)  # shares of the wealth on each
SINGLE_VARIANCE = 0.1  # of a score before any is seen: between 0/1 scores and graded ones
SINGLE_GROWTH = 0.05  # further items of an arm at a time, as a share of those it has
FAVOUR = 0.7  # items of an arm are proportional to the number of its open pairs to this power
THRIFT = 0.5  # ... and inversely to the cost of an item to this power
JUMP = 1.15  # largest factor by which the items of an arm may grow to catch up
LOOK_GROWTH = 0.02  # new items after which a bound is computed again, less than any usual step
DOUBT = 0.3  # of the mean of an arm with few items, as a share of what its posterior has


class PairedEvidence:
    """The wealth of every pair of arms, and what it proved."""

    def __init__(self, problem: Problem, cells: ScoredCells, retired: int = 0) -> None:
        """`retired` arms took part at first, besides those of the problem."""
        n, k = problem.n_arms, problem.k
        self.k = k
        self.graph = None if problem.constraint is None else ExchangeGraph(problem)
        self.first = FIRST_ITEMS
        allowed = k * problem.sharp_epsilon
        grid = np.array(BOUNDS) * problem.epsilon
        grid = np.append(grid[grid < allowed - EXACT], allowed)
        weights = np.array(GAP_WEIGHTS if k == 1 else WEIGHTS_OF_SETS)
        gaps = np.array(GAPS)[: weights.size] * problem.epsilon * np.sqrt(k)
        gaps = _within_reach(gaps, problem, k * (n - k) / problem.delta)
        before = np.where(cells.known, cells.scores, np.nan)
        self.wealth = PairWealth(grid, gaps, weights, before, sampled=cells.sampled)
        ranked = problem.constraint is None
        self.proved = DifferenceBounds(n, k, problem.delta, retired, ranked=ranked)
        self.variance = VARIANCE  # expected of a difference after the first items
        # arms that others are compared with: not those that look hopeless
        self.opponents: BoolArray = np.ones(n, dtype=np.bool_)

    @property
    def out(self) -> BoolArray:
        """Arms that are not among the best."""
        return self.proved.out

    def take(self, cells: ScoredCells, before: IntArray) -> None:
        """Make all bets on newly scored items."""
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

    def learn(self, cells: ScoredCells) -> None:
        """Learn the variance of differences when all arms have their first items."""
        self.variance = _variance(cells)

    def _bet(self, cells: ScoredCells, place: int, rows: IntArray, columns: IntArray) -> None:
        rows = rows[self.opponents[rows]]
        if rows.size and columns.size:
            pairs = every(rows, columns)
            at_place = cells.scores[:, place], cells.known[:, place]
            self.wealth.bet(pairs, *at_place, self.expected(place))
            self.proved.look(self.wealth, pairs)

    def expected(self, place: int) -> float:
        """The variance of a difference that is expected at a place of the order.

        The number of items that the budget paid for at first may depend on known cells up to
        `first`, so no stake there depends on it."""
        return VARIANCE if place < self.first else self.variance

    def _forget(self, cells: ScoredCells) -> None:
        """Compare no more arms with those that look hopeless."""
        means = self.means(cells) - self.out
        spread = np.sqrt(self.variance / np.maximum(cells.reached, 1))
        kth = np.sort(means)[-self.k] if self.graph is None else self._replaceable(means)
        self.opponents &= means >= kth - HOPELESS_ARM * spread

    def _replaceable(self, means: FloatArray) -> FloatArray:
        """The least mean of a chosen arm that each may come in for, or its own: (arms,)."""
        assert self.graph is not None
        chosen = self.graph.first(np.argsort(-means, kind="stable"))
        swaps = self.graph.swaps(chosen)
        least = np.where(swaps, means, np.inf).min(axis=1)
        return np.where(chosen, means, least)

    def means(self, cells: ScoredCells) -> FloatArray:
        """An estimate of every arm's mean, all as if on the items of the arm that has most.

        An arm that has fewer is credited with the gain of the others on the rest."""
        farthest = int(cells.reached.max())
        filled = np.where(np.arange(cells.size) < cells.reached[:, None], cells.scores, 0.0)
        totals = np.cumsum(filled[:, :farthest], axis=1)  # (arms, items)
        reference = totals[cells.reached == farthest].mean(0)
        rest = reference[-1] - reference[cells.reached - 1]
        means: FloatArray = (totals[:, -1] + rest) / farthest
        return means

    def bounds(self, cells: ScoredCells, top: IntArray, outside: IntArray) -> FloatArray:
        """How much better each arm outside can be than one inside: (inside, outside)."""
        return np.minimum(self.proved.bounds[np.ix_(top, outside)], cells.certain(top, outside))

    def before(self, cells: ScoredCells) -> BoolArray:
        """[i, j]: j is not among the best without i, by bets or for certain."""
        every_arm = np.arange(self.out.size)
        return (self.proved.bounds <= 0) | (cells.certain(every_arm, every_arm) < -EXACT)

    def refined(
        self, cells: ScoredCells, top: IntArray, outside: IntArray, bounds: FloatArray
    ) -> FloatArray:
        """The same bounds between the points of the grid."""
        alive = ~self.out[outside]
        doubted = outside[alive]
        level = self.proved.level
        least = refined_bounds(self.wealth, level, cells, top, doubted, self.expected)
        refined = bounds.copy()
        refined[:, alive] = np.minimum(refined[:, alive], least)
        return refined

    def targets(self, doubtful: BoolArray, reached: IntArray, size: int) -> IntArray:
        """Number of items of every arm after one more step, of `size` in all."""
        behind = doubtful & (reached[:, None] <= reached[None, :])
        step = np.maximum(1, (ITEM_GROWTH * reached).astype(np.int64))
        return np.where(behind.any(1), np.minimum(reached + step, size), reached)

    def foreseen(
        self, cells: ScoredCells, top: IntArray, outside: IntArray, asked: IntArray
    ) -> FloatArray:
        """A guess of `bounds` once arms are scored on `asked` items: it proves nothing.

        Bounds of a pair fall as those of the arm that is behind."""
        falls = _falls(cells, asked)
        return self.bounds(cells, top, outside) * np.maximum.outer(falls[top], falls[outside])


def _variance(cells: ScoredCells) -> float:
    """Variance of a difference of two arms on the first items, pooled over all pairs."""
    seen = cells.scores[:, : cells.pilot]
    n, size = seen.shape
    around = seen - seen.mean(1, keepdims=True)
    pooled = 2 * n * (around**2).sum() - 2 * (around.sum(0) ** 2).sum()
    variance: float = max(0.0, pooled / (n * (n - 1) * size))
    return variance


def _within_reach(gaps: FloatArray, problem: Problem, level: float) -> FloatArray:
    """The gaps that are bet on: of a sample down to one that all its items just show.

    Of a finite population stakes grow towards its end, where all is known."""
    assert problem.items is not None
    if not problem.items.sampled:
        return gaps
    shown = np.sqrt(max(np.log(level), 1.0) / (2 * problem.items.draws))
    return np.geomspace(min(gaps[0], shown), gaps[-1], gaps.size)


class SingleEvidence:
    """Bounds on the means of arms: from above outside the choice, from below inside."""

    def __init__(self, problem: Problem, retired: int = 0) -> None:
        """`retired` arms took part at first, besides those of the problem."""
        n, k = problem.n_arms, problem.k
        self.first = SINGLE_FIRST
        gaps = np.array(SINGLE_GAPS) * problem.epsilon * np.sqrt(k)
        self.gaps: FloatArray = _within_reach(gaps, problem, k / problem.delta)
        self.weights: FloatArray = np.array(SINGLE_WEIGHTS)
        # the levels of bounds from above and from below: Lemma 6, or 5 if no arm has retired
        self.above = (k + retired) / (ABOVE * problem.delta)
        self.below = (n - k + retired) / ((1 - ABOVE) * problem.delta)
        self.most: FloatArray = np.ones(n)
        self.least: FloatArray = np.zeros(n)
        # items that bounds rest on, from above and from below: (2, arms)
        self.looked: IntArray = np.zeros((2, n), dtype=np.int64)
        self.variance = SINGLE_VARIANCE  # expected of a score after the first items
        self.out: BoolArray = np.zeros(n, dtype=np.bool_)
        self.thorough = False  # whether to look after every new item
        prices = problem.declared_costs
        # an arm with a low cost gets more items; 1 where costs are equal
        self.thrift: FloatArray = (prices.mean() / prices) ** THRIFT
        self._means: FloatArray = np.zeros(n)
        self._averaged: IntArray = np.zeros(n, dtype=np.int64)  # items that they are over

    def take(self, cells: ScoredCells, before: IntArray) -> None:
        """Do nothing: bounds are computed when they are needed."""

    def learn(self, cells: ScoredCells) -> None:
        """Learn the variance of scores when all arms have their first items."""
        if cells.pilot > 1:
            first = cells.scores[:, : cells.pilot]
            self.variance = float(first.var(axis=1, ddof=1).mean())

    def bounds(self, cells: ScoredCells, top: IntArray, outside: IntArray) -> FloatArray:
        """How much better each arm outside can be than one inside: (inside, outside).

        `ScoredCells.certain` could not lower them: on an item that is not seen U_j counts 1 and
        L_i counts 0, and on one that is seen their scores, item by item no more than it does."""
        arms = outside[self._worth_a_look(cells, 0, outside)]
        self.most[arms] = self._upper(cells, arms, self.above, self.most[arms])
        self.looked[0, arms] = cells.reached[arms]
        arms = top[self._worth_a_look(cells, 1, top)]
        self.least[arms] = self._lower(cells, arms)
        self.looked[1, arms] = cells.reached[arms]
        self._settle(cells)
        self.out[outside] |= self.most[outside] < self.least[top].min()
        return outward(self.most[outside][None, :] - self.least[top][:, None])

    def _settle(self, cells: ScoredCells) -> None:
        """Give arms that were scored on all items their means: equal ones are equal floats."""
        complete = (cells.reached == cells.size) & (not cells.sampled)
        if complete.any():
            means = self.means(cells)[complete]
            self.most[complete] = means + cells.rounding
            self.least[complete] = means - cells.rounding

    def before(self, _: ScoredCells) -> BoolArray:
        """[i, j]: j is not among the best without i, by the bounds that were computed."""
        return np.asarray(self.most[None, :] < self.least[:, None] - EXACT)

    def _worth_a_look(self, cells: ScoredCells, side: int, arms: IntArray) -> BoolArray:
        """Whether enough items are new since the last look: a bound takes as long to compute as
        all items of its arm, and holds whenever it is computed."""
        reached, looked = cells.reached[arms], self.looked[side, arms]
        enough = (reached >= (1 + LOOK_GROWTH) * looked) | (reached == cells.size)
        worth: BoolArray = (reached > looked) & (enough | self.thorough)
        return worth

    def _lower(self, cells: ScoredCells, arms: IntArray) -> FloatArray:
        """Bounds from below: those from above of mirrored scores."""
        return 1 - self._upper(cells, arms, self.below, 1 - self.least[arms], mirror=True)

    def _upper(
        self,
        cells: ScoredCells,
        arms: IntArray,
        level: float,
        most: FloatArray,
        *,
        mirror: bool = False,
    ) -> FloatArray:
        if not arms.size:
            return most
        places = np.arange(cells.reached[arms].max())
        # of a sample known scores are bet on like others
        known = cells.known[arms] & (not cells.sampled)
        scores = 1 - cells.scores[arms] if mirror else cells.scores[arms]
        band = BettingUpperBound(
            scores[:, places],
            (places < cells.reached[arms, None]) & ~known[:, places],
            cells.size,
            known.sum(1),
            np.where(known, scores, 0.0).sum(1),
            # as in `PairedEvidence.expected`
            np.where(places < self.first, SINGLE_VARIANCE, self.variance),
            self.gaps,
            sampled=cells.sampled,
            rounding=cells.rounding,
        )
        return band.upper(self.weights, level, most)

    def means(self, cells: ScoredCells) -> FloatArray:
        """Mean score of every arm so far."""
        moved = np.flatnonzero(self._averaged < cells.reached)
        reached = cells.reached[moved]
        seen = np.arange(cells.size) < reached[:, None]
        self._means[moved] = np.where(seen, cells.scores[moved], 0.0).sum(1) / reached
        self._averaged[moved] = reached
        return self._means.copy()

    def targets(self, doubtful: BoolArray, reached: IntArray, size: int) -> IntArray:
        """Number of items of every arm after one more step, of `size` in all.

        One more item of an arm that is in many open pairs helps all of them: if bounds fall with
        the number of items t, t proportional to the root of the number of pairs costs least, and
        inversely to the root of the cost of an item."""
        worth = np.maximum(doubtful.sum(1), 1) ** FAVOUR * self.thrift
        pace = np.where(reached < size, reached / worth, np.inf)
        slowest = np.where(doubtful, pace, np.inf).min(1)  # of its opponents
        behind = (doubtful & (pace[:, None] <= pace[None, :])).any(1)
        step = np.maximum(1, (SINGLE_GROWTH * reached).astype(np.int64))
        catching = np.minimum(slowest * worth, JUMP * reached).astype(np.int64)
        further = np.minimum(np.maximum(reached + step, catching), size)
        return np.where(behind & (reached < size), further, reached)

    def foreseen(
        self, cells: ScoredCells, top: IntArray, outside: IntArray, asked: IntArray
    ) -> FloatArray:
        """A guess of `bounds` once arms are scored on `asked` items: it proves nothing.

        The distance of a bound from the mean of its arm falls as the standard deviation of what
        is not seen."""
        falls, means = _falls(cells, asked), self.means(cells)
        most = means + np.maximum(self.most - means, 0) * falls
        least = means - np.maximum(means - self.least, 0) * falls
        bounds: FloatArray = most[outside][None, :] - least[top][:, None]
        return bounds


class LikelyMeans:
    """Means of arms as far as scores on few items tell, for plans that are made ahead.

    With K = 1 the arm in front soon gets most of the items. If cells are planned in large numbers,
    an arm whose first items were easy, or that was lucky on them, would get them, and then the next
    such arm. So effects of items are removed, and means of few items are shrunk."""

    def __init__(self, cells: ScoredCells) -> None:
        seen = Items(cells.size, cells.scores)
        self._effects = ItemEffects(ItemSums(seen, cells.reached.size))
        self._reached = cells.reached

    def take(self, cells: ScoredCells) -> None:
        """Add the cells that are new."""
        places = np.arange(cells.size)
        new = (places >= self._reached[:, None]) & (places < cells.reached[:, None]) & ~cells.known
        self._effects.sums.take(new.sum(1), cells.scores[new])
        self._effects.refresh()
        self._reached = cells.reached

    @property
    def means(self) -> FloatArray:
        """Up to a constant of all arms: (arms,)."""
        return self._effects.means_doubted(DOUBT)


def _falls(cells: ScoredCells, asked: IntArray) -> FloatArray:
    """How standard deviations fall from the items seen to those asked for: (arms,)."""
    now, then = (np.sqrt(1 / each - 1 / cells.size) for each in (cells.reached, asked))
    falls: FloatArray = then / np.maximum(now, EXACT)
    return falls


def evidence_for(problem: Problem, cells: ScoredCells) -> PairedEvidence | SingleEvidence:
    """The evidence that needs fewer cells on most test sets, by n and k alone."""
    n, k = problem.n_arms, problem.k
    lopsided = n - k >= LOPSIDED * k
    return SingleEvidence(problem) if lopsided or n >= MANY_ARMS else PairedEvidence(problem, cells)


class ItemsRace:
    """Cells seen, the bounds they prove, and the choice.

    Where more than half of the arms are to be chosen, it searches for those to reject, on mirrored
    scores: there are fewer of them, and the loss is the same. `arms` are those that have not
    retired, and all arrays are about them."""

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator,
        retired: Retired | None = None,
        *,
        wide: bool = False,
    ) -> None:
        """`wide`: many cells are asked for at a time."""
        self.asked = problem
        self.wide = wide
        self.retired = Retired(problem.n_arms) if retired is None else retired
        self.mirrored = problem.k > problem.n_arms / 2
        self.arms: IntArray = np.arange(problem.n_arms)
        self.problem = self._sought()
        self.graph = self._graph()
        assert self.problem.items is not None
        self.cells = ScoredCells.of(self.problem.items, problem.n_arms, problem.blur)
        self.evidence = evidence_for(self.problem, self.cells)
        self.budget = Budget(problem)
        self.ties: IntArray = rng.permutation(problem.n_arms)
        self.likely = self._likely()
        self._reset_choice()

    def _likely(self) -> LikelyMeans | None:
        """None where the means of scores are good enough."""
        one = self.problem.k == 1 and isinstance(self.evidence, SingleEvidence)
        return LikelyMeans(self.cells) if one and self.wide else None

    def _sought(self) -> Problem:
        """The problem of the remaining arms: to find the best, or those to reject."""
        among = self.asked.among(self.arms, self.asked.goal.budget)
        if self.fullness < 1:  # scores of groups are smaller than those of cells
            goal = among.goal
            assert isinstance(goal, FixedConfidence)
            among = replace(among, goal=replace(goal, epsilon=goal.epsilon * self.fullness))
        return among.complement().mirrored() if self.mirrored else among

    @property
    def fullness(self) -> float:
        """The mean over groups of cells as a share of that over cells: see `GroupedCells`."""
        assert self.asked.items is not None
        return self.asked.items.fullness

    def _graph(self) -> ExchangeGraph | None:
        return None if self.problem.constraint is None else ExchangeGraph(self.problem)

    def _reset_choice(self) -> None:
        """Forget the present choice."""
        self.top: IntArray = np.empty(0, dtype=np.int64)
        self.outside: IntArray = np.arange(self.arms.size)
        self.bounds: FloatArray = np.empty((0, self.arms.size))  # (inside, outside)

    @property
    def allowed(self) -> float:
        """The largest loss of the choice in all."""
        return self.problem.k * self.problem.sharp_epsilon

    @property
    def finished(self) -> bool:
        """Whether every cell that can still matter was seen."""
        return bool((self.cells.reached[~self.evidence.out] == self.cells.size).all())

    @property
    def chosen(self) -> IntArray:
        """The arms to be chosen, by their numbers among all arms."""
        top = np.setdiff1d(np.arange(self.arms.size), self.top) if self.mirrored else self.top
        return np.sort(self.arms[top])

    def take(self, targets: IntArray, scores: FloatArray) -> None:
        """Add the missing cells, arm by arm in the order of items, and bet on them."""
        before = self.cells.reached
        left = bool(self.retired.arms[self.arms].any())
        if not left and not (targets > before).any():  # all was about arms that have retired
            return
        self.cells.take(targets, 1 - scores if self.mirrored else scores)
        alone = int(targets.max()) <= self.evidence.first
        # stakes must rest neither on scores that were made up nor on those of later items
        if not before.any() and alone and not left and self._first_items_are_sure:
            self.evidence.learn(self.cells)
        if left:
            self._begin_again()
        else:
            self.evidence.take(self.cells, before)
        if self.likely is not None:
            self.likely.take(self.cells)

    @property
    def _first_items_are_sure(self) -> bool:
        """Whether the first items do not depend on which scores are known.

        Of a sample, no stake may: which scores are known may depend on all of them."""
        if not self.cells.sampled or not self.cells.known_to.any():
            return True
        each = self.evidence.first * self.cells.cells_per_place
        every_arm = np.arange(self.asked.n_arms)
        return bool(Budget(self.asked).affords(every_arm, np.full(every_arm.size, each)).all())

    def _begin_again(self) -> None:
        """Make all bets again on the cells of the remaining arms: nothing rests on the others.

        Stakes must not depend on which arms stay, for that may depend on scores at later places:
        the variance is the one that was learned from all arms, or the usual one if an arm left
        before they had their first items."""
        stay = np.flatnonzero(~self.retired.arms[self.arms])
        before = self.evidence
        self.arms, self.ties, self.cells = self.arms[stay], self.ties[stay], self.cells.among(stay)
        self.problem = self._sought()
        self.graph = self._graph()
        if isinstance(before, PairedEvidence):
            self.evidence = PairedEvidence(self.problem, self.cells, self.retired.count)
        else:
            self.evidence = SingleEvidence(self.problem, self.retired.count)
        self.evidence.variance = before.variance
        self.evidence.take(self.cells, np.zeros_like(self.cells.reached))
        self.likely = self._likely()
        self._reset_choice()

    def choose(self) -> None:
        """Keep the choice unless an arm outside looks clearly better than one inside."""
        means = self._means() - 2 * self.evidence.out  # arms that are out come last
        ranked = np.lexsort((self.ties, -means))
        if self.graph is not None:
            self.top = np.flatnonzero(self.graph.first(ranked))
            self.outside, self.bounds = self._table()
            return
        top = list(self.top) or list(ranked[: self.problem.k])
        margin = 0.0 if self.finished else STICKY * self.problem.epsilon
        outside = [arm for arm in ranked if arm not in top]
        for arm in outside:
            worst = min(top, key=lambda each: means[each])
            if means[arm] - means[worst] <= margin:
                break
            top[top.index(worst)] = arm
        self.top = np.array(top, dtype=np.int64)
        self.outside, self.bounds = self._table()

    def _means(self) -> FloatArray:
        """Means that the choice goes by; it may look at anything."""
        if self.likely is None or self.finished:
            return self.cells.with_known(self.evidence.means(self.cells))
        return self.likely.means

    def _table(self) -> tuple[IntArray, FloatArray]:
        """The arms outside, and how much better each can be than one inside: (inside, outside)."""
        outside = np.setdiff1d(np.arange(self.arms.size), self.top)
        bounds = self.evidence.bounds(self.cells, self.top, outside)
        return outside, self.feasible(bounds, outside)

    def feasible(self, bounds: FloatArray, outside: IntArray) -> FloatArray:
        """The same bounds, 0 where two arms may not change places, or one is out."""
        bounds[:, self.evidence.out[outside]] = 0.0
        if self.graph is None:
            return bounds
        chosen = np.isin(np.arange(self.arms.size), self.top)
        swaps = self.graph.swaps(chosen)[np.ix_(outside, self.top)].T  # (inside, outside)
        return np.where(swaps, bounds, 0.0)

    def refined(self) -> FloatArray:
        """The bounds at the end of a budget: pairs look between the points of their grid, single
        arms at their last items."""
        if isinstance(self.evidence, SingleEvidence):
            self.evidence.thorough = True
            _, bounds = self._table()
            return bounds
        refined = self.evidence.refined(self.cells, self.top, self.outside, self.bounds)
        return self.feasible(refined, self.outside)

    def tiers(self) -> Tiers | None:
        """Arms surely among the best and surely not, on the event that the bounds rest on.

        None under a constraint or if an arm has retired: the masks are about all arms."""
        if self.graph is not None or self.arms.size < self.asked.n_arms:
            return None
        inside, outside = tiers_of(self.evidence.before(self.cells), self.problem.k)
        outside |= self.evidence.out
        found = Tiers(outside, inside) if self.mirrored else Tiers(inside, outside)
        return agreeing(found, self.chosen)

    def regret(self, bound: float) -> float:
        """A bound on the total loss of the choice as one on its regret, rounded up.

        Of mirrored arms it is the same loss, shared by another number of arms."""
        regret = (1 + ROUNDED) * bound / self.problem.k / self.fullness
        return regret * self.problem.k / self.asked.k if self.mirrored else regret
