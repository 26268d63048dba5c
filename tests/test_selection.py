"""The front door: what goes in, what comes out, and what is refused on the way."""

import asyncio
import functools
import inspect
import random
import subprocess
import sys
import traceback
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shortlist
from shortlist.algorithms import ALGORITHMS, Algorithm
from shortlist.engine.calls import back_off
from shortlist.errors import InvalidInput, InvalidReward, UnknownName
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.search import Answer, Pulls, Rewards, Search

NAMES = ["worst", "bad", "good", "best"]
SURE: dict[str, Any] = {
    "k": 2,
    "epsilon": 0.2,
    "delta": 0.05,
    "algorithm": "adaptive-top-k-tight",
    "progress": False,
}


def coin(arm: int, seed: int) -> bool:
    return random.Random(seed).random() < (arm + 1) / 6


def named_coin(name: str, seed: int) -> bool:
    return coin(NAMES.index(name), seed)


def coins(arm: int, times: int, seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random(times) < (arm + 1) / 6


async def async_coin(arm: int, seed: int) -> bool:
    await asyncio.sleep(0)
    return coin(arm, seed)


async def async_coins(arm: int, times: int, seed: int) -> np.ndarray[Any, Any]:
    await asyncio.sleep(0)
    return coins(arm, times, seed)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> list[Rewards]:
    """A search called "scripted" that pulls arm 1 three times and arm 0 twice, then arm 1 once
    more; what it is told.

    It claims a bound of half of what its epsilon allows on the unit scale, or of twice that if its
    budget is odd."""
    told: list[Rewards] = []

    def search(problem: Problem, rng: np.random.Generator) -> Search:
        told.append((yield Pulls(np.array([1, 0, 1]), np.array([2, 2, 1]))))
        told.append((yield Pulls(np.array([1]), np.array([1]))))
        if isinstance(problem.goal, FixedBudget):
            return Answer(np.array([1]))
        factor = 2 if problem.goal.budget and problem.goal.budget % 2 else 0.5
        return Answer(np.array([1]), problem.epsilon * factor, 1 - problem.delta)

    goals = (FixedConfidence, FixedBudget)
    monkeypatch.setitem(
        ALGORITHMS, "scripted", Algorithm("scripted", search, goals, "none", "here", capped=True)
    )
    return told


def test_the_front_door_is_the_one_that_was_agreed() -> None:
    parameters = inspect.signature(shortlist.select).parameters
    assert next(iter(parameters)) == "pull"
    assert {
        "arms",
        "k",
        "epsilon",
        "delta",
        "budget",
        "rewards",
        "algorithm",
        "seed",
        "pull_many",
    } <= set(parameters)
    assert all(
        each.kind is each.KEYWORD_ONLY for name, each in parameters.items() if name != "pull"
    )
    assert (parameters["delta"].default, parameters["seed"].default) == (0.05, 0)


def test_the_best_are_found_with_the_guarantee_asked_for() -> None:
    result = shortlist.select(coin, arms=5, seed=1, **SURE)
    assert set(result.top) == {3, 4}
    assert (result.regret_bound, result.confidence, result.reached) == (0.2, 0.95, True)
    assert result.pulls == sum(arm.pulls for arm in result.arms)
    assert result.top == tuple(
        sorted(result.top, key=lambda arm: -(result.arms[int(arm)].mean or 0))
    )


def test_a_function_is_given_the_label_and_the_result_speaks_of_labels() -> None:
    result = shortlist.select(named_coin, arms=NAMES, seed=1, **SURE)
    assert set(result.top) == {"good", "best"}
    assert [arm.label for arm in result.arms] == NAMES
    assert result.to_dict()["top"] == list(result.top)


def test_a_budget_alone_is_kept_and_promises_nothing() -> None:
    result = shortlist.select(coin, arms=5, k=2, budget=203, algorithm="uniform", progress=False)
    assert result.pulls == 203
    assert (result.regret_bound, result.confidence, result.reached) == (None, None, None)


@pytest.mark.parametrize(
    ("budget", "reached", "bound"), [(99, False, 0.4), (100, True, 0.1), (None, True, 0.1)]
)
def test_a_capped_search_says_whether_it_reached_epsilon(
    scripted: list[Rewards], budget: int | None, reached: bool, bound: float
) -> None:
    result = shortlist.select(
        lambda arm: 5, arms=2, k=1, epsilon=0.2, budget=budget, rewards=(1, 9), algorithm="scripted"
    )
    assert result.reached is reached
    assert result.regret_bound == pytest.approx(bound)


def test_the_search_sees_unit_rewards_and_the_user_his_own(scripted: list[Rewards]) -> None:
    values = iter([1, 9, 5, 3, 7, 9])  # interleaved: arms 1, 0, 1, 1, 0, and then 1 again
    result = shortlist.select(
        lambda arm: next(values),
        arms=["x", "y"],
        k=1,
        epsilon=1,
        rewards=(1, 9),
        algorithm="scripted",
    )
    assert [told.sums.tolist() for told in scripted] == [[0.25, 1.75, 0.5], [1.0]]
    assert [arm.mean for arm in result.arms] == [8.0, 4.5]
    second = result.arms[1]
    assert (second.label, second.pulls, second.mean, second.chosen) == ("y", 4, 4.5, True)


@pytest.mark.parametrize(
    "function", [{"pull": coin}, {"pull_many": coins}, {"pull_many": coins, "batch": 7}]
)
def test_the_seed_settles_everything(function: dict[str, Any]) -> None:
    first, again, other = (
        shortlist.select(**function, arms=5, seed=seed, **SURE) for seed in (1, 1, 2)
    )
    assert first == again
    assert first.arms != other.arms
    assert set(first.top) == set(other.top) == {3, 4}


def test_pull_many_is_asked_once_per_entry_or_for_at_most_a_batch(scripted: list[Rewards]) -> None:
    asked: list[tuple[int, int]] = []

    def many(arm: int, times: int) -> list[float]:
        asked.append((arm, times))
        return [0.5] * times

    shortlist.select(pull_many=many, arms=2, k=1, budget=9, algorithm="scripted")
    assert asked == [(1, 2), (0, 2), (1, 1), (1, 1)]
    asked.clear()
    shortlist.select(pull_many=many, arms=2, k=1, budget=9, algorithm="scripted", batch=1)
    assert asked == [(1, 1), (0, 1), (1, 1), (1, 1), (0, 1), (1, 1)]


@given(st.permutations(range(5)))
def test_relabelling_arms_relabels_the_answer(order: list[int]) -> None:
    """Every arm gives the same rewards whatever its place: with clear gaps the same labels are
    chosen."""
    labels = [f"arm {arm}" for arm in order]
    rewards = {f"arm {arm}": arm / 4 for arm in order}
    result = shortlist.select(
        rewards.__getitem__, arms=labels, k=2, budget=50, algorithm="sar", progress=False
    )
    assert result.top == ("arm 4", "arm 3")


def test_a_refused_reward_ends_the_run_at_once() -> None:
    pulled = []

    def pull(arm: str) -> float | None:
        pulled.append(arm)
        return None if arm == "good" else 0.5

    with pytest.raises(
        InvalidReward, match="a reward of arm 'good' is None, but must be a number between 0 and 1"
    ):
        shortlist.select(pull, arms=NAMES, **SURE)
    assert pulled[-1] == "good"
    assert len(pulled) <= len(NAMES)


def test_an_error_of_the_function_is_passed_on_with_the_arm() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        shortlist.select(lambda arm: 1 / 0, arms=NAMES, **SURE)
    assert caught.value.__notes__ == [
        "raised while evaluating arm 'worst', pull 0",
        "this was the very first call, attempt 1: such an error is raised at once",
    ]


def test_an_arm_that_fails_may_retire() -> None:
    def fails(arm: str, seed: int) -> bool:
        if arm == "broken":
            raise OSError("gone")
        return coin({"good": 0, "bad": 4, "broken": 1}[arm], seed)

    arms = ["good", "bad", "broken"]
    how: dict[str, Any] = {"arms": arms, "k": 1, "epsilon": 0.3, "retries": 0, "progress": False}
    result = shortlist.select(fails, on_failure="retire", **how)
    assert [arm.label for arm in result.arms if arm.retired] == ["broken"]
    with pytest.raises(OSError, match="gone"):
        shortlist.select(fails, **how)


def test_a_function_that_runs_out_is_not_taken_for_the_end_of_the_search() -> None:
    values = iter([0.5] * 20)
    for executor in (None, "threads"):
        with pytest.raises(StopIteration):
            shortlist.select(lambda arm: next(values), arms=4, executor=executor, **SURE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pull": None}, "neither of `pull` and `pull_many`"),
        ({"pull_many": coins}, "both `pull` and `pull_many`"),
        ({"k": 5}, r"`k` is 5, but must be between 1 and n_arms - 1 = 4"),
        ({"arms": ["a", "b", "a"]}, "two arms are called 'a'"),
        ({"seed": -1}, "`seed` is -1"),
        ({"batch": 3}, "`batch` is 3, but only `pull_many`"),
        ({"pull": None, "pull_many": coins, "batch": 0}, "`batch` is 0"),
        ({"workers": 0}, "`workers` is 0"),
        ({"rewards": (1, 0)}, "`high` is 0"),
        ({"options": {"tight": True}}, "option 'tight' is unknown"),
        (
            {"pull": async_coin, "executor": "threads"},
            "`executor` is 'threads', but an async function runs",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_pulled(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        shortlist.select(**{"pull": coin, "arms": 5, **SURE, **changes})


class AsyncCoin:
    async def __call__(self, arm: int, seed: int) -> bool:
        return coin(arm, seed)


@pytest.mark.parametrize("pull", [async_coin, AsyncCoin(), functools.partial(async_coin)])
def test_an_async_function_gives_what_an_ordinary_one_does(pull: Any) -> None:
    expected = shortlist.select(coin, arms=5, **SURE)
    assert shortlist.select(pull, arms=5, **SURE) == expected
    assert asyncio.run(shortlist.select_async(pull, arms=5, **SURE)) == expected


def test_an_async_function_may_pull_many() -> None:
    expected = shortlist.select(pull_many=coins, arms=5, batch=9, **SURE)
    assert shortlist.select(pull_many=async_coins, arms=5, batch=9, **SURE) == expected


def test_select_inside_an_event_loop_says_what_to_await() -> None:
    async def main() -> None:
        shortlist.select(async_coin, arms=5, **SURE)

    with pytest.raises(InvalidInput, match="write `await select_async"):
        asyncio.run(main())


def test_no_traceback_speaks_of_event_loops() -> None:
    async def broken(arm: str) -> float:
        raise ConnectionError("down")

    with pytest.raises(ConnectionError) as caught:
        shortlist.select(broken, arms=NAMES, k=1, budget=20, retries=0)
    assert "event loop" not in "".join(traceback.format_exception(caught.value))


FAILING_TWICE = """
import shortlist
from shortlist.engine import calls
calls.FIRST_PAUSE = 0.001
made = []
def pull(arm):
    made.append(arm)
    if len(made) in (5, 6):
        raise ConnectionError("busy")
    return arm / 4
shortlist.select(pull, arms=4, k=1, budget=20, workers={workers}, progress={progress})
"""


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("progress", [False, True])
def test_without_progress_no_retry_is_printed(workers: int | None, progress: bool) -> None:
    code = FAILING_TWICE.format(workers=workers, progress=progress)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "")
    assert ("failed in attempt 1 of 3" in run.stderr) is progress
    assert progress or run.stderr == ""


def test_a_retry_draws_nothing_from_the_shared_generator() -> None:
    random.seed(7)
    before = random.getstate()
    back_off(3)
    assert random.getstate() == before


def test_an_ordinary_function_works_inside_an_event_loop() -> None:
    async def main() -> shortlist.Result:
        return shortlist.select(coin, arms=5, **SURE)

    assert set(asyncio.run(main()).top) == {3, 4}


def test_select_async_refuses_an_ordinary_function() -> None:
    ordinary: Any = coin
    with pytest.raises(InvalidInput, match="is not async"):
        asyncio.run(shortlist.select_async(ordinary, arms=5, **SURE))


@pytest.mark.parametrize("workers", [1, 3])
def test_as_many_async_evaluations_are_under_way_as_workers(workers: int) -> None:
    under_way, most = 0, 0

    async def pull(arm: int) -> float:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return 0.5

    shortlist.select(pull, arms=5, k=2, budget=20, algorithm="uniform", workers=workers)
    assert most == workers


def test_a_failing_async_evaluation_ends_the_others() -> None:
    ended = []

    async def pull(arm: int) -> float:
        if arm == 3:
            raise KeyError(arm)
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(arm)
        return 0.5

    async def main() -> int:
        with pytest.raises(KeyError) as caught:
            await shortlist.select_async(
                pull, arms=5, k=2, budget=20, algorithm="uniform", workers=5, retries=0
            )
        assert caught.value.__notes__ == ["raised while evaluating arm 3, pull 0"]
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1  # only this one is left
    assert sorted(ended) == [0, 1, 2, 4]


def test_a_control_is_one_of_the_arms_and_the_result_compares_the_others_with_it() -> None:
    result = shortlist.select(coin, arms=4, control=2, **SURE)
    later = asyncio.run(shortlist.select_async(async_coin, arms=4, control=2, **SURE))
    assert result == later
    assert result.control == 2
    assert result.lift() == shortlist.select(coin, arms=4, **SURE).lift(2)
    left = iter(range(7))
    with pytest.raises(StopIteration) as stopped:
        shortlist.select(lambda arm: float(next(left) % 2), arms=4, control=2, **SURE)
    assert stopped.value.partial.lift().control == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"control": "good", "arms": 4}, "`control` is 'good', but must be one of the arms"),
        ({"control": 4, "arms": 4}, "`control` is 4, but must be one of the arms"),
        ({"control": 0, "arms": 4, "items": 9}, "`control` is 0, but intervals are for indep"),
    ],
)
def test_a_control_that_cannot_be_is_refused_before_anything_is_paid(
    asked: dict[str, Any], message: str
) -> None:
    with pytest.raises((InvalidInput, UnknownName), match=message):
        shortlist.select(
            lambda *_: pytest.fail("paid"), **{**SURE, "algorithm": "certified", **asked}
        )
    with pytest.raises(InvalidInput, match="`control` is 0, but intervals need rewards that are"):
        shortlist.select(lambda *_: pytest.fail("paid"), arms=4, k=1, budget=9, control=0)
