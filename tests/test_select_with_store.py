"""Nothing paid is lost: a selection with a store goes on, and an error carries what was found."""

import asyncio
import random
import signal
import socket
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist
from shortlist.engine import Experiment, calls
from shortlist.engine.workers import release_the_dead
from shortlist.errors import EvaluationFailed, InvalidInput, InvalidReward, StoreExists

MEANS = {"a": 0.2, "b": 0.8, "c": 0.5, "d": 0.7}
ASKED: dict[str, Any] = {"arms": list(MEANS), "k": 2, "progress": False, "rewards": "binary"}


def pull(arm: str, seed: int) -> float:
    return float(random.Random(seed).random() < MEANS[arm])


class Failing:
    """Evaluates arms until it is to fail, once, and counts the pulls that it made."""

    def __init__(self, after: int, error: BaseException) -> None:
        self.left, self.error = after, error
        self.made: Counter[tuple[str, int]] = Counter()

    def __call__(self, arm: str, seed: int) -> float:
        self.left -= 1
        if self.left == 0:
            raise self.error
        self.made[arm, seed] += 1
        return pull(arm, seed)


@pytest.mark.parametrize("goal", [{"budget": 120}, {"epsilon": 0.3, "control": "c"}])
@pytest.mark.parametrize("workers", [None, 4])
def test_a_store_changes_nothing_about_the_result(
    tmp_path: Path, goal: dict[str, Any], workers: int | None
) -> None:
    kept = shortlist.select(pull, **ASKED, **goal, store=tmp_path / "s.db", workers=workers)
    assert kept == shortlist.select(pull, **ASKED, **goal)
    assert kept == shortlist.select(fails, **ASKED, **goal, store=tmp_path / "s.db")


def fails(arm: str) -> float:
    raise AssertionError(f"{arm} was pulled, but the answer is there")


@pytest.mark.parametrize("error", [ZeroDivisionError("no"), KeyboardInterrupt()])
def test_the_same_call_goes_on_after_an_error(tmp_path: Path, error: BaseException) -> None:
    function = Failing(50, error)
    with pytest.raises(type(error)) as caught:
        shortlist.select(function, **ASKED, budget=120, store=tmp_path / "s.db", retries=0)
    assert caught.value.partial.pulls == 49  # type: ignore[attr-defined]
    with Experiment.open(tmp_path / "s.db") as experiment:
        assert experiment.status().told == 49
        assert experiment.status().held == 0
    kept = shortlist.select(function, **ASKED, budget=120, store=tmp_path / "s.db")
    assert kept == shortlist.select(pull, **ASKED, budget=120)
    assert set(function.made.values()) == {1}


def test_an_experiment_that_somebody_stopped_goes_on(tmp_path: Path) -> None:
    failing = Failing(10, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        shortlist.select(failing, **ASKED, budget=120, store=tmp_path / "s.db", retries=0)
    with Experiment.open(tmp_path / "s.db") as experiment:
        for _ in range(3):
            experiment.fail(experiment.ask()[0], "no")
        assert experiment.status().state == "stopped"
    kept = shortlist.select(pull, **ASKED, budget=120, store=tmp_path / "s.db")
    assert kept == shortlist.select(pull, **ASKED, budget=120)


def test_without_a_store_the_error_carries_what_was_found() -> None:
    for goal in ({"budget": 120}, {"epsilon": 0.1}):
        with pytest.raises(ZeroDivisionError) as caught:
            shortlist.select(Failing(80, ZeroDivisionError()), **ASKED, **goal, retries=0)
        partial: shortlist.Result = caught.value.partial  # type: ignore[attr-defined]
        assert partial.partial
        assert partial.pulls == sum(arm.pulls for arm in partial.arms) == 79
        assert set(partial.top) == {"b", "d"}
        assert "`partial`" in caught.value.__notes__[-1]
    assert partial.regret_bound is not None


def test_rewards_of_many_pulls_are_carried_too() -> None:
    calls = 0

    def many(arm: str, times: int, seed: int) -> list[float]:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise ZeroDivisionError
        return [pull(arm, seed + each) for each in range(times)]

    with pytest.raises(ZeroDivisionError) as caught:
        shortlist.select(pull_many=many, **ASKED, budget=300, retries=0)
    assert caught.value.partial.pulls > 8  # type: ignore[attr-defined]


def test_an_error_of_the_first_call_carries_a_result_without_pulls() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        shortlist.select(Failing(1, ZeroDivisionError()), **ASKED, budget=120)
    partial: shortlist.Result = caught.value.partial  # type: ignore[attr-defined]
    assert partial.partial
    assert (partial.pulls, partial.regret_bound) == (0, None)
    assert not any("`partial`" in note for note in caught.value.__notes__)


def test_a_reward_that_is_none_ends_the_call_and_not_the_experiment(tmp_path: Path) -> None:
    with pytest.raises(InvalidReward):
        shortlist.select(lambda _: 7, **ASKED, budget=120, store=tmp_path / "s.db")
    assert (
        shortlist.select(pull, **ASKED, budget=120, store=tmp_path / "s.db").top
        == shortlist.select(pull, **ASKED, budget=120).top
    )


def test_an_async_function_is_kept_too(tmp_path: Path) -> None:
    async def ask(arm: str, seed: int) -> float:
        await asyncio.sleep(0)
        return pull(arm, seed)

    kept = shortlist.select(ask, **ASKED, budget=120, store=tmp_path / "s.db")
    assert kept == shortlist.select(pull, **ASKED, budget=120)


@pytest.mark.parametrize("batch", [None, 3])
def test_lists_of_rewards_are_kept_too(tmp_path: Path, batch: int | None) -> None:
    calls = 0

    def many(arm: str, times: int, seed: int) -> list[float]:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise KeyboardInterrupt
        assert batch is None or times <= batch
        return [pull(arm, seed + each) for each in range(times)]

    given: dict[str, Any] = {"pull_many": many, **ASKED, "budget": 120, "batch": batch}
    with pytest.raises(KeyboardInterrupt) as caught:
        shortlist.select(**given, store=tmp_path / "s.db")
    assert 8 <= caught.value.partial.pulls < 120  # type: ignore[attr-defined]
    kept = shortlist.select(**given, store=tmp_path / "s.db")
    assert kept == shortlist.select(**given)


def test_other_settings_in_the_same_store_are_refused(tmp_path: Path) -> None:
    shortlist.select(pull, **ASKED, budget=120, store=tmp_path / "s.db")
    with pytest.raises(StoreExists, match="budget = 120 and not 130"):
        shortlist.select(pull, **ASKED, budget=130, store=tmp_path / "s.db")
    other = shortlist.select(pull, **ASKED, budget=130, store=tmp_path / "s.db", name="other")
    assert other.pulls <= 130


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"pull": pull, "batch": 3}, "`batch` is 3"),
        ({"pull": pull, "workers": 0}, "`workers` is 0"),
        ({"pull": pull, "retries": -1}, "`retries` is -1"),
        ({"pull": pull, "timeout": 0}, "`timeout` is 0"),
        ({"pull": pull, "name": ""}, "`name` is ''"),
    ],
)
def test_what_makes_no_sense_is_refused_before_there_is_a_file(
    tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        shortlist.select(**given, **ASKED, budget=120, store=tmp_path / "s.db")
    assert not list(tmp_path.iterdir())


class Moody:
    """Fails twice on some pulls, none of which is the first, before it gives their reward."""

    def __init__(self) -> None:
        self.tries: Counter[int] = Counter()

    def __call__(self, arm: str, seed: int, draw: int) -> float:
        self.tries[seed] += 1
        if (arm, draw) in (("b", 2), ("c", 0)) and self.tries[seed] < 3:
            raise ZeroDivisionError
        return pull(arm, seed)


def test_a_call_that_fails_is_made_again_after_growing_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    def wait(_: calls.Stop, seconds: float) -> bool:
        pauses.append(seconds)
        return False

    monkeypatch.setattr(calls.Stop, "wait", wait)
    patient = shortlist.select(Moody(), **ASKED, budget=60)
    assert patient == shortlist.select(pull, **ASKED, budget=60)
    first, second = pauses[:2]
    assert 0.25 <= first <= 0.75  # seconds: 0.5, give or take a half, and twice that
    assert 0.5 <= second <= 1.5
    with pytest.raises(ZeroDivisionError) as caught:
        shortlist.select(Moody(), **ASKED, budget=60, retries=1)
    assert "this was attempt 2 of 2" in caught.value.__notes__


@pytest.mark.parametrize("more", [{}, {"workers": 2}, {"executor": "threads"}])
def test_an_error_of_the_very_first_call_is_raised_at_once(more: dict[str, Any]) -> None:
    calls = []

    def broken(arm: str) -> float:
        calls.append(arm)
        if len(calls) > 1:
            return 1.0
        raise NameError("no such name")

    with pytest.raises(NameError) as caught:
        shortlist.select(broken, **ASKED, budget=60, **more)
    assert caught.value.__notes__[0] == "raised while evaluating arm 'a', pull 0"


def test_an_async_call_that_fails_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "FIRST_PAUSE", 0.001)
    tries: Counter[int] = Counter()

    async def moody(arm: str, seed: int, draw: int) -> float:
        tries[seed] += 1
        if draw and tries[seed] == 1:
            raise ZeroDivisionError
        if draw and tries[seed] == 2:
            await asyncio.sleep(60)
        return pull(arm, seed)

    patient = shortlist.select(moody, **ASKED, budget=20, retries=2, timeout=0.05, workers=20)
    assert patient == shortlist.select(pull, **ASKED, budget=20)


@pytest.mark.parametrize("workers", [None, 2])
def test_a_call_that_takes_too_long_has_failed(workers: int | None) -> None:
    over, ended = threading.Event(), list[bool]()

    def endless(_: object) -> float:
        ended.append(over.wait(120))
        return 1.0

    with pytest.raises(EvaluationFailed, match=r"it took longer than 0\.05 s"):
        shortlist.select(endless, **ASKED, budget=20, timeout=0.05, workers=workers)
    assert not ended
    over.set()


def test_a_timeout_of_the_function_itself_is_its_own() -> None:
    def times_out(arm: str) -> float:
        raise TimeoutError(f"{arm} did not answer")

    async def times_out_too(arm: str) -> float:
        raise TimeoutError(f"{arm} did not answer")

    for function in (times_out, times_out_too):
        with pytest.raises(TimeoutError, match="did not answer"):
            shortlist.select(function, **ASKED, budget=20, timeout=5)


def test_what_a_program_held_that_is_gone_is_made_at_once(tmp_path: Path) -> None:
    with Experiment.create(
        list(MEANS), 2, budget=40, rewards="binary", store=tmp_path / "s.db"
    ) as experiment:
        dead = f"{socket.gethostname()}:{2**22 + 1}"  # above the largest number of a process
        living = f"{socket.gethostname()}:1"
        elsewhere = "another machine:4194305"
        for holder in (dead, living, elsewhere):
            experiment.ask(2, holder, alive=1.0)
        release_the_dead(experiment)
        assert experiment.status().held == 4
        assert set(experiment.status().workers) == {living, elsewhere}


@pytest.mark.parametrize("executor", [np.array([True, False]), "", 0])
def test_an_executor_that_is_none_is_refused_with_a_store_too(
    tmp_path: Path, executor: object
) -> None:
    with pytest.raises(InvalidInput, match=r"`executor` is .*, but must be 'threads'"):
        shortlist.select(
            lambda arm: 1.0,
            arms=3,
            k=1,
            budget=9,
            store=tmp_path / "kept.db",
            executor=executor,
            progress=False,
        )


def test_an_interrupt_of_an_async_function_has_the_result_so_far() -> None:
    """`asyncio.run` cancels what is under way, and raises an interrupt of its own."""
    calls = 0

    async def interrupted(arm: int) -> float:
        nonlocal calls
        calls += 1
        if calls == 20:
            signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
        return float(arm)

    with pytest.raises(KeyboardInterrupt) as caught:
        shortlist.select(interrupted, arms=3, k=1, budget=60, workers=2, progress=False)
    assert 10 < caught.value.partial.pulls < 60  # type: ignore[attr-defined]
    assert "`partial` of this error" in caught.value.__notes__[0]
