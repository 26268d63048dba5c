"""Rinott: the variances of a first sample fix the sizes of a second one."""

import numpy as np

from shortlist.algorithms.algorithm import CountFrom2
from shortlist.algorithms.kn import check_one_arm
from shortlist.algorithms.steps import best
from shortlist.certificates.differences.fallback import rinott_constant
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Search, moments_of


def rinott(problem: Problem, rng: np.random.Generator, *, first: CountFrom2 = 20) -> Search:
    """Find the best of independent normal arms of unknown variances, for k = 1.

    Every arm is pulled `first` times, S_i^2 the variance of these pulls, and then until it has
    N_i = max(first, ceil(h^2 S_i^2 / epsilon^2)) pulls. The highest mean is chosen. h solves

        E[ E[Phi(h / sqrt(nu (1 / Y + 1 / Y'))) | Y]^(n - 1) ] = 1 - delta,   nu = first - 1,

    Y, Y' independent and chi-square with nu degrees of freedom. R_T <= epsilon with probability >=
    1 - delta, whatever the means are. Let b be the best arm and Z_i = mean_i - mean_b - (theta_i -
    theta_b):

    - Given all S^2, the Z_i are normal, each pair with covariance var(mean_b) >= 0. So all Z_i are
      below epsilon with at least the product of their probabilities (Slepian), which are at least
      Phi(h / sqrt(nu (1 / Y_b + 1 / Y_i))). These are independent given Y_b, hence the formula.
    - Then a chosen arm i, mean_i >= mean_b, has theta_i > theta_b - epsilon.

    Rinott (1978), procedure R; there for the best arm that is ahead by epsilon. `rinott_constant`
    is rounded up. Takes about three to five times the pulls of kn unless arms tie."""
    check_one_arm(problem, "rinott")
    return _two_stages(problem, rng, first)


def _two_stages(problem: Problem, rng: np.random.Generator, first: int) -> Search:
    n_arms = problem.n_arms
    arms = np.arange(n_arms)
    times = np.full(n_arms, first)
    reply = yield Pulls(arms, times, Progress(1, undecided=n_arms))
    assert reply.each is not None, "drivers send single rewards where rewards are normal"
    means, squares = moments_of(reply.each, times)
    h = rinott_constant(n_arms, problem.delta, first)
    sizes = np.ceil(squares / (first - 1) * (1 + 1e-9) * (h / problem.epsilon) ** 2)
    more = np.maximum(sizes - first, 0).astype(np.int64)
    some = np.flatnonzero(more)
    if some.size:
        reply = yield Pulls(some, more[some], Progress(2, undecided=n_arms))
        assert reply.each is not None
        later, _ = moments_of(reply.each, more[some])
        means[some] += (later - means[some]) * more[some] / (first + more[some])
    evidence = {"h": h, "largest sample": int(first + more.max())}
    return Answer(best(means, 1, rng), problem.epsilon, 1 - problem.delta, evidence)
