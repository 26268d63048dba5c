"""AdaptiveTopK pulls as its proof needs, sorts as its printed loop does, and spends a budget to the
last pull."""

from collections.abc import Callable
from math import ceil, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist import instances
from shortlist.algorithms import find
from shortlist.algorithms.steps import clear_arms
from shortlist.arrays import FloatArray
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem
from shortlist.search import Pulls
from shortlist.simulation.simulate import simulate
from shortlist.simulation.worlds import BernoulliBandit

Finish = Callable[..., Any]
EQUAL_ARMS = np.full(10, 0.5)


def printed_inner_loop(means: list[float], wanted: int, width: float) -> tuple[set[int], set[int]]:
    """Lines 7-15 of Algorithm 1, one arm at a time, and E3 where a threshold does not exist."""
    undecided, accepted, rejected = set(range(len(means))), set[int](), set[int]()
    while 0 < wanted - len(accepted) < len(undecided):
        k = wanted - len(accepted)
        ordered = sorted((means[i] for i in undecided), reverse=True)
        a, b = ordered[k], ordered[k - 1]
        gaps = {i: max(means[i] - a, b - means[i]) for i in undecided}
        x = max(gaps, key=lambda i: gaps[i])
        if gaps[x] <= 2 * width:
            return accepted, rejected
        (accepted if means[x] > a else rejected).add(x)
        undecided.remove(x)
    return (
        (accepted, rejected | undecided)
        if wanted == len(accepted)
        else (accepted | undecided, rejected)
    )


def requests_of(
    finish: Finish, name: str, means: FloatArray, k: int, goal: Goal, seed: int = 0
) -> list[Pulls]:
    rng, requests = np.random.default_rng(seed), list[Pulls]()
    finish(
        find(name).start(Problem(means.size, k, goal), rng), BernoulliBandit(means), rng, requests
    )
    return requests


# Multiples of 1/16 keep the comparisons exact and make ties common.
@given(st.lists(st.integers(0, 16), min_size=1, max_size=12), st.data())
def test_two_masks_sort_as_the_printed_loop_does(
    sixteenths: list[int], data: st.DataObject
) -> None:
    means = [each / 16 for each in sixteenths]
    wanted, width = (
        data.draw(st.integers(0, len(means))),
        data.draw(st.sampled_from([1 / 32, 1 / 16, 1 / 8, 1 / 4])),
    )
    accept, reject = clear_arms(np.array(means), wanted, width)
    accepted, rejected = set(np.flatnonzero(accept).tolist()), set(np.flatnonzero(reject).tolist())
    undecided = set(range(len(means))) - accepted - rejected
    if len(accepted) == wanted:
        rejected |= undecided
    elif wanted - len(accepted) == len(undecided):
        accepted |= undecided
    assert (accepted, rejected) == printed_inner_loop(means, wanted, width)


@pytest.mark.parametrize("epsilon", [1.0, 0.5, 0.3, 0.1])
def test_round_r_works_to_width_two_to_the_minus_r(finish: Finish, epsilon: float) -> None:
    # E1: as printed, round r pulls for the width of round r - 1 and the answer is only 2
    # epsilon-correct.
    requests = requests_of(finish, "adaptive-top-k", EQUAL_ARMS, 5, FixedConfidence(epsilon, 0.1))
    lengths = [set(request.times) for request in requests]
    rounds = next(r for r in range(1, 99) if 2 * 2.0**-r <= epsilon)
    assert lengths == [{ceil(4.0**r * log(2 * 10 * r**2 / 0.1))} for r in range(1, rounds + 1)]


def test_the_tight_form_pools_its_rounds(finish: Finish) -> None:
    requests = requests_of(finish, "adaptive-top-k-tight", EQUAL_ARMS, 5, FixedConfidence(0.1, 0.1))
    totals = np.cumsum([request.times[0] for request in requests])
    rounds = ceil(np.log2(2 / 0.1))
    assert totals.tolist() == [
        ceil(4.0**r / 2 * log(10 * rounds / 0.1)) for r in range(1, rounds + 1)
    ]


@pytest.mark.parametrize(
    ("means", "k"),
    [
        (instances.uniform(1000), 500),
        (instances.uniform(200), 20),
        (instances.two_group(1000, 100), 100),
        (instances.synthetic(6, 1000, 100), 100),
        (instances.rte(), 30),
    ],
    ids=["uniform-1000", "uniform-200", "two-group", "synthetic-6", "rte"],
)
def test_the_tight_form_needs_at_least_2_4_times_fewer_pulls(means: FloatArray, k: int) -> None:
    paper, tight = (
        simulate(name, means, k=k, epsilon=0.01, delta=0.01, runs=3).pulls.mean()
        for name in ("adaptive-top-k", "adaptive-top-k-tight")
    )
    assert paper >= 2.4 * tight


@given(budget=st.integers(10, 3000), k=st.integers(1, 9))
def test_a_budget_is_spent_to_the_last_pull_while_arms_are_undecided(
    finish: Finish, budget: int, k: int
) -> None:
    # Equal arms stay undecided, so the last, partial round (E16) must use up what is left.
    requests = requests_of(finish, "adaptive-top-k", EQUAL_ARMS, k, FixedBudget(budget))
    assert requests[-1].progress.undecided == 10
    assert sum(request.total for request in requests) == budget
    assert np.ptp(requests[-1].times) <= 1


def test_the_odd_pulls_of_the_last_round_go_to_any_arm(finish: Finish) -> None:
    lucky = set()
    for seed in range(60):
        request = requests_of(finish, "adaptive-top-k", EQUAL_ARMS, 5, FixedBudget(11), seed)[-1]
        lucky.add(int(request.arms[request.times == 2][0]))
    assert lucky == set(range(10))


def test_a_budget_ends_with_what_the_pooled_means_say(finish: Finish) -> None:
    rng = np.random.default_rng(0)
    search = find("adaptive-top-k").start(Problem(20, 5, FixedBudget(4000)), rng)
    means = rng.permutation(np.linspace(0, 1, 20))
    answer = finish(search, BernoulliBandit(means), rng)
    assert set(answer.top) == set(np.argsort(-means)[:5])
    assert answer.regret_bound is None
    assert answer.confidence is None


def test_the_tight_form_pulls_before_it_trusts_means_without_a_range() -> None:
    # One swap among 23 of 24 arms costs at most 1/23 where means lie in [0, 1], and anything where
    # they do not.
    means = np.linspace(0, 300, 24)
    assert not simulate(
        "adaptive-top-k-tight", means, k=23, epsilon=0.2, runs=5, rewards="gaussian"
    ).failed.any()
    assert simulate("adaptive-top-k-tight", means / 300, k=23, epsilon=0.2, runs=5).pulls.max() == 0
