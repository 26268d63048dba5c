"""The state of a race on items: cells seen, the bounds they prove, and the present choice."""

from dataclasses import replace

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.budget import Budget
from shortlist.certificates.exchange import ExchangeGraph
from shortlist.certificates.frame import Retired, agreeing, tiers_of
from shortlist.certificates.items import tuning
from shortlist.certificates.items.bound import ScoredCells
from shortlist.certificates.items.evidence import PairedEvidence, SingleEvidence
from shortlist.problem import FixedConfidence, Problem
from shortlist.search import Tiers


def evidence_for(problem: Problem, cells: ScoredCells) -> PairedEvidence | SingleEvidence:
    """The evidence that needs fewer cells on most test sets, by n and k alone."""
    n, k = problem.n_arms, problem.k
    lopsided = n - k >= tuning.LOPSIDED * k
    return (
        SingleEvidence(problem)
        if lopsided or n >= tuning.MANY_ARMS
        else PairedEvidence(problem, cells)
    )


class ItemsRace:
    """Cells seen, the bounds they prove, and the choice.

    Where more than half of the arms are to be chosen, it searches for those to reject, on mirrored
    scores: there are fewer of them, and the loss is the same. `arms` are those that have not
    retired, and all arrays are about them."""

    def __init__(
        self, problem: Problem, rng: np.random.Generator, retired: Retired | None = None
    ) -> None:
        self.asked = problem
        self.retired = Retired(problem.n_arms) if retired is None else retired
        self.mirrored = problem.k > problem.n_arms / 2
        self.arms: IntArray = np.arange(problem.n_arms)
        self.problem = self._sought()
        self.graph = self._graph()
        assert self.problem.items is not None
        self.cells = ScoredCells.of(self.problem.items, problem.n_arms)
        self.evidence = evidence_for(self.problem, self.cells)
        self.budget = Budget(problem)
        self.ties: IntArray = rng.permutation(problem.n_arms)
        self._reset_choice()

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
        if not before.any() and alone and not left:
            self.evidence.learn(self.cells)
        if left:
            self._begin_again()
        else:
            self.evidence.take(self.cells, before)

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
        self._reset_choice()

    def choose(self) -> None:
        """Keep the choice unless an arm outside looks clearly better than one inside."""
        means = self.evidence.means(self.cells) - self.evidence.out  # arms that are out come last
        ranked = np.lexsort((self.ties, -means))
        if self.graph is not None:
            self.top = np.flatnonzero(self.graph.first(ranked))
            self.outside, self.bounds = self._table()
            return
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
        """A bound on the total loss of the choice as one on its regret.

        Of mirrored arms it is the same loss, shared by another number of arms."""
        regret = bound / self.problem.k / self.fullness
        return regret * self.problem.k / self.asked.k if self.mirrored else regret
