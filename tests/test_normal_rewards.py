"""Normal rewards of unknown variances, behind every door."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke

import shortlist
from shortlist import Arm, Experiment, Normal, select
from shortlist.errors import Doubtful, InvalidInput, InvalidReward
from shortlist.reward_models import model_of

OUTPUTS = {"a": (10.0, 1.0), "b": (11.0, 0.2), "c": (9.0, 3.0)}  # mean and standard deviation


def run(arm: str, seed: int) -> float:
    mean, sd = OUTPUTS[arm]
    return random.Random(seed).gauss(mean, sd)


def test_the_word_is_the_model() -> None:
    assert model_of("normal") == Normal() == Normal().unit()


def test_select_finds_the_best_without_knowing_any_variance() -> None:
    result = select(run, arms=OUTPUTS, k=1, epsilon=0.5, rewards="normal", progress=False)
    assert result.top == ("b",)
    assert result.regret_bound is not None
    assert result.regret_bound <= 0.5
    assert result.reached


def test_select_finds_the_smallest_mean() -> None:
    result = select(
        run, arms=OUTPUTS, k=1, epsilon=0.5, rewards=Normal(), minimize=True, progress=False
    )
    assert result.top == ("c",)


@pytest.mark.parametrize("scale", [1e-12, 1e9])
def test_the_smallest_mean_is_found_with_the_same_pulls_on_any_scale(scale: float) -> None:
    how: dict[str, Any] = {"arms": OUTPUTS, "k": 1, "rewards": "normal", "minimize": True}
    plain = select(run, epsilon=0.5, progress=False, **how)
    scaled = select(
        lambda arm, seed: scale * run(arm, seed), epsilon=0.5 * scale, progress=False, **how
    )
    assert scaled.top == plain.top
    assert scaled.pulls == plain.pulls


def test_a_budget_alone_needs_no_promise() -> None:
    result = select(run, arms=OUTPUTS, k=1, budget=120, rewards="normal", progress=False)
    assert result.top == ("b",)
    assert result.regret_bound is None


def test_an_experiment_continues_with_the_same_rewards(tmp_path: Path) -> None:
    place = tmp_path / "runs.sqlite"
    settings: dict[str, Any] = {"arms": list(OUTPUTS), "k": 1, "epsilon": 0.5, "rewards": "normal"}
    made = Experiment.create(**settings, store=place, name="stock")
    for ticket in made.ask(20):
        made.tell(ticket, run(str(ticket.arm), ticket.seed))
    again = Experiment.open(place, "stock")
    result = again.run(run)
    assert result.top == ("b",)
    alone = select(run, progress=False, **settings)
    assert alone.pulls == result.pulls


def test_the_command_line_takes_the_word(tmp_path: Path) -> None:
    words = "simulate --means - -k 1 --epsilon 1 --rewards normal --sd 0.5 --format json"
    out = invoke([*words.split(), "--algorithm", "certified"], "3\n1\n0\n")
    assert out.exit_code == 0, out.output
    assert json.loads(out.output)["failures"] == 0
    arms = tmp_path / "arms.csv"
    arms.write_text("arm\na\nb\n")
    store = str(tmp_path / "runs.sqlite")
    words = "create -k 1 --epsilon 0.5 --rewards normal --name stock"
    made = invoke([*words.split(), "--store", store, str(arms)])
    assert made.exit_code == 0, made.output
    assert Experiment.open(store, "stock").status().told == 0


def test_other_algorithms_refuse_unknown_variances_in_words() -> None:
    with pytest.raises(InvalidInput, match="lucb must know how much rewards can vary"):
        select(run, arms=OUTPUTS, k=1, epsilon=1, rewards="normal", algorithm="lucb")


@pytest.mark.parametrize("certificate", ["pairs", "plans"])
def test_certificates_that_know_the_variance_are_refused(certificate: Any) -> None:
    with pytest.raises(InvalidInput, match="must be 'differences' or 'split'"):
        select(run, arms=OUTPUTS, k=1, epsilon=1, rewards="normal", certificate=certificate)


def test_differences_are_for_unknown_variances_only() -> None:
    with pytest.raises(InvalidInput, match="declared 'normal' or for shared"):
        select(run, arms=OUTPUTS, k=1, epsilon=1, rewards=(0, 20), certificate="differences")


def test_what_does_not_go_together_is_refused_before_any_pull() -> None:
    arms = [Arm("a", limit=50), Arm("b")]
    with pytest.raises(InvalidInput, match="limits"):
        select(run, arms=arms, k=1, epsilon=1, rewards="normal")
    with pytest.raises(InvalidInput, match="features"):
        select(run, arms=3, k=1, epsilon=1, rewards="normal", features=np.eye(3))
    with pytest.raises(InvalidInput, match="max_rounds"):
        select(run, arms=OUTPUTS, k=1, epsilon=1, rewards="normal", max_rounds=3)
    with pytest.raises(InvalidInput, match="at most 400"):
        select(run, arms=1000, k=1, epsilon=1, rewards="normal", certificate="differences")
    with pytest.raises(InvalidInput, match="control"):
        select(run, arms=OUTPUTS, k=1, epsilon=1, rewards="normal", control="a")
    with pytest.raises(InvalidInput, match="`sd` is"):
        shortlist.simulate("certified", [1, 0], k=1, epsilon=1, rewards="normal", sd=[1, 2, 3])


def test_an_arm_may_retire_and_the_bound_is_about_the_others() -> None:
    experiment = Experiment.create(list(OUTPUTS), 1, epsilon=0.5, rewards="normal")
    best = select(run, arms=OUTPUTS, k=1, epsilon=0.5, rewards="normal", progress=False).top[0]
    for ticket in experiment.ask(7):
        experiment.tell(ticket, run(str(ticket.arm), ticket.seed))
    experiment.retire(best, "sold out")
    result = experiment.run(run, progress=False)
    assert best not in result.top
    assert result.regret_bound is not None
    assert result.regret_bound <= 0.5
    with pytest.raises(InvalidInput, match="no worst reward"):
        Experiment.create(3, 1, budget=100, rewards="normal").retire(0)


def test_an_arm_that_always_fails_retires_where_that_was_agreed() -> None:
    def fragile(design: str, seed: int) -> float:
        if design == "a":
            raise OSError("no licence")
        return run(design, seed)

    how: dict[str, Any] = {"k": 1, "epsilon": 0.5, "rewards": "normal", "retries": 0}
    result = select(fragile, arms=OUTPUTS, on_failure="retire", progress=False, **how)
    assert "a" not in result.top
    assert result.regret_bound is not None


def test_lift_is_refused_in_words() -> None:
    result = select(run, arms=OUTPUTS, k=1, epsilon=1, rewards="normal", progress=False)
    with pytest.raises(InvalidInput, match="`lift` must know"):
        result.lift("a")


def test_rewards_too_far_from_0_for_epsilon_are_refused() -> None:
    with pytest.raises(InvalidReward, match="subtract a constant"):
        select(
            lambda arm, seed: 1e15 + run(arm, seed),
            arms=OUTPUTS,
            k=1,
            epsilon=0.5,
            rewards="normal",
            progress=False,
        )


def test_rewards_of_0_and_1_are_warned_of() -> None:
    rng = np.random.default_rng(0)
    with pytest.warns(Doubtful, match="all .* rewards so far are 0 or 1"):
        result = select(
            lambda arm: float(rng.random() < 0.2 + 0.6 * (arm == "a")),
            arms=["a", "b"],
            k=1,
            epsilon=0.02,
            budget=400,
            rewards="normal",
            progress=False,
        )
    assert any("declare 'binary'" in warning for warning in result.warnings)
