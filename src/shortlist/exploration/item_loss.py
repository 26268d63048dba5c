"""The least regret for a number of cells: score arms where much is expected to be lost.

loss_i = E[(theta_j - theta_i)_+] for an arm i inside the present choice, with j the best of the
others, and E[(theta_i - theta_j)_+] for one outside, with j the last that is chosen. Means, and
what is not known of differences, come from effects of arms and of items (item_effects.py): an arm
that met easy items is not taken for a good one, what two arms saw of the same items is compared
item by item, and an arm that saw all items is known exactly.

That all arms have about the same loss per item they saw is what successive rejects bring about on
average (Audibert, Bubeck, Munos 2010; on shared items Lyu, Nejma, Wegel, Yang, Dorner 2026, SySRs),
by a schedule that does not look at gaps; here it is so for the gaps that are seen, and arms that
saw many items already are favoured a little."""

from collections.abc import Generator

import numpy as np
from scipy.special import ndtr

from shortlist.arrays import FloatArray, IntArray
from shortlist.exploration import item_tuning
from shortlist.exploration.item_effects import ItemEffects
from shortlist.exploration.item_sums import ItemSums
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

CERTAIN = 30.0  # standard deviations, from which on nothing is expected to be lost
NONE = 1e-300  # of a variance


class Board:
    """The cells that were seen, and what they say of every arm."""

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        assert problem.items is not None
        self.sums = ItemSums(problem.items, problem.n_arms)
        self.k = problem.k
        self.left = min(problem.budget, int(self.sums.missing.sum()))
        self.ties: IntArray = rng.permutation(problem.n_arms)
        self.effects = ItemEffects(self.sums)

    def score(self, times: IntArray) -> Generator[Pulls, Rewards, None]:
        """Score every arm on so many further items of its order."""
        arms = np.flatnonzero(times)
        if arms.size:
            reply = yield Pulls(arms, times[arms], Progress(undecided=arms.size))
            assert reply.each is not None
            self.sums.take(times, reply.each)
            self.left -= int(times.sum())
        self.effects.refresh()

    def first(self) -> IntArray:
        """The same items for all arms, as many as a small share of the budget pays for."""
        for items in range(min(item_tuning.FIRST, self.sums.seers.size), 0, -1):
            times = self.sums.missing_among(items)
            if times.sum() <= self.left:
                break
        return times

    def ranked(self) -> IntArray:
        """The arms, best first."""
        return np.lexsort((self.ties, -self.effects.means))

    def losses(self) -> FloatArray:
        """What each arm is expected to lose by standing on the wrong side: (arms,)."""
        means, ranked = self.effects.means, self.ranked()
        last, best = ranked[self.k - 1], ranked[self.k]  # that is chosen, of the others
        losses = _expected(means[last] - means, self.effects.apart(last))
        inside = ranked[: self.k]
        losses[inside] = _expected(means - means[best], self.effects.apart(best))[inside]
        return losses

    def shares(self, cells: int) -> IntArray:
        """How to spend so many cells: largest loss first, no arm much farther at once."""
        counts = np.maximum(self.sums.counts, 1)
        step = np.maximum(1, (item_tuning.FURTHER * counts).astype(np.int64))
        most = np.minimum(step, self.sums.missing)
        order = np.lexsort((self.ties, -self.losses() / counts**item_tuning.PATIENCE))
        before = np.cumsum(most[order]) - most[order]
        times = np.zeros_like(most)
        times[order] = np.clip(min(cells, self.left) - before, 0, most[order])
        return times


def _expected(leads: FloatArray, variances: FloatArray) -> FloatArray:
    """E[(-D)_+] of normal differences D with these means and variances."""
    spread = np.sqrt(np.maximum(variances, NONE))
    z = np.minimum(leads / spread, CERTAIN)
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    losses: FloatArray = spread * (density - z * ndtr(-z))
    return losses


def explore_items(problem: Problem, rng: np.random.Generator) -> Search:
    """Spend the budget on cells, none twice; return the k arms of the largest estimated means."""
    board = Board(problem, rng)
    batch = max(1, board.left // item_tuning.REQUESTS)
    yield from board.score(board.first())
    while board.left:
        yield from board.score(board.shares(batch))
    top = np.sort(board.ranked()[: problem.k])
    return Answer(top, evidence={"items": int(board.sums.counts.max())})
