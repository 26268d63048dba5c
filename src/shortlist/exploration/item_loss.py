"""Expected loss on items: score next where an error would cost most for a cell already seen.

Arms are compared by `TwoWay`, shrunk towards their common mean by as much as noise says. An arm
goes through the shared order of the items, so no cell is asked for twice."""

from collections.abc import Generator

import numpy as np
from scipy.special import ndtr

from shortlist.arrays import FloatArray, IntArray
from shortlist.exploration.sharing import descending
from shortlist.exploration.two_way import TwoWay
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

FIRST = 6  # items of every arm at first, or a quarter of what the budget allows if that is less
GROWTH = 0.06  # a batch, as a share of what was spent
CAUTION = 1.3  # times the standard deviation: prior and boundary are estimates too
TINY = 1e-12


class Scored:
    """The cells seen so far, by position in the order."""

    def __init__(self, problem: Problem) -> None:
        items = problem.items
        assert items is not None
        self.k = problem.k
        self.scores: FloatArray = items.by_position(problem.n_arms)  # (arms, items)
        self.left: IntArray = np.isnan(self.scores).sum(1)
        self.spent = 0

    def add(self, pulls: Pulls, rewards: Rewards) -> None:
        """Take in the reply to a request."""
        assert rewards.each is not None
        start = 0
        for arm, times in zip(pulls.arms, pulls.times, strict=True):
            places = np.flatnonzero(np.isnan(self.scores[arm]))[:times]
            self.scores[arm, places] = rewards.each[start : start + times]
            self.left[arm] -= times
            start += times
        self.spent += pulls.total

    def posterior(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of every arm, by empirical Bayes with a normal prior."""
        fit = TwoWay.fit(self.scores, ~np.isnan(self.scores))
        centre = fit.means.mean()
        between = max(TINY, float(fit.means.var(ddof=1) - fit.variances.mean()))
        trust = between / (between + fit.variances)
        means = centre + trust * (fit.means - centre)
        return means, np.sqrt(trust * fit.variances)


def explore_items(problem: Problem, rng: np.random.Generator) -> Search:
    """Spend the budget by expected loss per cell; return the k best posterior means."""
    seen = Scored(problem)
    n = problem.n_arms
    size = seen.scores.shape[1]
    first = max(1, min(FIRST, problem.budget // (4 * n)))
    needed = np.maximum(0, first - (size - seen.left))
    yield from _ask(seen, np.minimum(needed, seen.left))
    while (left := min(problem.budget - seen.spent, int(seen.left.sum()))) > 0:
        batch = min(left, max(n // 2, int(GROWTH * seen.spent)))
        yield from _ask(seen, _shares(seen, batch, rng))
    means, _ = seen.posterior()
    return Answer(np.sort(descending(means, rng)[: problem.k]))


def _ask(seen: Scored, times: IntArray) -> Generator[Pulls, Rewards, None]:
    arms = np.flatnonzero(times)
    if arms.size:
        pulls = Pulls(arms, times[arms], Progress(undecided=int((seen.left > 0).sum())))
        seen.add(pulls, (yield pulls))


def _shares(seen: Scored, batch: int, rng: np.random.Generator) -> IntArray:
    """The cells of every arm, by expected loss per cell; no arm grows by more than half."""
    means, deviations = seen.posterior()
    drawn = seen.scores.shape[1] - seen.left
    order = descending(means, rng)
    boundary = means[order[seen.k - 1 : seen.k + 1]].mean()
    spread = CAUTION * deviations + TINY
    z = np.abs(means - boundary) / spread
    loss = spread * (np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) - z * ndtr(-z))
    priority = np.where(seen.left > 0, loss / drawn, -1.0)
    most = np.minimum(np.maximum(1, drawn // 2), seen.left)
    ranked = descending(priority, rng)
    before = np.cumsum(most[ranked]) - most[ranked]
    times = np.zeros(most.size, dtype=np.int64)
    times[ranked] = np.clip(batch - before, 0, most[ranked])
    return times
