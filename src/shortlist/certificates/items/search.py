"""Where a race on items stands: cells seen, what they prove, the choice, who is next.

The race on items: score arms on a shared random order of items until the choice is proved.

docs/items.md has the theorem and its proof. It holds for any sampling, so where to go next is a
matter of cells only: of the pairs that keep the bound up, the arms that are behind."""

from collections.abc import Generator

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.budget import Purse
from shortlist.certificates.frame import Retired
from shortlist.certificates.items import tuning
from shortlist.certificates.items.bound import EXACT, Cells, doubtful, largest_matching
from shortlist.certificates.items.evidence import Paired, Single
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

Evidence = Paired | Single  # what cells prove of differences between arms, at any time


def evidence_for(problem: Problem, cells: Cells) -> Evidence:
    """The evidence that needs fewer cells on most test sets, by n and k alone."""
    n, k = problem.n_arms, problem.k
    lopsided = n - k >= tuning.LOPSIDED * k
    return Single(problem) if lopsided or n >= tuning.MANY else Paired(problem, cells)


class Standing:
    """Every arm is scored on the first items of one order until the choice is proved.

    Where more than half of the arms are to be chosen, those to be left out are looked for, on
    mirrored scores: there are fewer of them, and the loss is the same. Arms that have retired are
    left out of everything: `arms` are those that stay, and all arrays are about them."""

    def __init__(
        self, problem: Problem, rng: np.random.Generator, retired: Retired | None = None
    ) -> None:
        self.asked = problem
        self.retired = Retired(problem.n_arms) if retired is None else retired
        self.mirrored = problem.k > problem.n_arms / 2
        self.arms: IntArray = np.arange(problem.n_arms)
        self.problem = self._sought()
        assert self.problem.items is not None
        self.cells = Cells(self.problem.items, problem.n_arms)
        self.evidence = evidence_for(self.problem, self.cells)
        self.purse = Purse(problem)
        self.ties: IntArray = rng.permutation(problem.n_arms)
        self._choose_anew()

    def _sought(self) -> Problem:
        """The problem of the arms that stay: to find the best, or those to be left out."""
        among = self.asked.among(self.arms, self.asked.goal.budget)
        return among.complement().mirrored() if self.mirrored else among

    def _choose_anew(self) -> None:
        """Forget the present choice."""
        self.top: IntArray = np.empty(0, dtype=np.int64)
        self.outside: IntArray = np.arange(self.arms.size)
        self.bounds: FloatArray = np.empty((0, self.arms.size))  # (inside, outside)

    @property
    def allowed(self) -> float:
        """What the choice may lose in all."""
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
        """Take in the missing cells, arm by arm in the order of items, and what they prove."""
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
        """Make all bets again on the cells of the arms that stay: nothing rests on the others.

        Stakes must not depend on which arms stay, for that may depend on scores at later places:
        the variance is the one that was learned from all arms, or the usual one if an arm left
        before they had their first items."""
        stay = np.flatnonzero(~self.retired.arms[self.arms])
        before = self.evidence
        self.arms, self.ties, self.cells = self.arms[stay], self.ties[stay], self.cells.among(stay)
        self.problem = self._sought()
        if isinstance(before, Paired):
            self.evidence = Paired(self.problem, self.cells, self.retired.count)
        else:
            self.evidence = Single(self.problem, self.retired.count)
        self.evidence.variance = before.variance
        self.evidence.take(self.cells, np.zeros_like(self.cells.reached))
        self._choose_anew()

    def choose(self) -> None:
        """Keep the choice unless an arm outside looks clearly better than one inside."""
        means = self.evidence.means(self.cells) - self.evidence.out  # who is out comes last
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
        proved = self.evidence.bounds(self.cells, self.top, outside)
        bounds = np.minimum(proved, self.cells.certain(self.top, outside))
        bounds[:, self.evidence.out[outside]] = 0.0
        return outside, bounds

    def refined(self) -> FloatArray:
        """The bounds at the end of a budget: pairs look between the points of their grid."""
        if isinstance(self.evidence, Single):
            return self.bounds
        return self.evidence.refined(self.cells, self.top, self.outside, self.bounds)

    def targets(self) -> IntArray:
        """How many items every arm is to have next, for pairs in doubt to be settled."""
        pairs = np.zeros((self.arms.size,) * 2, dtype=np.bool_)
        pairs[np.ix_(self.top, self.outside)] = doubtful(self.bounds, self.allowed)
        return self.evidence.targets(pairs | pairs.T, self.cells)


def item_race(problem: Problem, rng: np.random.Generator, retired: Retired | None = None) -> Search:
    """Score arms on shared items until no matching of doubts exceeds K epsilon.

    R_T <= its bound with probability >= 1 - delta over the order of the items, whenever it ends;
    R_T is about means over these items. When all cells that matter are seen it is exact. When an
    arm retires, all bets are made again among the arms that stay."""
    standing = Standing(problem, rng, retired)
    requests = 1
    first = min(standing.evidence.first, standing.cells.size)
    everybody = np.full(problem.n_arms, first)
    yield from _score(standing, everybody, Progress(round=requests))
    while True:
        standing.choose()
        bound = largest_matching(standing.bounds)
        if bound <= standing.allowed + EXACT or standing.finished:
            return _answer(standing, bound)
        targets = standing.targets()
        progress = Progress(requests, undecided=int((targets > standing.cells.reached).sum()))
        if not (yield from _score(standing, targets, progress)):
            return _answer(standing, min(bound, largest_matching(standing.refined())))
        requests += 1


def _score(
    standing: Standing, targets: IntArray, progress: Progress
) -> Generator[Pulls, Rewards, bool]:
    """Score arms on further items, as far as the budget goes; whether it went anywhere."""
    targets = _affordable(standing, targets)
    times = standing.cells.missing(targets)
    if not (targets > standing.cells.reached).any():
        return False
    arms = np.flatnonzero(times)
    scores = np.empty(0)
    if arms.size:
        pulls = Pulls(standing.arms[arms], times[arms], progress)
        reply = yield pulls
        assert reply.each is not None
        scores = reply.each
        standing.purse.pay(pulls, reply)
    standing.take(targets, scores)
    return True


def _affordable(standing: Standing, targets: IntArray) -> IntArray:
    """The same targets, or lower ones for which the budget is enough."""
    purse = standing.purse
    if purse.budget is None:
        return targets
    if not standing.cells.reached.any():  # all arms alike
        every, first = np.arange(targets.size), int(targets[0])
        while (
            first > 1 and not purse.affords(every, standing.cells.missing(every * 0 + first)).all()
        ):
            first -= 1
        return every * 0 + first
    order = np.lexsort((standing.ties, standing.cells.reached))
    times = standing.cells.missing(targets)[order]
    beyond = order[~purse.affords(standing.arms[order], times)]
    allowed = targets.copy()
    allowed[beyond] = standing.cells.reached[beyond]
    return allowed


def _answer(standing: Standing, bound: float) -> Answer:
    asked, k = standing.asked, standing.problem.k
    reached = np.zeros(asked.n_arms, dtype=np.int64)
    reached[standing.arms] = standing.cells.reached
    evidence = {
        "certificate": "items",
        "exact": standing.finished,
        "items": reached.tolist(),
        "out": int(standing.evidence.out.sum()),
    }
    regret = bound / k
    if standing.mirrored:  # the same loss, shared by another number of arms
        regret = regret * k / asked.k
    return Answer(standing.chosen, regret, 1 - asked.delta, evidence)
