"""A bound for a set that was chosen before the rewards, with means that are linear in features.

docs/linear.md, Theorem 1: the radius of the ball does not depend on the number of features."""

import math

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray
from shortlist.certificates.linear.bound import bound_over_ball, fit_of
from shortlist.errors import InvalidInput
from shortlist.features import Features
from shortlist.reward_models import UNIT_SIGMA


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
