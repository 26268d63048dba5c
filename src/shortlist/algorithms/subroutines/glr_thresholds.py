"""How large a generalised likelihood ratio must be before it says something, at any time.

A proven threshold is crossed by N_a d(mean_a, theta_a) + N_b d(mean_b, theta_b), for the true means
theta, with probability at most delta / comparisons in all time, however the pulls were chosen: if
M_a and M_b are nonnegative supermartingales, each in the rewards of its arm, then so is M_a M_b, as
a pull is of one arm. Ville's inequality bounds it for all t at once."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log, pi

import numpy as np
from scipy.special import lambertw

from shortlist.arrays import FloatArray, IntArray

WIDEST = 1.5  # ratio of the ends of a slice of time: 2 * 1.5 = 3 goes before ln(1 + ln N)


@dataclass(frozen=True, slots=True)
class Look:
    """What a threshold depends on: pulls, how many comparisons could go wrong, and delta."""

    own: int  # pulls of the arm that may be chosen
    rivals: IntArray  # pulls of each it is compared with
    total: int  # pulls of all arms
    comparisons: int
    delta: float


Threshold = Callable[[Look], FloatArray]


def mixture(look: Look) -> FloatArray:
    """ln(4 sqrt(N_a N_b) comparisons / delta), for rewards in [0, 1].

    M = integral of (q / theta)^S ((1 - q) / (1 - theta))^(N - S) over the Beta(1/2, 1/2) law of q,
    S the sum of N rewards (Krichevsky, Trofimov), and exp(N d(S / N, theta)) <= 2 sqrt(N) M:

    - Each integrand is exp(a S) / (1 - theta + theta e^a)^N for some a: a supermartingale for
      rewards in [0, 1] too.
    - ln M - N d = c(S) + c(N - S) + a function of N, with c(s) = ln Gamma(s + 1/2) - s ln s, which
      is concave as trigamma(s + 1/2) < 1 / s. So it is least at S = 0 or N, where it is
      ln(Gamma(N + 1/2) / (sqrt(pi) Gamma(N + 1))) >= -ln(2 sqrt N), with equality at N = 1.

    Garivier, Kaufmann (2016), Theorem 10, has 2 t >= 4 sqrt(N_a N_b) in its place, for 0 and 1."""
    sizes = 4 * np.sqrt(float(look.own) * look.rivals)
    threshold: FloatArray = np.log(sizes * look.comparisons / look.delta)
    return threshold


def iterated_logarithm(look: Look) -> FloatArray:
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
    growth = 3 * np.log1p(np.log(float(look.own))) + 3 * np.log1p(np.log(look.rivals))
    threshold: FloatArray = growth + 2 * c_exp(log(look.comparisons / look.delta) / 2)
    return threshold


def customary(look: Look) -> FloatArray:
    """ln((1 + ln t) / delta), without a proof: from experiments of Garivier, Kaufmann (2016)."""
    return np.full(look.rivals.size, log((1 + log(look.total)) / look.delta))


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
