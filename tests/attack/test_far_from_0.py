"""Rewards far from 0, where floats no longer tell them apart: refused wherever they come in."""

import math

import numpy as np
import pytest

import shortlist
from shortlist import FixedBudget, FixedConfidence, Problem, SubGaussian
from shortlist.algorithms.registry import ALGORITHMS
from shortlist.driver import counted, to_unit_scale
from shortlist.errors import InvalidReward
from shortlist.reward_models import Bounded
from shortlist.search import Pulls, Rewards
from shortlist.simulation.simulate import drive
from shortlist.simulation.worlds import GaussianBandit

MEANS = np.array([0.0, 0.2, 0.1, 0.0])
NAMES = sorted(name for name, each in ALGORITHMS.items() if not each.only_normal)


def problem_for(name: str) -> Problem:
    fixed_confidence = FixedConfidence in ALGORITHMS[name].goals
    goal = FixedConfidence(0.15, 0.05) if fixed_confidence else FixedBudget(400)
    return Problem(4, 1, goal, SubGaussian(0.5))


@pytest.mark.parametrize("name", NAMES)
def test_algorithms_refuse_sub_gaussian_rewards_too_far_from_0_for_float_precision(
    name: str,
) -> None:
    bandit = GaussianBandit(MEANS + 1e15)
    with pytest.raises(InvalidReward, match=r"at most 1e[+]09 sigma = 500000000 from 0"):
        drive(ALGORITHMS[name], problem_for(name), bandit, np.random.default_rng(1))


@pytest.mark.parametrize("name", ["lucb", "clucb-pac", "certified"])
def test_the_choice_is_right_at_the_largest_allowed_distance_from_0(name: str) -> None:
    bandit = GaussianBandit(MEANS + 4.9e8)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        answer = drive(ALGORITHMS[name], problem_for(name), bandit, rng).answer
        assert MEANS[answer.top[0]] >= 0.1


def test_tell_and_select_refuse_rewards_too_far_from_0() -> None:
    experiment = shortlist.Experiment.create(2, 1, epsilon=0.1, rewards=SubGaussian(0.5))
    ticket = experiment.ask(1)[0]
    with pytest.raises(InvalidReward, match=r"at most 1e[+]09 sigma"):
        experiment.tell(ticket, 1e15)
    with pytest.raises(InvalidReward, match=r"at most 1e[+]09 sigma"):
        shortlist.select(lambda arm: 1e15, arms=2, k=1, epsilon=0.1, rewards=SubGaussian(0.5))


def test_means_that_are_nan_or_infinite_are_refused() -> None:
    run = counted(ALGORITHMS["lucb"], problem_for("lucb"), np.random.default_rng(0))
    request = next(run)
    nothing = np.full(request.arms.size, math.nan)
    with pytest.raises(InvalidReward, match="gave is nan"):
        run.send(Rewards(nothing, nothing))


@pytest.mark.parametrize("far", [10.0, 1e4, 1e8])
def test_rounding_far_from_0_never_makes_a_variance_too_small(far: float) -> None:
    rng = np.random.default_rng(3)
    unit = rng.beta(5, 5, (200, 30))
    told = unit + far
    problem = Problem(200, 3, FixedBudget(10**6), Bounded(far, far + 1))
    request = Pulls(np.arange(200), np.full(200, 30))
    found = to_unit_scale(Rewards(told.sum(axis=1), (told**2).sum(axis=1)), request, problem)
    exactly = ((told - far) ** 2).sum(axis=1)
    assert np.all(found.squares >= exactly)


def test_rewards_of_minus_1_and_1_are_recognised_as_binary() -> None:
    told = np.random.default_rng(4).choice([-1.0, 1.0], (50, 9))
    problem = Problem(50, 3, FixedBudget(10**6), Bounded(-1, 1))
    request = Pulls(np.arange(50), np.full(50, 9))
    found = to_unit_scale(Rewards(told.sum(axis=1), (told**2).sum(axis=1)), request, problem)
    assert found.sums.tolist() == found.squares.tolist()
