"""The least regret for a number of cells: arms still open go through the same items, side by side.

Differences of arms on the same items do not depend on how hard the items were, so nothing is to be
estimated of these. After every phase arms that are clear, and at least the clearest one, are
accepted or rejected. How long a phase is follows from the cells that are left, by the rule of
successive rejects: the r-th arm to be decided from the end gets items in proportion to 1 / r.

Audibert, Bubeck, Munos (2010); Bubeck, Wang, Viswanathan (2013), SAR; on shared items Lyu, Nejma,
Wegel, Yang, Dorner (2026), SySRs. Departs from them in that clear arms are decided early, and in
that phases are planned anew with the cells this saves."""

import math
from collections.abc import Generator

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.problem import Problem
from shortlist.purse import Purse
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

CLEAR = 4.0  # standard deviations of a difference between an arm and the boundary
HALVINGS = 40  # of the interval in which the length of phases is looked for
TINY = 1e-12


class Open:
    """The arms still open, all of them scored on the same first items."""

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        items = problem.items
        assert items is not None
        self.scores: FloatArray = items.by_position(problem.n_arms)  # (arms, items)
        self.known: BoolArray = ~np.isnan(self.scores)
        self.size = items.size
        self.purse = Purse(problem)
        self.prices = problem.prices
        self.arms: IntArray = rng.permutation(problem.n_arms)  # ties go by this order
        self.accepted: list[int] = []
        self.wanted = problem.k
        self.reached = 0

    def length(self) -> int:
        """Items that open arms are to have at the end of the next phase.

        As it is not known who will be decided when, unknown cells of all open arms count alike."""
        ranks = np.maximum(np.arange(self.arms.size, 0, -1), 2)  # the last two end together
        ahead = ~self.known[self.arms, self.reached :]
        usual = float(self.prices[self.arms].mean()) if self.arms.size else 1.0  # of a cell
        cells = float(ahead.mean()) if ahead.size else math.inf
        affordable = self.purse.left / usual / max(cells, TINY)
        low, high = 0.0, 2.0 * self.arms.size * self.size
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            more = int((self._lengths(middle, ranks) - self.reached).sum())
            low, high = (middle, high) if more <= affordable else (low, middle)
        return max(1, int(self._lengths(low, ranks)[0]))

    def _lengths(self, scale: float, ranks: IntArray) -> IntArray:
        return np.clip(np.ceil(scale / ranks).astype(np.int64), self.reached, self.size)

    def score_up_to(self, length: int) -> Generator[Pulls, Rewards, None]:
        """Score all open arms on the next items, as far as the budget goes."""
        places = slice(self.reached, length)
        missing = ~self.known[self.arms, places]  # (open, items)
        while not self._affords(missing):
            length -= 1
            places = slice(self.reached, length)
            missing = ~self.known[self.arms, places]
        asked = np.flatnonzero(missing.any(1))
        if asked.size:
            progress = Progress(accepted=len(self.accepted), undecided=self.arms.size)
            pulls = Pulls(self.arms[asked], missing[asked].sum(1), progress)
            reply = yield pulls
            assert reply.each is not None
            block = self.scores[self.arms, places]
            block[missing] = reply.each
            self.scores[self.arms, places] = block
            self.purse.pay(pulls, reply)
        self.reached = length

    def _affords(self, missing: BoolArray) -> bool:
        """Whether these cells of the open arms are paid for."""
        return bool(self.purse.affords(self.arms, missing.sum(1)).all())

    def decide(self) -> None:
        """Accept or reject the arm of largest gap, and all others that are clear."""
        scores = self.scores[self.arms, : self.reached]
        means = scores.mean(1) if self.reached else np.zeros(self.arms.size)
        falling = -np.sort(-means)
        least, next_ = falling[self.wanted - 1], falling[self.wanted]
        inside = np.zeros(means.size, dtype=np.bool_)
        inside[np.argsort(-means, kind="stable")[: self.wanted]] = True
        gaps = np.where(inside, means - next_, least - means)
        decided = gaps > CLEAR * self._deviation(scores, means)
        decided[np.argmax(gaps)] = True
        self.accepted += self.arms[decided & inside].tolist()
        self.wanted -= int((decided & inside).sum())
        self.arms = self.arms[~decided]

    def _deviation(self, scores: FloatArray, means: FloatArray) -> float:
        """Standard deviation of the difference of two means, as an estimate of that over all."""
        if self.reached < 2 or self.arms.size < 2:
            return np.inf
        around = scores - means[:, None]
        around = around - around.mean(0)
        freedom = (self.arms.size - 1) * (self.reached - 1)
        variance = 2 * float((around**2).sum()) / freedom
        return float(np.sqrt(variance * (1 / self.reached - 1 / self.size))) + TINY


def explore_items(problem: Problem, rng: np.random.Generator) -> Search:
    """Spend the budget on cells, none twice; return the k arms that were accepted or are left."""
    still = Open(problem, rng)
    while 0 < still.wanted < still.arms.size:
        yield from still.score_up_to(still.length())
        still.decide()
    left = still.arms.tolist() if still.wanted else []
    top = np.sort(np.array(still.accepted + left, dtype=np.int64))
    return Answer(top, evidence={"items": still.reached})
