"""Rewards: which are taken, and how those of a request are added up."""

import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.engine.numbering import Numbering
from shortlist.engine.rewards import Received, checked_reward, checked_rewards
from shortlist.errors import InvalidReward
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian
from shortlist.search import Pulls

LABEL = "page 'b'"
NAME = f"a reward of arm {LABEL!r}"
FROM_0 = "from 0 (subtract a constant from the rewards)"


@pytest.mark.parametrize(
    "reward", [True, 1, 1.0, np.float32(1), np.int64(1), np.bool_(True), Fraction(1)]
)
@pytest.mark.parametrize("model", [Binary(), Bounded(), SubGaussian(0.5)])
def test_every_kind_of_number_is_a_reward(reward: object, model: RewardModel) -> None:
    taken = checked_reward(reward, NAME, model)
    assert type(taken) is float
    assert taken == 1


NOT_NUMBERS = [
    None,
    "1",
    b"1",
    [1],
    1j,
    float("nan"),
    float("inf"),
    -float("inf"),
    np.array([1.0]),
    object(),
]


@pytest.mark.parametrize("reward", NOT_NUMBERS)
@pytest.mark.parametrize("model", [Binary(), Bounded(), SubGaussian(0.5)])
def test_what_is_no_finite_number_is_refused(reward: object, model: RewardModel) -> None:
    with pytest.raises(InvalidReward, match=r'a reward of arm "page \'b\'" is .*, but must be '):
        checked_reward(reward, NAME, model)
    with pytest.raises(
        InvalidReward, match=r'rewards? of arm "page \'b\'" (is|are) .*, but must be '
    ):
        checked_rewards([1, reward, 0], 3, LABEL, model)


@pytest.mark.parametrize(
    ("model", "reward", "rule"),
    [
        (Bounded(), -0.001, "a number between 0 and 1"),
        (Bounded(-2, 5), 5.5, "a number between -2 and 5"),
        (Binary(), 0.5, "0 or 1"),
        (SubGaussian(0.5), float("nan"), f"a number at most 1e+09 sigma = 500000000 {FROM_0}"),
        (SubGaussian(2), 1e10, f"a number at most 1e+09 sigma = 2000000000 {FROM_0}"),
    ],
)
def test_a_reward_outside_its_declaration_is_refused_with_the_arm_the_value_and_the_rule(
    model: RewardModel, reward: float, rule: str
) -> None:
    with pytest.raises(InvalidReward) as one_refused:
        checked_reward(reward, NAME, model)
    assert str(one_refused.value) == f"a reward of arm \"page 'b'\" is {reward}, but must be {rule}"
    for many in ([0, reward, 1], (0, reward, 1), np.array([0, reward, 1])):
        with pytest.raises(InvalidReward) as many_refused:
            checked_rewards(many, 3, LABEL, model)
        assert str(many_refused.value) == str(one_refused.value)


@pytest.mark.parametrize(
    "rewards",
    [
        [0, 1, 0],
        (0.0, 1.0, 0.0),
        [False, True, False],
        np.array([0, 1, 0], dtype=np.uint8),
        np.array([0, 1, 0.0]),
    ],
)
@pytest.mark.parametrize("model", [Binary(), Bounded(), SubGaussian(0.5)])
def test_every_list_and_array_of_numbers_is_taken(rewards: object, model: RewardModel) -> None:
    taken = checked_rewards(rewards, 3, LABEL, model)
    assert taken.dtype == np.float64
    assert taken.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ([0, 1], "are 2 numbers, but it was pulled 3 times"),
        ([], "are 0 numbers, but it was pulled 3 times"),
        (np.zeros(4), "are 4 numbers, but it was pulled 3 times"),
        (np.float64(1), "are a single number, but it was pulled 3 times"),
        (1.0, r"are 1\.0, but must be a list or an array"),
        (None, "are None, but must be a list or an array"),
        ("101", "are '101', but must be a list or an array"),
        ({0, 1, 0.5}, "but must be a list or an array"),
        (iter([0, 1, 0]), "but must be a list or an array"),
        (np.zeros((3, 1)), r"is array\(\[0\.\]\), but must be"),
        ([[0], [1], [0, 1]], r"is \[0\], but must be"),
        (["0", "1", "0"], "is '0', but must be"),
        ([1, None, 1], "is None, but must be"),
        ([1, "1", 1], "is '1', but must be"),
    ],
)
def test_anything_but_as_many_numbers_as_pulls_is_refused(rewards: object, message: str) -> None:
    with pytest.raises(InvalidReward, match=message):
        checked_rewards(rewards, 3, LABEL, Bounded())


entries = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), min_size=1, max_size=6)
sizes = st.one_of(st.none(), st.integers(1, 5))


def rewards_of(arm: int, draw: int, times: int) -> np.ndarray:
    return np.array([random.Random(f"{arm} {each}").random() for each in range(draw, draw + times)])


@given(entries, sizes, st.randoms(use_true_random=False))
def test_every_entry_is_answered_by_its_own_pulls_in_whatever_order_results_come(
    asked: list[tuple[int, int]], most: int | None, order: random.Random
) -> None:
    arms, times = (np.array(column, dtype=np.int64) for column in zip(*asked, strict=True))
    replies = []
    for _ in range(3):
        numbering = Numbering(Pulls(arms, times), 7, np.zeros(4, dtype=np.int64), most)
        received = Received(numbering, 4)
        places = numbering.places(numbering.tickets)
        calls = list(zip(numbering.tickets, places.arms, places.draws, places.times, strict=True))
        order.shuffle(calls)
        for ticket, arm, draw, count in calls:
            received.take_many(int(ticket), rewards_of(int(arm), int(draw), int(count)))
        replies.append(received.rewards(np.ones(3)))
    for one, other in pairwise(replies):
        np.testing.assert_array_equal(one.sums, other.sums)
        np.testing.assert_array_equal(one.squares, other.squares)
    drawn = [0] * 4
    for entry, (arm, count) in enumerate(asked):
        own = rewards_of(arm, drawn[arm], count)
        drawn[arm] += count
        assert replies[0].sums[entry] == pytest.approx(own.sum())
        assert replies[0].squares[entry] == pytest.approx((own**2).sum())


@given(entries, st.integers(0, 2**32))
def test_taking_all_rewards_at_once_is_taking_them_one_by_one(
    asked: list[tuple[int, int]], seed: int
) -> None:
    arms, times = (np.array(column, dtype=np.int64) for column in zip(*asked, strict=True))
    numbering = Numbering(Pulls(arms, times), 3, np.zeros(4, dtype=np.int64))
    rewards = 1e6 + np.random.default_rng(seed).random(numbering.total)
    together, one_by_one, in_lists = (Received(numbering, 4) for _ in range(3))
    together.take_all(rewards)
    for ticket, reward in zip(numbering.tickets.tolist(), rewards, strict=True):
        one_by_one.take(ticket, float(reward))
        in_lists.take_many(ticket, np.array([reward]))
    for other in (one_by_one, in_lists):
        np.testing.assert_array_equal(
            together.rewards(np.ones(3)).sums, other.rewards(np.ones(3)).sums
        )
        np.testing.assert_array_equal(
            together.rewards(np.ones(3)).squares, other.rewards(np.ones(3)).squares
        )


def test_single_rewards_come_by_arm_and_draw_whatever_the_calls_were() -> None:
    """Arm 2 stands in the request twice; a call makes two pulls at most."""
    request = Pulls(np.array([2, 0, 2]), np.array([3, 1, 2]))
    numbering = Numbering(request, 0, np.array([0, 0, 4]), 2)
    received = Received(numbering, 3)
    _, arms, draws, times = numbering.places(numbering.tickets)
    for ticket, *call in zip(numbering.tickets.tolist(), arms, draws, times, strict=True):
        arm, draw, pulls = (int(each) for each in call)
        received.take_many(ticket, 100 * arm + np.arange(float(draw), draw + pulls))
    found, rewards = received.by_draw()
    assert found.tolist() == [0, 2, 2, 2, 2, 2]
    assert rewards.tolist() == [0, 204, 205, 206, 207, 208]
