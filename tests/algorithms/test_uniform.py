"""Uniform sampling pulls as often as its union bound says and not once more."""

from math import comb, exp

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from shortlist.algorithms import find
from shortlist.algorithms.steps import even_shares
from shortlist.algorithms.uniform import subset_union_count
from shortlist.problem import FixedBudget, Problem
from shortlist.simulation.simulate import drive, simulate
from shortlist.simulation.worlds import BernoulliBandit

BELIEVABLE = 1e-4


def union_bound(pulls: int, n: int, k: int, epsilon: float) -> float:
    """The chance that some set losing more than epsilon looks at least as good as the best set."""
    swaps = range(1, min(k, n - k) + 1)
    return sum(comb(k, m) * comb(n - k, m) * exp(-pulls * (k * epsilon) ** 2 / m) for m in swaps)


@given(n=st.integers(2, 40), epsilon=st.floats(0.02, 1), delta=st.floats(1e-6, 0.5), data=st.data())
def test_the_count_is_the_least_that_the_union_bound_allows(
    n: int, epsilon: float, delta: float, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, n - 1))
    count = subset_union_count(n, k, epsilon, delta)
    before, after = union_bound(count - 1, n, k, epsilon), union_bound(count, n, k, epsilon)
    assume(min(abs(before - delta), abs(after - delta)) > 1e-9 * delta)  # else rounding decides
    assert after <= delta < before


def test_failures_stay_within_delta_where_failing_is_easiest() -> None:
    # A hair more than epsilon apart, so that one swap is a failure: the case with the most ways to
    # fail.
    means, epsilon, delta, runs = np.array([0.5 + 0.1001, 0.5]), 0.1, 0.2, 400
    failures = int(
        simulate("uniform", means, k=1, epsilon=epsilon, delta=delta, runs=runs).failed.sum()
    )
    assert failures > 0
    assert binom.sf(failures - 1, runs, delta) > BELIEVABLE


@given(total=st.integers(0, 500), parts=st.integers(1, 60), seed=st.integers(0, 5))
def test_shares_are_even_and_complete(total: int, parts: int, seed: int) -> None:
    shares = even_shares(total, parts, np.random.default_rng(seed))
    assert shares.size == parts
    assert shares.sum() == total
    assert np.ptp(shares) <= 1


def test_the_remainder_goes_to_any_arm() -> None:
    lucky = {int(np.argmax(even_shares(7, 6, np.random.default_rng(seed)))) for seed in range(60)}
    assert lucky == set(range(6))


@settings(max_examples=30)
@given(budget=st.integers(5, 200))
def test_a_budget_is_spent_exactly(budget: int) -> None:
    outcome = drive(
        find("uniform"),
        Problem(5, 2, FixedBudget(budget)),
        BernoulliBandit(np.linspace(0, 1, 5)),
        np.random.default_rng(0),
    )
    assert outcome.pulls.sum() == budget
    assert np.ptp(outcome.pulls) <= 1
