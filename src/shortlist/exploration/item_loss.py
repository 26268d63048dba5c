"""The least regret for a number of cells: score arms where the expected loss per cell is largest.

loss_i = E[(theta_j - theta_i)_+] for an arm i inside the present choice, with j the best of the
others, and E[(theta_i - theta_j)_+] for one outside, with j the last that is chosen. Means, and
what is not known of them, come from effects of arms and of items (item_effects.py): an arm that met
easy items is not taken for a good one, and an arm that saw all items is known exactly.

That all arms have about the same loss per item they saw is what successive rejects bring about on
average (Audibert, Bubeck, Munos 2010; on shared items Lyu, Nejma, Wegel, Yang, Dorner 2026, SySRs),
by a schedule that does not look at gaps; here it is so for the gaps that are seen."""

from collections.abc import Generator

import numpy as np
from scipy.special import ndtr

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.exploration import item_tuning
from shortlist.exploration.item_effects import ItemEffects
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

CERTAIN = 30.0  # standard deviations, from which on nothing is expected to be lost
NONE = 1e-300  # of a variance


class Board:
    """The cells that were seen, and what they say of every arm."""

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        items = problem.items
        assert items is not None
        known = items.by_position(problem.n_arms)  # (arms, items)
        self.seen: BoolArray = ~np.isnan(known)
        self.scores: FloatArray = np.nan_to_num(known)
        self.k = problem.k
        self.left = min(problem.budget, int((~self.seen).sum()))
        self.ties: IntArray = rng.permutation(problem.n_arms)
        self.effects = ItemEffects(problem.n_arms)

    def score(self, times: IntArray) -> Generator[Pulls, Rewards, None]:
        """Score every arm on so many further items of its order."""
        arms = np.flatnonzero(times)
        if arms.size:
            asked = ~self.seen & (np.cumsum(~self.seen, axis=1) <= times[:, None])
            reply = yield Pulls(arms, times[arms], Progress(undecided=arms.size))
            assert reply.each is not None
            self.scores[asked] = reply.each
            self.seen |= asked
            self.left -= int(times.sum())
        self.effects.refresh(self.scores, self.seen)

    def first(self) -> IntArray:
        """The same items for all arms, as many as a small share of the budget pays for."""
        for items in range(min(item_tuning.FIRST, self.seen.shape[1]), 0, -1):
            times: IntArray = (~self.seen[:, :items]).sum(1)
            if times.sum() <= self.left:
                break
        return times

    def ranked(self) -> IntArray:
        """The arms, best first."""
        return np.lexsort((self.ties, -self.effects.means))

    def losses(self) -> FloatArray:
        """What each arm is expected to lose by standing on the wrong side, per item it has seen."""
        means, ranked = self.effects.means, self.ranked()
        opponent = np.full(means.size, ranked[self.k - 1])
        opponent[ranked[: self.k]] = ranked[self.k]
        variances = self.effects.variances
        spread = np.sqrt(np.maximum(variances + variances[opponent], NONE))
        z = np.minimum(np.abs(means - means[opponent]) / spread, CERTAIN)
        density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        losses: FloatArray = spread * (density - z * ndtr(-z)) / np.maximum(self.effects.counts, 1)
        return losses

    def shares(self, cells: int) -> IntArray:
        """How to spend so many cells: largest loss first, no arm much farther at once."""
        missing: IntArray = (~self.seen).sum(1)
        step = np.maximum(1, (item_tuning.FURTHER * self.effects.counts).astype(np.int64))
        most = np.minimum(step, missing)
        order = np.lexsort((self.ties, -self.losses()))
        before = np.cumsum(most[order]) - most[order]
        times = np.zeros_like(most)
        times[order] = np.clip(min(cells, self.left) - before, 0, most[order])
        return times


def explore_items(problem: Problem, rng: np.random.Generator) -> Search:
    """Spend the budget on cells, none twice; return the k arms of the largest estimated means."""
    board = Board(problem, rng)
    batch = max(1, board.left // item_tuning.REQUESTS)
    yield from board.score(board.first())
    while board.left:
        yield from board.score(board.shares(batch))
    top = np.sort(board.ranked()[: problem.k])
    return Answer(top, evidence={"items": int(board.seen.sum(1).max())})
