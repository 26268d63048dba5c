"""What the intervals alone prove of the arms that lead, and how that came about pull by pull."""

from dataclasses import dataclass, field

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.experiment.settings import Settings
from shortlist.experiment.status import ArmsTold, intervals
from shortlist.storage import Told

POINTS = 60  # of a course at first
STEP = 1.03  # pulls from one point to the next, as a ratio


def proven(means: FloatArray, low: FloatArray, high: FloatArray, k: int) -> float:
    """What the k arms of highest mean lose at most, if every mean lies in its interval.

    The best set swaps some chosen arms for others, and each swap gains at most high - low: the
    largest gains first,

        k R_T <= sum_j max(0, high_(j) outside - low_(j) inside).

    The intervals hold together at all times with probability 1 - delta, so this does, too."""
    order = np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable")
    inside = np.sort(low[order[:k]])
    outside = -np.sort(-high[order[k:]])
    swaps = min(inside.size, outside.size)
    gains = np.maximum(0, outside[:swaps] - inside[:swaps])
    return float(gains.sum()) / k


@dataclass(slots=True)
class Course:
    """Pulls told, and what the intervals proved then; infinite bounds are left out."""

    pulls: list[int] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, told: Told, settings: Settings) -> "Course":
        """The course so far, at points that are closer at the beginning."""
        course = cls()
        n_arms = settings.problem.n_arms
        counts = np.zeros(n_arms, dtype=np.int64)  # (n,)
        sums = np.zeros(n_arms)  # (n,)
        size = told.arms.size
        ends = np.unique(np.geomspace(1, max(size, 1), POINTS).astype(int)) if size else ()
        begin = 0
        for end in ends:
            arms = told.arms[begin:end]
            counts += np.bincount(arms, minlength=n_arms)
            sums += np.bincount(arms, told.rewards[begin:end], n_arms)
            means = np.divide(sums, counts, out=np.full(n_arms, np.nan), where=counts > 0)
            low, high = intervals(settings.problem, counts, means)
            course._add(int(end), proven(means, low, high, settings.problem.k))
            begin = end
        return course

    def go_on(self, arms: ArmsTold, k: int) -> float:
        """Add where it stands now, if that is far enough from the last point; return the bound."""
        bound = proven(arms.means, arms.low, arms.high, k)
        told = int(arms.pulls.sum())
        if told and (not self.pulls or told >= STEP * self.pulls[-1]):
            self._add(told, bound)
        return bound

    def _add(self, pulls: int, bound: float) -> None:
        if np.isfinite(bound):
            self.pulls.append(pulls)
            self.bounds.append(bound)
