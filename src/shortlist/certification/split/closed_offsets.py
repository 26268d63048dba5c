"""Least offsets in closed form, for rewards without a range and for rewards in [0, 1].

All of them are for arms outside the set; an arm inside is the mirror image, 1 - x and 1 - b."""

import numpy as np

from shortlist.arrays import FloatArray

# stands in for what is too small for a float, so that a logarithm stays a number
TINY = 1e-300


def subgaussian_offset(
    pulls: FloatArray, strength: float, reach: FloatArray | float, slope: FloatArray
) -> FloatArray:
    """The least offset for rewards with sigma = 1/2: slope^2 / 8N + (strength - slope) reach.

    The first term is the logarithm of the moment E[exp(-slope (x - m))]; the second is what a slope
    below the strength falls short of at the farthest mean."""
    with np.errstate(invalid="ignore", over="ignore"):  # 0 times an infinite reach
        shortfall = np.where(slope < strength, (strength - slope) * reach, 0.0)
        offset: FloatArray = slope**2 / (8 * pulls) + shortfall
    return offset


def bounded_offset(
    pulls: FloatArray,
    boundary: FloatArray | float,
    low: FloatArray | float,
    strength: float,
    reach: FloatArray | float,
    slope: FloatArray,
) -> FloatArray:
    """The largest N ln(1 - m u) + slope b + strength (m - b) for m in [low, boundary + reach].

    Rewards in [0, 1] have E[exp(-slope x)] <= (1 - m u)^N at mean m, with u = 1 - exp(-slope/N),
    because exp(-tilt x) lies below its chord on [0, 1]. The expression is concave in m.
    It is off by ROUNDED * strength at most (docs/certificate.md, "Rounding")."""
    tilt = slope / pulls
    u = -np.expm1(-tilt)
    stationary = 1 / u - pulls / strength
    worst = np.minimum(np.maximum(stationary, low), boundary + reach)
    log_moment = pulls * log_shrink(worst, tilt)
    # Where the tilt is large the worst mean may be nearer to 1 than floats tell: 1 - m u tells.
    steep = tilt >= 1
    rest = np.minimum(
        np.maximum(u * pulls / strength, _rest(boundary + reach, tilt)), _rest(low, tilt)
    )
    worst = np.where(steep, (1 - rest) / u, worst)
    log_moment = np.where(steep, pulls * _log_rest(rest, tilt), log_moment)
    offset: FloatArray = log_moment + slope * boundary + strength * (worst - boundary)
    return offset


def log_shrink(mean: FloatArray, tilt: FloatArray) -> FloatArray:
    """ln(1 - m (1 - exp(-tilt))), without cancellation, be the tilt small or large.

    It is the logarithm of E[exp(-tilt X)] for one 0/1 reward X of mean m."""
    near = np.log1p(mean * np.expm1(-np.minimum(tilt, 1)))
    return np.where(tilt < 1, near, _log_rest(_rest(mean, tilt), tilt))


def _rest(mean: FloatArray | float, tilt: FloatArray) -> FloatArray:
    """1 - m (1 - exp(-tilt)), for large tilts."""
    rest: FloatArray = (1 - mean) + mean * np.exp(-tilt)
    return rest


def _log_rest(rest: FloatArray, tilt: FloatArray) -> FloatArray:
    """The logarithm of `_rest`: that underflows at a mean of 1 only, where it is -tilt."""
    return np.where(rest > TINY, np.log(np.maximum(rest, TINY)), -tilt)
