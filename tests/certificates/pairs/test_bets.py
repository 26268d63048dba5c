"""What a bet gains, against the sums that define it."""

import numpy as np
import pytest

from shortlist.certificates.pairs.bound import (
    MOST_STAKED,
    RUINED,
    StageRewards,
    curvature,
    log_gains,
)
from shortlist.reward_models import UNIT_SIGMA, Binary, Bounded, SubGaussian

LOW, HIGH = np.array([0.3, 0.2]), np.array([0.6, 0.9])
X = (np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0]))  # rewards of two arms
TIMES = np.array([4, 2])
ADVANCE = np.array([0.4, 1.2])
STRENGTHS = ADVANCE / TIMES[:, None]  # (arm, clock)


def draws(rewards: tuple[np.ndarray, ...] = X) -> StageRewards:
    sums = np.array([x.sum() for x in rewards])
    return StageRewards(TIMES, sums, np.array([(x**2).sum() for x in rewards]))


@pytest.mark.parametrize("model", [Binary(), Bounded()])
def test_bets_on_0_or_1_are_the_product_of_what_each_pull_gains(model: Binary | Bounded) -> None:
    up, down = log_gains(draws(), ADVANCE, LOW, HIGH, model)
    for i, x in enumerate(X):
        for k, strength in enumerate(STRENGTHS[i]):
            rising = np.log(1 + strength * (x - LOW[i])) + strength * LOW[i]
            falling = np.log(1 - strength * (x - HIGH[i])) - strength * HIGH[i]
            assert up[i, k] == pytest.approx(rising.sum())
            assert down[i, k] == pytest.approx(falling.sum())


def test_bets_on_rewards_between_are_bounded_by_their_parabola() -> None:
    rewards = (np.full(4, 0.31), np.full(2, 0.19))  # hardly any variance
    up, _ = log_gains(draws(rewards), ADVANCE, LOW, HIGH, Bounded())
    for i, x in enumerate(rewards):
        for k, strength in enumerate(STRENGTHS[i]):
            gains = strength * (x - LOW[i])
            least = gains - curvature(strength * LOW[[i]]) * gains**2 + strength * LOW[i]
            exact = np.log(1 + gains) + strength * LOW[i]
            assert up[i, k] == pytest.approx(least.sum())
            assert up[i, k] <= exact.sum()


def test_no_bet_stakes_more_than_its_share() -> None:
    one = StageRewards(np.array([1]), np.zeros(1), np.zeros(1))
    strength = np.array([5.0])
    up, down = log_gains(one, strength, np.array([0.8]), np.array([0.1]), Binary())
    assert up[0, 0] == pytest.approx(np.log(1 - MOST_STAKED) + MOST_STAKED)
    high = 1 - MOST_STAKED / 5
    assert down[0, 0] == pytest.approx(np.log1p(5 * high) - 5 * high)


def test_bets_on_rewards_without_a_range_pay_for_their_variance() -> None:
    up, down = log_gains(draws(), ADVANCE, LOW, HIGH, SubGaussian(0.5))
    cost = TIMES[:, None] * (STRENGTHS * UNIT_SIGMA) ** 2 / 2
    drift = STRENGTHS * np.array([x.sum() for x in X])[:, None]
    assert up == pytest.approx(drift - cost)
    assert down == pytest.approx(-drift - cost)


def test_idle_arms_keep_what_their_range_allows_or_nothing() -> None:
    idle = StageRewards(np.array([0, 2]), np.zeros(2), np.zeros(2))
    up, down = log_gains(idle, ADVANCE, LOW, HIGH, Binary())
    assert up[0].tolist() == [0.0, 0.0]
    assert down[0].tolist() == (-ADVANCE).tolist()
    assert (up[1] < 0).all()
    up, down = log_gains(idle, ADVANCE, LOW, HIGH, SubGaussian(0.5))
    assert up[0].tolist() == down[0].tolist() == [RUINED, RUINED]
    assert (up[1] > RUINED / 2).all()


def test_curvature_is_the_least_that_bounds_the_logarithm() -> None:
    for h in (1e-4, 1e-3, 0.2, 0.9):
        a = curvature(np.array([h]))[0]
        y = np.linspace(-h, 3, 1001)
        assert (np.log1p(y) >= y - a * y**2 - 1e-12).all()
        if h >= 1e-3:
            assert np.log1p(-h) == pytest.approx(-h - a * h**2, rel=1e-9)
    assert curvature(np.array([0.0]))[0] == pytest.approx(0.5, abs=1e-3)
