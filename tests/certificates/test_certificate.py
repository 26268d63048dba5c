"""The certificate by attack: a set that loses too much is passed with probability delta at most."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import binom

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.split.bound import Certificate, declare
from shortlist.certificates.split.offsets import (
    binary_offset,
    bounded_offset,
    offsets,
    subgaussian_offset,
    usual_checks,
)
from shortlist.errors import InvalidInput
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian

DELTA = 0.1
TRIES = 5000  # per instance, of which every test has many
# a test fails when what it saw has a smaller chance than this if the claim is true
BELIEVABLE = 1e-6
MANY = 10**6  # pulls of an arm that is known
# slope / strength, and start in standard deviations beyond the boundary
SHAPES: dict[str, tuple[float, float]] = {
    "plain": (1.0, -np.inf),
    "flat": (0.3, -np.inf),
    "start 0.3": (1.0, 0.3),
    "start 0.9": (1.0, 0.9),
    "start 1.5": (1.0, 1.5),
    "start 0.9, flat": (0.3, 0.9),
}
KINDS: dict[str, RewardModel] = {
    "0/1": Binary(),
    "0 or 1": Bounded(),  # not declared as such
    "two points": Bounded(),
    "beta": Bounded(),
    "normal": SubGaussian(0.5),
}
CANDIDATES = [
    (kind, shape) for kind in KINDS for shape in SHAPES if kind == "0/1" or "start" not in shape
]
PLACES = ("one outside", "one inside", "many outside", "many inside", "many on both sides")
SIZES = ((10, 1), (10, 9), (10, 5), (40, 20))


@dataclass(frozen=True)
class Instance:
    """Arms, a choice among them, and the arms on the wrong side of the boundary."""

    means: FloatArray
    chosen: BoolArray
    boundary: float
    wrong: BoolArray


def losing(n: int, k: int, place: str, boundary: float, loss: float) -> Instance:
    """A choice that loses `loss`: arms beyond the boundary, as many at it, the rest far."""
    chosen = np.arange(n) < k
    means = np.where(chosen, 1.0, 0.0)
    swaps = 1 if place.startswith("one") else min(k, n - k)
    up = {"outside": 1.0, "inside": 0.0}.get(place.split()[-1], 0.5)
    means[k : k + swaps] = boundary + up * loss / swaps
    means[:swaps] = boundary - (1 - up) * loss / swaps
    return Instance(means, chosen, boundary, np.where(chosen, means < boundary, means > boundary))


def drawn(instance: Instance, pulls: IntArray, kind: str, rng: np.random.Generator) -> FloatArray:
    """Sums of fresh rewards, a row per try; arms that are not wrong cost as little as can be."""
    sums = np.tile(pulls * instance.means, (TRIES, 1))
    if kind == "0/1":
        return rng.binomial(pulls, instance.means, sums.shape).astype(np.float64)
    for arm in np.flatnonzero(instance.wrong):
        sums[:, arm] = sums_of(
            kind, float(instance.means[arm]), int(pulls[arm]), instance.boundary, rng
        )
    return sums


def sums_of(
    kind: str, mean: float, pulls: int, boundary: float, rng: np.random.Generator
) -> FloatArray:
    if kind == "normal":
        return pulls * mean + 0.5 * math.sqrt(pulls) * rng.standard_normal(TRIES)
    if kind == "beta":
        return np.asarray(rng.beta(2 * mean, 2 - 2 * mean, (TRIES, pulls)).sum(axis=1))
    low, high = 0.0, 1.0
    if kind == "two points":  # one of them close to the boundary on the right side
        low, high = (0.9 * boundary, 1.0) if mean > boundary else (0.0, 1 - 0.9 * (1 - boundary))
    hits = rng.binomial(pulls, (mean - low) / (high - low), TRIES).astype(np.float64)
    return pulls * low + (high - low) * hits


def declared(
    instance: Instance,
    pulls: IntArray,
    shape: str,
    rewards: RewardModel,
    strength: float,
    reach: float,
) -> Certificate:
    part, deviations = SHAPES[shape]
    edge = np.where(instance.chosen, 1 - instance.boundary, instance.boundary)
    return declare(
        instance.chosen,
        instance.boundary,
        pulls,
        strength=strength,
        delta=DELTA,
        reach=reach,
        rewards=rewards,
        slope=np.full(pulls.size, part * strength),
        start=np.floor(pulls * edge + deviations * np.sqrt(pulls * edge * (1 - edge))),
    )


def totals(certificate: Certificate, sums: FloatArray) -> FloatArray:
    """The bound on the total loss in every try."""
    bounds: FloatArray = (
        certificate.charges(sums).sum(axis=1)
        + math.log(1 / certificate.delta) / certificate.strength
    )
    return bounds


def seldom(count: int) -> bool:
    return bool(binom.sf(count - 1, TRIES, DELTA) > BELIEVABLE)


@pytest.mark.parametrize(("kind", "shape"), CANDIDATES)
def test_a_choice_that_loses_just_too_much_is_seldom_certified(kind: str, shape: str) -> None:
    rng = np.random.default_rng(CANDIDATES.index((kind, shape)))
    for place in PLACES:
        for n, k in SIZES:
            boundary, allowed = rng.uniform(0.3, 0.7), rng.uniform(0.05, 0.25)
            instance = losing(n, k, place, boundary, allowed * (1 + 1e-9) + 1e-12)
            assert k * aggregate_regret(instance.means, np.flatnonzero(instance.chosen)) > allowed
            pulls = np.where(instance.wrong, rng.integers(1, 9 if kind == "beta" else 90, n), MANY)
            strength = rng.choice([0.6, 1.0, 1.0, 1.5, 2.5]) * math.log(1 / DELTA) / allowed
            certificate = declared(instance, pulls, shape, KINDS[kind], strength, allowed)
            passed = totals(certificate, drawn(instance, pulls, kind, rng)) <= allowed
            assert seldom(int(passed.sum())), (place, n, k, boundary, allowed, strength)


@pytest.mark.parametrize(("kind", "shape"), CANDIDATES)
def test_with_full_reach_the_loss_seldom_exceeds_the_bound_whatever_that_is(
    kind: str, shape: str
) -> None:
    rng = np.random.default_rng(100 + CANDIDATES.index((kind, shape)))
    for n, k in SIZES:
        means, chosen = rng.uniform(0.1, 0.9, n), np.arange(n) < k
        instance = Instance(means, chosen, rng.uniform(0.2, 0.8), np.ones(n, dtype=np.bool_))
        pulls = rng.integers(1, 9 if kind == "beta" else 60, n)
        reach = math.inf if kind == "normal" else 1.0
        if kind == "normal" and shape == "flat":
            # no offset is right for every mean there is; these means are within 1 of the boundary
            reach = 1.0
        strength = float(
            rng.uniform(0.5, 3) * math.sqrt(8 * math.log(1 / DELTA) / (1 / pulls).sum())
        )
        certificate = declared(instance, pulls, shape, KINDS[kind], strength, reach)
        loss = k * aggregate_regret(means, np.flatnonzero(chosen))
        assert seldom(int(np.sum(totals(certificate, drawn(instance, pulls, kind, rng)) < loss)))


def passed_in_a_crowd(kind: str, shape: str, place: str, less: float = 0.0) -> int:
    """How often 40 arms pass that lose a little each, if every offset is too small by `less`."""
    instance = losing(80, 40, place, 0.5, 1 + 1e-9)
    pulls = np.where(instance.wrong, 9 if kind == "beta" else 72, MANY)
    certificate = declared(
        instance, pulls, shape, KINDS[kind], strength=2.5 * math.log(1 / DELTA), reach=1.0
    )
    weaker = replace(certificate, offset=certificate.offset - less)
    return int(np.sum(totals(weaker, drawn(instance, pulls, kind, np.random.default_rng(7))) <= 1))


@pytest.mark.parametrize("place", ["many outside", "many inside"])
@pytest.mark.parametrize(("kind", "shape"), CANDIDATES)
def test_a_crowd_of_arms_that_lose_a_little_each_is_seldom_certified(
    kind: str, shape: str, place: str
) -> None:
    assert seldom(passed_in_a_crowd(kind, shape, place))


@pytest.mark.parametrize("place", ["many outside", "many inside"])
# too mild to come near the bound
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "beta"])
def test_the_attack_notices_offsets_that_are_a_little_too_small(kind: str, place: str) -> None:
    assert not seldom(passed_in_a_crowd(kind, "plain", place, less=0.3))


def test_a_start_that_no_offset_makes_right_is_lowered() -> None:
    """Had it been kept, the set would be passed whenever nothing is charged."""
    rng = np.random.default_rng(8)
    instance = losing(2, 1, "one outside", 0.4, 0.1)
    pulls = np.array([MANY, 50])
    strength = math.log(1 / DELTA) / 0.1
    certificate = declared(instance, pulls, "start 1.5", Binary(), strength, 0.1)
    wanted = math.floor(20 + 1.5 * math.sqrt(12))
    hopeless = binary_offset(
        np.array([50.0]), 0.4, strength, 0.1, slope=np.array([strength]), start=np.array([wanted])
    )
    assert hopeless[0] == math.inf
    assert certificate.start[1] < wanted
    assert np.isfinite(certificate.offset).all()
    assert seldom(int(np.sum(totals(certificate, drawn(instance, pulls, "0/1", rng)) <= 0.1)))
    assert not seldom(int(np.sum(rng.binomial(50, 0.5, TRIES) <= wanted)))


Candidate = tuple[int, float, float, float, float, float]


@st.composite
def candidates_for_an_arm(draw: st.DrawFn) -> Candidate:
    """Pulls, boundary, strength, slope, reach, start: any that make sense, sensible or not."""
    pulls = draw(st.integers(1, 120))
    boundary = draw(st.one_of(st.sampled_from([0.0, 1.0, 1e-6, 1 - 1e-6]), st.floats(0.01, 0.99)))
    strength = math.exp(draw(st.floats(-1, 9)))
    slope = strength * draw(st.sampled_from([1.0, 0.9, 0.3, 0.01]))
    reach = draw(st.one_of(st.just(1.0), st.floats(0.001, 1.0)))
    return pulls, boundary, strength, slope, reach, float(draw(st.integers(-2, pulls + 1)))


@settings(max_examples=150, deadline=None)
@given(candidates_for_an_arm())
def test_the_moment_never_exceeds_what_is_allowed(candidate: Candidate) -> None:
    pulls, boundary, strength, slope, reach, start = candidate
    (begin,), (offset,) = offsets(
        np.array([float(pulls)]),
        boundary,
        strength,
        reach,
        Binary(),
        slope=np.array([slope]),
        start=np.array([start]),
    )
    assert np.isfinite(offset)
    successes = np.arange(pulls + 1)
    charge = np.where(
        successes > begin, np.maximum(0, slope * (successes / pulls - boundary) + offset), 0
    )
    gap = (1 - boundary) * np.linspace(0, 1, 600)[1:] ** 2
    moment = logsumexp(binom.logpmf(successes, pulls, (boundary + gap)[:, None]) - charge, axis=1)
    assert np.all(moment <= -strength * np.minimum(gap, reach) + 1e-9)


@settings(max_examples=100, deadline=None)
@given(candidates_for_an_arm())
def test_without_a_start_the_exact_moment_allows_no_less_than_the_closed_form(
    candidate: Candidate,
) -> None:
    pulls, boundary, strength, slope, reach, _ = candidate
    reach = min(reach, 1 - boundary)
    assume(strength * reach < 600)  # beyond, what is allowed is too small for a float
    count, steep = np.array([float(pulls)]), np.array([slope])
    closed = bounded_offset(count, boundary, boundary, strength, reach, steep)[0]
    usual = usual_checks(strength * reach)
    for checks in (None, 192):
        start = np.array([-1.0])
        exact = binary_offset(
            count, boundary, strength, reach, slope=steep, start=start, checks=checks
        )[0]
        # what can be lost between two points of the grid
        step = strength * reach / (checks or usual)
        assert (
            closed - 1e-9 * (1 + abs(closed))
            <= exact
            <= closed + step + 1e-7 + 1e-9 * (1 + abs(closed))  # 1e-7: rounding is outward
        )


@settings(max_examples=100, deadline=None)
@given(candidates_for_an_arm())
@example((1, 1.0, 1100.0, 1100.0, 1.0, 0.0))  # e^-1100 is 0 to a float
def test_the_closed_form_is_the_least_offset_for_rewards_between_0_and_1(
    candidate: Candidate,
) -> None:
    pulls, boundary, strength, slope, reach, _ = candidate
    reach = min(reach, 1 - boundary)
    closed = bounded_offset(
        np.array([float(pulls)]), boundary, boundary, strength, reach, np.array([slope])
    )[0]
    mean = np.minimum(boundary + reach * np.linspace(0, 1, 2001), 1)
    with np.errstate(divide="ignore"):
        log_shrink = np.logaddexp(np.log1p(-mean), np.log(mean) - slope / pulls)
    needed = (pulls * log_shrink + slope * boundary + strength * (mean - boundary)).max()
    assert needed - 1e-7 * (1 + abs(needed)) <= closed <= needed + 1e-3 * (1 + abs(needed))


def test_an_offset_with_a_start_is_hardly_more_than_the_least() -> None:
    for pulls, boundary, start in ((31, 0.26, 8), (64, 0.04, 3), (120, 0.44, 54), (150, 0.05, 8)):
        strength, reach = 12 / 0.4, 0.4
        found = binary_offset(
            np.array([float(pulls)]),
            boundary,
            strength,
            reach,
            slope=np.array([strength]),
            start=np.array([start]),
        )[0]
        gap = reach * np.linspace(0, 1, 4001)[1:]
        successes = np.arange(pulls + 1)
        chance = np.asarray(binom.pmf(successes, pulls, (boundary + gap)[:, None]))
        free = chance[:, : start + 1].sum(axis=1)
        charged = (chance * np.exp(-strength * (successes / pulls - boundary)))[:, start + 1 :].sum(
            axis=1
        )
        room = np.exp(-strength * gap) - free
        least = np.log(charged / room).max() if room.min() > 0 else math.inf
        assert least - 1e-6 <= found <= least + 0.1


def test_the_offset_for_normal_rewards_is_their_exact_moment() -> None:
    pulls, strength, reach = np.array([20.0]), 9.0, 0.3
    for slope in (9.0, 4.0):
        gap = np.linspace(0, reach, 1001)
        needed = (slope**2 / (8 * 20) + (strength - slope) * gap).max()
        assert subgaussian_offset(pulls, strength, reach, np.array([slope]))[0] == pytest.approx(
            needed
        )
    both = subgaussian_offset(np.array([20.0, 20.0]), strength, math.inf, np.array([9.0, 4.0]))
    assert both[0] == pytest.approx(9.0**2 / 160)
    assert both[1] == math.inf


def test_offsets_keep_their_digits_with_very_many_pulls() -> None:
    for pulls in (1e6, 1e9, 1e12):
        offset = bounded_offset(np.array([pulls]), 0.3, 0.3, 10.0, 1e-9, np.array([10.0]))[0]
        assert offset == pytest.approx(10.0**2 * 0.3 * 0.7 / (2 * pulls), rel=1e-3)


@pytest.mark.parametrize("rewards", [Bounded(), SubGaussian(0.5)])
def test_a_start_needs_rewards_of_0_and_1(rewards: RewardModel) -> None:
    chosen, pulls, start = np.array([True, False]), np.array([5, 5]), np.array([1.0, 1.0])
    with pytest.raises(InvalidInput, match="`start` is given for rewards that are a "):
        declare(
            chosen, 0.5, pulls, strength=3.0, delta=0.1, reach=0.1, rewards=rewards, start=start
        )


def test_what_is_not_a_number_is_never_taken_for_a_proof() -> None:
    chosen, pulls = np.array([True, False]), np.array([50, 50])
    for rewards, start in ((Bounded(), None), (Binary(), np.full(2, 30.0))):
        certificate = declare(
            chosen, 0.5, pulls, strength=50.0, delta=0.05, reach=1.0, rewards=rewards, start=start
        )
        assert not certificate.bound(np.array([np.nan, 0.0])) <= 1
    with pytest.raises(InvalidInput, match="`boundary` is nan, but must be a finite number"):
        declare(chosen, math.nan, pulls, strength=50.0, delta=0.05, reach=1.0, rewards=Bounded())
