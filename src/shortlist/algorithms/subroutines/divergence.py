"""How far apart two means are to a likelihood ratio: the Kullback-Leibler divergence d(p, q).

Rewards in [0, 1] with mean q have E exp(a X) <= 1 - q + q exp(a), by convexity: no more than 0 and
1 with that mean. So N pulls with mean p >= q have a chance of at most exp(-N d(p, q)) with the
divergence of Bernoulli laws (Chernoff), and likewise below. Sub-Gaussian rewards are on the unit
scale what a normal law of standard deviation 1/2 is, with d(p, q) = 2 (p - q)^2."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from scipy.special import rel_entr

from shortlist.arrays import FloatArray, IntArray
from shortlist.reward_models import RewardModel

HALVINGS = 50  # of an interval within [0, 1]: down to rounding


@dataclass(frozen=True, slots=True)
class Divergence:
    """d(p, q), its slope in q, and between what means it is defined."""

    between: Callable[[FloatArray, FloatArray], FloatArray]
    slope: Callable[[FloatArray, FloatArray], FloatArray]
    low: float
    high: float


def divergence_of(rewards: RewardModel) -> Divergence:
    """The divergence whose Chernoff bound holds for such rewards on the unit scale."""
    return BERNOULLI if rewards.has_range else GAUSSIAN


def bernoulli_ends(
    means: FloatArray, pulls: IntArray, log_term: float
) -> tuple[FloatArray, FloatArray]:
    """The least and the largest q with pulls * d(mean, q) <= log_term, rounded away from the mean.

    They lie inside the mean +- sqrt(log_term / (2 pulls)), as d(p, q) >= 2 (p - q)^2 (Pinsker)."""
    centre = np.clip(means, 0, 1)  # sums may be rounded
    radii = np.sqrt(log_term / (2 * pulls))
    lower = _furthest(centre, np.maximum(centre - radii, 0), log_term / pulls)
    upper = _furthest(centre, np.minimum(centre + radii, 1), log_term / pulls)
    return lower, upper


def swap_evidence(
    divergence: Divergence,
    means: FloatArray,
    pulls: IntArray,
    leader: int,
    others: IntArray,
    epsilon: float,
) -> FloatArray:
    """The least N_a d(mean_a, x) + N_b d(mean_b, y) over y >= x + epsilon, for a = leader, each b.

    It is the log of the generalised likelihood ratio against "b is better than a by epsilon". The
    leader's mean is the largest, so that y = x + epsilon where the least is taken: a convex
    function of x, whose slope changes its sign there (bisection)."""
    own, rival = means[leader], means[others]
    low = np.maximum(rival - epsilon, divergence.low)
    high = np.full(rival.size, min(own, divergence.high - epsilon))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):  # at 0 and 1, where low = high
            slope = pulls[leader] * divergence.slope(own, middle)
            slope += pulls[others] * divergence.slope(rival, middle + epsilon)
        low = np.where(slope > 0, low, middle)
        high = np.where(slope > 0, middle, high)
    above = np.minimum(low + epsilon, divergence.high)
    evidence: FloatArray = pulls[leader] * divergence.between(own, low)
    return evidence + pulls[others] * divergence.between(rival, above)


def _furthest(centre: FloatArray, outer: FloatArray, most: FloatArray) -> FloatArray:
    """The q between `centre` and `outer` with d(centre, q) = most, or `outer` if there is none."""
    inner = centre
    for _ in range(HALVINGS):
        middle = (inner + outer) / 2
        fits = _bernoulli(centre, middle) <= most
        inner = np.where(fits, middle, inner)
        outer = np.where(fits, outer, middle)
    return outer


def _bernoulli(p: FloatArray, q: FloatArray) -> FloatArray:
    result: FloatArray = rel_entr(p, q) + rel_entr(1 - p, 1 - q)
    return result


def _bernoulli_slope(p: FloatArray, q: FloatArray) -> FloatArray:
    return (q - p) / (q * (1 - q))


def _gaussian(p: FloatArray, q: FloatArray) -> FloatArray:
    return 2 * (p - q) ** 2


def _gaussian_slope(p: FloatArray, q: FloatArray) -> FloatArray:
    return 4 * (q - p)


BERNOULLI = Divergence(_bernoulli, _bernoulli_slope, 0.0, 1.0)
GAUSSIAN = Divergence(_gaussian, _gaussian_slope, -inf, inf)
