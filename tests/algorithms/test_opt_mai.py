"""OptMAI spends its budget as its paper says and finds good arms with it."""

from collections.abc import Callable
from math import exp, floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, fisher_exact

from shortlist import instances
from shortlist.algorithms import find
from shortlist.arrays import FloatArray
from shortlist.errors import UnsupportedGoal
from shortlist.problem import FixedBudget, Problem
from shortlist.search import Pulls
from shortlist.simulation.simulate import drive, simulate
from shortlist.simulation.worlds import BernoulliBandit

Finish = Callable[..., Any]
BELIEVABLE = 1e-6
ALGORITHM = find("opt-mai")
SYNTHETIC = instances.synthetic(0.5, 1000, 100)


def requests_of(finish: Finish, means: FloatArray, k: int, budget: int) -> list[Pulls]:
    """All requests of one run."""
    rng, requests = np.random.default_rng(0), list[Pulls]()
    problem = Problem(means.size, k, FixedBudget(budget))
    finish(ALGORITHM.start(problem, rng), BernoulliBandit(rng.permutation(means)), rng, requests)
    return requests


@settings(max_examples=80, deadline=None)
@given(n=st.integers(2, 60), data=st.data())
def test_never_spends_more_than_the_budget(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n - 1))
    budget = data.draw(st.integers(n, 40 * n))
    means = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]), min_size=n, max_size=n))
    )
    problem, pooled = Problem(n, k, FixedBudget(budget)), data.draw(st.booleans())
    outcome = drive(
        ALGORITHM, problem, BernoulliBandit(means), np.random.default_rng(1), pooled=pooled
    )
    assert outcome.pulls.sum() <= budget
    assert outcome.pulls.min() >= 1
    assert outcome.answer.top.size == np.unique(outcome.answer.top).size == k
    assert outcome.answer.regret_bound is None


def test_rounds_shrink_as_in_the_paper(finish: Finish) -> None:
    budget, beta, k = 50_000, exp(0.2) * 0.75, 100
    requests = requests_of(finish, SYNTHETIC, k, budget)
    size = 1000
    for r, request in enumerate(requests):
        assert request.arms.size == size
        assert set(request.times) == {floor((1 - beta) * beta**r * budget / size)}
        size = size - size // 4 if size >= 4 * k else size * 3 // 4  # QE, then AR
    # 1000, 750, 563, 423, 318
    assert [request.progress.accepted > 0 for request in requests][:5] == [False] * 5
    assert requests[-1].progress.accepted > 0


def test_rejection_stops_at_as_many_arms_as_are_wanted(finish: Finish) -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        problem = Problem(12, 5, FixedBudget(600))
        answer = finish(ALGORITHM.start(problem, rng), BernoulliBandit(np.zeros(12)), rng)
        assert np.unique(answer.top).size == 5


@pytest.mark.parametrize("k", [3, 9])
def test_equal_arms_are_chosen_equally_often(finish: Finish, k: int) -> None:
    rng, chosen, runs = np.random.default_rng(3), np.zeros(12, dtype=np.int64), 400
    for _ in range(runs):
        problem = Problem(12, k, FixedBudget(600))
        chosen[finish(ALGORITHM.start(problem, rng), BernoulliBandit(np.ones(12)), rng).top] += 1
    assert binom.cdf(chosen.min(), runs, k / 12) > BELIEVABLE
    assert binom.sf(chosen.max() - 1, runs, k / 12) > BELIEVABLE


def test_a_budget_too_small_for_rounds_is_spent_evenly() -> None:
    problem = Problem(100, 10, FixedBudget(750))
    outcome = drive(
        ALGORITHM, problem, BernoulliBandit(instances.uniform(100)), np.random.default_rng(4)
    )
    assert outcome.pulls.sum() == 750
    assert set(outcome.pulls) == {7, 8}
    means = outcome.means(problem)
    assert (means[outcome.answer.top] >= -np.sort(-means)[9]).all()


def test_needs_fewer_pulls_than_uniform_sampling_on_synthetic_half() -> None:
    runs = 200
    ours, theirs = (
        int(
            simulate(
                name, SYNTHETIC, k=100, epsilon=0.01, budget=22_000, runs=runs, seed=5
            ).failed.sum()
        )
        for name in ("opt-mai", "uniform")
    )
    assert binom.sf(ours - 1, runs, 0.1) > BELIEVABLE  # 10 % are reached within 7 % of 20 500 pulls
    table = np.array([[theirs, runs - theirs], [ours, runs - ours]])
    assert fisher_exact(table, alternative="greater").pvalue < BELIEVABLE


def test_too_few_pulls_fail_more_often_than_not() -> None:
    runs = simulate("opt-mai", SYNTHETIC, k=100, epsilon=0.01, budget=15_000, runs=50, seed=5)
    assert binom.sf(runs.failed.sum() - 1, 50, 0.5) < 0.01


def test_pooled_means_lose_less() -> None:
    fresh, pooled = (
        simulate(
            "opt-mai", SYNTHETIC, k=100, budget=20_000, runs=40, seed=6, options={"pooled": pooled}
        ).regret
        for pooled in (False, True)
    )
    assert pooled.mean() + 4 * pooled.std() / 40**0.5 < fresh.mean() - 4 * fresh.std() / 40**0.5


def test_more_than_half_is_the_complement_of_less_than_half(finish: Finish) -> None:
    means = np.random.default_rng(7).permutation(np.repeat([1.0, 0.0], [30, 10]))  # certain rewards
    most_problem, few_problem = (Problem(40, k, FixedBudget(4000)) for k in (35, 5))
    # apart from the search's, which must be drawn from alike in both
    rewards_rng = np.random.default_rng(0)
    most = finish(
        ALGORITHM.start(most_problem, np.random.default_rng(8)), BernoulliBandit(means), rewards_rng
    )
    few = finish(
        ALGORITHM.start(few_problem, np.random.default_rng(8)),
        BernoulliBandit(1 - means),
        rewards_rng,
    )
    assert sorted([*most.top, *few.top]) == list(range(40))


def test_finds_most_arms_as_well_as_few() -> None:
    runs = simulate(
        "opt-mai", instances.uniform(200), k=180, epsilon=0.01, budget=20_000, runs=50, seed=9
    )
    assert binom.sf(runs.failed.sum() - 1, 50, 0.1) > BELIEVABLE


def test_without_a_budget_it_says_why_it_cannot() -> None:
    with pytest.raises(UnsupportedGoal, match="opt-mai needs a budget; it has no stopping rule"):
        simulate("opt-mai", SYNTHETIC, k=100, epsilon=0.1, delta=0.1)
