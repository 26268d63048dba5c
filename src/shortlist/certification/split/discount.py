"""The discount for small variance: what rewards in [0, 1] that are not coin tosses take off.

A charge rests on the bet that multiplies by 1 - u X at every reward X. Count, mean x and variance v
of N rewards do not tell its product, but a bound on it:

    sum of ln(1 - u X)  >=  -slope x + discount,        u = 1 - exp(-slope / N),
    discount = N w (ln(1 - u m) + (slope / N) m),  m = x - v / (1 - x),  w = (1-x)^2 / ((1-x)^2 + v)

which is exact where the rewards are m, in a share w of the pulls, and 1. The discount is 0 for 0/1
rewards and never less; the larger the variance, the smaller it is. docs/certificate.md has the
proof."""

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certification.split.closed_offsets import TINY, log_shrink
from shortlist.rounding import ROUNDED

STEEPEST = 8.0  # tilt up to which a discount is given: beyond, rounding is worth more
BLURRED = 2.0**-33  # added to a variance, which is a difference of rounded numbers


def discount(
    pulls: FloatArray, mean: FloatArray, variance: FloatArray, slope: FloatArray
) -> FloatArray:
    """What rewards of this mean and variance take off slope * mean; for arms outside the set."""
    mean = np.clip(mean, 0, 1)
    tilt = np.minimum(slope / pulls, STEEPEST)
    rest = np.maximum(1 - mean, TINY)
    variance = np.clip(variance, 0, mean * rest)  # no rewards have more
    point = np.maximum(mean - variance / rest, 0)
    share = rest / (rest + variance / rest)
    gained = np.maximum(log_shrink(point, tilt) + tilt * point, 0)
    return np.where(slope <= STEEPEST * pulls, pulls * share * gained, 0.0)


def discount_error(slope: FloatArray, pulls: FloatArray) -> FloatArray:
    """What an error of ROUNDED in the mean and in the second moment changes the bound by, at most.

    The bound is linear in both, with the coefficients of a quadratic that touches ln(1 - u X): no
    more than its derivatives at 1, e^tilt - 1 and its square."""
    growth = np.expm1(np.minimum(slope / pulls, STEEPEST))
    error: FloatArray = ROUNDED * pulls * 4 * growth * (1 + growth)
    return error
