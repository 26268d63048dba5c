"""The discount for small variance against exact arithmetic: no charge is less than its bet's."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from attack_scale import SCALE, SEED
from mpmath import mp, mpf

from shortlist import certify
from shortlist.arrays import FloatArray
from shortlist.certificates.split.bound import STEEPEST_TILT, declare, discount
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian

ENDS = (0.0, 1.0, 5e-324, 1 - 2.0**-53, 1e-9, 1 - 1e-9)


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    print(f"seed {SEED}, {SCALE} times the cases")
    with mp.workdps(60):
        yield


def some_rewards(rng: np.random.Generator, count: int) -> FloatArray:
    """Of all shapes: two points, close together, spread out, at the ends, all the same."""
    around, spread = rng.uniform(), 10 ** rng.uniform(-12, 0)
    shapes = (
        rng.uniform(size=count),
        around + spread * rng.normal(size=count),
        rng.choice([0.0, 1.0], count),
        rng.choice([around, 1.0], count),
        rng.choice([0.0, around], count),
        rng.choice(ENDS, count),
        np.full(count, around),
        rng.beta(spread + 1e-3, 1.0, count),
    )
    return np.clip(shapes[rng.integers(len(shapes))], 0, 1)


def exact_sum(drawn: FloatArray, tilt: mpf) -> mpf:
    """Sum of ln(1 - u X) over the rewards, u = 1 - exp(-tilt)."""
    return mp.fsum(mp.log1p(mpf(float(each)) * mp.expm1(-tilt)) for each in drawn)


def exact_charge(
    drawn: FloatArray, repeats: int, boundary: mpf, strength: mpf, reach: mpf, slope: mpf
) -> mpf:
    """What the bet itself charges, for an arm outside: it needs no variance."""
    pulls = mpf(drawn.size * repeats)
    tilt = slope / pulls
    minus_u = mp.expm1(-tilt)
    worst = -1 / minus_u - pulls / strength
    worst = min(max(worst, boundary), min(boundary + reach, mpf(1)))
    moment = pulls * mp.log1p(worst * minus_u) + strength * (worst - boundary)
    return max(mpf(0), moment - repeats * exact_sum(drawn, tilt)) / strength


@pytest.mark.parametrize("part", range(4))
def test_no_charge_with_a_discount_is_less_than_that_of_the_bet_itself(part: int) -> None:
    rng = np.random.default_rng([SEED, 7, part])
    for _ in range(150 * SCALE):
        count, repeats = int(rng.integers(1, 12)), int(10 ** rng.uniform(0, 8))
        drawn = [some_rewards(rng, count), some_rewards(rng, count)]
        pulls = np.full(2, count * repeats)
        boundary = float(rng.choice([*ENDS, rng.uniform(), rng.uniform()]))
        reach = float(10 ** rng.uniform(-9, 0.3))
        strength = float(pulls[0] * 10 ** rng.uniform(-5, 1.5))
        slope = strength * rng.choice([1.0, 0.3, 2.5], 2)
        certificate = declare(
            np.array([True, False]),
            boundary,
            pulls,
            strength=strength,
            delta=0.05,
            reach=reach,
            rewards=Bounded(),
            slope=slope,
        )
        sums = np.array([each.sum() * repeats for each in drawn])
        squares = np.array([(each**2).sum() * repeats for each in drawn])
        charged = certificate.charges(sums, squares)
        b = mpf(certificate.boundary)
        for arm, (rewards, edge) in enumerate(((drawn[0], 1 - b), (drawn[1], b))):
            exactly = mirrored_charge(
                rewards, repeats, edge, certificate.strength, reach, float(slope[arm]), arm == 0
            )
            assert charged[arm] >= exactly, (certificate, drawn, repeats, reach, arm)
        plain = certificate.charges(sums)
        assert np.all(charged <= plain)


def mirrored_charge(
    drawn: FloatArray,
    repeats: int,
    edge: mpf,
    strength: float,
    reach: float,
    slope: float,
    inside: bool,
) -> mpf:
    """The charge on either side: inside, 1 - X is exact in so many digits."""
    if not inside:
        return exact_charge(drawn, repeats, edge, mpf(strength), mpf(reach), mpf(slope))
    pulls = mpf(drawn.size * repeats)
    tilt = mpf(slope) / pulls
    minus_u = mp.expm1(-tilt)
    worst = min(max(-1 / minus_u - pulls / mpf(strength), edge), min(edge + mpf(reach), mpf(1)))
    moment = pulls * mp.log1p(worst * minus_u) + mpf(strength) * (worst - edge)
    logs = mp.fsum(mp.log1p((1 - mpf(float(each))) * minus_u) for each in drawn)
    return max(mpf(0), moment - repeats * logs) / mpf(strength)


def test_the_two_point_distribution_is_the_worst_of_its_mean_and_variance() -> None:
    """With equality at rewards m and 1: the discount cannot be larger."""
    rng = np.random.default_rng([SEED, 8])
    for _ in range(300 * SCALE):
        count = int(rng.integers(2, 30))
        tilt = float(10 ** rng.uniform(-3, math.log10(STEEPEST_TILT)))
        drawn = some_rewards(rng, count)
        low = float(rng.uniform())
        two_points = np.where(np.arange(count) < rng.integers(1, count + 1), low, 1.0)
        for rewards, tight in ((drawn, False), (two_points, True)):
            mean, variance = rewards.mean(), rewards.var()
            slope = np.array([tilt * count])
            found = discount(
                np.array([float(count)]), np.array([mean]), np.array([variance]), slope
            )
            least = mpf(float(found[0])) - mpf(tilt) * mp.fsum(map(mpf, rewards.tolist()))
            gap = exact_sum(rewards, mpf(tilt)) - least
            assert gap >= -1e-9 * count * math.exp(2 * tilt)
            assert not tight or gap <= 1e-9 * count * math.exp(2 * tilt)


def test_binary_rewards_get_no_variance_discount() -> None:
    rng = np.random.default_rng([SEED, 9])
    pulls = rng.integers(1, 1000, 50)
    sums = rng.binomial(pulls, 0.3).astype(float)
    certificate = declare(
        np.arange(50) < 20,
        0.4,
        pulls,
        strength=80.0,
        delta=0.05,
        reach=1.0,
        rewards=Bounded(),
    )
    assert certificate.charges(sums, sums).tolist() == certificate.charges(sums).tolist()


@pytest.mark.parametrize("rewards", [SubGaussian(0.5), Binary()])
def test_only_bounded_rewards_get_a_variance_discount(rewards: RewardModel) -> None:
    pulls, sums = np.array([40, 40]), np.array([20.0, 21.0])
    certificate = declare(
        np.array([True, False]),
        0.5,
        pulls,
        strength=20.0,
        delta=0.05,
        reach=1.0,
        rewards=rewards,
    )
    assert certificate.charges(sums, sums**2 / pulls).tolist() == certificate.charges(sums).tolist()
    assert certificate.charges(sums)[1] > 0


def test_rounding_in_a_range_far_from_0_creates_no_discount() -> None:
    rng = np.random.default_rng([SEED, 10])
    drawn = rng.beta(40, 40, (4, 50)) * [[1], [1], [0.98], [0.98]]
    for far in (0.0, -3.0, 1e3, 1e8):
        told = drawn + far
        found = certify(
            [0, 1],
            [50] * 4,
            told.sum(axis=1),
            squares=(told**2).sum(axis=1),
            boundary=far + 0.495,
            fresh=True,
            rewards=(far, far + 1),
            strength=60.0,
        )
        plain = certify(
            [0, 1], [50] * 4, drawn.sum(axis=1), boundary=0.495, fresh=True, strength=60.0
        )
        exact = certify(
            [0, 1],
            [50] * 4,
            drawn.sum(axis=1),
            squares=(drawn**2).sum(axis=1),
            boundary=0.495,
            fresh=True,
            strength=60.0,
        )
        assert exact < 0.8 * plain
        assert exact <= found * (1 + 1e-9)
        assert found <= plain + 1e-5
