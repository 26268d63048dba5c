"""A budget of cells on a test set: score arms where the expected loss is large.

Scores of arms that did not see the same items are compared by effects of arms and of items:

    x_is = a_i + b_s + noise,   a_i ~ N(0, arms),   b_s ~ N(mu, items)

An arm's mean over all items is then its scores and, on items it has not seen, a_i + b_s. The three
variances are fitted by steps of EM. That of arms is the one that few items say little about, and
that everything depends on: it is shrunk to a small share of the noise. Where arms have orders of
their own, places in the order have nothing in common, and the variance of items goes to 0. Searle,
Casella, McCulloch (1992), two-way crossed classification, chapter 7.

loss_i = E[(theta_j - theta_i)_+] for an arm i inside the present choice, with j the best of the
others, and E[(theta_i - theta_j)_+] for one outside, with j the last one chosen. An arm that met
easy items is not taken for a good one, two arms are compared item by item where they saw the same
items, and an arm that saw all items is known exactly.

Successive rejects make the loss per item about the same for all arms on average (Audibert, Bubeck,
Munos 2010; on shared items Lyu, Nejma, Wegel, Yang, Dorner 2026, SySRs), by a schedule that does
not depend on gaps; here it is so for the observed gaps, and arms that saw many items are favoured a
little."""

from collections.abc import Generator

import numpy as np
from scipy.special import ndtr

from shortlist.arrays import FloatArray, IntArray
from shortlist.constraints import MatroidConstraint, best_by
from shortlist.problem import Items, Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

# they cost regret only: benchmarks/items.py --only tuning varies them
FIRST_ITEMS = 6  # items per arm in the first batch
BATCHES = 120  # number of batches
FURTHER = 0.25  # further items of an arm at once, as a share of those it has seen
PRIOR_VARIANCE = 0.025  # of arms before any score is seen, in units of that of the noise ...
BELIEF = 0.5  # ... and its weight, in units of the number of arms
EVENNESS = 0.7  # power of the items of an arm by which its loss is divided
EM_STEPS = 3  # of alternating between arms and items per batch
START = 0.004, 0.08, 0.15  # variances of arms, items and noise: about those of 0/1 scores
LEAST_EFFECT = 1e-9  # least variance


class ItemSums:
    """Which cells were seen, and sums over arms and items, kept up to date cell by cell."""

    def __init__(self, items: Items, n_arms: int) -> None:
        scores = items.by_position(n_arms)
        unseen = np.isnan(scores)
        self.seen: FloatArray = (~unseen).astype(np.float64)  # (arms, items): 1 where seen, else 0
        self.counts: FloatArray = self.seen.sum(1)  # (arms,)
        self.seers: FloatArray = self.seen.sum(0)  # (items,)
        filled = np.where(unseen, 0.0, scores)
        self.by_arm: FloatArray = filled.sum(1)
        self.by_item: FloatArray = filled.sum(0)
        self.squares = float((filled**2).sum())
        # of every arm the places that were not seen, in their order, before all others
        self._places: IntArray = np.argsort(~unseen, axis=1, kind="stable")
        self._asked: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.missing: IntArray = unseen.sum(1)  # (arms,)

    def missing_among(self, first: int) -> IntArray:
        """Number of the first items that every arm was not scored on: (arms,)."""
        missing: IntArray = first - self.seen[:, :first].sum(1).astype(np.int64)
        return missing

    def take(self, times: IntArray, scores: FloatArray) -> None:
        """Add scores on `times` further items of every arm, arm by arm."""
        arms = np.repeat(np.arange(times.size), times)
        turn = np.arange(arms.size) - np.repeat(np.cumsum(times) - times, times)
        places = self._places[arms, self._asked[arms] + turn]
        self._asked += times
        self.missing = self.missing - times
        self.seen[arms, places] = 1.0
        self.counts = self.counts + times
        self.seers += np.bincount(places, minlength=self.seers.size)
        self.by_arm += np.bincount(arms, scores, minlength=times.size)
        self.by_item += np.bincount(places, scores, minlength=self.seers.size)
        self.squares += float(scores @ scores)


class ItemEffects:
    """The posterior of arms and items, given all that was seen."""

    def __init__(self, sums: ItemSums) -> None:
        self.sums = sums
        self.arm: FloatArray = np.zeros(sums.counts.size)  # a
        self.of_arms, self.of_items, self.noise = START

    def refresh(self) -> None:
        """Update the effects by the cells seen since."""
        sums = self.sums
        self._reach = int(np.flatnonzero(sums.seers)[-1]) + 1  # no arm was scored beyond
        self._seen = sums.seen[:, : self._reach]
        for _ in range(EM_STEPS):
            item = self._alternate()
        explained = self._seen @ item
        self._gained: FloatArray = sums.by_arm - explained  # beyond what items explain
        self._learn(item, explained)

    def _alternate(self) -> FloatArray:
        """Effects of items given those of arms, then of arms given those of items."""
        sums, seers = self.sums, self.sums.seers[: self._reach]
        raw = (sums.by_item[: self._reach] - self.arm @ self._seen) / np.maximum(seers, 1)
        level = float(raw[seers > 0].mean())
        item: FloatArray = level + self._trust(seers) * (raw - level)
        gained = sums.by_arm - self._seen @ item
        arm = gained / (sums.counts + self.noise / self.of_arms)
        self.arm = arm - arm.mean()
        return item

    def _trust(self, seers: FloatArray) -> FloatArray:
        """The share of the mean of an item's scores that is its own effect."""
        return seers / (seers + self.noise / self.of_items)

    def _learn(self, item: FloatArray, explained: FloatArray) -> None:
        """The three variances."""
        sums, seers = self.sums, self.sums.seers[: self._reach]
        there = seers > 0
        squares = sums.squares - 2 * self.arm @ sums.by_arm - 2 * item @ sums.by_item[: item.size]
        squares += self.arm**2 @ sums.counts + item**2 @ seers + 2 * self.arm @ explained
        freedom = sums.counts.sum() - self.arm.size - self._trust(seers).sum()
        self.noise = max(float(squares) / max(1.0, float(freedom)), LEAST_EFFECT)
        self.of_arms = self._believed(self._variance(self.arm, self.of_arms, sums.counts))
        around = item[there] - item[there].mean()
        self.of_items = self._variance(around, self.of_items, seers[there])

    def _believed(self, found: float) -> float:
        """The variance of arms, shrunk to its prior value."""
        weight = BELIEF
        return (found + weight * PRIOR_VARIANCE * self.noise) / (1 + weight)

    def _variance(self, effects: FloatArray, before: float, counts: FloatArray) -> float:
        """The mean square of effects, including their posterior variances."""
        unknown = self.noise * before / (self.noise + counts * before)
        return max(float((effects**2 + unknown).mean()), LEAST_EFFECT)

    @property
    def means(self) -> FloatArray:
        """Means over all items, up to a constant of all arms: (arms,)."""
        size = self.sums.seers.size
        return (self._gained + (size - self.sums.counts) * self.arm) / size

    def means_doubted(self, doubt: float) -> FloatArray:
        """The same where arms are shrunk by this share of what their posterior says: (arms,)."""
        counts, size = self.sums.counts, self.sums.seers.size
        arm = self._gained / (counts + doubt * self.noise / self.of_arms)
        means: FloatArray = (self._gained + (size - counts) * arm) / size
        return means

    def apart(self, opponent: int) -> FloatArray:
        """Variances of the differences of all arms to one, as far as more items reduce them:
        (arms,).

        On an item that both have seen its effect cancels out; on one that only one of them has
        seen, its effect is known from the other arms that saw it."""
        seers = self.sums.seers[: self._reach]
        others = self.noise / self.of_items + np.maximum(seers - 1, 0)
        alone = others / (others + 1)  # what an item is worth that the other arm has not seen
        met = self._seen[opponent]
        together = self._seen @ (met * (1 - alone))
        theirs = self._unknown(self._seen @ alone + together, self.sums.counts)
        return theirs + self._unknown(met @ alone + together, self.sums.counts[opponent])

    def _unknown(self, worth: FloatArray, counts: FloatArray) -> FloatArray:
        """Variances of means that rest on items of this worth, in full ones: (arms,)."""
        size = self.sums.seers.size
        unseen = 1 - counts / size
        variances: FloatArray = unseen**2 * self.noise / (worth + self.noise / self.of_arms)
        return variances + unseen * self.noise / size


class Board:
    """The cells seen so far, and the next ones to score."""

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        assert problem.items is not None
        self.sums = ItemSums(problem.items, problem.n_arms)
        self.k = problem.k
        self.constraint = problem.constraint
        self.left = min(problem.budget, int(self.sums.missing.sum()))
        self.ties: IntArray = rng.permutation(problem.n_arms)
        self.effects = ItemEffects(self.sums)

    def score(self, times: IntArray) -> Generator[Pulls, Rewards, None]:
        """Score every arm on `times` further items of its order."""
        arms = np.flatnonzero(times)
        if arms.size:
            reply = yield Pulls(arms, times[arms], Progress(undecided=arms.size))
            assert reply.each is not None
            self.sums.take(times, reply.each)
            self.left -= int(times.sum())
        self.effects.refresh()

    def first(self) -> IntArray:
        """The same items for all arms, as many as a small share of the budget pays for."""
        for items in range(min(FIRST_ITEMS, self.sums.seers.size), 0, -1):
            times = self.sums.missing_among(items)
            if times.sum() <= self.left:
                break
        return times

    def ranked(self) -> IntArray:
        """The arms, best first."""
        return np.lexsort((self.ties, -self.effects.means))

    def chosen(self) -> IntArray:
        """The best k arms by now, or the best feasible set."""
        if self.constraint is None:
            return np.sort(self.ranked()[: self.k])
        return np.flatnonzero(best_by(self.constraint, self.effects.means, -self.ties, self.k))

    def losses(self) -> FloatArray:
        """Expected loss of each arm if it is on the wrong side: (arms,)."""
        if self.constraint is not None:
            return self._feasible_losses()
        means, ranked = self.effects.means, self.ranked()
        last, best = ranked[self.k - 1], ranked[self.k]  # that is chosen, of the others
        losses = _expected(means[last] - means, self.effects.apart(last))
        inside = ranked[: self.k]
        losses[inside] = _expected(means - means[best], self.effects.apart(best))[inside]
        return losses

    def _feasible_losses(self) -> FloatArray:
        """The same under a constraint: each arm against the closest one that it may replace.

        Of a family that is no matroid, against the closest one on the other side."""
        means, inside = self.effects.means, self.chosen()
        chosen = np.isin(np.arange(means.size), inside)
        swaps = ~chosen[:, None] & chosen
        if isinstance(self.constraint, MatroidConstraint):
            swaps = self.constraint.exchangeable(chosen)
        leads = np.where(swaps, means - means[:, None], np.inf)  # [j, i]: of i before j
        losses = np.zeros(means.size)
        for arm in range(means.size):
            own = leads[:, arm] if chosen[arm] else leads[arm]
            rival = int(own.argmin())
            if np.isfinite(own[rival]):
                losses[arm] = _expected(own[rival], self.effects.apart(rival)[arm])
        return losses

    def shares(self, cells: int) -> IntArray:
        """Cells of every arm in a batch: largest loss first, no arm much further at once."""
        counts = np.maximum(self.sums.counts, 1)
        step = np.maximum(1, (FURTHER * counts).astype(np.int64))
        most = np.minimum(step, self.sums.missing)
        order = np.lexsort((self.ties, -self.losses() / counts**EVENNESS))
        before = np.cumsum(most[order]) - most[order]
        times = np.zeros_like(most)
        times[order] = np.clip(min(cells, self.left) - before, 0, most[order])
        return times


def _expected(leads: FloatArray, variances: FloatArray) -> FloatArray:
    """E[(-D)_+] of normal differences D with these means and variances."""
    spread = np.sqrt(np.maximum(variances, 1e-300))
    z = np.minimum(leads / spread, 30.0)  # beyond, no loss is expected
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    losses: FloatArray = spread * (density - z * ndtr(-z))
    return losses


def explore_items(problem: Problem, rng: np.random.Generator) -> Search:
    """Spend the budget on cells, none twice; return the k arms of the largest estimated means."""
    board = Board(problem, rng)
    batch = max(1, board.left // BATCHES)
    yield from board.score(board.first())
    while board.left:
        yield from board.score(board.shares(batch))
    return Answer(board.chosen(), evidence={"items": int(board.sums.counts.max())})
