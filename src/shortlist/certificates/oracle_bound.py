"""A bound for any family of sets, from fresh rewards and the family's best set for given weights.

Neither boundary nor strength is declared: docs/constraints.md, Theorem 1."""

import math

import numpy as np

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray
from shortlist.constraints import Constraint, best_set
from shortlist.reward_models import UNIT_SIGMA


def oracle_bound(
    chosen: BoolArray, pulls: IntArray, means: FloatArray, delta: float, constraint: Constraint
) -> float:
    """The bound on k times the regret of `chosen`; means are on the unit scale.

    Every strength gives a valid bound, also one that is chosen after the rewards were seen. As a
    function of the strength the bound is convex, and it falls up to the strength that would be
    best if all arms could be exchanged: from there on strengths grow until the bound does."""
    noise = UNIT_SIGMA**2 / (2 * pulls)  # (n,): what a unit of strength charges an arm
    threshold = -math.log(delta)
    strength = math.sqrt(threshold / float(noise.sum()))
    least = math.inf
    # it ends: charges grow with the strength, and so does what rounding adds
    while (
        bound := _gain(chosen, means, strength * noise, constraint) + threshold / strength
    ) < least:
        least = bound
        strength *= 2**0.25
    return least


def _gain(
    chosen: BoolArray, means: FloatArray, charges: FloatArray, constraint: Constraint
) -> float:
    """How much more than `chosen` the best set has if all charges count for it, rounded up."""
    weights = np.where(chosen, means - charges, means + charges)
    k = int(chosen.sum())
    best = best_set(constraint, weights, k)
    moved = math.fsum(weights[best & ~chosen]) - math.fsum(weights[chosen & ~best])
    return moved + ROUNDED * k * float(np.abs(weights).max())
