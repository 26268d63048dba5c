"""Rewards that are no independent draws: said in a warning, and wherever the answer is shown."""

import json
import random
import time
import warnings
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from services import Call

import shortlist
from shortlist import Client, Experiment
from shortlist.cli import main
from shortlist.errors import Doubtful
from shortlist.stores.base import MemoryStore

pytest_plugins = ["service_fixtures"]
MEANS = (0.3, 0.5, 0.6)


def uniform(*key: int) -> float:
    return float(np.random.default_rng(key).random())


def selected(pull: Callable[..., float], **asked: Any) -> tuple[shortlist.Result, list[str]]:
    """The result, and the warnings that were given."""
    how = {"arms": 3, "k": 1, "epsilon": 0.05, "progress": False, **asked}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = shortlist.select(pull, **how)
    assert all(each.category is Doubtful for each in caught)
    assert all(each.filename == __file__ for each in caught)
    return result, [str(each.message) for each in caught]


def cached(arm: int) -> bool:
    """The answer of the first call, for ever."""
    return uniform(arm) < MEANS[arm]


def fixed_seed(arm: int) -> bool:
    return random.Random(arm).random() < MEANS[arm]


@pytest.mark.parametrize("pull", [cached, fixed_seed])
def test_an_answer_on_arms_that_never_varied_says_so(pull: Callable[[int], bool]) -> None:
    result, warned = selected(pull)
    assert result.reached
    assert warned == []  # arms of mean 0 and 1 are allowed
    (said,) = result.notes
    assert "rests on arms that never varied" in said
    assert f"Note: {said}" in " ".join(str(result).split())
    assert json.loads(result.to_json())["notes"] == [said]
    assert result.warnings == ()


def test_one_number_per_arm_is_warned_of_and_noted() -> None:
    result, (warned,) = selected(lambda arm: MEANS[arm])
    assert "every arm gave one number" in warned
    assert "never varied" in result.notes[0]


def visits(times: int, salt: int) -> Callable[[int, int], bool]:
    """This many pulls of an arm are one visitor."""

    def pull(arm: int, draw: int) -> bool:
        return uniform(arm, draw // times, salt) < MEANS[arm]

    return pull


visitor = visits(50, 5)


@pytest.mark.parametrize("times", [10, 20, 50])
def test_one_visitor_many_times_is_said_however_soon_the_run_ends(times: int) -> None:
    """Some runs end before a visitor has changed, others after: none without a word."""
    pulls = []
    for salt in range(8):
        result, _ = selected(visits(times, salt))
        assert result.warnings or result.notes
        pulls.append(result.pulls)
    assert min(pulls) < 150 < max(pulls)


def changing() -> Callable[[int], bool]:
    """All arms get worse in the middle of a run."""
    calls = count()

    def pull(arm: int) -> bool:
        call = next(calls)
        return uniform(arm, call) < (0.9 if call < 200 else MEANS[arm])

    return pull


@pytest.mark.parametrize("pull", [visitor, changing()])
def test_blocks_and_changes_are_warned_of_once(pull: Callable[..., bool]) -> None:
    result, (warned,) = selected(pull, epsilon=0.02)
    assert "rewards do not come in random order" in warned
    assert "p < 1e-06" in warned
    assert result.warnings == (warned,)


def test_one_seed_for_all_arms_is_warned_of() -> None:
    result, (warned,) = selected(lambda arm, draw: uniform(draw) < MEANS[arm], epsilon=0.02)
    assert "go up and down together" in warned
    assert result.warnings == (warned,)


def test_honest_draws_are_not_warned_of() -> None:
    for seed in range(5):
        result, warned = selected(
            lambda arm, seed: random.Random(seed).random() < MEANS[arm], seed=seed
        )
        assert warned == []
        assert result.warnings == result.notes == ()


def test_warnings_do_not_depend_on_which_worker_was_quicker() -> None:
    def slowly(arm: int, draw: int) -> bool:
        if uniform(arm, draw, 1) < 0.01:
            time.sleep(0.005)
        return visitor(arm, draw)

    alone, _ = selected(visitor, epsilon=0.1)
    threads, _ = selected(slowly, epsilon=0.1, executor="threads", workers=4)
    assert alone.warnings
    assert threads.warnings == alone.warnings


def test_calls_of_many_pulls_are_checked_as_well() -> None:
    def pull_many(arm: int, times: int, draw: int) -> list[bool]:
        return [visitor(arm, each) for each in range(draw, draw + times)]

    with pytest.warns(Doubtful, match="random order") as caught:
        result = shortlist.select(
            pull_many=pull_many, arms=3, k=1, epsilon=0.02, batch=7, progress=False
        )
    assert result.warnings == (str(caught[0].message),)


def told(experiment: Experiment, draw: Callable[[Any, int], float]) -> list[str]:
    """Tell all pulls; the warnings that were given."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        while tickets := experiment.ask(500):
            experiment.tell_many((each, float(draw(each.arm, each.draw))) for each in tickets)
    assert all(each.filename == __file__ for each in caught)
    return [str(each.message) for each in caught]


def test_an_experiment_warns_once_and_keeps_it_in_status_and_result(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    with Experiment.create(3, 1, epsilon=0.1, store=store) as experiment:
        (warned,) = told(experiment, visitor)
        assert experiment.status().warnings == experiment.result().warnings == (warned,)
    with Experiment.open(store) as again:
        assert again.status().summary()["warnings"] == [warned]
        assert again.result().warnings == (warned,)
    shown = CliRunner().invoke(main, ["status", "--store", str(store)]).stdout
    assert "Warning: rewards do not come in random order" in " ".join(shown.split())
    printed = CliRunner().invoke(main, ["result", "--store", str(store), "--format", "json"])
    assert json.loads(printed.stdout)["warnings"] == [warned]


def test_rewards_of_an_arm_that_retired_are_not_held_against_the_others() -> None:
    experiment = Experiment.create(4, 1, epsilon=0.05, rewards="binary")
    tickets = experiment.ask(4)
    experiment.tell_many((each, 1.0) for each in tickets)
    experiment.retire(0)
    assert told(experiment, lambda arm, draw: uniform(arm, draw) < 0.2 * arm) == []
    assert experiment.result().warnings == ()


def test_a_service_shows_warnings_to_clients_and_on_the_page(
    store: MemoryStore, url: str, call: Call
) -> None:
    made = Experiment.create(3, 1, epsilon=0.1, store=store, name="n")
    (warned,) = told(made, visitor)
    with Client(url, "n") as client:
        assert client.status().warnings == client.result().warnings == (warned,)
    assert b"Warning: <bdi>rewards do not come in random order" in call("GET", "/experiments/n").raw
