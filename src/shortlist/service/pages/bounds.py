"""What the intervals alone prove of the arms that lead, and how that came about pull by pull."""

from dataclasses import dataclass, field
from math import inf

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.confidence import estimates
from shortlist.experiment import Experiment, Status
from shortlist.experiment.status import ArmsTold
from shortlist.problem import Problem

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
    """Pulls counted, and what was proved then: by the search if it says so, else by the
    intervals."""

    pulls: list[int] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)  # finite ones
    by_search: bool = False
    last: float = inf  # the present bound

    @classmethod
    def of(
        cls, arms_pulled: IntArray, rewards: FloatArray, problem: Problem, stay: BoolArray
    ) -> "Course":
        """What the intervals proved so far of the arms that `stay`, at points that are closer at
        the beginning; of pulls in the order in which they were asked for."""
        course = cls()
        counts = np.zeros(problem.n_arms, dtype=np.int64)  # (n,)
        sums = np.zeros(problem.n_arms)  # (n,)
        begin = 0
        for end in _points(arms_pulled.size):
            arms = arms_pulled[begin:end]
            counts += np.bincount(arms, minlength=problem.n_arms)
            sums += np.bincount(arms, rewards[begin:end], problem.n_arms)
            means, low, high = estimates(problem, counts, sums)
            course._add(end, proven(means[stay], low[stay], high[stay], problem))
            begin = end
        return course

    def go_on(self, experiment: Experiment, status: Status) -> None:
        """Add what was proved since."""
        own = proved_by_search(experiment, status)
        if own and status.bound is not None:
            self.by_search, self.last = True, status.bound
            self.pulls = [pulls for pulls, _ in own]
            self.bounds = [bound for _, bound in own]
            return
        if self.by_search:  # and is not any more: an arm that it chose has left
            self.pulls, self.bounds, self.by_search = [], [], False
        arms, stay = status.arms, staying(status.arms)
        ends = arms.means[stay], arms.low[stay], arms.high[stay]
        self.last = proven(*ends, experiment.settings.problem)
        counted = int(arms.pulls.sum())
        if counted and (not self.pulls or counted >= STEP * self.pulls[-1]):
            self._add(counted, self.last)

    def _add(self, pulls: int, bound: float) -> None:
        if np.isfinite(bound):
            self.pulls.append(pulls)
            self.bounds.append(bound)


def proved_by_search(experiment: Experiment, status: Status) -> list[tuple[int, float]]:
    """Pulls at every request, and what the search had proved; nothing if it proves nothing now."""
    if status.bound is None:
        return []
    scale = experiment.settings.problem.rewards.scale
    return [
        (pulls, progress.bound * scale)
        for pulls, progress in experiment.course()
        if progress.bound is not None
    ]


def staying(arms: ArmsTold) -> BoolArray:
    """(n,) Which arms did not leave."""
    return np.array([place != "retired" for place in arms.places])


def _points(size: int) -> list[int]:
    """How many pulls were told at the points of a course."""
    if not size:
        return []
    points: list[int] = np.unique(np.geomspace(1, size, POINTS).astype(int)).tolist()
    return points
