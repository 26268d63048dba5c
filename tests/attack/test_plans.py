"""Plans under attack: beliefs that are wrong, boundaries in the wrong place, means chosen to hurt.

delta = .3, so that failures would be seen. A try lets all arms of a declared look stop by the exact
law of their plans, then takes the worst set that the theorem allows, at every boundary that is
tried. The failures are held against an exact binomial bound."""

import os

import numpy as np
import pytest
from scipy.stats import binom

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.plans.beliefs import Belief
from shortlist.certification.plans.look import Look
from shortlist.certification.plans.losses import FREE, IN, Stakes
from shortlist.certification.plans.plan import Plan

DELTA = 0.3
EPSILON = 0.25
SCALE = int(os.environ.get("SHORTLIST_ATTACK_SCALE", "1"))
TRIES = 2500 * SCALE  # of each kind of means in each case: 75,000 in all
BOUNDARIES = 3  # of one look that are tried at once
CASES = [(k, place) for k in (1, 4, 11) for place in ("true", "low", "high")] + [(6, "edge")]


def declared(k: int, place: str, rng: np.random.Generator) -> Look:
    """A look whose pilot saw other means than there are."""
    seen = {"true": 0.5, "low": 0.3, "high": 0.7, "edge": 0.06}[place]
    pulls = np.full(12, 8)
    successes = rng.binomial(pulls, np.clip(seen + np.linspace(0.3, -0.3, 12), 0.01, 0.99))
    belief = Belief(pulls, successes.astype(np.float64), k, seen)
    return Look(belief, EPSILON * k, DELTA)


def hurtful(k: int, boundary: float, kind: int, rng: np.random.Generator) -> FloatArray:
    """Means next to the boundary, on the spread that is just too large to lose, or anywhere."""
    if kind == 0:
        gaps = EPSILON * k / min(k, 12 - k) * np.where(np.arange(12) < k, 1, -1) / 2
    elif kind == 1:
        gaps = np.where(np.arange(12) < k, 0.02, -0.02) * rng.uniform(0, 2, 12)
    else:
        return np.asarray(rng.uniform(0, 1, 12), dtype=np.float64)
    means = boundary + 1.05 * gaps
    return np.asarray(rng.permutation(np.clip(means, 0.0, 1.0)), dtype=np.float64)


def stopped(look: Look, means: FloatArray, rng: np.random.Generator) -> IntArray:
    """Number of the state in which every arm stops: (tries, arms); -1 beyond all of them."""
    ended = np.full((TRIES, means.size), -1)
    for plan in look.draft.plans:
        for arm in plan.policy.group.arms:
            mean = np.clip(means[[arm]], 1e-12, 1 - 1e-12)
            law = np.exp(plan.states.log_probability(mean))[0]
            cumulated = np.cumsum(law)
            assert abs(cumulated[-1] - 1) < 1e-6
            drawn = np.searchsorted(cumulated, rng.random(TRIES) * cumulated[-1])
            ended[:, arm] = np.minimum(drawn, law.size - 1)
    return ended


def settled(look: Look, ended: IntArray, band: int, j: int) -> tuple[IntArray, FloatArray]:
    """Labels, (tries, arms), and bounds, (tries,), at boundary number j."""
    boundary = float(look.boundaries.values[j])
    stakes = Stakes(boundary, look.strength, look.reach)
    labels = np.zeros(ended.shape, dtype=np.int64)
    bounds = np.full(len(ended), look.boundaries.thresholds[band, j] / look.strength)
    for plan in look.draft.plans:
        here: Plan = plan
        of_states = here.labels(boundary - look.draft.shift, band)
        charges = here.charges(of_states, stakes, 1e-3)
        arms = here.policy.group.arms
        labels[:, arms] = of_states[ended[:, arms]]
        bounds += charges[ended[:, arms]].sum(axis=1)
    return labels, bounds


def wrongly_claimed(means: FloatArray, labels: IntArray, bounds: FloatArray, k: int) -> BoolArray:
    """Whether the worst set that is allowed loses more than its bound, which is within reach."""
    inside = (labels == IN).sum(axis=1)
    free = (labels == FREE).sum(axis=1)
    allowed = (inside <= k) & (k <= inside + free) & (bounds <= EPSILON * k)
    order = np.where(labels == IN, -2.0, np.where(labels == FREE, means, 2.0))  # worst free first
    worst = np.sort(np.where(np.argsort(np.argsort(order, axis=1), axis=1) < k, means, np.nan))
    lost = np.sort(means)[-k:].sum() - np.nansum(worst, axis=1)
    result: BoolArray = allowed & (lost > bounds + 1e-9)
    return result


@pytest.mark.parametrize(("k", "place"), CASES)
def test_no_attack_makes_plans_fail_more_often_than_delta(k: int, place: str) -> None:
    rng = np.random.default_rng([k, len(place)])
    look = declared(k, place, rng)
    middle = look.boundaries.values.size // 2
    tried = np.linspace(middle - 6, middle + 6, BOUNDARIES).astype(np.int64)
    for kind in range(3):
        boundary = float(look.boundaries.values[rng.choice(tried)])
        means = hurtful(k, boundary, kind, rng)
        ended = stopped(look, means, rng)
        failed = np.zeros(TRIES, dtype=np.bool_)
        for number, j in enumerate(tried):
            failed |= wrongly_claimed(means, *settled(look, ended, number % 3, int(j)), k)

        assert failed.sum() <= binom.ppf(1 - 1e-6, TRIES, DELTA)


def test_the_attack_would_see_charges_that_are_too_small() -> None:
    k = 4
    rng = np.random.default_rng([k, len("low")])
    look = declared(k, "low", rng)
    middle = look.boundaries.values.size // 2
    means = hurtful(k, float(look.boundaries.values[middle]), 0, rng)
    labels, bounds = settled(look, stopped(look, means, rng), 1, middle)

    uncharged = wrongly_claimed(means, labels, np.full(bounds.size, 0.01), k)

    assert uncharged.mean() > DELTA
