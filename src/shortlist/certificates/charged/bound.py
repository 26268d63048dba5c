"""Charges of arms with unknown variances (docs/normal.md, Theorem 4).

Exploration fixes the choice T, the boundary b, the strength l, and for every arm N >= 2 fresh pulls
and a slope m <= l. y = +-(x - b) is the evidence of the fresh mean x against the place of the arm,
S^2 the variance of the fresh pulls, and cap >= sigma. With R = K epsilon the charge is

    h = max(0, m y + (l - m) R + A m^2 S^2 / (2 N)) / l,
    A = (e^z - 1) / z,   z = m^2 cap^2 / (N (N - 1)).

For normal rewards E exp(-l h) <= exp(-l min(g, R)), g the distance of the arm's mean on the wrong
side of b. So sum h + ln(1 / delta) / l, if at most R, bounds K R_T, but for probability delta."""

import numpy as np

from shortlist.arrays import ROUNDED, FloatArray, IntArray

MOST_EXPONENT = 50.0  # z above which a charge is infinite


def caps_of(squares: FloatArray, first: int, delta: float) -> FloatArray:
    """Upper bounds on the deviations of all arms, right together with probability 1 - delta.

    `squares` are the squared deviations of the first pulls of every arm from their mean, added
    up."""
    from scipy.stats import chi2  # takes long to load

    quantile = float(chi2.ppf(delta / squares.size, first - 1))
    caps: FloatArray = np.sqrt(squares / quantile) * (1 + ROUNDED)
    return caps


def inflation(slopes: FloatArray, times: FloatArray, caps: FloatArray) -> FloatArray:
    """A, by which the variance that was seen is charged; infinite where it is not bounded."""
    z = slopes**2 * caps**2 / (times * (times - 1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        # A is (e^z - 1) / z >= 1, rounded up
        ratio = np.where(z > 1e-8, np.expm1(z) / np.maximum(z, 1e-8), 1 + z)
    return np.where(z <= MOST_EXPONENT, ratio * (1 + ROUNDED), np.inf)


def charges(
    evidence: FloatArray,
    variances: FloatArray,
    times: IntArray,
    slopes: FloatArray,
    strength: float,
    caps: FloatArray,
    reach: float,
) -> FloatArray:
    """The charge of every arm: (arms,)."""
    pulls = times.astype(np.float64)
    charged = inflation(slopes, pulls, caps) * slopes**2 * variances / (2 * pulls)
    total = slopes * evidence + (strength - slopes) * reach + charged
    rounded = ROUNDED * (np.abs(slopes * evidence) + strength * reach + charged)
    result: FloatArray = np.maximum(0.0, total + rounded) / strength
    return result


def charged_bound(each: FloatArray, strength: float, delta: float) -> float:
    """The bound on K R_T that these charges prove with probability 1 - delta, if it is at most the
    reach."""
    return float(each.sum() + np.log(1 / delta) / strength) * (1 + ROUNDED)
