"""OCBA-m: a budget shared out by how far each arm is from the boundary, in its deviations."""

import numpy as np

from shortlist.algorithms.algorithm import Count, Growth
from shortlist.algorithms.steps import best, even_shares, rounded_shares
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.charged.planning import Explored
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search, moments_of

LEAST_GAP = 1e-6  # distance from the boundary, as a share of the largest one


def ocba_m(
    problem: Problem, rng: np.random.Generator, *, first: Count = 10, growth: Growth = 0.05
) -> Search:
    """Pull arms in proportion to (s_i / (mean_i - c))^2 and return the k best means.

    c is the boundary (d_(k+1) mean_(k) + d_(k) mean_(k+1)) / (d_(k) + d_(k+1)) between the k-th
    and the next mean, d_i = s_i / sqrt(N_i) the deviation of a mean. These proportions make a lower
    bound on the probability of a correct choice fall slowest, for normal arms as the budget grows.
    No guarantee for a given budget. Every arm is pulled `first` times, or an equal share of the
    budget if that is less.

    Chen, He, Fu, Lee (2008), OCBA-m. There a step has a fixed number of pulls; here it is a share
    `growth` of those so far. There an arm whose first rewards are all equal is never pulled again;
    here the variances of arms are drawn a little to that of all, which 0/1 rewards need."""
    return _shared_out(problem, rng, first, growth)


def _shared_out(problem: Problem, rng: np.random.Generator, first: int, growth: float) -> Search:
    n_arms, budget = problem.n_arms, problem.budget
    explored = Explored(n_arms)
    times = np.minimum(first, even_shares(budget, n_arms, rng))
    round_ = 0
    while times.any():
        arms = np.flatnonzero(times)
        round_ += 1
        reply = yield Pulls(arms, times[arms], Progress(round_, undecided=n_arms))
        explored.add(arms, times[arms], *_moments(reply, times[arms]))
        spent = int(explored.pulls.sum())
        batch = min(max(1, int(growth * spent)), budget - spent)
        times = _times(explored, problem.k, batch, rng)
    return Answer(best(explored.means, problem.k, rng))


def _moments(reply: Rewards, times: IntArray) -> tuple[FloatArray, FloatArray]:
    """Means and squared deviations of every entry."""
    if reply.each is not None:
        return moments_of(reply.each, times)
    means = reply.sums / times
    return means, np.maximum(reply.squares - times * means**2, 0.0)


def _times(explored: Explored, k: int, batch: int, rng: np.random.Generator) -> IntArray:
    """A batch, to the arms in proportion to the pulls missing to their share."""
    if not batch:
        return np.zeros_like(explored.pulls)
    weights = proportions(explored, k)
    wanted = (explored.pulls.sum() + batch) * weights / weights.sum()
    lacking = np.maximum(wanted - explored.pulls, 0.0)
    return rounded_shares(batch * lacking / lacking.sum(), batch, rng)


def proportions(explored: Explored, k: int) -> FloatArray:
    """(s_i / (mean_i - c))^2 of every arm: (n,)."""
    variances = _variances(explored)
    deviations = np.sqrt(variances / explored.pulls)
    order = np.argsort(-explored.means, kind="stable")
    inner, outer = order[k - 1], order[k]
    high, low = explored.means[inner], explored.means[outer]
    share = deviations[inner] / (deviations[inner] + deviations[outer])
    gaps = np.abs(explored.means - (high - (high - low) * share))
    least = LEAST_GAP * gaps.max()
    weights: FloatArray = variances / np.maximum(gaps, least) ** 2 if least else variances
    return weights


def _variances(explored: Explored) -> FloatArray:
    """Variance of a reward of every arm; that of all arms counts as one pull: (n,)."""
    pooled = explored.squares.sum() / max(1, (explored.pulls - 1).sum())
    variances: FloatArray = (explored.squares + pooled) / explored.pulls
    return variances if pooled else np.ones_like(variances)
