"""`rate=`: calls start no faster than allowed, and the same calls are made."""

import asyncio
import pickle
from collections.abc import Callable
from concurrent.futures import Executor, Future
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from attack_scale import SCALE
from hypothesis import given, settings
from hypothesis import strategies as st

import shortlist
from shortlist.engine import calls, rate
from shortlist.engine.calls import Attempts, Evaluation, Stop
from shortlist.engine.rate import Pace
from shortlist.errors import InvalidInput

MEANS = {"a": 0.2, "b": 0.5, "c": 0.8}


class Simulated(rate.Clock):
    """A clock that stands still until someone waits."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    async def pause(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)


class AtOnce(Executor):
    """Makes a call when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Simulated:
    simulated = Simulated()
    monkeypatch.setattr(rate, "CLOCK", simulated)
    monkeypatch.setattr(calls, "FIRST_PAUSE", 0.001)
    return simulated


def most_in_a_minute(starts: list[float]) -> int:
    return max(sum(begin <= each < begin + 60 for each in starts) for begin in starts)


def starts_of(pace: Pace, clock: Simulated, number: int, gaps: list[float]) -> list[float]:
    starts: list[float] = []
    for ticket in range(number):
        clock.sleep(gaps[ticket % len(gaps)])
        while not pace.start(ticket):
            clock.sleep(pace.wait())
        pace.drop(ticket)
        starts.append(clock.now())
    return starts


@given(
    st.sampled_from([1, 2.5, 59, 60, 61, 90, 150, 600]),
    st.lists(st.sampled_from([0.0, 0.0, 0.01, 0.3, 2.0, 45.0, 61.0]), min_size=1, max_size=9),
)
@settings(max_examples=20 * SCALE)
def test_no_minute_has_more_requests_than_allowed(per_minute: float, gaps: list[float]) -> None:
    simulated = Simulated()
    pace = Pace({"requests": per_minute}, simulated)
    starts = starts_of(pace, simulated, int(2.5 * per_minute) + 3, gaps)
    assert most_in_a_minute(starts) <= -(-per_minute // 1)


@pytest.mark.parametrize("per_minute", [30, 60, 600, 6000])
def test_nearly_all_that_is_allowed_is_used(per_minute: float) -> None:
    simulated = Simulated()
    starts = starts_of(
        Pace({"requests": per_minute}, simulated), simulated, int(10 * per_minute), [0.0]
    )
    assert starts[-1] - starts[0] <= 10 * 60 * 1.02


def chosen(clock: Simulated, **settings: Any) -> tuple[shortlist.Result, list[float]]:
    starts: list[float] = []

    def pull(arm: str, seed: int) -> float:
        starts.append(clock.now())
        return float(seed % 1000 < 1000 * MEANS[arm])

    given: dict[str, Any] = {"arms": MEANS, "k": 1, "budget": 90, "progress": False, **settings}
    return shortlist.select(pull, **given), starts


WAYS: list[dict[str, Any]] = [{}, {"executor": AtOnce()}, {"executor": AtOnce(), "workers": 7}]


@pytest.mark.parametrize("how", WAYS)
def test_calls_are_paced_and_the_result_is_the_same(clock: Simulated, how: dict[str, Any]) -> None:
    free, at_once = chosen(clock, **how)
    assert at_once[-1] == at_once[0]
    paced, starts = chosen(clock, rate=30, **how)
    assert most_in_a_minute(starts) == 30
    assert len(starts) == 90
    assert starts[-1] - starts[0] == pytest.approx(89 * 2)
    assert paced == free


def test_async_calls_are_paced(clock: Simulated) -> None:
    starts: list[float] = []

    async def pull(arm: str) -> float:
        starts.append(clock.now())
        return MEANS[arm]

    shortlist.select(pull, arms=MEANS, k=1, budget=90, rate=30, workers=1, progress=False)
    assert most_in_a_minute(starts) == 30


def test_threads_keep_to_the_rate_and_change_no_cell() -> None:
    def pull(arm: int, item: int) -> float:
        return float((7 * arm + 3 * item) % 10 < 2 + arm)

    how: dict[str, Any] = {"arms": 4, "k": 1, "items": 60, "epsilon": 0.1, "progress": False}
    free = shortlist.select(pull, workers=4, **how)
    paced = shortlist.select(pull, workers=4, rate=60_000, **how)
    assert (paced.top, paced.regret_bound) == (free.top, free.regret_bound)
    # cells that were asked for ahead and not needed may not have begun
    assert [(arm.pulls, arm.mean) for arm in paced.arms] == [
        (arm.pulls, arm.mean) for arm in free.arms
    ]


def test_an_experiment_is_run_at_a_rate(clock: Simulated) -> None:
    experiment = shortlist.Experiment.create(3, 1, budget=60, algorithm="uniform")
    begun = clock.now()
    experiment.run(float, rate=20, executor=AtOnce(), progress=False, retries=0)
    assert clock.now() - begun == pytest.approx(59 * 3)


def test_batches_of_pulls_are_one_request_each(clock: Simulated) -> None:
    def pull_many(arm: str, times: int) -> list[float]:
        return [MEANS[arm]] * times

    begun, how = clock.now(), {"arms": MEANS, "k": 1, "budget": 90, "progress": False}
    how |= {"algorithm": "uniform", "batch": 10}
    shortlist.select(pull_many=pull_many, rate=1, **how)  # type: ignore[arg-type]
    assert clock.now() - begun == pytest.approx(8 * 60)


@pytest.mark.parametrize("told", ["info", "cost", "declared"])
def test_other_units_are_limited_on_average(clock: Simulated, told: str) -> None:
    used: list[tuple[float, float]] = []

    def pull(arm: str, seed: int) -> Any:
        tokens = 200.0 if told == "declared" else 100 + seed % 200
        used.append((clock.now(), tokens))
        if told == "info":
            return shortlist.Score(MEANS[arm], info={"tokens": tokens})
        return (MEANS[arm], tokens) if told == "cost" else MEANS[arm]

    name = "tokens" if told == "info" else "cost"
    arms = [shortlist.Arm(each, cost=200.0 if told == "declared" else 1.0) for each in MEANS]
    shortlist.select(
        pull,
        arms=arms,
        k=1,
        budget=80_000.0 if name == "cost" else 400,
        rate={name: 3000},
        progress=False,
        algorithm="uniform",
    )
    minutes = (used[-1][0] - used[0][0]) / 60
    total = sum(each for _, each in used)
    assert minutes > 3
    # the bucket, and the calls before the first wait; what is used is repaid by waiting
    assert 0.95 * 3000 * minutes <= total <= 3000 * minutes + 50 + 2 * 300


def test_calls_wait_for_the_first_to_say_what_it_used() -> None:
    pace = Pace({"tokens": 1e6}, Simulated())
    assert pace.start(0)
    assert not pace.start(1)
    assert pace.wait() == float("inf")
    pace.end(0, "a", shortlist.Score(1.0, info={"tokens": 10}), 1.0)
    assert pace.start(1)
    assert pace.start(2)


def test_a_call_under_way_counts_as_the_mean_until_it_ends() -> None:
    simulated = Simulated()
    pace = Pace({"tokens": 6000}, simulated)  # 100 at once
    assert pace.start(0)
    pace.end(0, "a", shortlist.Score(1.0, info={"tokens": 60}), 1.0)
    assert not pace.start(1)  # 40 are left
    simulated.sleep(1)
    assert pace.start(1)
    assert not pace.start(2)
    pace.end(1, "a", [shortlist.Score(1.0, info={"tokens": 1})], 1.0)
    assert pace.start(2)  # 99 were left


def test_a_call_that_does_not_say_what_it_used_ends_the_search_and_is_kept(
    clock: Simulated, tmp_path: Path
) -> None:
    def pull(arm: str) -> float:
        return MEANS[arm]

    with pytest.raises(InvalidInput, match=r"limits 'tokens', but arm '.' does not tell") as caught:
        shortlist.select(
            pull,
            arms=list(MEANS),
            k=1,
            budget=30,
            rate={"tokens": 100},
            progress=False,
            store=tmp_path / "runs.db",
        )
    assert caught.value.partial is not None  # type: ignore[attr-defined]
    with shortlist.Experiment.open(tmp_path / "runs.db") as experiment:
        assert experiment.status().told == 1


class Flowing(Simulated):
    """A clock that moves by a quarter of a second whenever someone looks."""

    def now(self) -> float:
        self.time += 0.25
        return self.time


class AtOnceStop(Stop):
    """Pauses that let a simulated clock move."""

    def __init__(self, clock: Simulated) -> None:
        super().__init__()
        self.clock = clock

    def wait(self, seconds: float) -> bool:
        self.clock.sleep(seconds)
        return self.is_set


@pytest.mark.parametrize("way", ["here", "async"])
def test_a_retry_is_a_request(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "FIRST_PAUSE", 0.001)
    clock, starts = Flowing(), []
    pace = Pace({"requests": 30.0}, clock)

    def fails() -> float:
        starts.append(clock.time)
        raise ConnectionError("busy")

    async def fails_too() -> float:
        return fails()

    def make() -> None:
        if way == "here":
            Attempts(3).make(fails, AtOnceStop(clock), "A call", pace)
        else:
            asyncio.run(Attempts(3).make_async(fails_too, "A call", pace))

    assert pace.start(0)
    with pytest.raises(ConnectionError):
        make()
    assert [later - sooner >= 2 for sooner, later in pairwise(starts)] == [True] * 3


def test_a_pause_for_the_rate_is_ended_when_the_run_is() -> None:
    pace, stop = Pace({"requests": 1.0}, Simulated()), Stop()
    assert pace.start(0)
    stop.set()
    assert not stop.wait_for_turn(pace)


def test_other_processes_have_no_pace() -> None:
    evaluation = Evaluation.of(float).paced(60)
    assert evaluation.pace is not None
    assert pickle.loads(pickle.dumps(evaluation)).pace is None


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (0, "greater than 0"),
        (-3, "greater than 0"),
        (float("nan"), "greater than 0"),
        (float("inf"), "finite"),
        (True, "greater than 0"),
        ("600", "greater than 0"),
        ({}, "requests per minute"),
        ({1: 2}, "requests per minute"),
        ({"tokens": 0}, "greater than 0"),
        ({"tokens": None}, "greater than 0"),
    ],
)
def test_a_rate_is_checked_before_anything_is_made(wrong: Any, rule: str, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    with pytest.raises(InvalidInput, match=rule):
        shortlist.select(float, arms=3, k=1, budget=9, rate=wrong, store=store, progress=False)
    assert not store.exists()


def test_a_program_tells_no_tokens() -> None:
    with pytest.raises(InvalidInput, match="a program tells no more than its cost"):
        Pace.of({"tokens": 9}, shortlist.Command("echo {arm}"))
