"""What an experiment still needs, simulated from where it stands, against what it then needs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from shortlist.arms import Arm
from shortlist.cli import main
from shortlist.engine import Experiment, outlook
from shortlist.errors import InvalidInput
from shortlist.reward_models import SubGaussian

ASKED: dict[str, Any] = {"epsilon": 0.05, "rewards": "binary"}
MEANS = np.array([0.75, 0.55, 0.5, 0.4])


def advanced(experiment: Experiment, rng: np.random.Generator, until: float) -> Experiment:
    """Told up to so many pulls, or the end."""
    while experiment.status().told < until and (tickets := experiment.ask(200)):
        won = rng.random(len(tickets)) < MEANS[[int(each.arm) for each in tickets]]
        experiment.tell_many(zip(tickets, won.astype(float).tolist(), strict=True))
    return experiment


@pytest.mark.no_cover
def test_half_of_all_experiments_need_at_most_the_median_and_most_at_most_the_high_one() -> None:
    below, high = [], []
    for seed in range(16):
        rng = np.random.default_rng([4, seed])
        experiment = Experiment.create(4, 1, min_batch=160, seed=seed, **ASKED)
        ahead = outlook(advanced(experiment, rng, 150), runs=9, seed=seed)
        told = experiment.status().told
        needed = advanced(experiment, rng, np.inf).status().told - told
        below.append(needed <= ahead.median)
        high.append(needed <= ahead.high)
    # if it were exact: P(Bin(16, 1/2) < 3) and P(Bin(16, 9/10) < 11) are below 0.4 % each
    assert 3 <= sum(below) <= 14
    assert sum(high) >= 11


def test_a_budget_is_what_is_left_of_it() -> None:
    experiment = Experiment.create(4, 2, budget=100)
    assert (outlook(experiment, runs=3).pulls == 100).all()
    advanced(experiment, np.random.default_rng(0), 30)
    left = 100 - experiment.status().told
    ahead = outlook(experiment, runs=3)
    assert (ahead.median, ahead.high) == (left, left)
    advanced(experiment, np.random.default_rng(0), np.inf)
    over = outlook(experiment, runs=3)
    assert (over.median, over.rounds.max()) == (0, 0)


def test_arms_that_left_need_no_more_and_seeds_settle_it() -> None:
    experiment = Experiment.create(4, 1, epsilon=0.5, rewards=(0, 5), minimize=True)
    advanced(experiment, np.random.default_rng(0), 40)
    experiment.retire(1)
    first, second = (outlook(experiment, runs=3, seed=9) for _ in range(2))
    assert np.array_equal(first.pulls, second.pulls)
    assert first.pulls.min() >= 0


@pytest.mark.parametrize("asked", [{"rewards": SubGaussian(1)}, {"rewards": None}])
def test_rewards_without_a_range_have_no_outlook(asked: dict[str, Any]) -> None:
    experiment = Experiment.create(3, 1, budget=30, **asked)
    experiment.tell(experiment.ask()[0], 7.0)
    with pytest.raises(InvalidInput, match="range"):
        outlook(experiment)


def test_the_command_line_shows_it(tmp_path: Path) -> None:
    now = iter(range(10**6))
    store = str(tmp_path / "a.db")
    made = Experiment.create(4, 1, budget=60, store=store, clock=lambda: float(next(now)))
    advanced(made, np.random.default_rng(0), 30)
    told = made.status().told
    made.close()
    words = ["status", "--outlook", "--store", store]
    shown = CliRunner().invoke(main, words)
    assert f"{60 - told} pulls more in the median" in shown.stderr
    data = json.loads(CliRunner().invoke(main, [*words, "--format", "json"]).stdout)
    assert data["outlook"]["pulls"] == {"median": 60 - told, "high": 60 - told}
    assert data["outlook"]["seconds"]["high"] > 0


def test_a_test_set_has_an_outlook_of_no_more_than_its_cells() -> None:
    experiment = Experiment.create(4, 1, epsilon=0.1, items=50, rewards="binary")
    advanced(experiment, np.random.default_rng(0), 30)
    left = 4 * 50 - experiment.status().told
    ahead = outlook(experiment, runs=3)
    assert 0 < ahead.median <= ahead.high <= left


def test_a_search_with_too_many_batches_behind_it_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shortlist.engine.eta.MOST_REPLIES", 1)
    experiment = Experiment.create(4, 1, **ASKED)
    advanced(experiment, np.random.default_rng(0), 30)
    with pytest.raises(InvalidInput, match="too many batches"):
        outlook(experiment)


@pytest.mark.filterwarnings("ignore:limits of arms allow")
@pytest.mark.parametrize("algorithm", ["certified", "uniform"])
def test_no_simulation_goes_beyond_limits_or_pulls_arms_that_left(algorithm: str) -> None:
    arms = [Arm(number, limit=15) for number in range(4)]
    asked = ASKED if algorithm == "certified" else {"budget": 1000, "rewards": "binary"}
    experiment = Experiment.create(arms, 1, algorithm=algorithm, **asked)
    experiment.tell_many((ticket, float(ticket.id % 2)) for ticket in experiment.ask(8))
    assert outlook(experiment, runs=5).pulls.max() <= 60 - experiment.status().told
    experiment.retire(3)
    told = experiment.status().arms
    left = 45 - int((told.pulls + told.waiting)[:3].sum())
    assert outlook(experiment, runs=5).pulls.max() <= left


def test_no_simulation_asks_for_cells_that_are_known() -> None:
    known = np.full((3, 40), np.nan)
    known[:, :30] = 0.5
    experiment = Experiment.create(3, 1, items=40, scores=known, epsilon=1e-4)
    assert outlook(experiment, runs=5).pulls.max() <= 30
