"""KL-LUCB: LUCB's guarantee with the intervals of Chernoff's bound."""

from collections.abc import Callable
from math import exp, log
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from shortlist.algorithms import find
from shortlist.algorithms.lucb import RATES, hoeffding_ends
from shortlist.arrays import FloatArray
from shortlist.errors import InvalidInput, UnsupportedGoal
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.regret import elementwise
from shortlist.reward_models import Binary, SubGaussian
from shortlist.simulation.simulate import simulate
from shortlist.simulation.worlds import BernoulliBandit

Finish = Callable[..., Any]
BELIEVABLE = 1e-4
ALGORITHM = find("kl-lucb")


@pytest.mark.parametrize(("n", "delta"), [(2, 0.5), (10, 0.05), (1000, 0.01)])
def test_all_intervals_together_miss_with_probability_at_most_delta(n: int, delta: float) -> None:
    # n arms, one side each, every count of pulls with the least t it can have: itself
    counts = 100_000
    misses = sum(n * exp(-RATES["proven"](n, count, delta)) for count in range(1, counts + 1))
    rest = delta / 11 * counts**-0.1 / 0.1  # integral of N^-1.1
    assert 0.9 * delta < misses + rest < delta


def test_the_customary_rate_is_that_of_the_experiments() -> None:
    assert RATES["customary"](7, 100, 0.1) == pytest.approx(log((log(100) + 1) / 0.1))


@pytest.mark.parametrize(("n", "k"), [(2, 1), (6, 1), (6, 3), (6, 5)])
def test_every_chosen_arm_is_nearly_as_good_as_the_one_of_its_rank(
    finish: Finish, n: int, k: int
) -> None:
    epsilon, delta, runs = 0.3, 0.2, 60
    means = np.repeat([0.81, 0.5], [k, n - k])
    failures = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        theta = rng.permutation(means)
        problem = Problem(n, k, FixedConfidence(epsilon, delta), Binary())
        answer = finish(ALGORITHM.start(problem, rng, growth=1.0), BernoulliBandit(theta), rng)
        failures += not elementwise(theta, answer.top, epsilon)
        assert answer.regret_bound <= epsilon
        assert answer.confidence == 1 - delta
    assert binom.sf(failures - 1, runs, delta) > BELIEVABLE


@pytest.mark.parametrize("means", [np.zeros(4), np.ones(4), np.full(3, 0.5), np.array([1.0, 0.0])])
def test_it_stops_on_ties_and_at_the_ends_of_the_range(means: FloatArray) -> None:
    runs = simulate("kl-lucb", means, k=1, epsilon=0.3, delta=0.1, runs=5)
    assert runs.bound.max() <= 0.3
    assert runs.regret.max() == 0


def test_arms_near_0_take_fewer_pulls_than_with_the_intervals_of_lucb() -> None:
    means = np.array([0.05, 0.01, 0.01])
    kl, hoeffding = (
        simulate(name, means, k=1, epsilon=0.1, delta=0.1, runs=10, options={"growth": 0.1})
        for name in ("kl-lucb", "lucb")
    )
    assert kl.pulls.mean() < hoeffding.pulls.mean() / 3


def test_sub_gaussian_rewards_have_intervals_of_one_radius(finish: Finish) -> None:
    problem = Problem(2, 1, FixedConfidence(0.5, 0.1), SubGaussian(0.5))
    answer = finish(
        ALGORITHM.start(problem, np.random.default_rng(0)),
        BernoulliBandit(np.array([0.9, 0.1])),
        np.random.default_rng(0),
    )
    assert answer.top.tolist() == [0]
    means, pulls = np.array([5.0]), np.array([8])
    assert hoeffding_ends(means, pulls, 4.0) == pytest.approx((4.5, 5.5))


def test_the_customary_threshold_comes_without_a_bound_and_with_fewer_pulls(
    finish: Finish,
) -> None:
    spent = {}
    for threshold in RATES:
        rng = np.random.default_rng(1)
        problem = Problem(3, 1, FixedConfidence(0.2, 0.1), Binary())
        search = ALGORITHM.start(problem, rng, threshold=threshold)
        requests: list[Any] = []
        answer = finish(search, BernoulliBandit(np.array([0.9, 0.5, 0.1])), rng, requests)
        spent[threshold] = sum(request.total for request in requests)
        assert (answer.regret_bound is None) == (threshold == "customary")
        assert (answer.confidence is None) == (threshold == "customary")
        bounds = [request.progress.bound for request in requests[1:]]
        assert all((bound is None) == (threshold == "customary") for bound in bounds)
    assert spent["customary"] < spent["proven"]


def test_bad_options_and_budgets_are_refused_in_words() -> None:
    rng, problem = np.random.default_rng(0), Problem(3, 1, FixedConfidence(0.2, 0.1))
    with pytest.raises(InvalidInput, match="`threshold` is 'best', but must be proven or customar"):
        ALGORITHM.start(problem, rng, threshold="best")
    with pytest.raises(InvalidInput, match=r"`growth` is -1\.0, but must be at least 0"):
        ALGORITHM.start(problem, rng, growth=-1.0)
    with pytest.raises(UnsupportedGoal, match="kl-lucb needs epsilon and delta"):
        ALGORITHM.start(Problem(3, 1, FixedBudget(100)), rng)
