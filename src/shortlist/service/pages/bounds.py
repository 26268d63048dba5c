"""What the intervals alone prove of the arms that lead, and how that came about pull by pull."""

from dataclasses import dataclass, field
from math import inf

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.confidence import intervals
from shortlist.experiment import Experiment
from shortlist.experiment.settings import Settings
from shortlist.experiment.status import ArmsTold
from shortlist.problem import Problem
from shortlist.storage import Told

POINTS = 60  # of a course at first
STEP = 1.03  # pulls from one point to the next, as a ratio


def proven(means: FloatArray, low: FloatArray, high: FloatArray, problem: Problem) -> float:
    """What the k best arms by their means lose at most, if every mean lies in its interval.

    The best set swaps some chosen arms for others, and each swap gains at most high - low: the
    largest gains first,

        k R_T <= sum_j max(0, high_(j) outside - low_(j) inside).

    The intervals hold together at all times with probability 1 - delta, so this does, too."""
    k = problem.k
    if problem.minimize:
        means, low, high = -means, -high, -low
    order = np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable")
    inside = np.sort(low[order[:k]])
    outside = -np.sort(-high[order[k:]])
    swaps = min(inside.size, outside.size)
    gains = np.maximum(0, outside[:swaps] - inside[:swaps])
    return float(gains.sum()) / k


@dataclass(slots=True)
class Course:
    """Pulls told, and what was proved then: by the search if it says so, else by the intervals."""

    pulls: list[int] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)  # finite ones
    by_search: bool = False
    last: float = inf  # the present bound

    @classmethod
    def of(cls, told: Told, settings: Settings) -> "Course":
        """What the intervals proved so far, at points that are closer at the beginning."""
        course = cls()
        problem = settings.problem
        counts = np.zeros(problem.n_arms, dtype=np.int64)  # (n,)
        sums = np.zeros(problem.n_arms)  # (n,)
        begin = 0
        for end in _points(told.arms.size):
            arms = told.arms[begin:end]
            counts += np.bincount(arms, minlength=problem.n_arms)
            sums += np.bincount(arms, told.rewards[begin:end], problem.n_arms)
            means = np.divide(sums, counts, out=np.full(problem.n_arms, np.nan), where=counts > 0)
            course._add(end, proven(means, *intervals(problem, counts, means), problem))
            begin = end
        return course

    def go_on(self, experiment: Experiment, arms: ArmsTold) -> None:
        """Add what was proved since."""
        problem = experiment.settings.problem
        own = [
            (pulls, progress.bound * problem.rewards.scale)
            for pulls, progress in experiment.course()
            if progress.bound is not None
        ]
        if own:
            self.by_search = True
            self.pulls = [pulls for pulls, _ in own]
            self.bounds = [bound for _, bound in own]
            self.last = self.bounds[-1]
            return
        self.last = proven(arms.means, arms.low, arms.high, problem)
        told = int(arms.pulls.sum())
        if told and (not self.pulls or told >= STEP * self.pulls[-1]):
            self._add(told, self.last)

    def _add(self, pulls: int, bound: float) -> None:
        if np.isfinite(bound):
            self.pulls.append(pulls)
            self.bounds.append(bound)


def _points(size: int) -> list[int]:
    """How many pulls were told at the points of a course."""
    if not size:
        return []
    points: list[int] = np.unique(np.geomspace(1, size, POINTS).astype(int)).tolist()
    return points
