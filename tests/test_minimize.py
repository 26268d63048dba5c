"""Small rewards that are good: the same search as for the same rewards turned round."""

import json
from typing import Any

import numpy as np
import pytest
from command_line import invoke

import shortlist
from shortlist.stores.base import MemoryStore

MEANS = {"a": 0.3, "b": 0.8, "c": 0.25, "d": 0.6}


def coin(arm: str, seed: int) -> int:
    """1 with the arm's probability."""
    return int(np.random.default_rng(seed).random() < MEANS[arm])


@pytest.mark.parametrize("goal", [{"epsilon": 0.1}, {"budget": 400}])
def test_it_asks_for_the_same_and_shows_the_users_numbers(goal: dict[str, Any]) -> None:
    asked: dict[str, Any] = {
        "arms": list(MEANS),
        "k": 2,
        "rewards": "binary",
        "progress": False,
        **goal,
    }
    small = shortlist.select(coin, minimize=True, **asked)
    large = shortlist.select(lambda arm, seed: 1 - coin(arm, seed), **asked)
    assert small.top == large.top
    assert set(small.top) == {"a", "c"}
    assert small.pulls == large.pulls
    assert small.regret_bound == pytest.approx(large.regret_bound)
    for arm, mirrored in zip(small.arms, large.arms, strict=True):
        assert arm.mean == pytest.approx(1 - (mirrored.mean or 0))
        assert arm.low == pytest.approx(1 - mirrored.high)
        assert arm.high == pytest.approx(1 - mirrored.low)
    assert small.arms[0].mean == pytest.approx(0.3, abs=0.15)


@pytest.mark.parametrize("rewards", [(-3.0, 5.0), shortlist.SubGaussian(2.0)])
def test_any_rewards_may_be_small_ones(rewards: Any) -> None:
    offsets = {"fast": -1.0, "slow": 3.0}

    def seconds(arm: str, seed: int) -> float:
        return offsets[arm] + float(np.random.default_rng(seed).uniform(-1, 1))

    how: dict[str, Any] = {"rewards": rewards, "minimize": True, "progress": False}
    found = shortlist.select(seconds, arms=list(offsets), k=1, epsilon=1.0, **how)
    assert found.top == ("fast",)
    assert found.arms[1].mean == pytest.approx(3, abs=0.5)


def test_a_simulation_counts_what_is_lost_from_the_smallest_means() -> None:
    runs = shortlist.simulate(
        "certified", [0.1, 0.5, 0.9], k=1, epsilon=0.1, runs=10, minimize=True
    )
    assert runs.failed.sum() == 0
    forecast = shortlist.forecast(
        means=[0.1, 0.5, 0.9], k=1, budget=300, runs=5, algorithms=["sar"], minimize=True
    )
    assert forecast.prospects[0].regret.max() < 0.5


def test_an_experiment_remembers_it_and_its_status_puts_the_smallest_first() -> None:
    store = MemoryStore()
    made = shortlist.Experiment.create(list(MEANS), 1, budget=80, minimize=True, store=store)
    made.tell_many([(ticket, MEANS[str(ticket.arm)]) for ticket in made.ask(60)])
    again = shortlist.Experiment.open(store)
    assert again.settings.problem.minimize
    lines = [line.split()[0] for line in str(again.status()).splitlines() if "…" in line]
    assert lines == ["c", "a", "d", "b"]
    with pytest.raises(shortlist.errors.StoreExists, match="minimize = True and not False"):
        shortlist.Experiment.create(list(MEANS), 1, budget=80, store=store, exist_ok=True)


def test_places_are_those_of_the_smallest_means() -> None:
    made = shortlist.Experiment.create(
        ["low", "high"], 1, budget=4000, minimize=True, algorithm="uniform"
    )
    made.tell_many([(ticket, float(ticket.arm == "high")) for ticket in made.ask(2000)])
    assert made.status().arms.places == ("in", "out")


def test_the_command_line_has_it() -> None:
    words = "simulate --instance uniform -n 10 -k 2 --algorithm sar --budget 2000 --minimize"
    done = invoke([*words.split(), "--epsilon", "0.2", "--format", "json"])
    assert json.loads(done.stdout)["failures"] == 0


def test_it_must_be_true_or_false() -> None:
    with pytest.raises(shortlist.errors.InvalidInput, match="`minimize` is 'yes', but must be"):
        shortlist.select(coin, arms=list(MEANS), k=1, budget=9, minimize="yes")  # type: ignore[arg-type]
