"""What is allowed but can hardly be meant is warned of, once, and before anything is spent."""

import random
import re
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import shortlist
from shortlist.cli import main
from shortlist.errors import Doubtful, InvalidInput, ShortlistError


def cautions(action: Callable[[], Any]) -> list[str]:
    """The warnings that an action gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    assert all(each.category is Doubtful for each in caught)
    assert all(each.filename == __file__ for each in caught)
    return [str(each.message) for each in caught]


def drawn(arm: int, seed: int) -> float:
    return random.Random(seed).random()


def selected(pull: Callable[..., float], **asked: Any) -> list[str]:
    arms = asked.pop("arms", 5)
    return cautions(lambda: shortlist.select(pull, arms=arms, progress=False, **asked))


def test_a_function_that_gives_one_number_is_warned_of_once() -> None:
    (said,) = selected(lambda arm: 0.4, k=1, budget=500)
    assert "0.4" in said
    assert "independent" in said
    (said,) = selected(lambda arm: arm / 10, k=1, budget=500)  # one number an arm
    assert "independent" in said


def test_so_it_is_of_many_pulls_at_once_and_of_other_ranges() -> None:
    def pull_many(arm: int, times: int) -> list[float]:
        return [3.5] * times

    asked: dict[str, Any] = {"arms": 4, "k": 1, "budget": 200, "rewards": (0, 5)}
    said = cautions(lambda: shortlist.select(pull_many=pull_many, progress=False, **asked))
    assert len(said) == 1


def test_the_worst_and_the_best_reward_alone_and_real_draws_are_not_warned_of() -> None:
    assert selected(lambda arm: arm < 2, k=2, budget=200) == []
    assert selected(lambda arm: 5 * (arm < 2), k=2, budget=200, rewards=(0, 5)) == []
    assert selected(drawn, k=2, budget=200) == []


def test_one_reward_that_differs_late_is_enough_for_silence() -> None:
    given = iter([0.5] * 19 + [0.6] + [0.5] * 500)
    assert selected(lambda arm: next(given), k=1, arms=2, budget=300) == []


def test_an_experiment_warns_of_what_it_is_told_and_has_kept_it() -> None:
    def told() -> None:
        while tickets := experiment.ask(7):
            experiment.tell_many((ticket, 0.25) for ticket in tickets)

    experiment = shortlist.Experiment.create(4, 1, budget=200)
    assert len(cautions(told)) == 1
    assert experiment.status().told == 200
    again = shortlist.Experiment.create(4, 1, budget=200)
    assert len(cautions(lambda: again.run(lambda arm: 0.25, progress=False))) == 1


@pytest.mark.parametrize(
    ("asked", "most"),
    [
        ({"k": 1, "epsilon": 1.0, "rewards": "binary"}, "1:"),
        ({"k": 4, "epsilon": 0.25}, "0.25:"),  # only one of four can be wrong
        ({"k": 1, "epsilon": 10, "rewards": (-5, 5)}, "10:"),
    ],
)
def test_an_epsilon_that_any_choice_keeps_to_is_warned_of(asked: dict[str, Any], most: str) -> None:
    said = cautions(lambda: shortlist.Experiment.create(5, **asked))
    assert len(said) == 1
    assert f"more than {most}" in said[0]
    less = {**asked, "epsilon": asked["epsilon"] * 0.99}
    assert cautions(lambda: shortlist.Experiment.create(5, **less)) == []


def test_an_epsilon_in_another_unit_than_undeclared_rewards_is_refused() -> None:
    with pytest.raises(InvalidInput, match="`epsilon` is 5, but rewards are from 0 to 1 unless"):
        shortlist.select(lambda arm: 120.0, arms=9, k=1, epsilon=5)
    assert len(cautions(lambda: shortlist.Experiment.create(3, 1, epsilon=5, rewards=(0, 1)))) == 1


def test_a_budget_that_cannot_prove_epsilon_is_warned_of_before_anything_is_spent() -> None:
    pulled = []

    def pull(arm: int, seed: int) -> float:
        pulled.append(arm)
        return drawn(arm, seed)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Doubtful, match="`budget` is 300") as raised:
            shortlist.select(pull, arms=10, k=3, epsilon=0.01, budget=300)
    assert pulled == []
    assert isinstance(raised.value, ShortlistError)
    assert "forecast" in str(raised.value)


@pytest.mark.parametrize(("n", "k"), [(3, 1), (10, 3), (200, 20)])
def test_a_budget_far_beyond_the_need_is_not_warned_of(n: int, k: int) -> None:
    asked: dict[str, Any] = {"epsilon": 0.05, "budget": 200_000, "rewards": (-1, 3)}
    assert cautions(lambda: shortlist.Experiment.create(n, k, **asked)) == []
    asked |= {"budget": 3 * n}
    assert len(cautions(lambda: shortlist.Experiment.create(n, k, **asked))) == 1


def test_the_command_line_warns_in_a_line_on_stderr(tmp_path: Path) -> None:
    arms, store = tmp_path / "arms.csv", tmp_path / "a.db"
    arms.write_text("1\n2\n3\n")
    words = ["run", str(arms), "--pull", "echo 0.4{arm}", "-k", "1", "--budget", "60"]
    done = CliRunner().invoke(main, [*words, "--format", "json"])
    asked = ["create", str(arms), "-k", "1", "--epsilon", "3", "--store", str(store)]
    made = CliRunner().invoke(main, [*asked, "--rewards", "binary"])
    assert done.exit_code == made.exit_code == 0
    assert done.stderr.count("Warning: every arm gave one number") == 1
    assert made.stderr.startswith("Warning: `epsilon` is 3")
    assert "Warning" not in done.stdout


def limited(limit: int | None, n_arms: int = 20) -> list[shortlist.Arm]:
    return [shortlist.Arm(each, limit=limit) for each in range(n_arms)]


def test_an_epsilon_out_of_reach_of_the_limits_is_warned_of_with_what_is_within_reach() -> None:
    asked: dict[str, Any] = {"k": 4, "epsilon": 0.02, "rewards": "binary"}
    (said,) = cautions(lambda: shortlist.Experiment.create(limited(40), **asked))
    assert "limits of arms allow 800 pulls in all" in said
    assert "spread evenly over the range" in said
    (proved,) = map(float, re.findall(r"prove a regret of ([.0-9]+),", said))
    assert 0.02 < proved < 0.3
    assert cautions(lambda: shortlist.Experiment.create(limited(40), 4, epsilon=0.3)) == []
    assert cautions(lambda: shortlist.Experiment.create(limited(10**6), **asked)) == []
    assert cautions(lambda: shortlist.Experiment.create(limited(None), **asked)) == []


def test_select_and_the_command_line_warn_of_limits_too(tmp_path: Path) -> None:
    (said,) = selected(drawn, arms=limited(9), k=4, epsilon=0.1)
    assert "limits of arms allow 180 pulls in all" in said
    arms = tmp_path / "arms.csv"
    arms.write_text("arm,limit\n" + "".join(f"{each},9\n" for each in range(20)))
    place = str(tmp_path / "tests.db")
    result = CliRunner().invoke(
        main, ["create", str(arms), "-k", "4", "--epsilon", "0.1", "--store", place]
    )
    assert result.exit_code == 0
    assert "limits of arms allow 180 pulls in all" in " ".join(result.output.split())


def test_limits_of_thousands_of_arms_do_not_make_a_question_slow() -> None:
    begun = time.process_time()
    for n_arms, limit in ((500, 40), (5000, 40), (200, 3000)):
        arms = limited(limit, n_arms)
        arms[0] = shortlist.Arm(0)
        cautions(partial(shortlist.Experiment.create, arms, 30, epsilon=0.02))
    assert time.process_time() - begun < 10
