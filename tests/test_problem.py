"""What is asked: refused where it makes no sense, and the same question on every scale and from
below."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.arrays import ROUNDED
from shortlist.errors import InvalidInput, UnsupportedGoal
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian
from shortlist.validation import number, whole

GOAL = FixedConfidence(0.1, 0.05)
sizes = st.integers(2, 50).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n - 1)))


@pytest.mark.parametrize(
    ("n_arms", "k", "message"),
    [
        (5, 7, "`k` is 7, but must be between 1 and n_arms - 1 = 4"),
        (5, 5, "`k` is 5, but must be between 1 and n_arms - 1 = 4"),
        (5, 0, "`k` is 0, but must be a whole number of at least 1"),
        (5, 2.0, "`k` is 2.0, but must be a whole number"),
        (5, True, "`k` is True, but must be a whole number"),
        (1, 1, "`n_arms` is 1, but must be a whole number of at least 2"),
    ],
)
def test_k_arms_must_be_fewer_than_there_are(n_arms: int, k: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Problem(n_arms, k, GOAL)


@pytest.mark.parametrize("epsilon", [0, -0.1, float("nan"), float("inf"), "0.1", True])
def test_epsilon_must_be_positive_and_finite(epsilon: Any) -> None:
    with pytest.raises(
        InvalidInput, match=r"`epsilon` is .*, but must be a finite number greater than 0"
    ):
        FixedConfidence(epsilon, 0.05)


@pytest.mark.parametrize("delta", [0, 1, 1.5, -0.1, float("nan")])
def test_delta_must_lie_strictly_between_0_and_1(delta: float) -> None:
    with pytest.raises(
        InvalidInput, match=r"`delta` is .*, but must be a number greater than 0 and less than 1"
    ):
        FixedConfidence(0.1, delta)


def test_a_budget_of_pulls_must_be_a_whole_number() -> None:
    for goal in (FixedBudget(10.5), FixedConfidence(0.1, 0.05, 10.5)):
        with pytest.raises(InvalidInput, match=r"`budget` is 10\.5, but must be a whole number"):
            Problem(5, 2, goal)
        assert Problem(5, 2, goal, costs=(1, 2, 1, 1, 1)).goal.budget == 10.5


@pytest.mark.parametrize("budget", [0, -5, -0.5, float("nan"), float("inf"), "9", True, None])
def test_a_budget_must_be_a_positive_number(budget: Any) -> None:
    with pytest.raises(InvalidInput, match="`budget` is"):
        FixedBudget(budget)
    if budget is None:
        return
    with pytest.raises(InvalidInput, match="`budget` is"):
        FixedConfidence(0.1, 0.05, budget)


def test_a_range_of_rewards_must_not_be_empty_or_infinite() -> None:
    with pytest.raises(InvalidInput, match=r"`high` is 1, but must be greater than low = 1"):
        Bounded(1, 1)
    with pytest.raises(InvalidInput, match="`high` is inf"):
        Bounded(0, float("inf"))
    with pytest.raises(InvalidInput, match="`sigma` is 0"):
        SubGaussian(0)


@pytest.mark.parametrize(
    ("model", "admitted", "refused"),
    [
        (Binary(), (0, 1, 1.0), (0.5, -1, 2, float("nan"))),
        (Bounded(-1, 3), (-1, 0.5, 3), (-1.01, 3.01, float("nan"), float("inf"))),
        (
            SubGaussian(2),
            (-100.0, 100.0, 2e9, -2e9),
            (float("nan"), float("inf"), 2.001e9, -2.001e9),
        ),
    ],
)
def test_a_model_admits_the_rewards_it_declares(
    model: RewardModel, admitted: tuple[float, ...], refused: tuple[float, ...]
) -> None:
    assert all(model.admits(reward) for reward in admitted)
    assert not any(model.admits(reward) for reward in refused)
    expected = [True] * len(admitted) + [False] * len(refused)
    np.testing.assert_array_equal(model.admits(np.array(admitted + refused)), expected)


@pytest.mark.parametrize("model", [Binary(), Bounded(-1, 3), SubGaussian(2)])
def test_the_unit_scale_divides_epsilon_by_the_scale_and_is_reached_in_one_step(
    model: RewardModel,
) -> None:
    unit = Problem(5, 2, GOAL, model).unit()
    assert unit.epsilon == pytest.approx(0.1 / model.scale)
    assert unit.delta == 0.05
    assert (unit.rewards.shift, unit.rewards.scale) == (0, 1)
    assert unit.unit() == unit


@given(sizes, st.floats(0.001, 1))
def test_the_complement_allows_the_same_total_loss_and_is_its_own_inverse(
    size: tuple[int, int], epsilon: float
) -> None:
    n, k = size
    problem = Problem(n, k, FixedConfidence(epsilon, 0.05))
    other = problem.complement()
    assert isinstance(other.goal, FixedConfidence)
    assert other.k == n - k
    assert other.k * other.goal.epsilon == pytest.approx(k * epsilon)
    assert other.complement().epsilon == pytest.approx(epsilon)


def test_a_goal_is_asked_only_for_what_it_has() -> None:
    budget, confidence = Problem(5, 2, FixedBudget(100)), Problem(5, 2, GOAL)
    assert (budget.budget, confidence.epsilon, confidence.delta) == (100, 0.1, 0.05)
    assert Problem(5, 2, FixedConfidence(0.1, 0.05, 70)).budget == 70
    with pytest.raises(UnsupportedGoal, match="needs epsilon and delta"):
        _ = budget.epsilon
    with pytest.raises(UnsupportedGoal, match="has no budget"):
        _ = confidence.budget


def test_an_epsilon_above_1_asks_for_no_more_than_1() -> None:
    assert Problem(5, 2, FixedConfidence(3.0, 0.05)).epsilon == 1


def test_numbers_come_back_as_plain_python_numbers() -> None:
    assert type(whole("n", np.int64(3), at_least=1)) is int
    assert type(number("p", np.float64(3))) is float


@pytest.mark.parametrize("value", [10**400, -(10**400)], ids=["large", "small"])
def test_numbers_too_large_for_a_float_are_refused_like_infinite_ones(value: int) -> None:
    with pytest.raises(InvalidInput, match="but must be a finite number"):
        number("epsilon", value)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (
            lambda: Bounded(0, 1e201),
            "`high` is 1e[+]201, but must be a number greater than -1e[+]60 and less than 1e",
        ),
        (
            lambda: Bounded(-1.7e308, 1.7e308),
            "`low` is -1.7e[+]308, but must be a number greater than",
        ),
        (
            lambda: Bounded(0, 5e-324),
            "the range is 0 to 5e-324, but must be at least 1e-60 wide",
        ),
        (
            lambda: Bounded(1e13, 1e13 + 1),
            "and at most 1e[+]09 times its width from 0: subtract a constant",
        ),
        (
            lambda: SubGaussian(1e-160),
            "`sigma` is 1e-160, but must be a number greater than 1e-60 and less",
        ),
    ],
)
def test_scales_whose_squares_would_overflow_are_refused(
    declare: Callable[[], RewardModel], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        declare()


def test_numbers_of_any_kind_become_plain_ones() -> None:
    goal = FixedConfidence(np.float32(0.5), np.float64(0.25), np.int64(7))  # type: ignore[arg-type]
    rewards = Bounded(np.int64(0), Fraction(1, 2))  # type: ignore[arg-type]
    problem = Problem(np.int64(5), np.int64(2), goal, rewards)  # type: ignore[arg-type]
    assert json.loads(json.dumps(asdict(problem))) == {
        "n_arms": 5,
        "k": 2,
        "goal": {"epsilon": 0.5, "delta": 0.25, "budget": 7},
        "rewards": {"low": 0, "high": 0.5},
        "minimize": False,
        "blur": 0,
        "items": None,
        "limits": None,
        "costs": None,
        "constraint": None,
        "features": None,
        "shared_seeds": False,
        "traffic": None,
    }


@pytest.mark.parametrize(
    ("n_arms", "k", "rewards", "least"),
    [
        (2, 1, Bounded(), 2.9e-11),
        (100, 1, Bounded(), 1.5e-9),  # rounding of all arms adds up
        (2, 1, Bounded(0, 1e50), 2.9e39),  # far from 1, not far from 0
        (2, 1, Bounded(-1, 1), 8.6e-11),
        (2, 1, Bounded(1e9 - 1, 1e9), 0.029),
        (2, 1, SubGaussian(50), 2.9e-9),
    ],
)
def test_an_epsilon_that_rounding_could_make_up_is_refused_in_the_users_units(
    n_arms: int, k: int, rewards: RewardModel, least: float
) -> None:
    problem = Problem(n_arms, k, FixedConfidence(0.9 * least, 0.05), rewards)
    with pytest.raises(InvalidInput, match=re.escape(f"must be at least {least:.2g}: less")):
        problem.unit()
    enough = FixedConfidence(least, 0.05)  # what the message says
    assert Problem(n_arms, k, enough, rewards).unit().epsilon > 0


def test_an_epsilon_too_large_for_a_float_on_the_unit_scale_is_as_good_as_1() -> None:
    assert Problem(3, 1, FixedConfidence(1e300, 0.05), Bounded(0, 1e-59)).unit().epsilon == 1


def test_only_a_range_away_from_0_blurs_means() -> None:
    goal = FixedConfidence(0.1, 0.05)
    for rewards in (Bounded(), Bounded(0, 7), Binary(), SubGaussian(3)):
        unit = Problem(3, 1, goal, rewards).unit()
        assert unit.sharp_epsilon == unit.epsilon
    far = Problem(3, 1, goal, Bounded(1000, 1001)).unit()
    assert far.blur == ROUNDED * 1001
    assert far.sharp_epsilon == 0.1 - 2 * ROUNDED * 1001


def test_a_delta_that_is_as_good_as_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="`delta` is 5e-324, but must be at least 1e-60"):
        FixedConfidence(0.1, 5e-324)
