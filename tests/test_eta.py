"""The rest of a search, simulated in spare moments: what it says, and that it costs little."""

import random
import re
from typing import Any

import numpy as np
import pytest

from shortlist import Arm, SubGaussian, select
from shortlist.algorithms import find
from shortlist.driver import Run, counted
from shortlist.engine import Experiment
from shortlist.engine.eta import (
    ENOUGH,
    LONGEST,
    RUNS,
    SHARE,
    Expected,
    PartialBatch,
    Remaining,
    RemainingEstimator,
    SearchSnapshot,
    World,
)
from shortlist.errors import InvalidInput
from shortlist.interim import Tally
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Bounded
from shortlist.search import Pulls, Rewards

MEANS = {"a": 0.9, "b": 0.5, "c": 0.1}


class Clocks:
    """Time that passes when told, and work that takes so long a step."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = self.worked = 0.0
        self.step = step

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        self.worked += self.step
        return self.worked


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr("shortlist.engine.eta.time", clocks)
    return clocks


def begin() -> Run:
    problem = Problem(3, 1, FixedConfidence(0.2, 0.1))
    return counted(find("certified"), problem, np.random.default_rng(0))


def fresh(problem: Problem | None = None, tally: Tally | None = None) -> SearchSnapshot:
    """A search of which nothing is known yet."""
    request = next(begin())
    nothing = PartialBatch(np.zeros_like(request.times), np.zeros(3), np.zeros(3))
    problem = Problem(3, 1, FixedConfidence(0.2, 0.1)) if problem is None else problem
    return SearchSnapshot(begin, problem, (), (nothing,), Tally(3) if tally is None else tally)


def test_simulations_take_no_more_than_their_share_of_the_time(clocks: Clocks) -> None:
    class Slow(SearchSnapshot):
        def rest(self, rng: np.random.Generator) -> Any:
            while True:
                clocks.worked += 0.01
                yield

    slow = Slow(begin, fresh().problem, (), fresh().partly, Tally(3))
    foresight = RemainingEstimator(lambda: slow)
    for _ in range(1000):
        clocks.now += 0.1
        before = clocks.worked
        foresight.work()
        assert clocks.worked - before <= LONGEST + 0.01
    assert SHARE * clocks.now - 0.1 <= clocks.worked <= SHARE * clocks.now + 0.01


def test_a_simulation_goes_on_where_it_was_and_the_last_ones_count(clocks: Clocks) -> None:
    totals = iter(range(100, 200))

    class Known(SearchSnapshot):
        def rest(self, rng: np.random.Generator) -> Any:
            yield
            clocks.worked += 1
            yield
            return Remaining(next(totals), 1)

    known = Known(begin, fresh().problem, (), fresh().partly, Tally(3))
    foresight = RemainingEstimator(lambda: known)
    done = 0
    while done < RUNS + 10:
        clocks.now += 100
        foresight.work()
        done += 1
        if done < ENOUGH:
            assert foresight.expected(0) is None
    expected = foresight.expected(50)
    assert expected is not None
    last = np.arange(100, 200)[: done - 1][-RUNS:] - 50
    assert expected.median in last
    assert expected.high > expected.median
    assert foresight.expected(10**6) is None  # all were wrong


def test_what_was_expected_with_arms_that_left_is_dropped(clocks: Clocks) -> None:
    class Known(SearchSnapshot):
        def rest(self, rng: np.random.Generator) -> Any:
            clocks.worked += 1
            yield
            return Remaining(100 if self.retired else 10_000, 1)

    empty = fresh()
    states = [
        Known(begin, empty.problem, (), empty.partly, Tally(3), retired)
        for retired in (frozenset[int](), frozenset({1}))
    ]
    now = states[0]
    foresight = RemainingEstimator(lambda: now)
    for _ in range(3 * ENOUGH):
        clocks.now += 100
        foresight.work()
    assert foresight.expected(0) == Expected(10_000, 10_000)
    now = states[1]
    for _ in range(3 * ENOUGH):
        clocks.now += 100
        foresight.work()
    assert foresight.expected(0) == Expected(100, 100)


def test_what_cannot_be_simulated_is_looked_at_once(clocks: Clocks) -> None:
    looks = 0

    def look() -> SearchSnapshot | None:
        nonlocal looks
        looks += 1
        return None

    foresight = RemainingEstimator(look)
    for _ in range(50):
        clocks.now += 10
        foresight.work()
    assert (looks, foresight.expected(0)) == (1, None)


def test_a_search_that_refuses_to_be_run_again_is_not_foreseen(clocks: Clocks) -> None:
    def refuse() -> Run:
        raise InvalidInput("not again")

    empty = fresh()
    broken = SearchSnapshot(refuse, empty.problem, (), empty.partly, empty.tally)
    foresight = RemainingEstimator(lambda: broken)
    clocks.now += 100
    foresight.work()
    assert foresight.expected(0) is None


def test_rewards_are_drawn_with_the_mean_and_the_spread_of_those_that_came() -> None:
    rng = np.random.default_rng(3)
    problem = Problem(3, 1, FixedConfidence(0.2, 0.1), Bounded(-10, 10), minimize=True)
    came = 2 + 0.5 * rng.standard_normal((3, 400))
    tally = Tally(3)
    times = np.full(3, 400)
    tally.add(np.arange(3), times, Rewards(came.sum(1), (came**2).sum(1)))
    nothing = PartialBatch(np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros(1))
    means, variances = [], []
    for seed in range(200):
        world = World(fresh(problem, tally), np.random.default_rng(seed))
        drawn = world.reply(Pulls(np.arange(3), times), nothing)
        means.append(drawn.sums.mean() / 400)
        variances.append((drawn.squares / 400 - (drawn.sums / 400) ** 2).mean())
    assert np.mean(means) == pytest.approx(2, abs=0.1)
    assert np.mean(variances) == pytest.approx(0.25, rel=0.2)


def test_rewards_of_0_and_1_stay_so_and_who_left_gives_the_worst() -> None:
    tally = Tally(3)
    tally.add(np.arange(3), np.full(3, 9), Rewards(np.full(3, 5.0), np.full(3, 5.0)))
    empty = fresh(tally=tally)
    leaving = SearchSnapshot(begin, empty.problem, (), empty.partly, tally, retired=frozenset({1}))
    world = World(leaving, np.random.default_rng(0))
    drawn = world.reply(Pulls(np.arange(3), np.full(3, 50)), empty.partly[0])
    assert np.array_equal(drawn.sums, drawn.squares)
    assert drawn.sums[1] == 0 < drawn.sums[0]


@pytest.mark.parametrize("kept", [False, True])
def test_a_selection_says_what_it_still_expects(
    kept: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    """Every pull takes a second of a clock that is set by hand."""
    clocks = Clocks(step=0.004)
    for module in ("engine.progress", "engine.eta"):
        monkeypatch.setattr(f"shortlist.{module}.time", clocks)

    def pull(arm: str, seed: int) -> bool:
        clocks.now += 1
        return random.Random(seed).random() < MEANS[arm]

    where: Any = {"store": tmp_path / "a.db"} if kept else {}
    result = select(pull, arms=list(MEANS), k=1, epsilon=0.1, rewards="binary", **where)
    lines = capsys.readouterr().err.splitlines()
    said = re.findall(r"about ([\d,]+) more \(90 %: ([\d,]+)\), \d+ s left", "\n".join(lines))
    assert said
    assert result.pulls > 40


@pytest.mark.parametrize(
    "asked",
    [
        {"rewards": SubGaussian(1), "epsilon": 0.5},  # no range to draw from
        {"rewards": "binary", "epsilon": 0.1, "algorithm": lambda *a: find("lucb").search(*a)},
    ],
)
def test_none_where_it_cannot_be_known(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clocks = Clocks(step=0.004)
    for module in ("engine.progress", "engine.eta"):
        monkeypatch.setattr(f"shortlist.{module}.time", clocks)

    def pull(arm: str, seed: int) -> bool:
        clocks.now += 1
        return random.Random(seed).random() < MEANS[arm]

    select(pull, arms=list(MEANS), k=1, **asked)
    printed = capsys.readouterr().err
    assert "pulls" in printed
    assert "more" not in printed


def test_money_is_foreseen_in_pulls() -> None:
    arms = [Arm("a", cost=1.0), Arm("b", cost=4.0), Arm("c", cost=2.0)]
    experiment = Experiment.create(arms, 1, budget=60, rewards="binary")
    experiment.tell_many([(each, 1) for each in experiment.ask(3)])
    underway = experiment.underway()
    assert underway is not None
    foresight = RemainingEstimator(lambda: underway)
    while (expected := foresight.expected(3)) is None:
        foresight._step()
    assert isinstance(expected, Expected)
    assert 10 <= expected.median <= 57
