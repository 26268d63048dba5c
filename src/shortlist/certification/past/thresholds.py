"""Thresholds: what the charges of the 2m arms of one swap exceed with a small probability only.

The swaps of m arms each have the share delta w_m / (C(k, m) C(n - k, m)) of delta, w_m ~ 1/m."""

import math
from functools import cache

import numpy as np
from scipy.special import gammainc, gammaincc, gammaln, xlogy

from shortlist.arrays import FloatArray
from shortlist.certification.design import log_swaps
from shortlist.rounding import ROUNDED

LARGEST_SUMMED = 32  # arms on a side of a swap up to which the distribution is summed
LEAST_LOG = -500.0  # logarithm of a probability below which it is bounded by its moments
HALVINGS = 60
ROUNDING = 1e-9  # relative, of the sum
TILTS = np.linspace(0.0, 0.5, 402)[1:-1]  # of the moment generating function
NEGLIGIBLE = 60.0  # standard deviations and more of a Poisson distribution


def log_shares(n_arms: int, k: int, delta: float) -> FloatArray:
    """(M,) Logarithm of the share of delta that every swap of m = 1 ... M arms has."""
    sizes = np.arange(1, min(k, n_arms - k) + 1)
    weights = (1 / sizes) / (1 / sizes).sum()
    result: FloatArray = math.log(delta) + np.log(weights) - log_swaps(n_arms, k) - ROUNDED
    return result


def square_thresholds(log_probabilities: FloatArray, shift: float) -> FloatArray:
    """(M,) What sum (Z_i + shift)^2 of 2m normal variables exceeds with these probabilities."""
    return np.array(
        [_threshold(m, float(log_p), shift) for m, log_p in enumerate(log_probabilities, 1)]
    )


@cache
def _threshold(size: int, log_probability: float, shift: float) -> float:
    high = _by_moments(size, log_probability, shift)
    if size > LARGEST_SUMMED or log_probability < LEAST_LOG:
        return high
    low = 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        exceeded = _log_tail(middle, size, shift) > log_probability
        low, high = (middle, high) if exceeded else (low, middle)
    return high


def _by_moments(size: int, log_probability: float, shift: float) -> float:
    """Chernoff: E exp(s X) = (1 - 2s)^(-m) exp(2m shift^2 s / (1 - 2s)) for X of 2m variables."""
    kept = 1 - 2 * TILTS
    log_moment = -size * np.log(kept) + 2 * size * shift**2 * TILTS / kept
    return float(((log_moment - log_probability) / TILTS).min() * (1 + ROUNDING))


def _log_tail(value: float, size: int, shift: float) -> float:
    """Logarithm of P(X > value): X is chi-square with 2 (m + J) degrees of freedom, J Poisson of
    mean m shift^2.

    Terms beyond the last are at most the Poisson probabilities themselves."""
    mean = size * shift**2
    last = int(mean + NEGLIGIBLE + 12 * math.sqrt(mean) + value)
    count = np.arange(last + 1)
    weights = np.exp(xlogy(count, mean) - mean - gammaln(count + 1))
    tail = float(weights @ gammaincc(size + count, value / 2) + gammainc(last + 1, mean))
    tail *= 1 + ROUNDING
    return math.log(tail) if tail > 0 else -math.inf
