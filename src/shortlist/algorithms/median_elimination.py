"""Median Elimination, or Halving: keep the better half until k arms are left."""

from math import ceil, log

import numpy as np

from shortlist.algorithms.steps import best, sample
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Search


def median_elimination(problem: Problem, rng: np.random.Generator) -> Search:
    """Pull every arm that is left equally often and keep the better half, but never fewer than k.

    Round r works to accuracy epsilon_r = (epsilon / 4) (3/4)^(r-1) with risk delta_r = delta / 2^r;
    they sum to at most epsilon and delta. Write t_j for the j-th best mean of the s arms a round
    begins with; it keeps m of them. Its N pulls each make q = exp(-N epsilon_r^2 / 2) the chance
    that a given mean errs by epsilon_r / 2 to a given side.

    - None of the k best arms is rated epsilon_r / 2 too low, except with probability k q.
    - Let j <= k and suppose fewer than j of the kept arms have means >= t_j - epsilon_r. Then m - j
      + 1 kept ones are worse, one of the j best was dropped, and all those worse ones were rated
      above it, so epsilon_r / 2 too high. At most s - j arms are worse and each is overrated with
      probability q: by Markov (s - j) q / (m - j + 1).

    N makes the sum of these, over all j <= k, at most delta_r. So with probability >= 1 - delta
    every round lowers no t_j by more than epsilon_r, and in the end the j-th best chosen mean is >=
    theta_j - epsilon for every j <= k (Elementwise). Hence every chosen mean is >= theta_k -
    epsilon (Explore-K), and R_T <= epsilon.

    Even-Dar, Mannor, Mansour (2006), Median Elimination (k = 1); Kalyanakrishnan, Stone (2010),
    Halving. The latter counts only j = k, which proves Explore-K with ln(3 k / delta_r) and says
    nothing of R_T; counting every j costs about ln(k (2 + ln k) / delta_r) instead."""
    arms = np.arange(problem.n_arms)
    accuracy, risk, r = problem.epsilon / 4, problem.delta / 2, 0
    while arms.size > problem.k:
        r += 1
        kept = max(problem.k, ceil(arms.size / 2))
        times = round_length(arms.size, kept, problem.k, accuracy, risk)
        rejected = problem.n_arms - arms.size
        means = yield from sample(arms, times, Progress(r, rejected=rejected, undecided=arms.size))
        arms = arms[best(means, kept, rng)]
        accuracy, risk = 0.75 * accuracy, risk / 2
    return Answer(arms, problem.epsilon, 1 - problem.delta, {"rounds": r})


def round_length(size: int, kept: int, k: int, accuracy: float, risk: float) -> int:
    """Pulls per arm after which to keep the `kept` best lowers no j-th best mean by `accuracy`.

    For every j <= k, but for a probability of `risk`."""
    j = np.arange(1, k + 1)
    chances = k + float(np.sum((size - j) / (kept - j + 1)))  # in units of q
    return ceil(2 / accuracy**2 * log(chances / risk))
