"""Calls of the user's function: their numbers, their seeds, and what is given by name."""

import functools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist import select
from shortlist.algorithms import ALGORITHMS, Algorithm
from shortlist.engine.calls import Call, Evaluation, wanted_by
from shortlist.engine.tickets import draw_seed
from shortlist.errors import InvalidInput, InvalidReward
from shortlist.problem import FixedBudget, Problem
from shortlist.search import Answer, Pulls, Search


def one(arm: int) -> float:
    return 0.5


def seeded(arm: int, *, seed: int) -> float:
    return random.Random(seed).random()


def seeded_many(arm: int, times: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [rng.random() for _ in range(times)]


entries = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 7)), min_size=1, max_size=6)


def calls_for(asked: list[tuple[int, int]], **how: Any) -> list[tuple[str, int, int, int]]:
    """The calls that a batch of these entries leads to: arm, first draw, number and ticket."""
    arms, times = (np.array(column, dtype=np.int64) for column in zip(*asked, strict=True))

    def search(problem: Problem, rng: np.random.Generator) -> Search:
        yield Pulls(arms, times)
        return Answer(np.array([0]))

    calls: list[tuple[str, int, int, int]] = []

    def many(arm: str, times: int, *, draw: int, ticket: int) -> list[float]:
        calls.append((arm, draw, times, ticket))
        return [0.5] * times

    with pytest.MonkeyPatch.context() as patch:
        scripted = Algorithm("scripted", search, (FixedBudget,), "none", "here")
        patch.setitem(ALGORITHMS, "scripted", scripted)
        given: dict[str, Any] = {"arms": list("abcd"), "k": 1, "budget": 99, "progress": False}
        select(pull_many=many, algorithm="scripted", **given, **how)
    return calls


@given(entries, st.one_of(st.none(), st.integers(1, 5)))
def test_the_calls_of_a_batch_make_every_draw_of_every_arm_exactly_once(
    asked: list[tuple[int, int]], batch: int | None
) -> None:
    drawn: dict[str, list[int]] = {label: [] for label in "abcd"}
    for label, draw, times, _ in calls_for(asked, batch=batch):
        assert 1 <= times <= (batch or 7)
        drawn[label] += range(draw, draw + times)
    for arm, label in enumerate("abcd"):
        total = sum(times for each, times in asked if each == arm)
        assert sorted(drawn[label]) == list(range(total))


def test_calls_are_in_proportion_to_the_pulls_of_an_arm() -> None:
    calls = calls_for([(0, 3), (1, 1), (2, 2)], batch=1)
    assert [label for label, *_ in calls] == list("acabca")
    assert [ticket for *_, ticket in calls] == list(range(6))


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
    ("function", "wanted"),
    [
        (one, ()),
        (seeded, ("seed",)),
        (seeded_many, ("seed",)),
        (Method().pull, ("seed",)),
        (Method(), ()),
        (functools.partial(seeded_many, times=3), ("seed",)),
        (lambda arm, **seed: 0.5, ()),
        (lambda arm, seed, /: 0.5, ()),
        (lambda arm, ticket, *, draw: 0.5, ("draw", "ticket")),
        (lambda arm, ticket=7, draw=100, seed=0: 0.5, ("seed",)),
        (max, ()),
        (dict, ()),
    ],
)
def test_a_function_gets_by_name_a_seed_if_it_has_one_and_the_rest_if_it_must(
    function: Any, wanted: tuple[str, ...]
) -> None:
    assert wanted_by(function) == wanted


def test_what_is_wanted_is_what_the_call_says() -> None:
    def tell(arm: str, *, draw: int, ticket: int, seed: int) -> tuple[object, ...]:
        return arm, draw, ticket, seed

    assert Evaluation.of(tell)(Call(3, "a", 2, 1, 9)) == ("a", 2, 3, 9)


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


def test_a_function_must_have_room_for_what_it_is_called_with_first() -> None:
    with pytest.raises(InvalidInput, match=r"takes \(arm, seed, …\), but it is called with an arm"):
        select(lambda arm, seed: 0.5, arms=2, k=1, budget=4, items=3)
    with pytest.raises(InvalidInput, match="with an arm and a number of pulls first"):
        select(pull_many=lambda arm, seed: [0.5], arms=2, k=1, budget=4)
    with pytest.raises(InvalidInput, match="with an arm first"):
        select(lambda seed: 0.5, arms=2, k=1, budget=4)
    with pytest.raises(InvalidInput, match="is called with an arm and an item, but takes less"):
        select(lambda arm: 0.5, arms=2, k=1, budget=4, items=3)


def test_a_refused_result_is_not_counted_at_all() -> None:
    with pytest.raises(InvalidReward, match=r"a reward of arm \d is 7, but must be"):
        select(pull_many=lambda arm, times: [7] * times, arms=2, k=1, budget=9, rewards=(0, 1))


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
