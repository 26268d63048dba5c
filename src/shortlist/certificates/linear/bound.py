"""What the proof of the linear certificate rests on (docs/linear.md).

For pulls of a fixed design and any set T, with probability at least 1 - delta

    K R_T <= max {Reg_T(v): |v - w| <= radius} + 2 misfit min(K, n - K)

where w are the fitted coefficients and Reg_T(v) is the regret of T if the coefficients were v. The
maximum is bounded from above by parabolas, one per arm, and the dual of their sum."""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.features import Features
from shortlist.reward_models import UNIT_SIGMA

# These cost pulls or time; no bound rests on them.
SHIFTS = (-0.25, 0.0, 0.25)  # of the boundary, in typical errors of a mean
SPREADS = (0.8, 1.0, 1.2, 1.4)  # errors to reckon with, in their root mean square over directions
MULTIPLIERS = 120  # that are tried

UNIT_ROUNDOFF = 2.0**-53
WORST_CONDITION = 1e6  # of a fit: beyond, rounding errors would matter
BISECTIONS = 200


def noise_radius(dimension: int, delta: float) -> float:
    """Length of the error of the coefficients that is exceeded with probability delta at most.

    Its square is the root r > d of r - d - d ln(r / d) = 2 ln(1 / delta), rounded up (Theorem 2).
    """
    target = -2 * math.log(delta)
    low = float(dimension)
    high = dimension + 2 * math.sqrt(dimension * target) + 2 * target  # Hsu, Kakade and Zhang
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        excess = middle - dimension - dimension * math.log(middle / dimension)
        low, high = (middle, high) if excess < target else (low, middle)
    return math.sqrt(high) * (1 + ROUNDED)


@dataclass(frozen=True, eq=False, slots=True)
class Fit:
    """Least squares: coefficients of the features, without the level that all means share."""

    coefficients: FloatArray  # (d,)
    factor: FloatArray  # (d, d): upper triangular, its square is the information on differences
    pulls: int
    blur: float  # rounding error of the coefficients, in lengths of the ball
    slack: float  # relative rounding error of a length

    def radius(self, delta: float, misfit: float) -> float:
        """Radius of the ball that has the true coefficients, but for delta (Theorems 2 and 3)."""
        noise = noise_radius(self.coefficients.size, delta)
        bias = misfit * math.sqrt(self.pulls) / UNIT_SIGMA
        return (noise + bias) * (1 + self.slack) + self.blur


def fit_of(basis: FloatArray, pulls: IntArray, means: FloatArray) -> Fit | None:
    """The fit to the mean rewards of a fixed design; None if it does not settle the coefficients.

    `means` of arms that were not pulled are not read. The weighted rows are centred, which removes
    the level, and factored by QR: the information is never squared."""
    seen = pulls > 0
    rows, counts = basis[seen], pulls[seen].astype(np.float64)
    total = float(counts.sum())
    if len(rows) <= basis.shape[1]:
        return None
    weights = np.sqrt(counts) / UNIT_SIGMA
    observed = means[seen] - counts @ means[seen] / total
    target = weights * observed
    orthogonal, factor = np.linalg.qr(weights[:, None] * (rows - counts @ rows / total))
    condition = float(np.linalg.cond(factor))
    if not condition <= WORST_CONDITION:
        return None
    error = 4 * UNIT_ROUNDOFF * rows.size * condition  # of a backward stable factorisation
    length = float(np.linalg.norm(weights) * np.abs(means[seen]).max())  # before it was centred
    return Fit(
        np.linalg.solve(factor, orthogonal.T @ target),
        factor,
        int(pulls.sum()),
        blur=error * length,
        slack=error,
    )


@dataclass(frozen=True, eq=False, slots=True)
class BallBound:
    """A bound on K R_T over a ball, and the curvature of its parabolas: (d, d)."""

    total: float
    curvature: FloatArray


def bound_over_ball(
    basis: FloatArray,
    chosen: BoolArray,
    coefficients: FloatArray,
    factor: FloatArray,
    radius: float,
) -> BallBound:
    """An upper bound on max {Reg_T(v): |factor (v - w)| <= radius}, rounded up.

    Centre, boundary, parabolas and multiplier may be chosen after everything was seen, since each
    gives an upper bound on the same maximum (Lemmas 1 and 2)."""
    values = basis @ coefficients
    sides = np.where(chosen, -1.0, 1.0)
    middle = float(values[chosen].min() + values[~chosen].max()) / 2
    whitened = np.asarray(np.linalg.solve(factor.T, basis.T).T, dtype=np.float64)  # (n, d)
    typical = radius * math.sqrt(float((whitened**2).mean()))
    near = np.exp(-(((values - middle) / typical) ** 2) / 2) + 1e-9
    near /= near.sum()
    moved = whitened - near @ whitened  # (n, d): a step y changes mean i by moved_i y
    centred = values - near @ values
    level = middle - float(near @ values)
    reach = radius * np.linalg.norm(moved, axis=1)  # (n,) R_i of Lemma 2
    best: BallBound | None = None
    for shift in SHIFTS:
        offsets = sides * (centred - level - shift * typical)  # (n,) a_i of Lemma 1
        live = np.flatnonzero(offsets > -reach * (1 + ROUNDED) - ROUNDED)  # others lose nothing
        for spread in SPREADS:
            usual = spread * reach[live] / math.sqrt(coefficients.size)
            arms = _ArmParabolas.of(offsets[live], reach[live] * (1 + ROUNDED), usual)
            found = _largest(arms, sides[live], moved[live], radius)
            if best is None or found < best.total:
                best = BallBound(found, (moved[live] * arms.curve[:, None]).T @ moved[live])
    assert best is not None
    return best


@dataclass(frozen=True, eq=False, slots=True)
class _ArmParabolas:
    """(a + r)+ <= constant + slope r + curve r^2 for |r| <= R, per arm (Lemma 2)."""

    constant: FloatArray
    slope: FloatArray
    curve: FloatArray
    size: FloatArray  # |a| + R: the numbers that rounding errors are relative to

    @classmethod
    def of(cls, a: FloatArray, reach: FloatArray, usual: FloatArray) -> "_ArmParabolas":
        """Of two kinds the one that is smaller where errors are as `usual`."""
        far = np.abs(a)
        t = np.hypot(a, usual) + 1e-300  # (i): (r + a + t)^2 / 4t
        cut = np.maximum(reach - far, 0) / np.maximum(reach, 1e-150) ** 2
        straight = (reach < 2 * far) & (cut * usual**2 < (t - far) / 2)  # (ii), with R < 2 |a|
        return cls(
            np.where(straight, np.maximum(a, 0), (a + t) ** 2 / (4 * t)),
            np.where(straight, (a > 0).astype(np.float64), (a + t) / (2 * t)),
            np.where(straight, cut, 0.25 / t),
            far + reach,
        )


def _largest(arms: _ArmParabolas, sides: FloatArray, moved: FloatArray, radius: float) -> float:
    """The largest sum of the parabolas over the ball, by its dual, rounded up.

    Every multiplier above the largest eigenvalue gives an upper bound (docs/linear.md)."""
    quadratic = (moved * arms.curve[:, None]).T @ moved
    linear = (sides * arms.slope) @ moved
    eigenvalues, vectors = np.linalg.eigh(quadratic)
    squares = (vectors.T @ linear) ** 2 / 4
    top = max(float(eigenvalues[-1]), 0.0)
    unit = top + math.sqrt(float(squares.sum())) / radius + 1e-300
    above = np.geomspace(1e-5, 1e2, MULTIPLIERS)[:, None] * unit
    dual = radius**2 * (top + above[:, 0]) + (squares / (top + above - eigenvalues)).sum(1)
    rounded = len(moved) * float(arms.size.sum()) + len(quadratic) * top * radius**2
    return float(arms.constant.sum() + dual.min()) * (1 + ROUNDED) + ROUNDED * rounded


def fixed_set_bound(
    features: Features, chosen: BoolArray, pulls: IntArray, means: FloatArray, delta: float
) -> float:
    """The bound on k times the regret of `chosen`, on the unit scale.

    `means` of arms without pulls are not read."""
    fit = fit_of(features.basis, pulls, means)
    if fit is None:
        raise InvalidInput(
            f"the pulls are of {int((pulls > 0).sum())} arms, but do not settle the coefficients of"
            f" {features.rank} features: pull more arms that differ"
        )
    spread = max(1.0, 2 * float(abs(features.basis @ fit.coefficients).max()))
    misfit = (features.misfit or 0.0) + features.rounding * spread
    noise = math.sqrt(-2 * math.log(delta)) * (1 + ROUNDED)
    bias = misfit * math.sqrt(fit.pulls) / UNIT_SIGMA  # Theorem 3
    radius = (noise + bias) * (1 + fit.slack) + fit.blur
    total = bound_over_ball(features.basis, chosen, fit.coefficients, fit.factor, radius).total
    k = int(chosen.sum())
    return total + 2 * misfit * min(k, chosen.size - k)
