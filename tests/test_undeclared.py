"""Where a budget is all there is, rewards may be any numbers, and nobody has to say which."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import shortlist
from shortlist import FixedBudget
from shortlist.algorithms.registry import ALGORITHMS
from shortlist.cli import main
from shortlist.errors import InvalidInput, InvalidReward
from shortlist.exploration.posterior import Posterior, posterior_of
from shortlist.reward_models import Bounded, SubGaussian, Undeclared
from shortlist.search import Pulls, Rewards
from shortlist.settings import rewards_of
from shortlist.stores.base import MemoryStore

N, K = 20, 3


def chosen(
    seed: int, *, scale: float = 1.0, shift: float = 0.0, **asked: Any
) -> tuple[float, shortlist.Result]:
    """The regret on normal rewards, in units of their spread, and the result."""
    rng = np.random.default_rng([7, seed])
    means = rng.normal(size=N)
    spreads = np.exp(rng.normal(size=N) / 2)

    def pull_many(arm: int, times: int, seed: int) -> Any:
        noise = spreads[arm] * np.random.default_rng(seed).normal(size=times)
        return shift + scale * (means[arm] + noise)

    asked = {"arms": N, "k": K, "budget": 600, "seed": seed, "progress": False, **asked}
    result = shortlist.select(pull_many=pull_many, **asked)
    best = np.sort(means)[-K:].mean()
    return float(best - means[list(result.top)].mean()), result


def test_it_loses_no_more_than_where_the_spread_is_declared() -> None:
    undeclared = np.mean([chosen(seed)[0] for seed in range(30)])
    declared = np.mean([chosen(seed, rewards=SubGaussian(2.0))[0] for seed in range(30)])
    even = np.mean([chosen(seed, algorithm="uniform")[0] for seed in range(30)])
    assert undeclared <= declared + 0.01
    assert undeclared < even / 1.5


@pytest.mark.parametrize(("scale", "shift"), [(1e4, 3e6), (1e-5, -1.0), (1e40, 0.0)])
def test_the_choice_does_not_depend_on_the_units(scale: float, shift: float) -> None:
    for seed in range(3):
        _, plain = chosen(seed)
        _, moved = chosen(seed, scale=scale, shift=shift)
        assert moved.top == plain.top
        assert [arm.pulls for arm in moved.arms] == [arm.pulls for arm in plain.arms]


@pytest.mark.parametrize("binary", [True, False])
def test_rewards_in_0_1_are_treated_as_if_that_had_been_declared(binary: bool) -> None:
    def pull(arm: int, seed: int) -> float:
        drawn = np.random.default_rng(seed).beta(2 + arm, 6)
        return float(np.random.default_rng(seed + 1).random() < drawn) if binary else drawn

    asked: dict[str, Any] = {"arms": 8, "k": 2, "budget": 300, "progress": False}
    undeclared = shortlist.select(pull, **asked)
    declared = shortlist.select(pull, rewards=(0, 1), **asked)
    note = "intervals take rewards to lie from 0 to 1, which was not declared"
    same = declared.to_dict() | {"seconds": 0, "notes": [note]}
    assert undeclared.to_dict() | {"seconds": 0} == same
    assert f"Note: {note}" in str(undeclared)
    assert declared.notes == ()


FOR_A_BUDGET = [name for name, each in ALGORITHMS.items() if FixedBudget in each.goals]


@pytest.mark.parametrize("algorithm", FOR_A_BUDGET)
def test_nothing_is_guaranteed_of_rewards_that_were_not_declared(algorithm: str) -> None:
    """The bounds of lucb and clucb-pac, for a budget, hold for rewards from 0 to 1 only."""
    rng = np.random.default_rng(0)
    asked: dict[str, Any] = {"arms": 3, "k": 1, "budget": 300, "algorithm": algorithm}
    for low in (0, 3000):
        result = shortlist.select(lambda arm, low=low: low + rng.random(), **asked, progress=False)
        assert (result.regret_bound, result.confidence, result.tiers) == (None, None, None)
        experiment = shortlist.Experiment.create(**asked)
        while tickets := experiment.ask(100):
            experiment.tell_many([(ticket, low + rng.random()) for ticket in tickets])
            assert experiment.status().bound is None
            assert any("not declared" in note for note in experiment.status().notes) == (low == 0)
            assert all(progress.bound is None for _, progress in experiment.history())
            assert experiment.result(partial=True).regret_bound is None


def test_no_lift_is_claimed_of_rewards_that_may_lie_anywhere() -> None:
    """A rare large reward that has not come yet makes every interval wrong."""
    result = shortlist.select(lambda arm: 0.5 * arm, arms=2, k=1, budget=50, progress=False)
    with pytest.raises(InvalidInput, match="declared"):
        result.lift(0)


def test_no_interval_is_claimed_once_a_reward_is_outside() -> None:
    result = chosen(0)[1]
    assert all(arm.low == -math.inf and arm.high == math.inf for arm in result.arms)
    assert result.to_dict()["arms"][0]["low"] is None  # type: ignore[index]
    with pytest.raises(InvalidInput, match="declared"):
        result.lift(0)
    given = iter([0.5, 0.4] * 20 + [1.01] + [0.5, 0.4] * 100)
    asked: dict[str, Any] = {"arms": 2, "k": 1, "budget": 200, "progress": False}
    late = shortlist.select(lambda arm: next(given), **asked)  # a single one, among many others
    assert late.arms[0].low == -math.inf


def test_where_something_is_promised_rewards_lie_in_0_1() -> None:
    for asked in ({"epsilon": 0.2}, {"budget": 90, "options": {"holdout": 0.5}}):
        with pytest.raises(InvalidReward, match="between 0 and 1"):
            shortlist.select(lambda arm: 7.0, arms=3, k=1, progress=False, **asked)
    with pytest.raises(InvalidReward, match="between 0 and 1"):
        shortlist.select(lambda arm, item: 7.0, arms=3, k=1, items=9, budget=20, progress=False)
    with pytest.raises(InvalidReward, match="between 0 and 1"):
        shortlist.select(lambda arm: 7.0, arms=3, k=1, budget=90, rewards=(0, 1), progress=False)


@pytest.mark.parametrize("reward", [math.nan, math.inf, 1e61, None, "1"])
def test_what_is_no_number_is_refused(reward: Any) -> None:
    with pytest.raises(InvalidReward):
        shortlist.select(lambda arm: reward, arms=3, k=1, budget=90, progress=False)


def test_rewards_that_floats_do_not_tell_apart_are_refused() -> None:
    with pytest.raises(InvalidReward, match="subtract a constant"):
        shortlist.select(lambda arm: 1e12 + arm, arms=3, k=1, budget=90, progress=False)
    result = shortlist.select(lambda arm: 1e12 + 1e5 * arm, arms=3, k=1, budget=90, progress=False)
    assert result.top == (2,)
    same = shortlist.select(lambda arm: 1e12, arms=3, k=1, budget=90, progress=False)
    assert same.pulls == 90


@pytest.mark.parametrize("minimize", [False, True])
def test_an_experiment_takes_them_too_and_an_arm_may_leave(minimize: bool) -> None:
    sign = -1 if minimize else 1
    experiment = shortlist.Experiment.create(4, 1, budget=200, minimize=minimize)
    rng = np.random.default_rng(0)
    while tickets := experiment.ask(9):
        told = [(each, sign * 100 * (int(each.arm) + rng.normal() / 9) - 500) for each in tickets]
        experiment.tell_many(told)
        if 50 <= experiment.status().told < 100:
            experiment.retire(3)
    assert experiment.result().top == (2,)
    assert experiment.status().summary()["arms"][0]["low"] is None  # type: ignore[index]
    assert experiment.settings.problem.rewards == Undeclared()


def test_a_program_that_declares_nothing_continues_with_what_was_declared() -> None:
    store = MemoryStore()
    shortlist.Experiment.create(3, 1, budget=60, rewards=(0, 1), store=store)
    opened = shortlist.Experiment.create(3, 1, budget=60, store=store, exist_ok=True)
    assert opened.settings.problem.rewards == Bounded()


def test_the_command_line_takes_them_too(tmp_path: Path) -> None:
    arms = tmp_path / "arms.csv"
    arms.write_text("1\n2\n3\n")
    words = ["run", str(arms), "--pull", "echo -{arm}{seed}", "-k", "1", "--format", "json"]
    assert CliRunner().invoke(main, [*words, "--budget", "60"]).exit_code == 0
    refused = CliRunner().invoke(main, [*words, "--epsilon", "0.1", "--retries", "0"])
    assert refused.exit_code == 1
    assert "between 0 and 1" in refused.stderr


def test_the_posterior_is_that_of_0_1_bit_for_bit_until_a_reward_is_outside() -> None:
    rng = np.random.default_rng(3)
    undeclared, declared = posterior_of(40, 5, Undeclared()), Posterior(40, 5, Bounded())
    for _ in range(5):
        rewards = rng.random((40, 3)) ** 2
        pulls = Pulls(np.arange(40), np.full(40, 3))
        reply = Rewards(rewards.sum(1), (rewards**2).sum(1))
        for posterior in (undeclared, declared):
            posterior.add(pulls, reply)
            posterior.refresh()
        assert np.array_equal(undeclared.means(), declared.means())
        assert np.array_equal(undeclared.loss(0.3), declared.loss(0.3))


@pytest.mark.parametrize("more", [{"epsilon": 0.1}, {"budget": 90, "options": {"holdout": 0.5}}])
def test_undeclared_rewards_carry_no_guarantee(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="undeclared, but a guarantee needs to know"):
        shortlist.Experiment.create(4, 2, rewards=rewards_of({"kind": "undeclared"}), **more)


def test_a_holdout_proves_nothing_where_variances_are_unknown() -> None:
    asked: dict[str, Any] = {"arms": 4, "k": 2, "budget": 200, "options": {"holdout": 0.5}}
    with pytest.raises(InvalidInput, match="'normal', but a holdout must know how much"):
        shortlist.select(
            lambda arm: float(arm), rewards="normal", algorithm="expected-loss", **asked
        )
