"""Calls of the user's function: their numbers, their seeds, and the rewards that are taken from
them."""

import functools
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist import select
from shortlist.errors import InvalidInput, InvalidReward
from shortlist.evaluation.calls import (
    Call,
    Evaluation,
    Evaluator,
    checked_reward,
    checked_rewards,
    draw_seed,
    takes_seed,
)
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian
from shortlist.search import Pulls

CALL = Call(0, "page 'b'", 0, 3, None)


def one(arm: int) -> float:
    return 0.5


def seeded(arm: int, *, seed: int) -> float:
    return random.Random(seed).random()


def seeded_many(arm: int, times: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [rng.random() for _ in range(times)]


def pulls(entries: list[tuple[int, int]]) -> Pulls:
    arms, times = zip(*entries, strict=True)
    return Pulls(np.array(arms), np.array(times))


requests = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), min_size=1, max_size=6).map(pulls),
    min_size=1,
    max_size=4,
)
batches = st.one_of(st.none(), st.integers(1, 5))


@given(requests, st.booleans(), batches)
def test_the_calls_of_a_run_make_every_draw_of_every_arm_exactly_once(
    asked: list[Pulls], many: bool, batch: int | None
) -> None:
    run = Evaluator(Evaluation(one, many, False), ["a", "b", "c", "d"], Bounded(), 0, batch)
    drawn: dict[object, list[int]] = {label: [] for label in run.labels}
    for request in asked:
        for call in run.begin(request).calls():
            assert 1 <= call.times <= (batch or 7 if many else 1)
            drawn[call.label] += range(call.draw, call.draw + call.times)
    for arm, label in enumerate(run.labels):
        total = sum(int(request.times[request.arms == arm].sum()) for request in asked)
        assert sorted(drawn[label]) == list(range(total))


@given(requests, st.booleans(), batches, st.randoms(use_true_random=False))
def test_every_entry_is_answered_by_its_own_pulls_in_whatever_order_results_come(
    asked: list[Pulls], many: bool, batch: int | None, order: random.Random
) -> None:
    evaluation = Evaluation.of(None, seeded_many) if many else Evaluation.of(seeded, None)
    replies = []
    for shuffled in (False, True):
        run = Evaluator(evaluation, range(4), Bounded(), 5, batch)
        for request in asked:
            work = run.begin(request)
            calls = list(work.calls())
            if shuffled:
                order.shuffle(calls)
            for call in calls:
                work.take(call, evaluation(call))
            replies.append(work.rewards())
        assert run.pulls == sum(request.total for request in asked)
    for request, plain, shuffled_reply in zip(asked, replies, replies[len(asked) :], strict=False):
        np.testing.assert_array_equal(plain.sums, shuffled_reply.sums)
        np.testing.assert_array_equal(plain.squares, shuffled_reply.squares)
        assert ((plain.sums > 0) == (request.times > 0)).all()


def test_the_reply_holds_the_sum_and_the_squares_of_each_entry() -> None:
    run = Evaluator(Evaluation.of(seeded, None), range(3), Bounded(), 9)
    run.begin(pulls([(2, 4)]))
    work = run.begin(pulls([(2, 2), (0, 1), (2, 3)]))
    for call in work.calls():
        work.take(call, seeded(int(call.label), seed=call.seed or 0))
    x = [
        [seeded(arm, seed=draw_seed(9, arm, draw)) for draw in draws]
        for arm, draws in ((2, [4, 5]), (0, [0]), (2, [6, 7, 8]))
    ]
    assert work.rewards().sums == pytest.approx([sum(each) for each in x])
    assert work.rewards().squares == pytest.approx([sum(value**2 for value in each) for each in x])


def test_all_arms_get_their_first_call_before_any_gets_its_second() -> None:
    run = Evaluator(Evaluation(one, False, False), "abc", Bounded(), 0)
    assert [call.label for call in run.begin(pulls([(0, 3), (1, 1), (2, 2)])).calls()] == list(
        "abcaca"
    )


def test_a_seed_depends_on_run_arm_and_draw_alone_and_never_changes() -> None:
    assert draw_seed(0, 0, 0) == 1317536309490288386
    seeds = {
        draw_seed(run, arm, draw) for run in range(10) for arm in range(10) for draw in range(10)
    }
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**63 for seed in seeds)


class Method:
    def pull(self, arm: int, seed: int = 0) -> float:
        return 0.5

    def __call__(self, arm: int) -> float:
        return 0.5


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (one, False),
        (seeded, True),
        (seeded_many, True),
        (Method().pull, True),
        (Method(), False),
        (functools.partial(seeded_many, times=3), True),
        (lambda arm, **seed: 0.5, False),
        (lambda arm, seed, /: 0.5, False),
        (max, False),
        (dict, False),
    ],
)
def test_a_seed_is_given_to_a_function_with_a_parameter_of_that_name(
    function: Any, takes: bool
) -> None:
    assert takes_seed(function) is takes


@pytest.mark.parametrize(
    ("pull", "pull_many", "message"),
    [
        (None, None, "neither of `pull` and `pull_many` is given"),
        (one, seeded_many, "both `pull` and `pull_many` are given"),
        (0.5, None, r"`pull` is 0\.5, but must be a function"),
        (None, [1], r"`pull_many` is \[1\], but must be a function"),
    ],
)
def test_exactly_one_function_is_taken(pull: Any, pull_many: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Evaluation.of(pull, pull_many)


@pytest.mark.parametrize(
    "reward", [True, 1, 1.0, np.float32(1), np.int64(1), np.bool_(True), Fraction(1)]
)
@pytest.mark.parametrize("model", [Binary(), Bounded(), SubGaussian()])
def test_every_kind_of_number_is_a_reward(reward: object, model: RewardModel) -> None:
    taken = checked_reward(CALL, reward, model)
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
@pytest.mark.parametrize("model", [Binary(), Bounded(), SubGaussian()])
def test_what_is_no_finite_number_is_refused(reward: object, model: RewardModel) -> None:
    with pytest.raises(InvalidReward, match=r'a reward of arm "page \'b\'" is .*, but must be '):
        checked_reward(CALL, reward, model)
    with pytest.raises(
        InvalidReward, match=r'rewards? of arm "page \'b\'" (is|are) .*, but must be '
    ):
        checked_rewards(CALL, [1, reward, 0], model)


@pytest.mark.parametrize(
    ("model", "reward", "rule"),
    [
        (Bounded(), -0.001, "a number between 0 and 1"),
        (Bounded(-2, 5), 5.5, "a number between -2 and 5"),
        (Binary(), 0.5, "0 or 1"),
        (SubGaussian(), float("nan"), "a number between -1e+60 and 1e+60"),
    ],
)
def test_a_reward_outside_its_declaration_is_refused_with_the_arm_the_value_and_the_rule(
    model: RewardModel, reward: float, rule: str
) -> None:
    with pytest.raises(InvalidReward) as one_refused:
        checked_reward(CALL, reward, model)
    assert str(one_refused.value) == f"a reward of arm \"page 'b'\" is {reward}, but must be {rule}"
    for many in ([0, reward, 1], (0, reward, 1), np.array([0, reward, 1])):
        with pytest.raises(InvalidReward) as many_refused:
            checked_rewards(CALL, many, model)
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
@pytest.mark.parametrize("model", [Binary(), Bounded(), SubGaussian()])
def test_every_list_and_array_of_numbers_is_taken(rewards: object, model: RewardModel) -> None:
    taken = checked_rewards(CALL, rewards, model)
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
        checked_rewards(CALL, rewards, Bounded())


def test_a_refused_result_is_not_counted_at_all() -> None:
    run = Evaluator(Evaluation(seeded_many, True, False), ["a"], Bounded(), 0)
    work = run.begin(pulls([(0, 3)]))
    with pytest.raises(InvalidReward):
        work.take(next(work.calls()), [0.5, 0.5, 7])
    assert run.pulls == 0
    assert work.rewards().sums == [0]


def test_rewards_far_from_zero_are_not_rounded_in_one_direction() -> None:
    """Added up one by one, thirty thousand of these would be off by thousands of times the spacing
    of floats there."""
    far = 5e8
    result = select(
        lambda arm: far + 0.24 * arm,
        arms=2,
        k=1,
        budget=30_000,
        rewards=(far, far + 1),
        algorithm="uniform",
    )
    for arm in result.arms:
        assert arm.mean == pytest.approx(
            far + 0.24 * float(arm.label), rel=0, abs=2 * np.spacing(far)
        )
