"""Pull every arm equally often and take the best means: the yardstick for everything else."""

from functools import cache

import numpy as np
from scipy.special import gammaln, logsumexp

from shortlist.algorithms.steps import best, even_shares
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.frame import fixed_design, log_swaps_of
from shortlist.constraints import best_by
from shortlist.problem import FixedBudget, Problem
from shortlist.search import Answer, Progress, Pulls, Search


@cache
def subset_union_count(n_arms: int, k: int, epsilon: float, delta: float) -> int:
    """Least N such that the k best of N pulls each lose `epsilon` at most, but for `delta`.

    A set that swaps m arms and loses more than k*epsilon must beat the best set in the sum of 2m
    means, which has probability at most exp(-N k^2 epsilon^2 / m); the sum over all such sets is at
    most `delta`."""
    m = np.arange(1, min(k, n_arms - k) + 1)
    log_sets = _log_choose(k, m) + _log_choose(n_arms - k, m)

    def fails(pulls: int) -> bool:
        exponents = log_sets - pulls * (k * epsilon) ** 2 / m
        return bool(logsumexp(exponents) > np.log(delta))

    high = 1
    while fails(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    return high


def uniform(problem: Problem, rng: np.random.Generator) -> Search:
    """Pull every arm equally often and return the k best means, or the best feasible set by them.

    Fixed confidence: N pulls each, N from `fixed_design`; R_T <= epsilon with probability >=
    1 - delta. Fixed budget: the budget shared evenly, the remainder to random arms; no
    guarantee."""
    if isinstance(problem.goal, FixedBudget):
        return _equally(problem, even_shares(problem.budget, problem.n_arms, rng), rng)
    n_arms, k, rewards = problem.n_arms, problem.k, problem.rewards
    epsilon, delta = problem.sharp_epsilon, problem.delta
    count = fixed_design(n_arms, k, epsilon, delta, rewards, log_swaps_of(problem))
    return _equally(problem, np.full(n_arms, count), rng)


def _equally(problem: Problem, times: IntArray, rng: np.random.Generator) -> Search:
    arms = np.arange(problem.n_arms)
    rewards = yield Pulls(arms, times, Progress(round=1, undecided=problem.n_arms))
    if problem.constraint is None:
        top = best(rewards.sums / times, problem.k, rng)
    else:  # sums of 0/1 rewards are exact, and so is the best set by them
        equal = bool((times == times[0]).all())
        values = rewards.sums if equal else rewards.sums / times
        top = np.flatnonzero(best_by(problem.constraint, values, rng.random(times.size), problem.k))
    if isinstance(problem.goal, FixedBudget):
        return Answer(top)
    return Answer(top, problem.epsilon, 1 - problem.delta, {"pulls per arm": int(times[0])})


def _log_choose(n: int, m: IntArray) -> FloatArray:
    return gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
