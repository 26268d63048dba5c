"""The race on items: score arms on a shared random order of items until the choice is proved.

docs/items.md has the theorem and its proof. It holds for any sampling, so which cells to score next
is a matter of cost: in the open pairs, the arms that have fewer items."""

from collections.abc import Generator

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.budget import Budget
from shortlist.certificates.frame import Retired
from shortlist.certificates.items import tuning
from shortlist.certificates.items.bound import EXACT, ScoredCells, largest_matching
from shortlist.certificates.items.evidence import PairedEvidence, SingleEvidence
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search


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
    """Cells seen, the bounds they prove, the choice, and the cells to score next.

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
        assert self.problem.items is not None
        self.cells = ScoredCells(self.problem.items, problem.n_arms)
        self.evidence = evidence_for(self.problem, self.cells)
        self.budget = Budget(problem)
        self.ties: IntArray = rng.permutation(problem.n_arms)
        self._reset_choice()

    def _sought(self) -> Problem:
        """The problem of the remaining arms: to find the best, or those to reject."""
        among = self.asked.among(self.arms, self.asked.goal.budget)
        return among.complement().mirrored() if self.mirrored else among

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
        self.cells.take(targets, 1 - scores if self.mirrored else scores)
        left = bool(self.retired.arms[self.arms].any())
        if not before.any() and not left:  # stakes must not rest on scores that were made up
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
        bounds[:, self.evidence.out[outside]] = 0.0
        return outside, bounds

    def refined(self) -> FloatArray:
        """The bounds at the end of a budget: pairs look between the points of their grid."""
        if isinstance(self.evidence, SingleEvidence):
            return self.bounds
        return self.evidence.refined(self.cells, self.top, self.outside, self.bounds)

    def targets(self) -> IntArray:
        """Number of items of every arm after the next batch."""
        pairs = np.zeros((self.arms.size,) * 2, dtype=np.bool_)
        pairs[np.ix_(self.top, self.outside)] = open_pairs(self.bounds, self.allowed)
        return self.evidence.targets(pairs | pairs.T, self.cells)


def open_pairs(bounds: FloatArray, allowed: float) -> BoolArray:
    """The pairs to be settled: those whose bounds exceed a level.

    It is the largest level at which, if all bounds were cut to it, no matching would exceed
    `allowed`, found by bisection."""
    low = allowed / min(bounds.shape)  # at this level no matching exceeds it
    high = allowed
    for _ in range(12):
        level = (low + high) / 2
        if largest_matching(np.minimum(bounds, level)) <= allowed:
            low = level
        else:
            high = level
    result: BoolArray = bounds > low + EXACT
    return result


def items_search(
    problem: Problem, rng: np.random.Generator, retired: Retired | None = None
) -> Search:
    """Score arms on shared items until no matching of bounds exceeds K epsilon.

    R_T <= its bound with probability >= 1 - delta over the order of the items, whenever it ends;
    R_T is about means over these items. When all cells that matter are seen it is exact. When an
    arm retires, all bets are made again among the remaining arms."""
    race = ItemsRace(problem, rng, retired)
    requests = 1
    first = min(race.evidence.first, race.cells.size)
    targets = np.full(problem.n_arms, first)
    yield from _score(race, targets, Progress(round=requests))
    while True:
        race.choose()
        bound = largest_matching(race.bounds)
        if bound <= race.allowed + EXACT or race.finished:
            return _answer(race, bound)
        targets = race.targets()
        progress = Progress(requests, undecided=int((targets > race.cells.reached).sum()))
        if not (yield from _score(race, targets, progress)):
            return _answer(race, min(bound, largest_matching(race.refined())))
        requests += 1


def _score(
    race: ItemsRace, targets: IntArray, progress: Progress
) -> Generator[Pulls, Rewards, bool]:
    """Score arms on further items within the budget; False if it pays for none."""
    targets = _affordable(race, targets)
    times = race.cells.missing(targets)
    if not (targets > race.cells.reached).any():
        return False
    arms = np.flatnonzero(times)
    scores = np.empty(0)
    if arms.size:
        pulls = Pulls(race.arms[arms], times[arms], progress)
        reply = yield pulls
        assert reply.each is not None
        scores = reply.each
        race.budget.pay(pulls, reply)
    race.take(targets, scores)
    return True


def _affordable(race: ItemsRace, targets: IntArray) -> IntArray:
    """The same targets, or lower ones within the budget."""
    budget = race.budget
    if budget.total is None:
        return targets
    if not race.cells.reached.any():  # all arms alike
        every, first = np.arange(targets.size), int(targets[0])
        while first > 1 and not budget.affords(every, race.cells.missing(every * 0 + first)).all():
            first -= 1
        return every * 0 + first
    order = np.lexsort((race.ties, race.cells.reached))
    times = race.cells.missing(targets)[order]
    beyond = order[~budget.affords(race.arms[order], times)]
    allowed = targets.copy()
    allowed[beyond] = race.cells.reached[beyond]
    return allowed


def _answer(race: ItemsRace, bound: float) -> Answer:
    asked, k = race.asked, race.problem.k
    reached = np.zeros(asked.n_arms, dtype=np.int64)
    reached[race.arms] = race.cells.reached
    evidence = {
        "certificate": "items",
        "exact": race.finished,
        "items": reached.tolist(),
        "out": int(race.evidence.out.sum()),
    }
    regret = bound / k
    if race.mirrored:  # the same loss, shared by another number of arms
        regret = regret * k / asked.k
    return Answer(race.chosen, regret, 1 - asked.delta, evidence)
