"""Likelihood ratios: the Kullback-Leibler divergence d(p, q), thresholds and best proportions.

Rewards in [0, 1] with mean q have E exp(a X) <= 1 - q + q exp(a), by convexity: no more than 0 and
1 with that mean. So N pulls with mean p >= q have a probability of at most exp(-N d(p, q)) with the
divergence of Bernoulli distributions (Chernoff), and likewise below. Sub-Gaussian rewards on the
unit scale behave like a normal distribution of standard deviation 1/2, with d(p, q) = 2 (p - q)^2.

A proven threshold is crossed by N_a d(mean_a, theta_a) + N_b d(mean_b, theta_b), for the true means
theta, with probability at most delta / comparisons at any time, however the pulls were chosen: if
M_a and M_b are nonnegative supermartingales, each in the rewards of its arm, then so is M_a M_b, as
a pull is of one arm. Ville's inequality bounds it for all t at once.

The best proportions of pulls tell the best arm from all others soonest, were the means known. With
w_a, w_b the shares of pulls, the evidence that b is not better than a by epsilon grows at the rate
min over x of w_a d(mean_a, x) + w_b d(mean_b, x + epsilon). The proportions make the least rate
over all b as large as possible. Garivier, Kaufmann (2016), Lemma 3 and Theorem 5, for epsilon > 0:
with g_b(r) = min over x of d(mean_a, x) + r d(mean_b, x + epsilon) and r = w_b / w_a, all g_b are
equal to one y, and sum over b of d(mean_a, x_b) / d(mean_b, x_b + epsilon) = 1."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log, pi

import numpy as np
from scipy.special import lambertw, rel_entr

from shortlist.arrays import FloatArray, IntArray
from shortlist.reward_models import RewardModel

BISECTIONS = 50  # of an interval within [0, 1]: down to rounding


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
    for _ in range(BISECTIONS):
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
    for _ in range(BISECTIONS):
        middle = (inner + outer) / 2
        fits = _bernoulli(centre, middle) <= most
        inner = np.where(fits, middle, inner)
        outer = np.where(fits, outer, middle)
    return outer


def _bernoulli(p: FloatArray, q: FloatArray) -> FloatArray:
    return rel_entr(p, q) + rel_entr(1 - p, 1 - q)


def _bernoulli_slope(p: FloatArray, q: FloatArray) -> FloatArray:
    return (q - p) / (q * (1 - q))


def _gaussian(p: FloatArray, q: FloatArray) -> FloatArray:
    return 2 * (p - q) ** 2


def _gaussian_slope(p: FloatArray, q: FloatArray) -> FloatArray:
    return 4 * (q - p)


BERNOULLI = Divergence(_bernoulli, _bernoulli_slope, 0.0, 1.0)
GAUSSIAN = Divergence(_gaussian, _gaussian_slope, -inf, inf)


WIDEST = 1.5  # ratio of the ends of a slice of time: 2 * 1.5 = 3 goes before ln(1 + ln N)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The arguments of a threshold: pulls, number of comparisons, and delta."""

    own: int  # pulls of the arm that may be chosen
    rivals: IntArray  # pulls of each it is compared with
    total: int  # pulls of all arms
    comparisons: int
    delta: float


Threshold = Callable[[Comparison], FloatArray]


def mixture(comparison: Comparison) -> FloatArray:
    """ln(4 sqrt(N_a N_b) comparisons / delta), for rewards in [0, 1].

    M = integral of (q / theta)^S ((1 - q) / (1 - theta))^(N - S) over the Beta(1/2, 1/2)
    distribution of q, S the sum of N rewards (Krichevsky, Trofimov), and
    exp(N d(S / N, theta)) <= 2 sqrt(N) M:

    - Each integrand is exp(a S) / (1 - theta + theta e^a)^N for some a: a supermartingale for
      rewards in [0, 1] too.
    - ln M - N d = c(S) + c(N - S) + a function of N, with c(s) = ln Gamma(s + 1/2) - s ln s, which
      is concave as trigamma(s + 1/2) < 1 / s. So it is least at S = 0 or N, where it is
      ln(Gamma(N + 1/2) / (sqrt(pi) Gamma(N + 1))) >= -ln(2 sqrt N), with equality at N = 1.

    Garivier, Kaufmann (2016), Theorem 10, has 2 t >= 4 sqrt(N_a N_b) in its place, for 0 and 1."""
    sizes = 4 * np.sqrt(float(comparison.own) * comparison.rivals)
    threshold: FloatArray = np.log(sizes * comparison.comparisons / comparison.delta)
    return threshold


def iterated_logarithm(comparison: Comparison) -> FloatArray:
    """3 ln(1 + ln N_a) + 3 ln(1 + ln N_b) + 2 C_exp(ln(comparisons / delta) / 2), for all rewards.

    Kaufmann, Koolen (2021), the inequality for exponential families, with two arms. Its proof:

    - For z > 1 and a level v take in the slice z^(i-1) <= N < z^i the tilting a whose mean mu has
      z^(i-1) d(mu, theta) = v. There N d(mean, theta) >= z v implies exp(a S - N phi(a)) >= e^v on
      the side of mu. Mix both sides and all slices, i with weight 1 / (zeta(2) i^2) and level v = y
      + ln(2 zeta(2) i^2): a supermartingale W_y that begins at 1 and is at least e^y as soon as
      Y := N d(mean, theta) / z - ln(2 zeta(2) i^2) >= y.
    - e^(b Y) <= 1 + integral of b e^(b y) e^-y W_y dy over y > 0, which begins at 1 / (1 - b), for
      0 < b < 1. So Y_a + Y_b exceeds 2 h^-1(1 + x / 2) with probability e^-x at most (`c_exp`).
    - i <= 1 + ln N / ln z <= (1 + ln N) / ln z, and 2 z <= 3.

    Only exp(a S - N phi(a)) must be a supermartingale, which rewards in [0, 1] and sub-Gaussian
    ones grant. In the long run it is the least of all, but it begins far above `mixture`."""
    growth = 3 * np.log1p(np.log(float(comparison.own))) + 3 * np.log1p(np.log(comparison.rivals))
    threshold: FloatArray = growth + 2 * c_exp(log(comparison.comparisons / comparison.delta) / 2)
    return threshold


def customary(comparison: Comparison) -> FloatArray:
    """ln((1 + ln t) / delta), without a proof: from experiments of Garivier, Kaufmann (2016)."""
    return np.full(comparison.rivals.size, log((1 + log(comparison.total)) / comparison.delta))


def c_exp(x: float) -> float:
    """2 h~((h^-1(1 + x) + ln(2 zeta(2))) / 2) with h(u) = u - ln u.

    h^-1(1 + x) is the least of (x - ln(1 - b)) / b over 0 < b < 1 (Cramer, Chernoff), and h~(y) the
    least of z (y - ln ln z) over 1 < z <= 3/2."""
    return 2 * _h_tilde((_h_inverse(1 + x) + log(pi**2 / 3)) / 2)


def _h_tilde(y: float) -> float:
    least = 1 / log(WIDEST)  # of 1 / ln z
    if y >= least - log(least):
        u = _h_inverse(y)  # = 1 / ln z
        return exp(1 / u) * u
    return WIDEST * (y - log(log(WIDEST)))


def _h_inverse(x: float) -> float:
    """The u >= 1 with u - ln u = x."""
    return float(-lambertw(-exp(-x), -1).real)


TABLE_POINTS = 64  # of x in the table of every arm; the proportions come out right to about 1 %
PROPORTION_HALVINGS = 30  # of the range of y


def best_proportions(
    divergence: Divergence, own: float, rivals: FloatArray, epsilon: float
) -> tuple[float, FloatArray]:
    """The share of the best arm, of mean `own`, and those of the others; they add up to 1.

    No guarantee rests on them, so they are read from a table: x_b runs from mean_b - epsilon up to
    mean_a, and gives r_b, g_b and the ratio of divergences in closed form, each monotone."""
    ratios, heights, sums = _table(
        divergence, own, rivals, epsilon
    )  # each (rivals, TABLE_POINTS + 1)
    low, high = float(heights[0, 0]), float(heights[:, -1].min())
    for _ in range(PROPORTION_HALVINGS):
        y = (low + high) / 2
        if _at(y, heights, sums).sum() < 1:  # Theorem 5
            low = y
        else:
            high = y
    relative = _at(low, heights, ratios)  # w_b / w_a
    total = 1 + relative.sum()
    return float(1 / total), relative / total


def _table(
    divergence: Divergence, own: float, rivals: FloatArray, epsilon: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """r, g and the ratio of divergences at points x from mean_a down, denser at both ends."""
    low = np.maximum(rivals - epsilon, divergence.low)[:, None]
    high = min(own, divergence.high - epsilon)
    steps = np.sin(np.pi / 2 * (np.arange(TABLE_POINTS) + 0.5) / TABLE_POINTS) ** 2
    x = high - steps * (high - low)  # (rivals, TABLE_POINTS)
    mean, rival = np.full_like(x, own), np.broadcast_to(rivals[:, None], x.shape)
    near, far = divergence.between(mean, x), divergence.between(rival, x + epsilon)
    # the x that is least for r has slope 0
    ratios = -divergence.slope(mean, x) / divergence.slope(rival, x + epsilon)
    start = divergence.between(mean[:, :1], np.full((rivals.size, 1), high))  # where r = 0
    zero = np.zeros_like(start)
    return (
        np.hstack([zero, ratios]),
        np.hstack([start, near + ratios * far]),
        np.hstack([zero, near / far]),
    )


def _at(y: float, heights: FloatArray, values: FloatArray) -> FloatArray:
    """Per arm the value where its height is y, by linear interpolation."""
    arms = np.arange(heights.shape[0])
    right = np.clip((heights < y).sum(axis=1), 1, TABLE_POINTS)
    left = right - 1
    below, above = heights[arms, left], heights[arms, right]
    part = np.clip((y - below) / (above - below), 0, 1)
    result: FloatArray = values[arms, left] + part * (values[arms, right] - values[arms, left])
    return result
