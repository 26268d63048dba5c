"""Hold an interval around every mean and pull where the intervals leave the answer open: CLUCB-PAC and LUCB.

The two differ in how wide the intervals are, what they must show, and which arms are pulled: a `Rule`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from shortlist.errors import InvalidInput
from shortlist.problem import FixedBudget, Problem, number
from shortlist.search import Answer, BoolArray, FloatArray, IntArray, Progress, Pulls, Search, best

OWN_GROWTH = 5  # an arm's pulls grow by at most this many times `growth` before it is looked at again


@dataclass(frozen=True)
class Standing:
    """What is known of every arm after some pulls: its mean, its interval, and whether it is inside the k best."""

    pulls: IntArray
    means: FloatArray
    inside: BoolArray
    log_term: float  # an interval is the mean +- sqrt(log_term / (2 pulls))
    allowed: float  # the bound to reach
    growth: float

    @cached_property
    def pessimistic(self) -> FloatArray:
        """The end of every interval that speaks against the present choice: the lower inside, the upper outside."""
        radii = np.sqrt(self.log_term / (2 * self.pulls))
        return np.where(self.inside, self.means - radii, self.means + radii)

    @property
    def steps(self) -> IntArray:
        """How often each arm may be pulled before it is looked at again."""
        most: IntArray = np.maximum(1, OWN_GROWTH * self.growth * self.pulls).astype(np.int64)
        return most

    def reaches_across(self, slack: float) -> BoolArray:
        """Which intervals reach over the midpoint of the boundary, by more than `slack`.

        Were the means to stand still, these arms would have to be pulled before none does."""
        midpoint = (self.means[self.inside].min() + self.means[~self.inside].max()) / 2
        over: FloatArray = np.where(self.inside, midpoint - self.pessimistic, self.pessimistic - midpoint)
        return over > slack


@dataclass(frozen=True, slots=True)
class Rule:
    """What makes a race a certain algorithm."""

    log_term: Callable[[int, int, float], float]  # of n_arms, pulls so far, delta
    bound: Callable[[Standing], float]  # on R_T, if no interval misses its mean
    shares: Callable[[Standing, int, np.random.Generator], IntArray]  # of a batch, per arm
    least: int  # pulls in the smallest batch


def race(problem: Problem, rng: np.random.Generator, rule: Rule, growth: float, delta: float) -> Search:
    """Race by `rule` until its bound is at most epsilon, or until the budget ends.

    A step pulls at most max(rule.least, floor(growth * pulls so far)) times. With a budget the radii are those of
    `delta`, and a race ends early only when the bound is 0."""
    number("delta", delta, above=0, below=1)
    if number("growth", growth) < 0:
        raise InvalidInput(f"`growth` is {growth!r}, but must be at least 0")
    if isinstance(problem.goal, FixedBudget):
        return _race(problem, rng, rule, growth, delta, 0.0, problem.goal.budget)
    return _race(problem, rng, rule, growth, problem.delta, problem.epsilon, inf)


def _race(
    problem: Problem,
    rng: np.random.Generator,
    rule: Rule,
    growth: float,
    delta: float,
    allowed: float,
    budget: float,
) -> Search:
    n, k = problem.n_arms, problem.k
    pulls, sums = np.zeros(n, dtype=np.int64), np.zeros(n)
    shares = np.ones(n, dtype=np.int64)
    progress = Progress(undecided=n)
    while True:
        arms = np.flatnonzero(shares)
        rewards = yield Pulls(arms, shares[arms], progress)
        pulls[arms] += shares[arms]
        sums[arms] += rewards.sums
        total = int(pulls.sum())
        means = sums / pulls
        standing = Standing(pulls, means, top_mask(means, k, rng), rule.log_term(n, total, delta), allowed, growth)
        bound = rule.bound(standing)
        if bound <= allowed or total >= budget:
            return Answer(np.flatnonzero(standing.inside), bound, 1 - delta, {"log term": standing.log_term})
        batch = int(min(budget - total, max(rule.least, int(growth * total))))
        shares = rule.shares(standing, batch, rng)
        progress = Progress(progress.round + 1, undecided=n, bound=bound)


def top_mask(values: FloatArray, k: int, rng: np.random.Generator) -> BoolArray:
    """Which values are the `k` largest; ties are broken by `rng`."""
    mask = np.zeros(values.size, dtype=np.bool_)
    mask[best(values, k, rng)] = True
    return mask
