"""Rewards: which are taken, and how those of a request are added up."""

import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.algorithms import ALGORITHMS, Algorithm
from shortlist.engine import Experiment
from shortlist.engine.tickets import Numbering, Received, checked_reward, checked_rewards
from shortlist.errors import InvalidReward
from shortlist.problem import FixedBudget, Problem
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian
from shortlist.search import Answer, Pulls, Rewards, Search

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
    hint = "; for other rewards declare `rewards`, such as (0, 100)" if np.isfinite(reward) else ""
    text = f"a reward of arm \"page 'b'\" is {reward}, but must be {rule}{hint}"
    assert str(one_refused.value) == text
    for many in ([0, reward, 1], (0, reward, 1), np.array([0, reward, 1])):
        with pytest.raises(InvalidReward) as many_refused:
            checked_rewards(many, 3, LABEL, model)
        assert str(many_refused.value) == str(one_refused.value)


def test_a_function_that_returns_nothing_is_asked_whether_it_does() -> None:
    with pytest.raises(
        InvalidReward, match=r"is None, but must be .*; does the function return it"
    ):
        checked_reward(None, NAME, Bounded())


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


entries = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 7)), min_size=1, max_size=6)


def reward_of(arm: int, draw: int) -> float:
    return random.Random(f"{arm} {draw}").random()


@given(entries)
def test_every_entry_is_answered_by_its_own_pulls(asked: list[tuple[int, int]]) -> None:
    arms, times = (np.array(column, dtype=np.int64) for column in zip(*asked, strict=True))
    numbering = Numbering(Pulls(arms, times), 7, np.zeros(4, dtype=np.int64))
    _, owners, draws = numbering.places(numbering.tickets)
    rewards = [reward_of(*each) for each in zip(owners.tolist(), draws.tolist(), strict=True)]
    reply = Received(numbering, np.array(rewards, dtype=np.float64)).rewards(np.ones(4))
    drawn = [0] * 4
    for entry, (arm, count) in enumerate(asked):
        own = np.array([reward_of(arm, draw) for draw in range(drawn[arm], drawn[arm] + count)])
        drawn[arm] += count
        assert reply.sums[entry] == pytest.approx(own.sum())
        assert reply.squares[entry] == pytest.approx((own**2).sum())


@given(entries, st.randoms(use_true_random=False))
def test_a_search_is_sent_the_same_whatever_the_order_in_which_results_come(
    asked: list[tuple[int, int]], order: random.Random
) -> None:
    """To the last digit: sums of floats depend on their order."""
    arms, times = (np.array(column, dtype=np.int64) for column in zip(*asked, strict=True))
    replies: list[Rewards] = []

    def search(problem: Problem, rng: np.random.Generator) -> Search:
        replies.append((yield Pulls(arms, times)))
        return Answer(np.array([0]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ALGORITHMS, "own", Algorithm("own", search, (FixedBudget,), "none", "here"))
        for _ in range(3):
            experiment = Experiment.create(4, 1, budget=99, algorithm="own")
            tickets = list(experiment.ask(99))
            order.shuffle(tickets)
            for ticket in tickets:
                experiment.tell(ticket, 1e6 + reward_of(int(ticket.arm), ticket.draw))
            if tickets:
                experiment.result()
    for one, other in pairwise(replies):
        np.testing.assert_array_equal(one.sums, other.sums)
        np.testing.assert_array_equal(one.squares, other.squares)


def test_single_rewards_come_by_arm_and_draw() -> None:
    """Arm 2 stands in the batch twice."""
    numbering = Numbering(Pulls(np.array([2, 0, 2]), np.array([3, 1, 2])), 0, np.array([0, 0, 4]))
    _, arms, draws = numbering.places(numbering.tickets)
    found, rewards = Received(numbering, (100 * arms + draws).astype(np.float64)).by_draw()
    assert found.tolist() == [0, 2, 2, 2, 2, 2]
    assert rewards.tolist() == [0, 204, 205, 206, 207, 208]
