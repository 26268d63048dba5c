"""Wealth of bets against "the mean is theta" that win if it is less: e-processes.

Each is a nonnegative supermartingale from 1 at the true mean, however arms are pulled and whenever
one stops. What is returned is a lower bound on its logarithm over a cell [low, high] of values
theta, rounded down."""

import math

import numpy as np
from scipy.special import betainc, betaln, logsumexp, xlog1py, xlogy

from shortlist.arrays import FloatArray
from shortlist.certification.pairs.bets import curvature
from shortlist.confidence import JEFFREYS
from shortlist.rounding import ROUNDED

STRENGTHS = 0.9 * 2.0 ** -np.arange(16)  # (bets,) of bets on the variance
WEIGHTS = 1 / (np.arange(1, 17) * np.arange(2, 18))  # (bets,) they add up to less than 1
ROUNDING = 1e-7  # of the logarithm of an incomplete beta function


def mixture_wealth(pulls: int, total: float, low: FloatArray, high: FloatArray) -> FloatArray:
    """Of a mixture of likelihood ratios L(p) / L(theta) over p below theta, by Jeffreys' prior.

    ln M(theta) - ln P(theta) - ln L(theta), where M(theta) is the integral of L(p) over the prior
    below theta and P(theta) the prior below theta: both grow. It is at least -ln(2S + 1)."""
    lost = pulls - total
    whole = betaln(total + JEFFREYS, lost + JEFFREYS) - betaln(JEFFREYS, JEFFREYS)
    nearest = np.clip(total / pulls, low, high)  # where the likelihood is largest in the cell
    likelihood = xlogy(total, nearest) + xlog1py(lost, -nearest)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.log(betainc(total + JEFFREYS, lost + JEFFREYS, low))
        prior = np.log(betainc(JEFFREYS, JEFFREYS, high))
        wealth = whole + below - prior - likelihood
    rounding = ROUNDED * (abs(whole) + np.abs(np.nan_to_num(likelihood, neginf=0.0))) + ROUNDING
    known = np.nan_to_num(wealth, nan=-np.inf, posinf=np.inf, neginf=-np.inf) - rounding
    result: FloatArray = np.maximum(known, -math.log(2 * total + 1))
    return result


def spread_wealth(
    pulls: int, total: float, squares: float, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Of bets 1 + l (theta - x) of several strengths l: large where rewards vary little.

    y = l (theta - x) is at least -h with h = l (1 - theta), hence ln(1 + y) >= y - curvature(h) y^2
    (`pairs/bets.py`). The sum of y^2 is convex in theta, so it is largest at an end of the cell."""
    strength = STRENGTHS[:, None]
    drift = strength * (pulls * low - total)  # (bets, cells)
    around = [squares - 2 * theta * total + pulls * theta**2 for theta in (low, high)]
    most = np.maximum(0.0, np.maximum(*around)) * (1 + ROUNDING)
    gains = drift - curvature(strength * (1 - low)) * strength**2 * most
    gains -= ROUNDED * (np.abs(drift) + strength * pulls)
    result: FloatArray = logsumexp(gains + np.log(WEIGHTS)[:, None], axis=0)
    return result
