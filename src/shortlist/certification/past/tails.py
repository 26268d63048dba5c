"""p-values for "the mean is at least theta", for a number of pulls that was fixed beforehand.

0/1 rewards: P(Bin(N, theta) <= S), exact. Rewards in [0, 1]: the least of Hoeffding's bound
exp(-N kl(S/N, theta)) and of E(Z - t)+ / (F - t) for some t, where F = N - S and Z is binomial of N
trials with mean 1 - theta (Hoeffding's convex order, then Markov). Both fall in theta."""

import numpy as np
from scipy.special import betainc, xlogy

from shortlist.arrays import FloatArray

ROUNDING = 1e-7  # relative, of the incomplete beta function and of differences of it
LEAST = 1e-290  # p-values below are taken for this one
MOST_SUMMED = 1e6  # pulls up to which differences of the incomplete beta function are exact
OFFSETS = 12  # values of t


def binary_tail(pulls: int, successes: float, theta: FloatArray) -> FloatArray:
    """P(Bin(N, theta) <= S), rounded up."""
    if successes >= pulls:
        return np.ones(theta.size)
    below = betainc(pulls - successes, successes + 1, 1 - theta)
    return _rounded_up(below)


def bounded_tail(pulls: int, total: float, theta: FloatArray) -> FloatArray:
    """Bound on P(S' <= S) for independent rewards in [0, 1] with mean theta."""
    lost = pulls - total
    mean = total / pulls
    divergence = xlogy(mean, mean) - xlogy(mean, theta)
    divergence += xlogy(1 - mean, 1 - mean) - xlogy(1 - mean, 1 - theta)
    divergence = np.where(theta > mean, divergence, 0.0)
    best = np.exp(-pulls * np.maximum(0.0, divergence) * (1 - ROUNDING))
    if pulls <= MOST_SUMMED:
        for start in _starts(pulls, lost):
            best = np.minimum(best, _excess(pulls, lost, int(start), 1 - theta))
    return _rounded_up(best)


def _starts(pulls: int, lost: float) -> FloatArray:
    """Values of t below F: 1 and a few standard deviations."""
    offsets = np.geomspace(0.5, 2 * np.sqrt(pulls) + 1, OFFSETS)
    starts = np.unique(np.ceil(lost - offsets))
    result: FloatArray = starts[(starts >= 1) & (starts < lost) & (starts < pulls)]
    return result


def _excess(pulls: int, lost: float, start: int, mean: FloatArray) -> FloatArray:
    """E(Z - t)+ / (F - t), and E(Z - t)+ = N mean P(Z' >= t) - t P(Z > t), Z' of one trial less."""
    above = betainc(start, pulls - start, mean)
    beyond = betainc(start + 1, pulls - start, mean)
    gained = pulls * mean * above
    excess = np.maximum(gained - start * beyond, 0.0) + ROUNDING * gained
    result: FloatArray = excess / (lost - start)
    return result


def _rounded_up(tails: FloatArray) -> FloatArray:
    return np.clip(tails * (1 + ROUNDING), LEAST, 1.0)
