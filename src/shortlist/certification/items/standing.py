"""Where a race on items stands: cells seen, what they prove, the choice, who is next."""

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.items import tuning
from shortlist.certification.items.cells import Cells
from shortlist.certification.items.matching import doubtful
from shortlist.certification.items.paired import Paired
from shortlist.certification.items.single import Single
from shortlist.problem import Problem
from shortlist.purse import Purse

Evidence = Paired | Single  # what cells prove of differences between arms, at any time


def evidence_for(problem: Problem, cells: Cells) -> Evidence:
    """The evidence that needs fewer cells on most test sets, by n and k alone."""
    n, k = problem.n_arms, problem.k
    lopsided = n - k >= tuning.LOPSIDED * k
    return Single(problem) if lopsided or n >= tuning.MANY else Paired(problem, cells)


class Standing:
    """Every arm is scored on the first items of one order until the choice is proved."""

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        assert problem.items is not None
        self.problem = problem
        self.allowed = problem.k * problem.sharp_epsilon
        self.cells = Cells(problem.items, problem.n_arms)
        self.evidence = evidence_for(problem, self.cells)
        self.purse = Purse(problem)
        self.ties: IntArray = rng.permutation(problem.n_arms)
        self.top: IntArray = np.empty(0, dtype=np.int64)
        self.outside: IntArray = np.arange(problem.n_arms)
        self.bounds: FloatArray = np.empty((0, problem.n_arms))  # (inside, outside)

    @property
    def finished(self) -> bool:
        """Whether every cell that can still matter was seen."""
        return bool((self.cells.reached[~self.evidence.out] == self.cells.size).all())

    def take(self, targets: IntArray, scores: FloatArray) -> None:
        """Take in the missing cells, arm by arm in the order of items, and what they prove."""
        before = self.cells.reached
        self.cells.take(targets, scores)
        self.evidence.take(self.cells, before)

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
        outside = np.setdiff1d(np.arange(self.problem.n_arms), self.top)
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
        pairs = np.zeros((self.problem.n_arms,) * 2, dtype=np.bool_)
        pairs[np.ix_(self.top, self.outside)] = doubtful(self.bounds, self.allowed)
        return self.evidence.targets(pairs | pairs.T, self.cells)
