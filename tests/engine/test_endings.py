"""An answer says why the search ended, which arms it is about, and whether that can be believed."""

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from services import Call

import shortlist
from shortlist import Arm, Experiment
from shortlist.cli import main
from shortlist.engine import State
from shortlist.errors import Doubtful
from shortlist.stores.base import MemoryStore

pytest_plugins = ["service_fixtures"]
LABELS = ("best", "b", "c")
Draw = Callable[[Any, random.Random], float]


def bernoulli(label: str, rng: random.Random) -> float:
    return float(rng.random() < {"best": 0.9, "b": 0.7, "c": 0.2}[label])


def ended(retire: str = "", draw: Draw = bernoulli, **asked: Any) -> Experiment:
    """An experiment to its end; one arm may leave after a few pulls."""
    rng = random.Random(0)
    experiment = Experiment.create(asked.pop("arms", LABELS), 1, seed=0, **asked)
    first = True
    while tickets := experiment.ask(6):
        experiment.tell_many((each, draw(each.arm, rng)) for each in tickets)
        if first and retire:
            experiment.retire(retire)
        first = False
    return experiment


def page_of(call: Call, name: str = "experiment") -> str:
    return " ".join(call("GET", f"/experiments/{name}").raw.decode().split())


def test_a_promise_after_an_arm_left_is_about_the_arms_that_stay(
    store: MemoryStore, call: Call
) -> None:
    made = ended("best", epsilon=0.2, rewards="binary", store=store)
    result, status = made.result(), made.status()
    assert result.reached
    assert status.state is State.FINISHED
    assert " is lost among the remaining arms, with 0.95 confidence." in result.verdict
    assert json.loads(result.to_json())["verdict"] == result.verdict
    assert "is lost among the remaining arms" in " ".join(str(status).split())
    assert status.summary()["among"] == 2
    assert "compared with the best of the remaining arms." in page_of(call)
    whole = ended(epsilon=0.2, rewards="binary")
    assert "stay" not in str(whole.result()) + str(whole.status())
    assert whole.status().summary()["among"] == 3


def test_a_search_whose_promise_ended_as_an_arm_left_does_not_blame_a_budget(
    store: MemoryStore, call: Call
) -> None:
    made = ended("c", algorithm="uniform", epsilon=0.3, store=store)
    result, status = made.result(), made.status()
    assert status.state is State.ENDED
    assert result.reached is False
    assert result.verdict == (
        "Arms were retired, and uniform has no bound for the others. Nothing is guaranteed about"
        " what this choice loses."
    )
    assert "budget" not in str(result) + str(status)
    assert "budget is spent" not in page_of(call)
    assert "Arms were retired, and this algorithm has no bound for the others." in page_of(call)
    assert made.ask().state is State.ENDED


def test_limits_that_end_a_search_are_not_called_a_budget(store: MemoryStore, call: Call) -> None:
    arms = [Arm(label, limit=8) for label in LABELS]
    with pytest.warns(Doubtful, match="limits"):
        made = ended(arms=arms, epsilon=0.05, rewards="binary", store=store)
    assert made.status().state is State.ENDED
    assert made.result().verdict.startswith(
        "Limits ended the search before epsilon = 0.05 was reached."
    )
    page = page_of(call)
    assert "The limits of the arms ended the search before the precision asked for" in page
    assert "udget" not in page.split("<h2>Result</h2>")[1].split("</section>")[0]


def test_a_budget_that_ends_a_search_is_named(store: MemoryStore, call: Call) -> None:
    with pytest.warns(Doubtful, match="budget"):
        made = ended(epsilon=0.02, budget=30, rewards="binary", store=store)
    assert made.status().state is State.BUDGET
    assert made.result().verdict.startswith("The budget ended before epsilon = 0.02 was reached.")
    assert "the budget is spent" in page_of(call)
    assert ended(budget=60).status().state is State.BUDGET
    assert ended("c", budget=60).status().state is State.BUDGET


def test_a_refuted_declaration_is_said_first_and_nothing_counts_as_reached(
    store: MemoryStore, call: Call
) -> None:
    def noisy(label: str, rng: random.Random) -> float:
        return rng.gauss(0, 5)

    asked: dict[str, Any] = {"epsilon": 0.5, "rewards": shortlist.SubGaussian(0.5)}
    with pytest.warns(Doubtful, match="sigma"):
        made = ended(draw=noisy, store=store, **asked)
    result = made.result()
    assert result.reached is None
    assert json.loads(result.to_json())["reached"] is None
    assert made.status().state is State.ENDED
    below = " ".join(result.tables()[0].verdict.split())
    assert below.startswith("Warning: sigma = 0.5 was declared")
    assert result.verdict.startswith("Nothing is guaranteed: the rewards refute the declaration.")
    assert "would be lost, with 0.95 confidence." in result.verdict
    assert " is lost" not in str(result)
    headline = " ".join(str(made.status()).split())
    assert "would be lost, but the rewards refute the declaration" in headline
    assert "The rewards contradict what was declared about them" in page_of(call)
    rng = np.random.default_rng(0)
    with pytest.warns(Doubtful, match="sigma"):
        found = shortlist.select(lambda arm: rng.normal(0, 5), arms=3, k=1, progress=False, **asked)
    assert found.reached is None


def test_the_command_line_prints_the_warning_before_the_promise(tmp_path: Any) -> None:
    place = tmp_path / "a.db"

    def noisy(label: str, rng: random.Random) -> float:
        return rng.gauss(0, 5)

    with pytest.warns(Doubtful, match="sigma"):
        ended(draw=noisy, epsilon=0.5, rewards=shortlist.SubGaussian(0.5), store=place).close()
    printed = CliRunner().invoke(main, ["result", "--store", str(place)]).stdout
    assert printed.index("Warning: sigma") < printed.index("would be")
    assert "is lost" not in printed
