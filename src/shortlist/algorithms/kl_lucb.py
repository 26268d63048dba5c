"""KL-LUCB: LUCB with the intervals of Chernoff's bound, which are narrow near 0 and 1."""

from dataclasses import replace
from math import log

import numpy as np

from shortlist.algorithms.algorithm import Growth
from shortlist.algorithms.lucb import LUCB_RULE
from shortlist.algorithms.subroutines.likelihood_ratio import bernoulli_ends
from shortlist.algorithms.subroutines.race import Rule, hoeffding_ends, race
from shortlist.errors import InvalidInput
from shortlist.problem import Problem
from shortlist.search import Search
from shortlist.validation import text

# of the exploration rate ln(K1 n t^ALPHA / delta): K1 must be at least zeta(ALPHA) = 10.58, for
# which Theorem 1 has 1 + 1 / (ALPHA - 1)
ALPHA = 1.1
K1 = 11.0


def kl_lucb(
    problem: Problem,
    rng: np.random.Generator,
    *,
    growth: Growth = 0.02,
    threshold: str = "proven",
) -> Search:
    """Pull as `lucb` does, with intervals {q : pulls_i d(mean_i, q) <= beta(t)} around the means.

    d is the divergence of Bernoulli distributions, for any rewards in [0, 1]; for sub-Gaussian ones
    2 (p - q)^2, which makes the intervals `lucb`'s with another radius. Stop when max upper end
    outside - min lower end inside <= epsilon. With threshold "proven", beta(t) = ln(11 n t^1.1 /
    delta) after t pulls, and with probability >= 1 - delta:

    - No upper end of a top-k arm is ever below its mean, no lower end of another arm ever above its
      mean. beta grows and N <= t, so an end of an arm pulled N times that misses at any t misses
      with beta(N) too. That has probability exp(-beta(N)) at most (Chernoff), and the sum over arms
      and N is delta / 11 * sum N^-1.1 <= delta / 11 * (1 + 1 / 0.1) = delta.
    - Then R_T <= epsilon, and more (Elementwise), as in `lucb`.

    With "customary", beta(t) = ln((ln t + 1) / delta), which experiments in the literature use and
    no paper has proved enough: the answer comes without a bound.

    Kaufmann, Kalyanakrishnan (2013), Algorithm KL-LUCB and Theorem 1, which asks for alpha > 1 and
    k1 > 1 + 1 / (alpha - 1) in ln(k1 n t^alpha / delta); a larger k1, 405.5 for alpha = 1.1, is for
    their bound on the number of pulls. There t counts rounds of two pulls, and a step is one round
    (`growth` = 0); here batches are as in `lucb`."""
    threshold = text("threshold", threshold)
    if threshold not in RATES:
        raise InvalidInput(f"`threshold` is {threshold!r}, but must be {' or '.join(RATES)}")
    return race(problem, rng, _rule(problem, threshold), growth, problem.delta)


def _rule(problem: Problem, threshold: str) -> Rule:
    ends = bernoulli_ends if problem.rewards.has_range else hoeffding_ends
    return replace(LUCB_RULE, log_term=RATES[threshold], ends=ends, proven=threshold == "proven")


def _proven(n_arms: int, pulls: int, delta: float) -> float:
    return log(K1 * n_arms / delta) + ALPHA * log(pulls)  # Theorem 1


def _customary(_n_arms: int, pulls: int, delta: float) -> float:
    return log((log(pulls) + 1) / delta)


RATES = {"proven": _proven, "customary": _customary}
