"""What is computed of a certificate against exact arithmetic, over all numbers that are admitted.

No comparison has a tolerance: rounding is outward, so what is exact is never on the wrong side."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from attack_scale import SCALE, SEED
from mpmath import mp, mpf

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray
from shortlist.certificates.pairs.bound import StageRewards, log_gains
from shortlist.certificates.split.bound import Certificate, declare
from shortlist.reward_models import UNIT_SIGMA, Binary, Bounded, RewardModel, SubGaussian

DIGITS = 120  # strengths of 1e60 cancel, and what is left is compared to 1e-14 of them
ARMS = 8
NEAREST = 5e-324  # to 0
BELOW_1 = 1 - 2.0**-53


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    print(f"seed {SEED}, {SCALE} times the cases")
    with mp.workdps(DIGITS):
        yield


class Case(NamedTuple):
    """A certificate and sums to be charged, for arms of all kinds."""

    certificate: Certificate
    reach: float
    sums: FloatArray


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(10 ** rng.uniform(math.log10(low), math.log10(high)))


def a_boundary(rng: np.random.Generator) -> float:
    tiny = log_uniform(rng, 1e-300, 1)
    some = (0.0, 1.0, NEAREST, BELOW_1, 0.5, tiny, 1 - tiny, rng.uniform())
    return float(some[rng.integers(len(some))])


def some_pulls(rng: np.random.Generator, most: float) -> IntArray:
    pulls = np.array([int(log_uniform(rng, 1, most)) for _ in range(ARMS)])
    return np.where(rng.random(ARMS) < 0.2, 1, pulls)


def a_strength(rng: np.random.Generator, pulls: IntArray) -> float:
    """Anything, or what is of the size of some arm's pulls: there shapes change."""
    if rng.random() < 0.3:
        return log_uniform(rng, 1.1e-60, 0.9e60)
    return float(rng.choice(pulls)) * log_uniform(rng, 1e-4, 1e4)


def a_reach(rng: np.random.Generator) -> float:
    return 1.0 if rng.random() < 0.3 else log_uniform(rng, 1e-11, 3.0)


def slopes(rng: np.random.Generator, strength: float) -> FloatArray:
    return strength * np.where(rng.random(ARMS) < 0.5, 1.0, rng.choice([0.3, 1e-3, 0.999], ARMS))


def sums_of(rng: np.random.Generator, pulls: IntArray, boundary: float) -> FloatArray:
    """At the ends, at the boundary, or anywhere; floats, so that they are exact as they are."""
    near = np.clip(pulls * boundary + rng.normal(size=ARMS) * np.sqrt(pulls), 0, pulls)
    shares = np.stack([np.zeros(ARMS), pulls.astype(float), near, rng.random(ARMS) * pulls])
    sums: FloatArray = shares[rng.integers(4, size=ARMS), np.arange(ARMS)]
    return sums


def bounded_case(rng: np.random.Generator, rewards: RewardModel, most: float) -> Case:
    pulls = some_pulls(rng, most)
    boundary, reach = a_boundary(rng), a_reach(rng)
    strength = a_strength(rng, pulls)
    certificate = declare(
        a_choice(rng),
        boundary,
        pulls,
        strength=strength,
        delta=0.05,
        reach=reach,
        rewards=rewards,
        slope=slopes(rng, strength),
    )
    return Case(certificate, reach, sums_of(rng, pulls, boundary))


def a_choice(rng: np.random.Generator) -> BoolArray:
    return np.asarray(rng.permutation(ARMS) < ARMS // 2, dtype=np.bool_)


def exact_offset(pulls: mpf, edge: mpf, strength: mpf, reach: mpf, slope: mpf) -> mpf:
    """max N ln(1 - m u) + slope b + strength (m - b), m from b to b + reach, at most 1."""
    minus_u = mp.expm1(-slope / pulls)
    worst = min(max(-1 / minus_u - pulls / strength, edge), min(edge + reach, mpf(1)))
    # 1 - m u loses its digits where u is all but 1
    steep = slope > pulls
    kept = (1 - worst) + worst * mp.exp(-slope / pulls)
    log = mp.log(kept) if steep else mp.log1p(worst * minus_u)
    return pulls * log + slope * edge + strength * (worst - edge)


def exact_charge(case: Case, arm: int, *, has_range: bool) -> mpf:
    """The charge of the theorem, for exactly these floats."""
    made = case.certificate
    pulls, strength, slope = (
        mpf(int(made.pulls[arm])),
        mpf(made.strength),
        mpf(float(made.slope[arm])),
    )
    beyond = mpf(float(case.sums[arm])) / pulls - mpf(made.boundary)
    inside = bool(made.chosen[arm])
    edge = 1 - mpf(made.boundary) if inside else mpf(made.boundary)
    reach = mpf(case.reach)
    if has_range:
        offset = exact_offset(pulls, edge, strength, reach, slope)
    else:
        offset = slope**2 / (8 * pulls) + (strength - slope) * reach
    return max(mpf(0), slope * (-beyond if inside else beyond) + offset) / strength


@pytest.mark.parametrize("part", range(4))
def test_no_charge_of_rewards_in_0_to_1_is_less_than_the_theorem_asks_for(part: int) -> None:
    rng = np.random.default_rng([SEED, 1, part])
    for _ in range(200 * SCALE):
        case = bounded_case(rng, Bounded(), 2.0**62)
        charged = case.certificate.charges(case.sums)
        for arm in range(ARMS):
            exactly = exact_charge(case, arm, has_range=True)
            assert charged[arm] >= exactly, (case, arm)
            assert charged[arm] <= exactly + 10 * ROUNDED, (case, arm)  # and hardly more


@pytest.mark.parametrize("part", range(2))
def test_no_charge_of_sub_gaussian_rewards_is_less_than_the_theorem_asks_for(part: int) -> None:
    rng = np.random.default_rng([SEED, 2, part])
    for _ in range(200 * SCALE):
        pulls = some_pulls(rng, 2.0**62)
        strength, reach = a_strength(rng, pulls), a_reach(rng)
        boundary = float(rng.choice([0.0, 1.0, -1.0])) * log_uniform(rng, 1e-9, 4e8)
        certificate = declare(
            a_choice(rng),
            boundary,
            pulls,
            strength=strength,
            delta=0.05,
            reach=reach,
            rewards=SubGaussian(0.5),
            slope=slopes(rng, strength),
        )
        case = Case(certificate, reach, pulls * (boundary + rng.normal(size=ARMS)))
        charged = certificate.charges(case.sums)
        for arm in range(ARMS):
            assert charged[arm] >= exact_charge(case, arm, has_range=False), (case, arm)


def moment(certificate: Certificate, mean: mpf) -> mpf:
    """E[exp(-strength * charge)] of the first arm, an exact sum over its successes."""
    pulls = int(certificate.pulls[0])
    sums = np.arange(pulls + 1.0)[:, None].repeat(2, axis=1)
    charges = certificate.charges(sums)[:, 0]
    strength, total = mpf(certificate.strength), mpf(0)
    for successes, charge in enumerate(charges):
        chance = mp.binomial(pulls, successes) * mean**successes * (1 - mean) ** (pulls - successes)
        total += chance * mp.exp(-strength * mpf(float(charge)))
    return total


def binary_case(rng: np.random.Generator) -> tuple[Certificate, float]:
    """An arm outside the set, with a start as candidates have it, and one that does not matter."""
    count = int(log_uniform(rng, 1, 120))
    pulls = np.array([count, 1])
    boundary, reach = a_boundary(rng), a_reach(rng)
    strength = a_strength(rng, pulls) if rng.random() < 0.5 else 3 * log_uniform(rng, 1, 9) / reach
    deviations = rng.choice([-np.inf, 0.0, 0.3, 0.9, 1.5, 4.0])
    start = np.floor(count * boundary + deviations * math.sqrt(count * 0.25))
    certificate = declare(
        np.array([False, True]),
        boundary,
        pulls,
        strength=strength,
        delta=0.05,
        reach=reach,
        rewards=Binary(),
        slope=strength * np.array([rng.choice([1.0, 0.3]), 1.0]),
        start=np.array([start, -np.inf]),
    )
    return certificate, reach


@pytest.mark.parametrize("part", range(4))
def test_no_moment_of_0_or_1_rewards_exceeds_what_is_allowed(part: int) -> None:
    rng = np.random.default_rng([SEED, 3, part])
    for _ in range(40 * SCALE):
        certificate, reach = binary_case(rng)
        boundary, strength = mpf(certificate.boundary), mpf(certificate.strength)
        farthest = min(mpf(reach), 1 - boundary)
        for share in (0.0, 1.0, *rng.random(4) ** 2):
            gap = farthest * mpf(float(share))
            found = moment(certificate, boundary + gap)
            assert found <= mp.exp(-strength * gap), (certificate, reach, share)


def window_moment(certificate: Certificate, mean: float) -> mpf:
    """The same for many pulls, from above: successes within 12 deviations, and what is left out."""
    pulls = int(certificate.pulls[0])
    half = 12 * math.sqrt(pulls * mean * (1 - mean)) + 40
    low, high = max(0, int(pulls * mean - half)), min(pulls, int(pulls * mean + half))
    sums = np.arange(low, high + 1.0)[:, None].repeat(2, axis=1)
    factors = np.exp(-certificate.strength * certificate.charges(sums)[:, 0]).tolist()
    p = mpf(mean)
    chance = mp.exp(
        mp.loggamma(pulls + 1)
        - mp.loggamma(low + 1)
        - mp.loggamma(pulls - low + 1)
        + low * mp.log(p)
        + (pulls - low) * mp.log1p(-p)
    )
    odds, total = p / (1 - p), mpf(0)
    for successes, factor in zip(range(low, high + 1), factors, strict=True):
        total += chance * mpf(factor)
        chance *= odds * (pulls - successes) / (successes + 1)
    return total


def test_no_moment_of_many_0_or_1_rewards_exceeds_what_is_allowed() -> None:
    rng = np.random.default_rng([SEED, 4])
    most = 1e5 if SCALE == 1 else 2.0**30
    for _ in range(8 * SCALE):
        with mp.workdps(40):
            pulls = np.array([int(log_uniform(rng, 1e3, most)), 1])
            boundary = float(rng.choice([rng.uniform(0.05, 0.95), log_uniform(rng, 1e-3, 0.1)]))
            deviation = math.sqrt(boundary * (1 - boundary) / float(pulls[0]))
            reach = min(1 - boundary, rng.uniform(1, 30) * deviation)
            strength = rng.uniform(3, 20) / reach
            start = np.floor(pulls[0] * (boundary + rng.choice([0.3, 0.9, 1.5]) * deviation))
            certificate = declare(
                np.array([False, True]),
                boundary,
                pulls,
                strength=strength,
                delta=0.05,
                reach=reach,
                rewards=Binary(),
                start=np.array([start, -np.inf]),
            )
            for share in (0.0, *rng.random(2)):
                mean = boundary + share * reach
                allowed = mp.exp(-mpf(strength) * (mpf(mean) - mpf(boundary)))
                # what the window leaves out is less than 1e-30 of the probability
                assert window_moment(certificate, mean) <= allowed, (certificate, reach, share)


def test_starting_values_are_not_used_beyond_the_trusted_number_of_pulls() -> None:
    certificate = declare(
        np.array([False, True]),
        0.5,
        np.array([2**31, 2**31]),
        strength=50.0,
        delta=0.05,
        reach=0.1,
        rewards=Binary(),
        start=np.array([2.0**30 + 9000, -np.inf]),
    )
    assert certificate.start.tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_nan_is_never_a_bound(wrong: float) -> None:
    rng = np.random.default_rng([SEED, 5])
    certificate = bounded_case(rng, Bounded(), 1e9).certificate
    outside = int(np.flatnonzero(~certificate.chosen)[0])
    sums = np.zeros(ARMS)
    sums[outside] = wrong
    assert certificate.bound(sums) == math.inf


@pytest.mark.parametrize("rewards", [Binary(), Bounded(), SubGaussian(0.5)])
def test_no_bet_gains_more_than_its_rewards_justify(rewards: RewardModel) -> None:
    rng = np.random.default_rng([SEED, 6])
    for _ in range(400 * SCALE):
        times = int(rng.integers(1, 9))
        drawn = rewards_for_bets(rng, times, rewards)
        repeats = int(log_uniform(rng, 1, 1e9))  # the same rewards again and again
        advance = np.array([times * repeats * log_uniform(rng, 1e-9, 1.2)])
        centre = float(rng.choice([0.0, 1.0, NEAREST, BELOW_1, rng.uniform()]))
        draws = StageRewards(
            np.array([times * repeats]),
            np.array([drawn.sum() * repeats]),
            np.array([(drawn**2).sum() * repeats]),
        )
        around = np.array([centre])
        up, down = log_gains(draws, advance, around, around, rewards)
        far = 1 + float(np.abs(drawn).max())
        for gain, sign in ((up[0, 0], 1), (down[0, 0], -1)):
            exactly = exact_gain(drawn, repeats, float(advance[0]), centre, sign, rewards)
            rounded = mpf(ROUNDED) * mpf(float(advance[0])) * mpf(far)
            assert gain <= exactly + rounded, (drawn, repeats, advance, centre, sign)


def rewards_for_bets(rng: np.random.Generator, times: int, rewards: RewardModel) -> FloatArray:
    if not rewards.has_range:
        return np.asarray(log_uniform(rng, 1, 4e8) + rng.normal(size=times))
    if rewards.is_binary or rng.random() < 0.3:
        return np.asarray(rng.integers(0, 2, times), dtype=np.float64)
    around = rng.uniform()
    spread = log_uniform(rng, 1e-9, 1)
    return np.clip(around + spread * rng.normal(size=times), 0, 1)


def exact_gain(
    drawn: FloatArray, repeats: int, advance: float, centre: float, sign: int, rewards: RewardModel
) -> mpf:
    """Sum of ln(1 +- l (x - c)) +- l c, with the centre that the stake allows."""
    strength = mpf(advance) / (drawn.size * repeats)
    exact = [mpf(float(each)) for each in drawn]
    if not rewards.has_range:
        cost = (strength * mpf(UNIT_SIGMA)) ** 2 / 2
        return repeats * sum(sign * strength * each - cost for each in exact)
    if sign < 0:
        exact, centre = [1 - each for each in exact], 1 - centre
    moved = min(mpf(centre), mpf(0.9) / strength)
    gains = [mp.log1p(strength * (each - moved)) + strength * moved for each in exact]
    return repeats * sum(gains) - (mpf(advance) if sign < 0 else 0)
