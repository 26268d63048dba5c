"""LUCB pulls the two arms that stand in the way, and every chosen arm is nearly as good as the one
it replaces."""

from collections.abc import Callable
from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from shortlist.algorithms import find
from shortlist.algorithms.lucb import LUCB_RULE, Intervals, highest_first
from shortlist.arrays import FloatArray
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import elementwise
from shortlist.search import Pulls
from shortlist.simulation.simulate import simulate
from shortlist.simulation.worlds import BernoulliBandit

Finish = Callable[..., Any]
BELIEVABLE = 1e-4
ALGORITHM = find("lucb")


def intervals(log_term: float = 2.0, allowed: float = 0.1) -> Intervals:
    """Four arms, two of them inside."""
    pulls, means = np.array([100, 4, 100, 9]), np.array([0.9, 0.8, 0.1, 0.3])
    return Intervals(pulls, means, np.array([True, True, False, False]), log_term, allowed, 0.02)


def test_the_bound_is_the_highest_end_outside_less_the_lowest_inside() -> None:
    # Radii 0.1, 0.5, 0.1, 1/3.
    assert LUCB_RULE.bound(intervals()) == pytest.approx((0.3 + 1 / 3) - (0.8 - 0.5))
    assert LUCB_RULE.bound(intervals(log_term=0.01)) == 0


def test_a_step_of_two_pulls_the_lowest_end_inside_and_the_highest_outside() -> None:
    assert LUCB_RULE.shares(intervals(), 2, np.random.default_rng(0)).tolist() == [0, 1, 0, 1]


def test_with_growth_zero_every_step_pulls_two_arms_once(finish: Finish) -> None:
    rng, requests = np.random.default_rng(0), list[Pulls]()
    problem = Problem(5, 2, FixedConfidence(0.4, 0.1))
    finish(
        ALGORITHM.start(problem, rng, growth=0.0),
        BernoulliBandit(np.linspace(0, 1, 5)),
        rng,
        requests,
    )
    assert requests[0].times.tolist() == [1] * 5
    assert {tuple(request.times) for request in requests[1:]} == {(1, 1)}


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8), st.integers(0, 60), st.integers(0, 5))
def test_highest_first_serves_in_order_until_the_batch_is_used_up(
    wishes: list[int], batch: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values, most = rng.permutation(len(wishes)).astype(np.float64), np.array(wishes)
    left, expected = batch, np.zeros(values.size, dtype=np.int64)
    for rank, arm in enumerate(np.argsort(-values)):
        expected[arm] = min(left, max(1, most[arm]) if rank == 0 else most[arm])
        left -= expected[arm]
    assert highest_first(values, most, batch, rng).tolist() == expected.tolist()


def test_highest_first_breaks_ties_at_random() -> None:
    values, most = np.ones(6), np.ones(6, dtype=np.int64)
    lucky = {
        int(np.argmax(highest_first(values, most, 1, np.random.default_rng(seed))))
        for seed in range(60)
    }
    assert lucky == set(range(6))


def test_a_batch_passes_over_arms_that_are_out_of_the_way() -> None:
    # The midpoint of the boundary is 0.55: arm 1 reaches down to 0.3 and arm 3 up to 0.63, the
    # others not so far.
    assert LUCB_RULE.shares(intervals(), 1000, np.random.default_rng(0)).tolist() == [0, 1, 0, 1]
    assert LUCB_RULE.shares(intervals(log_term=60.0), 1000, np.random.default_rng(0)).tolist() == [
        10,
        1,
        10,
        1,
    ]


@pytest.mark.parametrize(("n", "delta"), [(2, 0.5), (10, 0.05), (1000, 0.01)])
def test_all_intervals_together_miss_with_probability_at_most_delta(n: int, delta: float) -> None:
    # After t pulls: n arms, up to t counts each, the one side that matters, exp(-log_term) each.
    misses = sum(n * t * exp(-LUCB_RULE.log_term(n, t, delta)) for t in range(1, 2001))
    assert 0.9 * delta < misses < delta * (1 - 1 / 2000**2)


@pytest.mark.parametrize(
    "means",
    [
        np.array(
            [0.9, 0.9, 0.5, 0.5, 0.19, 0.19]
        ),  # the K-th mean is far below the best: Explore-K would not see a loss
        np.array([0.6] * 3 + [0.29] * 3),
        np.linspace(0, 1, 6),
    ],
    ids=["three-levels", "two-levels", "spread"],
)
def test_every_chosen_arm_is_nearly_as_good_as_the_one_of_its_rank(
    finish: Finish, means: FloatArray
) -> None:
    epsilon, delta, runs = 0.3, 0.2, 200
    failures = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        theta = rng.permutation(means)
        search = ALGORITHM.start(Problem(6, 3, FixedConfidence(epsilon, delta)), rng, growth=1.0)
        failures += not elementwise(theta, finish(search, BernoulliBandit(theta), rng).top, epsilon)
    assert binom.sf(failures - 1, runs, delta) > BELIEVABLE


def test_batches_cost_hardly_more_pulls_than_single_pulls() -> None:
    batched, single = (
        simulate(
            "lucb",
            np.linspace(0, 1, 20),
            k=5,
            epsilon=0.3,
            delta=0.1,
            runs=runs,
            options={"growth": growth},
        )
        for growth, runs in ((0.02, 8), (0.0, 3))
    )
    assert batched.pulls.mean() <= 1.15 * single.pulls.mean()
