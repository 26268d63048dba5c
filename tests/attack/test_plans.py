"""Plans under attack: beliefs that are wrong, boundaries in the wrong place, means chosen to hurt.

delta = .3, and all of it for one boundary of one stage, so that failures are seen. A try lets all
arms of a declared stage stop by the exact law of their plans. It fails if what can be lost,
whatever set the theorem allows, reaches the bound: more often than a claim is wrong, since that
needs a bound within reach as well. Failures are held against an exact binomial bound."""

import os

import numpy as np
import pytest
from scipy.stats import binom

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Belief
from shortlist.certification.plans.look import Look
from shortlist.certification.plans.losses import Stakes, wrong
from shortlist.certification.plans.plan import Plan
from shortlist.certification.plans.sketches import sketched
from shortlist.certification.plans.stage import Stage

DELTA = 0.3
EPSILON = 0.25
ARMS = 12
SCALE = int(os.environ.get("SHORTLIST_ATTACK_SCALE", "1"))
TRIES = 1500 * SCALE  # of each kind of means in each case: 60,000 in all
CASES = [(k, place) for k in (1, 4, 11) for place in ("true", "low", "high")] + [(6, "edge")]
WAYS = (0, 3, 6, 8)  # to label, one for every kind
KINDS = ("least favourable", "between grid points", "just too far apart", "anywhere")


@pytest.fixture(autouse=True)
def one_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of delta for one stage, so that it fails as often as it may."""
    monkeypatch.setattr(tuning, "STAGES", ((1.0, 1.0),))


def declared(k: int, place: str, rng: np.random.Generator) -> Stage:
    """A stage whose pilot saw other means than there are."""
    seen = {"true": 0.5, "low": 0.3, "high": 0.7, "edge": 0.06}[place]
    pulls = np.full(ARMS, 8)
    successes = rng.binomial(pulls, np.clip(seen + np.linspace(0.3, -0.3, ARMS), 0.01, 0.99))
    belief = Belief(pulls, successes.astype(np.float64), k, seen)
    stakes = sketched(belief, EPSILON * k, DELTA).stakes
    return Look(belief, stakes, DELTA).stage(0)


def moments(plan: Plan, labels: IntArray, charges: FloatArray, stakes: Stakes) -> FloatArray:
    """Exponential moments at 999 means, most of them between those that charges were made at."""
    means = np.linspace(0.001, 0.999, 999)
    lost = losses(means, labels, stakes)
    law = np.exp(plan.states.log_probability(means))
    factors = np.exp(stakes.strength * (lost - charges))
    result: FloatArray = np.einsum("ms,ms->m", law, factors)
    return result


def losses(means: FloatArray, labels: IntArray, stakes: Stakes) -> FloatArray:
    """L(state, mean): (means, states)."""
    above = (means > stakes.boundary)[:, None]
    lost = np.where(above, wrong(labels, above=True), wrong(labels, above=False))
    result: FloatArray = stakes.exponents(means)[:, None] / stakes.strength * lost
    return result


def hurtful(kind: str, k: int, worst: FloatArray, b: float, rng: np.random.Generator) -> FloatArray:
    """Means of all arms; `worst` has the least favourable ones, which come on a grid."""
    if kind == "least favourable":
        return worst
    if kind == "between grid points":
        return np.clip(worst + rng.uniform(-0.0005, 0.0005, ARMS), 0.0, 1.0)
    if kind == "just too far apart":
        side = np.where(np.arange(ARMS) < k, 1, -1)
        far = 1.05 * EPSILON * k / min(k, ARMS - k) / 2
        return np.asarray(rng.permutation(np.clip(b + far * side, 0.0, 1.0)), dtype=np.float64)
    return np.asarray(rng.uniform(0, 1, ARMS), dtype=np.float64)


def excess(stage: Stage, way: int, j: int, kind: str, k: int, cheaper: float = 1.0) -> FloatArray:
    """What can be lost less the bound, in units of 1 / strength, of every try: (tries,)."""
    rng = np.random.default_rng([k, j, way, KINDS.index(kind)])
    stakes = Stakes(float(stage.boundaries.values[j]), stage.strength, stage.reach)
    worst = np.zeros(ARMS)
    settled = []
    for plan in stage.plans:
        changing = stakes.boundary - stage.shift + float(stage.boundaries.asides[way])
        labels = plan.labels(changing, float(stage.boundaries.bands[way]))
        charges = plan.charges(labels, stakes, 1e-3)
        settled.append((plan, labels, charges))
        worst[plan.policy.group.arms] = 0.001 * (
            1 + np.argmax(moments(plan, labels, charges, stakes))
        )
    means = hurtful(kind, k, worst, stakes.boundary, rng)
    total = np.full(TRIES, np.log(DELTA))
    for plan, labels, charges in settled:
        for arm in plan.policy.group.arms:
            ended = stopped(plan, means[arm], rng)
            lost = losses(means[[arm]], labels, stakes)[0]
            total += stage.strength * (lost - cheaper * charges)[ended]
    return total


def stopped(plan: Plan, mean: float, rng: np.random.Generator) -> IntArray:
    """Number of the state in which the arm stops: (tries,)."""
    inner = np.clip(np.array([mean]), 1e-12, 1 - 1e-12)
    cumulated = np.cumsum(np.exp(plan.states.log_probability(inner))[0])
    assert abs(cumulated[-1] - 1) < 1e-6
    drawn = np.searchsorted(cumulated, rng.random(TRIES) * cumulated[-1])
    ended: IntArray = np.minimum(drawn, cumulated.size - 1)
    return ended


@pytest.mark.parametrize(("k", "place"), CASES)
def test_no_attack_makes_plans_fail_more_often_than_delta(k: int, place: str) -> None:
    stage = declared(k, place, np.random.default_rng([k, len(place)]))
    middle = stage.boundaries.values.size // 2
    for number, kind in enumerate(KINDS):
        j = middle + (-6, 0, 6, 3)[number]
        failed = (excess(stage, WAYS[number], j, kind, k) >= 0).sum()

        assert failed <= binom.ppf(1 - 1e-6, TRIES, DELTA)


def test_the_attack_sees_failures_and_charges_that_are_too_small() -> None:
    stage = declared(11, "true", np.random.default_rng(1))
    middle = stage.boundaries.values.size // 2
    seen = [(excess(stage, 7, j, KINDS[0], 11) >= 0).mean() for j in (middle - 6, middle + 6)]
    cheap = [(excess(stage, 7, middle, kind, 11, 1e-9) >= 0).mean() for kind in KINDS]

    assert max(seen) > 0
    assert max(cheap) > DELTA
