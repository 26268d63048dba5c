"""Track-and-stop: pull in the proportions that identify the best arm soonest."""

from collections.abc import Generator
from itertools import count
from math import sqrt

import numpy as np

from shortlist.algorithms import likelihood_ratio as thresholds
from shortlist.algorithms.algorithm import Growth
from shortlist.algorithms.likelihood_ratio import (
    Comparison,
    Threshold,
    best_proportions,
    divergence_of,
    swap_evidence,
)
from shortlist.algorithms.steps import best, rounded_shares
from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.problem import Problem
from shortlist.reward_models import RewardModel
from shortlist.search import Answer, Progress, Pulls, Rewards, Search
from shortlist.validation import text

THRESHOLDS = ("proven", "iterated-logarithm", "customary")


def track_and_stop(
    problem: Problem,
    rng: np.random.Generator,
    *,
    growth: Growth = 0.02,
    threshold: str = "proven",
) -> Search:
    """Find an arm at most epsilon below the best, for k = 1; others are refused.

    With a the arm of the highest mean, stop when for every other arm b

        min over y >= x + epsilon of N_a d(mean_a, x) + N_b d(mean_b, y)  >  threshold(N_a, N_b, t),

    the generalised likelihood ratio against "b is better by epsilon". Until then pull in the
    proportions that make the least of these grow fastest at the present means (D-tracking). R_T <=
    epsilon with probability >= 1 - delta unless the threshold is "customary":

    - If a is worse than the best arm b by epsilon or more, the true means are among those that the
      least is taken over. So N_a d(mean_a, theta_a) + N_b d(mean_b, theta_b) > threshold at some
      time, with probability at most delta / (n - 1) for that a; there are n - 1 such a at most.
    - That holds for every way to pull, hence in batches too.

    "proven" is ln(4 sqrt(N_a N_b) (n - 1) / delta) for rewards in [0, 1], "iterated-logarithm" what
    Kaufmann, Koolen (2021) prove; that is also "proven" where rewards have no range. "customary" is
    ln((1 + ln t) / delta), without a proof: the answer comes without a bound.

    Garivier, Kaufmann (2016), Track-and-Stop with D-tracking; Garivier, Kaufmann (2021) and
    Degenne, Koolen (2019) for epsilon > 0. Where arms tie Degenne and Koolen let the candidate be
    sticky, which their limit for delta -> 0 needs; here it is the highest mean. There a step is one
    pull (`growth` = 0); here it is a share `growth` of all pulls so far."""
    if problem.k != 1:
        raise InvalidInput(f"`k` is {problem.k}, but must be 1: track-and-stop finds one best arm")
    threshold = text("threshold", threshold)
    if threshold not in THRESHOLDS:
        raise InvalidInput(f"`threshold` is {threshold!r}, but must be {' or '.join(THRESHOLDS)}")
    return Tracking(problem, rng, growth).run(threshold)


class Tracking:
    """Pulls and rewards of every arm, and the next batch."""

    def __init__(self, problem: Problem, rng: np.random.Generator, growth: float) -> None:
        self.problem = problem
        self.rng = rng
        self.growth = growth
        self.divergence = divergence_of(problem.rewards)
        self.pulls: IntArray = np.zeros(problem.n_arms, dtype=np.int64)
        self.sums: FloatArray = np.zeros(problem.n_arms)

    def run(self, threshold: str) -> Search:
        """Pull until the evidence against every swap exceeds the threshold."""
        n_arms, delta = self.problem.n_arms, self.problem.delta
        needed = _threshold(threshold, self.problem.rewards)
        yield from self._pull(np.ones(n_arms, dtype=np.int64), 0)
        for round_ in count(1):
            means = self._means()
            leader = int(best(means, 1, self.rng)[0])
            others = np.delete(np.arange(n_arms), leader)
            evidence = swap_evidence(
                self.divergence, means, self.pulls, leader, others, self.problem.epsilon
            )
            total = int(self.pulls.sum())
            comparison = Comparison(
                int(self.pulls[leader]), self.pulls[others], total, n_arms - 1, delta
            )
            if np.all(evidence > needed(comparison)):
                break
            yield from self._pull(self._shares(means, leader, others, total), round_)
        found = {"likelihood ratio": float(np.exp(min(evidence.min(), 700.0)))}
        if threshold == "customary":
            return Answer(np.array([leader]), evidence=found)
        return Answer(np.array([leader]), self.problem.epsilon, 1 - delta, found)

    def _means(self) -> FloatArray:
        # sums may be rounded
        return np.clip(self.sums / self.pulls, self.divergence.low, self.divergence.high)

    def _pull(self, shares: IntArray, round_: int) -> Generator[Pulls, Rewards, None]:
        arms = np.flatnonzero(shares)
        progress = Progress(round_, undecided=self.pulls.size)
        rewards = yield Pulls(arms, shares[arms], progress)
        self.pulls[arms] += shares[arms]
        self.sums[arms] += rewards.sums

    def _shares(self, means: FloatArray, leader: int, others: IntArray, total: int) -> IntArray:
        """A batch, to the arms in proportion to the pulls missing to their share."""
        batch = max(1, int(self.growth * total))
        wanted = (total + batch) * self._proportions(means, leader, others)
        # forced exploration of D-tracking (Lemma 8)
        wanted = np.maximum(wanted, sqrt(total + batch) - self.pulls.size / 2)
        lacking = np.maximum(wanted - self.pulls, 0)
        return rounded_shares(batch * lacking / lacking.sum(), batch, self.rng)

    def _proportions(self, means: FloatArray, leader: int, others: IntArray) -> FloatArray:
        # away from 0 and 1, where an arm's divergence from all others is infinite
        margin = 1 / (2 * int(self.pulls.max())) if self.problem.rewards.has_range else 0.0
        inner = np.clip(means, self.divergence.low + margin, self.divergence.high - margin)
        proportions = np.empty(means.size)
        proportions[leader], proportions[others] = best_proportions(
            self.divergence, float(inner[leader]), inner[others], self.problem.epsilon
        )
        return proportions


def _threshold(name: str, rewards: RewardModel) -> Threshold:
    if name == "customary":
        return thresholds.customary
    if name == "proven" and rewards.has_range:
        return thresholds.mixture
    return thresholds.iterated_logarithm
