"""Track-and-stop pulls in the best proportions and stops when no other arm can be better."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

from shortlist.algorithms import find
from shortlist.algorithms.likelihood_ratio import BERNOULLI, best_proportions
from shortlist.algorithms.track_and_stop import THRESHOLDS
from shortlist.arrays import FloatArray
from shortlist.engine import Experiment
from shortlist.errors import InvalidInput, UnsupportedGoal
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.reward_models import Binary, SubGaussian
from shortlist.search import Pulls
from shortlist.simulation.simulate import simulate
from shortlist.simulation.worlds import BernoulliBandit

Finish = Callable[..., Any]
BELIEVABLE = 1e-4
ALGORITHM = find("track-and-stop")


def problem(n: int, epsilon: float, delta: float = 0.1) -> Problem:
    return Problem(n, 1, FixedConfidence(epsilon, delta), Binary())


@pytest.mark.rates
@pytest.mark.parametrize("threshold", ["proven", "iterated-logarithm"])
@pytest.mark.parametrize(
    "means",
    [[0.6, 0.29], [0.97, 0.66, 0.66], [0.32, 0.01, 0.01, 0.01], [0.5, 0.45, 0.19, 0.19]],
)
def test_more_than_epsilon_is_lost_in_at_most_delta_of_the_runs(
    means: list[float], threshold: str
) -> None:
    options = {"growth": 0.5, "threshold": threshold}
    asked = {"k": 1, "epsilon": 0.3, "delta": 0.3, "runs": number_of_runs(10, 1000)}
    runs = simulate("track-and-stop", np.array(means), options=options, **asked)  # type: ignore[arg-type]
    assert binom.sf(int(runs.failed.sum()) - 1, asked["runs"], 0.3) > BELIEVABLE
    assert np.all(runs.bound == 0.3)


@pytest.mark.parametrize("means", [np.zeros(4), np.ones(4), np.full(3, 0.5), np.array([1.0, 0.0])])
def test_it_stops_on_ties_and_at_the_ends_of_the_range(means: FloatArray) -> None:
    runs = simulate("track-and-stop", means, k=1, epsilon=0.3, delta=0.1, runs=5)
    assert runs.regret.max() == 0


def test_a_clear_gap_takes_few_pulls() -> None:
    clear = simulate("track-and-stop", np.array([0.9, 0.1]), k=1, epsilon=0.1, delta=0.1, runs=10)
    assert clear.pulls.max() < 100


def test_pulls_follow_the_best_proportions(finish: Finish) -> None:
    means, rng, requests = np.array([0.6, 0.5, 0.3]), np.random.default_rng(0), list[Pulls]()
    finish(ALGORITHM.start(problem(3, 0.02), rng), BernoulliBandit(means), rng, requests)
    pulls = np.zeros(3)
    for request in requests:
        pulls[request.arms] += request.times
    own, others = best_proportions(BERNOULLI, 0.6, means[1:], 0.02)
    assert pulls / pulls.sum() == pytest.approx([own, *others], abs=0.06)


def test_with_growth_zero_every_step_is_one_pull(finish: Finish) -> None:
    rng, requests = np.random.default_rng(0), list[Pulls]()
    search = ALGORITHM.start(problem(4, 0.4), rng, growth=0.0)
    finish(search, BernoulliBandit(np.linspace(0.2, 0.8, 4)), rng, requests)
    assert requests[0].times.tolist() == [1] * 4
    assert {tuple(request.times) for request in requests[1:]} == {(1,)}


def test_no_arm_is_forgotten(finish: Finish) -> None:
    # an arm that gave 0 at first would never be pulled again but for forced exploration
    means, rng, requests = np.array([0.5, 0.5, 0.0]), np.random.default_rng(3), list[Pulls]()
    finish(ALGORITHM.start(problem(3, 0.05), rng), BernoulliBandit(means), rng, requests)
    pulls = np.zeros(3)
    for request in requests:
        pulls[request.arms] += request.times
    assert pulls.min() >= np.sqrt(pulls.sum()) - 3 / 2 - 1


def test_sub_gaussian_rewards_are_served_wherever_they_lie() -> None:
    runs = simulate(
        "track-and-stop",
        np.array([8.0, 7.5, 7.5]),
        k=1,
        epsilon=0.3,
        delta=0.2,
        runs=20,
        rewards="gaussian",
        options={"growth": 0.3},
    )
    assert binom.sf(int(runs.failed.sum()) - 1, 20, 0.2) > BELIEVABLE


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_only_the_customary_threshold_comes_without_a_bound(finish: Finish, threshold: str) -> None:
    rng = np.random.default_rng(0)
    search = ALGORITHM.start(problem(3, 0.2), rng, threshold=threshold)
    answer = finish(search, BernoulliBandit(np.array([0.9, 0.5, 0.1])), rng)
    expected = (None, None) if threshold == "customary" else (0.2, 0.9)
    assert (answer.regret_bound, answer.confidence) == expected


def test_thresholds_with_a_proof_cost_pulls() -> None:
    spent = [
        simulate(
            "track-and-stop",
            np.array([0.6, 0.4]),
            k=1,
            epsilon=0.2,
            delta=0.1,
            runs=8,
            options={"threshold": threshold, "growth": 0.2},
        ).pulls.mean()
        for threshold in ("customary", "proven", "iterated-logarithm")
    ]
    assert spent == sorted(spent)


def test_bad_options_goals_and_k_are_refused_in_words() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInput, match="`k` is 2, but must be 1"):
        ALGORITHM.start(Problem(3, 2, FixedConfidence(0.2, 0.1)), rng)
    with pytest.raises(InvalidInput, match="`threshold` is 'best', but must be proven or iterated"):
        ALGORITHM.start(problem(3, 0.2), rng, threshold="best")
    with pytest.raises(InvalidInput, match=r"`growth` is -1\.0, but must be at least 0"):
        ALGORITHM.start(problem(3, 0.2), rng, growth=-1.0)
    with pytest.raises(UnsupportedGoal, match="track-and-stop needs epsilon and delta"):
        ALGORITHM.start(Problem(3, 1, FixedBudget(100)), rng)


def test_an_experiment_for_two_best_arms_is_not_even_made() -> None:
    with pytest.raises(InvalidInput, match="track-and-stop finds one best arm"):
        Experiment.create(3, 2, epsilon=0.2, algorithm="track-and-stop")


def test_a_step_among_20_arms_takes_less_than_5_milliseconds() -> None:
    search = ALGORITHM.start(
        Problem(20, 1, FixedConfidence(0.01, 0.05), SubGaussian(0.5)), np.random.default_rng(0)
    )
    rng, bandit = np.random.default_rng(1), BernoulliBandit(np.linspace(0.1, 0.9, 20))
    request, fastest = next(search), np.inf
    for _ in range(100):
        rewards = bandit.pull(request.arms, request.times, rng)
        started = time.perf_counter()
        request = search.send(rewards)
        fastest = min(fastest, time.perf_counter() - started)  # the machine may be busy
    assert fastest < 5e-3
