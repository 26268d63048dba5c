"""CLUCB-PAC, LUCB and KL-LUCB: pull where the intervals around the means leave the answer open.

They differ in how wide the intervals are, what they must show, and which arms are pulled: a
`Rule`."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from math import inf

import numpy as np

from shortlist.algorithms.steps import best
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.constraints import Constraint, best_by
from shortlist.problem import FixedBudget, Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

OWN_GROWTH = 5  # times `growth` by which an arm's pulls grow before its next look
# of means, pulls and a log term: the lower and the upper end of every interval
Ends = Callable[[FloatArray, IntArray, float], tuple[FloatArray, FloatArray]]


def hoeffding_ends(
    means: FloatArray, pulls: IntArray, log_term: float
) -> tuple[FloatArray, FloatArray]:
    """The mean +- sqrt(log_term / (2 pulls))."""
    radii = np.sqrt(log_term / (2 * pulls))
    return means - radii, means + radii


@dataclass(frozen=True)
class Intervals:
    """Mean and interval of every arm, and whether it is among the k best."""

    pulls: IntArray
    means: FloatArray
    inside: BoolArray
    log_term: float  # an end misses its mean with probability exp(-log_term) at most
    allowed: float  # the bound to reach
    growth: float
    ends: Ends = hoeffding_ends
    constraint: Constraint | None = None  # the feasible sets; None: all sets of k arms

    @cached_property
    def pessimistic(self) -> FloatArray:
        """The end of every interval that speaks against the choice: lower inside, upper outside."""
        lower, upper = self.ends(self.means, self.pulls, self.log_term)
        return np.where(self.inside, lower, upper)

    @property
    def steps(self) -> IntArray:
        """Pulls of each arm before its next look."""
        most: IntArray = np.maximum(1, OWN_GROWTH * self.growth * self.pulls).astype(np.int64)
        return most

    def reaches_across(self, slack: float) -> BoolArray:
        """Which intervals reach over the midpoint of the boundary, by more than `slack`.

        If the means did not change, these arms would have to be pulled until none does."""
        midpoint = (self.means[self.inside].min() + self.means[~self.inside].max()) / 2
        over: FloatArray = np.where(
            self.inside, midpoint - self.pessimistic, self.pessimistic - midpoint
        )
        return over > slack


@dataclass(frozen=True, slots=True)
class Rule:
    """What makes a race a certain algorithm."""

    log_term: Callable[[int, int, float], float]  # of n_arms, pulls so far, delta
    bound: Callable[[Intervals], float]  # on R_T, if no interval misses its mean
    shares: Callable[[Intervals, int, np.random.Generator], IntArray]  # of a batch, per arm
    least: int  # pulls in the smallest batch
    ends: Ends = hoeffding_ends
    proven: bool = True  # whether the log term is large enough for the bound to hold


def race(
    problem: Problem, rng: np.random.Generator, rule: Rule, growth: float, delta: float
) -> Search:
    """Race by `rule` until its bound is at most epsilon, or until the budget ends.

    A step pulls at most max(rule.least, floor(growth * pulls so far)) times. With a budget the
    radii are those of `delta`, and a race ends early only when the bound is 0."""
    if isinstance(problem.goal, FixedBudget):
        return Race(problem, rng, rule, growth, delta).run(problem.budget)
    return Race(problem, rng, rule, growth, problem.delta, problem.epsilon).run(inf)


class Race:
    """A race that can be run further, from where it stopped."""

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator,
        rule: Rule,
        growth: float,
        delta: float,
        allowed: float = 0.0,
    ) -> None:
        self.n_arms, self.k = problem.n_arms, problem.k
        self.constraint = problem.constraint
        self.rng, self.rule, self.growth, self.delta, self.allowed = (
            rng,
            rule,
            growth,
            delta,
            allowed,
        )
        self.pulls: IntArray = np.zeros(self.n_arms, dtype=np.int64)
        self.sums: FloatArray = np.zeros(self.n_arms)

    def run(self, until: float) -> Search:
        """Continue until the bound is at most `allowed`, or until `until` pulls in all."""
        if not self.pulls.any():
            yield from self._pull(
                np.ones(self.n_arms, dtype=np.int64), Progress(undecided=self.n_arms)
            )
        for round_ in count(1):
            total = int(self.pulls.sum())
            intervals = self._intervals(total)
            bound = self.rule.bound(intervals)
            if bound <= self.allowed or total >= until:
                break
            batch = int(min(until - total, max(self.rule.least, int(self.growth * total))))
            shares = self.rule.shares(intervals, batch, self.rng)
            shown = bound if self.rule.proven else None
            yield from self._pull(shares, Progress(round_, undecided=self.n_arms, bound=shown))
        top, evidence = np.flatnonzero(intervals.inside), {"log term": intervals.log_term}
        if not self.rule.proven:
            return Answer(top, evidence=evidence)
        return Answer(top, bound, 1 - self.delta, evidence)

    def _pull(self, shares: IntArray, progress: Progress) -> Generator[Pulls, Rewards, None]:
        arms = np.flatnonzero(shares)
        rewards = yield Pulls(arms, shares[arms], progress)
        self.pulls[arms] += shares[arms]
        self.sums[arms] += rewards.sums

    def _intervals(self, total: int) -> Intervals:
        means = self.sums / self.pulls
        log_term = self.rule.log_term(self.n_arms, total, self.delta)
        if self.constraint is None:
            inside = top_mask(means, self.k, self.rng)
        else:
            inside = best_by(self.constraint, means, self.rng.random(means.size), self.k)
        return Intervals(
            self.pulls,
            means,
            inside,
            log_term,
            self.allowed,
            self.growth,
            self.rule.ends,
            self.constraint,
        )


def top_mask(values: FloatArray, k: int, rng: np.random.Generator) -> BoolArray:
    """Which values are the `k` largest; ties are broken by `rng`."""
    mask = np.zeros(values.size, dtype=np.bool_)
    mask[best(values, k, rng)] = True
    return mask
