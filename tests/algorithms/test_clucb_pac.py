"""CLUCB-PAC stops, shares out its batches and bounds its loss as its definition says."""

from collections.abc import Callable
from itertools import combinations
from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from shortlist import instances
from shortlist.algorithms import find
from shortlist.algorithms.lucb import CLUCB_RULE, Intervals, fewest_first
from shortlist.errors import InvalidInput
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.search import Pulls
from shortlist.simulation.simulate import simulate
from shortlist.simulation.worlds import BernoulliBandit

Finish = Callable[..., Any]
BELIEVABLE = 1e-4
ALGORITHM = find("clucb-pac")


@st.composite
def standings(draw: st.DrawFn) -> Intervals:
    """Some arms after some pulls, with ties in pulls and means."""
    n = draw(st.integers(2, 9))
    pulls = np.array(draw(st.lists(st.integers(1, 40), min_size=n, max_size=n)))
    means = np.array(draw(st.lists(st.integers(0, 8), min_size=n, max_size=n))) / 8
    inside = np.zeros(n, dtype=np.bool_)
    inside[np.argsort(-means)[: draw(st.integers(1, n - 1))]] = True
    return Intervals(pulls, means, inside, draw(st.floats(0.1, 20)), 0.0, 0.02)


@given(standings())
def test_the_stopping_sum_is_the_gain_of_the_best_pessimistic_set(intervals: Intervals) -> None:
    ends, k = intervals.pessimistic, int(intervals.inside.sum())
    best_set = max(ends[list(each)].sum() for each in combinations(range(ends.size), k))
    assert CLUCB_RULE.bound(intervals) * k == pytest.approx(
        best_set - ends[intervals.inside].sum(), abs=1e-9
    )


@given(standings(), st.integers(0, 3))
def test_a_single_pull_goes_to_the_least_known_arm_in_dispute(
    intervals: Intervals, seed: int
) -> None:
    if CLUCB_RULE.bound(intervals) <= 1e-12:  # then the two sets may agree
        return
    shares = CLUCB_RULE.shares(intervals, 1, np.random.default_rng(seed))
    ends, inside, k = intervals.pessimistic, intervals.inside, int(intervals.inside.sum())
    kth, next_one = np.sort(ends)[::-1][[k - 1, k]]
    maybe_disputed = np.where(inside, ends <= next_one, ends >= kth)
    surely_disputed = np.where(inside, ends < kth, ends > next_one)
    pulled = int(np.argmax(shares))
    assert shares.sum() == 1
    assert maybe_disputed[pulled]
    assert not np.any(intervals.pulls[surely_disputed] < intervals.pulls[pulled])


@given(standings(), st.integers(2, 300), st.integers(0, 3))
def test_a_batch_raises_the_least_known_arms_by_a_tenth_at_most(
    intervals: Intervals, batch: int, seed: int
) -> None:
    if CLUCB_RULE.bound(intervals) <= 1e-12:
        return
    shares = CLUCB_RULE.shares(intervals, batch, np.random.default_rng(seed))
    assert 1 <= shares.sum() <= batch
    assert np.all((shares >= 0) & (shares <= np.maximum(1, intervals.pulls // 10)))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(0, 80))
def test_fewest_first_shares_as_pulling_one_by_one_does(counts: list[int], batch: int) -> None:
    pulls, slow = np.array(counts), np.array(counts)
    shares = fewest_first(pulls, batch, np.random.default_rng(0))
    for _ in range(batch):
        slow[np.argmin(slow)] += 1
    assert shares.min() >= 0
    # ties may fall otherwise, but the same levels are reached
    assert sorted(pulls + shares) == sorted(slow)


def test_fewest_first_breaks_ties_at_random() -> None:
    lucky = {
        int(np.argmax(fewest_first(np.full(6, 4), 1, np.random.default_rng(seed))))
        for seed in range(60)
    }
    assert lucky == set(range(6))


@pytest.mark.parametrize(("n", "delta"), [(2, 0.5), (10, 0.05), (1000, 0.01)])
def test_all_intervals_together_miss_with_probability_at_most_delta(n: int, delta: float) -> None:
    # After t pulls: n arms, up to t counts each, two sides, exp(-log_term) a side. The tail beyond
    # T is below 1/T.
    horizon = 5000
    misses = sum(n * t * 2 * exp(-CLUCB_RULE.log_term(n, t, delta)) for t in range(1, horizon + 1))
    assert delta / 2 < misses < delta * (1 - 1 / horizon)


def test_with_growth_zero_every_step_is_one_pull(finish: Finish) -> None:
    rng, requests = np.random.default_rng(0), list[Pulls]()
    problem = Problem(5, 2, FixedConfidence(0.3, 0.1))
    finish(
        ALGORITHM.start(problem, rng, growth=0.0),
        BernoulliBandit(np.linspace(0, 1, 5)),
        rng,
        requests,
    )
    assert requests[0].times.tolist() == [1] * 5
    assert {request.total for request in requests[1:]} == {1}


def test_a_batch_is_at_most_its_share_of_the_pulls_so_far(finish: Finish) -> None:
    rng, requests = np.random.default_rng(0), list[Pulls]()
    problem = Problem(20, 5, FixedConfidence(0.1, 0.1))
    finish(
        ALGORITHM.start(problem, rng, growth=0.05),
        BernoulliBandit(np.linspace(0, 1, 20)),
        rng,
        requests,
    )
    totals = np.cumsum([request.total for request in requests])
    steps = np.diff(totals)
    assert np.all(steps <= np.maximum(1, np.floor(0.05 * totals[:-1])))
    assert steps.max() > 100


def test_batches_cost_hardly_more_pulls_than_single_pulls() -> None:
    # Few chosen of many, where a careless batch would go to a handful of arms over and over.
    batched, single = (
        simulate(
            "clucb-pac",
            np.linspace(0, 1, 20),
            k=5,
            epsilon=0.3,
            delta=0.1,
            runs=runs,
            options={"growth": growth},
        )
        for growth, runs in ((0.02, 8), (0.0, 3))
    )
    assert batched.pulls.mean() <= 1.1 * single.pulls.mean()


def test_a_million_and_a_half_pulls_do_for_the_uniform_instance() -> None:
    runs = simulate("clucb-pac", instances.uniform(1000), k=500, epsilon=0.01, delta=0.01)
    assert 1.4e6 < runs.pulls.mean() < 1.6e6
    assert not runs.failed.any()


def test_a_budget_is_spent_and_the_answer_says_what_it_proves(finish: Finish) -> None:
    rng, requests = np.random.default_rng(0), list[Pulls]()
    search = ALGORITHM.start(Problem(10, 3, FixedBudget(777)), rng, delta=0.2)
    answer = finish(search, BernoulliBandit(np.full(10, 0.5)), rng, requests)
    assert sum(request.total for request in requests) == 777
    assert answer.confidence == 0.8
    assert 0 < answer.regret_bound < 2


def test_a_budget_is_not_spent_once_nothing_is_in_dispute(finish: Finish) -> None:
    rng, requests = np.random.default_rng(0), list[Pulls]()
    search = ALGORITHM.start(Problem(4, 2, FixedBudget(10**6)), rng)
    answer = finish(search, BernoulliBandit(np.array([0.0, 1.0, 0.0, 1.0])), rng, requests)
    assert sum(request.total for request in requests) < 1000
    assert set(answer.top) == {1, 3}
    assert answer.regret_bound == 0


def test_the_bound_at_the_end_of_a_budget_holds() -> None:
    means, runs = np.array([0.5] * 3 + [0.35] * 3), 400
    result = simulate(
        "clucb-pac", means, k=3, budget=60, runs=runs, options={"growth": 1.0, "delta": 0.3}
    )
    broken = int((result.regret > result.bound).sum())
    assert result.regret.max() > 0
    assert binom.sf(broken - 1, runs, 0.3) > BELIEVABLE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"growth": -0.1}, "`growth` is -0.1, but must be at least 0"),
        ({"growth": float("nan")}, "`growth` is nan, but must be a finite number"),
        ({"delta": 1.0}, "`delta` is 1.0, but must be a number greater than 0 and less than 1"),
    ],
)
@pytest.mark.parametrize("name", ["clucb-pac", "lucb"])
def test_senseless_options_are_refused(name: str, options: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        find(name).start(Problem(5, 2, FixedBudget(100)), np.random.default_rng(0), **options)
