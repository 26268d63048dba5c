"""ImprovedTopK keeps its promise on easy, hard, tiny and degenerate instances."""

from collections.abc import Callable
from itertools import pairwise
from math import ceil, log
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from shortlist import instances
from shortlist.algorithms import find
from shortlist.algorithms.uniform import subset_union_count
from shortlist.arrays import FloatArray
from shortlist.errors import InvalidInput, UnsupportedGoal
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import SubGaussian
from shortlist.search import Pulls
from shortlist.simulation.simulate import drive, simulate
from shortlist.simulation.worlds import BernoulliBandit, GaussianBandit

Finish = Callable[..., Any]
BELIEVABLE = 1e-6
ALGORITHM = find("improved-top-k")

UNIFORM = instances.uniform(200)
CASES = {
    "two arms": (np.array([0.7, 0.3]), 1, 0.1),
    "two equal arms": (np.array([0.5, 0.5]), 1, 0.1),
    "best of many": (UNIFORM, 1, 0.1),
    "all but one": (UNIFORM, 199, 0.1),
    "few": (UNIFORM, 20, 0.1),
    "half": (UNIFORM, 100, 0.05),
    "most": (UNIFORM, 180, 0.05),
    "large epsilon": (UNIFORM, 100, 3.0),
    "all equal": (np.full(60, 0.5), 20, 0.1),
    "tie at the boundary": (np.repeat([0.8, 0.5, 0.2], 30), 45, 0.1),
    "certain rewards": (np.repeat([1.0, 0.0], [30, 50]), 30, 0.1),
    "certain rewards, tie": (np.repeat([1.0, 0.0], [30, 50]), 20, 0.1),
    "gap": (instances.two_group(100, 40), 40, 0.1),
    "crowded boundary": (instances.synthetic(6, 200, 60), 60, 0.1),
    "empty boundary": (instances.synthetic(0.5, 200, 60), 60, 0.1),
}


def requests_of(
    finish: Finish, means: FloatArray, k: int, epsilon: float, seed: int = 0
) -> list[Pulls]:
    """All requests of one run."""
    rng, requests = np.random.default_rng(seed), list[Pulls]()
    problem = Problem(means.size, k, FixedConfidence(epsilon, 0.1))
    finish(ALGORITHM.start(problem, rng), BernoulliBandit(rng.permutation(means)), rng, requests)
    return requests


@pytest.mark.rates
@pytest.mark.parametrize(("means", "k", "epsilon"), CASES.values(), ids=CASES.keys())
def test_regret_stays_within_epsilon_at_confidence(
    means: FloatArray, k: int, epsilon: float
) -> None:
    size = number_of_runs(8, 500)
    runs = simulate("improved-top-k", means, k=k, epsilon=epsilon, delta=0.1, runs=size, seed=1)
    assert binom.sf(runs.failed.sum() - 1, size, 0.1) > BELIEVABLE
    assert (runs.bound <= epsilon).all()
    assert binom.sf((runs.regret > runs.bound + 1e-9).sum() - 1, size, 0.1) > BELIEVABLE


@pytest.mark.parametrize("k", [100, 900])
def test_a_thousand_arms(k: int) -> None:
    runs = simulate(
        "improved-top-k", instances.uniform(1000), k=k, epsilon=0.1, delta=0.1, runs=2, seed=2
    )
    assert (runs.regret <= 0.1).all()
    assert (runs.pulls > 1e9).all()


@pytest.mark.parametrize("k", [3, 30, 97])
def test_means_far_apart_cost_nothing_where_rewards_have_no_range(k: int) -> None:
    means = np.concatenate([np.linspace(-1e4, 1e4, 60), np.linspace(-0.5, 0.5, 40)])
    runs = simulate(
        "improved-top-k", means, k=k, epsilon=0.1, delta=0.1, runs=10, seed=3, rewards="gaussian"
    )
    assert binom.sf(runs.failed.sum() - 1, 10, 0.1) > BELIEVABLE


def test_rewards_without_a_range_keep_the_promise_near_the_boundary() -> None:
    means = 10 + np.linspace(0, 1, 80)
    runs = simulate(
        "improved-top-k", means, k=30, epsilon=0.05, delta=0.1, runs=10, seed=4, rewards="gaussian"
    )
    assert binom.sf(runs.failed.sum() - 1, 10, 0.1) > BELIEVABLE


def test_arms_far_from_the_boundary_are_put_aside_first_where_rewards_have_no_range(
    finish: Finish,
) -> None:
    rng, requests = np.random.default_rng(5), list[Pulls]()
    means = rng.permutation(
        np.concatenate([np.full(30, 50.0), np.linspace(-0.1, 0.1, 40), np.full(30, -50.0)])
    )
    problem = Problem(100, 50, FixedConfidence(0.1, 0.1), SubGaussian(0.5))
    finish(ALGORITHM.start(problem, rng), GaussianBandit(means), rng, requests)
    first, second = requests[:2]
    assert first.times.tolist() == [ceil(32 * log(200 * 100 / 0.1))] * 100
    assert sorted(second.arms) == np.flatnonzero(abs(means) < 1).tolist()
    assert (second.progress.accepted, second.progress.rejected) == (30, 30)


def test_more_than_half_is_the_complement_of_less_than_half(finish: Finish) -> None:
    # certain rewards
    means = np.random.default_rng(6).permutation(np.repeat([1.0, 0.0], [160, 40]))
    most_problem, few_problem = (
        Problem(200, 170, FixedConfidence(0.01, 0.1)),
        Problem(200, 30, FixedConfidence(17 / 300, 0.1)),
    )
    # apart from the search's, which must be drawn from alike in both
    rewards_rng = np.random.default_rng(0)
    most = finish(
        ALGORITHM.start(most_problem, np.random.default_rng(7)), BernoulliBandit(means), rewards_rng
    )
    few = finish(
        ALGORITHM.start(few_problem, np.random.default_rng(7)),
        BernoulliBandit(1 - means),
        rewards_rng,
    )
    assert sorted([*most.top, *few.top]) == list(range(200))
    assert most.regret_bound == pytest.approx(0.01)
    assert few.regret_bound == pytest.approx(17 / 300)


def test_an_epsilon_above_a_fifth_is_met_with_a_fifth() -> None:
    runs = simulate("improved-top-k", UNIFORM, k=180, epsilon=0.1, delta=0.1, seed=8)
    assert runs.bound[0] == pytest.approx(0.2 * 20 / 180)  # E9, on the bottom 20


def test_the_undecided_stay_balanced(finish: Finish) -> None:
    k, shares, accepted, rejected = 500, [], 0, 0
    for request in requests_of(finish, instances.uniform(1000), k, 0.02):
        shares.append((k - request.progress.accepted) / request.progress.undecided)
        accepted, rejected = request.progress.accepted, request.progress.rejected
    assert max(shares) <= 5 / 9  # E10
    assert min(shares) >= 0.4
    assert accepted > 100
    assert rejected > 100


def test_a_round_puts_aside_one_tenth_on_one_side(finish: Finish) -> None:
    seen = [
        (p.accepted, p.rejected)
        for p in (r.progress for r in requests_of(finish, UNIFORM, 100, 0.05))
    ]
    stages = list(dict.fromkeys(seen))
    moves = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(stages)]
    left = [200 - sum(stage) for stage in stages[:-1]]
    assert len(moves) > 3
    assert all(
        sum(move) == size // 10 and 0 in move for move, size in zip(moves, left, strict=True)
    )
    assert {move[0] == 0 for move in moves} == {True, False}


@pytest.mark.parametrize(("n", "k"), [(2, 1), (10, 3), (19, 9), (40, 1)])
def test_few_arms_or_few_wanted_go_straight_to_the_last_stage(
    finish: Finish, n: int, k: int
) -> None:
    (request,) = requests_of(finish, instances.uniform(n), k, 0.1)  # E12
    count = subset_union_count(n, k, 0.1 - 0.1**2 / 30, 0.1 / 100)  # E14
    assert request.times.tolist() == [count] * n


def test_a_gap_at_the_boundary_ends_the_search_in_a_split(finish: Finish) -> None:
    requests = requests_of(finish, instances.two_group(100, 40), 40, 0.1)
    sizes = [request.arms.size for request in requests]
    assert sizes[-2:] == [100, 50]  # halved from 100 by way of 50 to K_L = 40
    assert all(request.progress.undecided == 100 for request in requests)


def test_equal_arms_end_at_the_smallest_accuracy(finish: Finish) -> None:
    requests = requests_of(finish, np.full(60, 0.5), 20, 0.1)
    count = subset_union_count(60, 20, 0.1 - 0.1**2 / 30, 0.1 / 100)
    assert requests[-1].times.tolist() == [count] * 60
    passes = sum(request.arms.size == 1 for request in requests) / 3  # three estimates each
    assert passes == 6  # 2^-1 .. 2^-6: the first phi with 10 phi < epsilon is 2^-7


@settings(max_examples=60, deadline=None)
@given(n=st.integers(2, 40), data=st.data())
def test_every_small_problem_ends_with_k_arms(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n - 1))
    epsilon = data.draw(st.sampled_from([0.05, 0.2, 0.9, 5.0]))
    means = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]), min_size=n, max_size=n))
    )
    bandit = data.draw(st.sampled_from([BernoulliBandit, GaussianBandit]))(means)
    problem = Problem(n, k, FixedConfidence(epsilon, 0.001), bandit.model)
    answer = drive(ALGORITHM, problem, bandit, np.random.default_rng(5)).answer
    assert answer.top.size == np.unique(answer.top).size == k
    assert answer.regret_bound is not None
    assert aggregate_regret(means, answer.top) <= answer.regret_bound <= epsilon + 1e-12


def test_impossible_wishes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="too many pulls"):
        simulate("improved-top-k", UNIFORM, k=20, epsilon=2e-10, delta=0.1)
    with pytest.raises(UnsupportedGoal, match="improved-top-k needs epsilon and delta"):
        simulate("improved-top-k", UNIFORM, k=20, budget=10_000)
