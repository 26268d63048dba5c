"""Median Elimination halves as its accounting needs, and every chosen arm is nearly as good as the
one of its rank."""

from collections.abc import Callable
from math import ceil, exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from shortlist.algorithms import find
from shortlist.algorithms.elimination import round_length
from shortlist.algorithms.steps import best
from shortlist.arrays import FloatArray
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import elementwise
from shortlist.search import Pulls
from shortlist.simulation.worlds import BernoulliBandit

Finish = Callable[..., Any]
BELIEVABLE = 1e-4
ALGORITHM = find("median-elimination")


def chance_of_a_bad_round(pulls: int, size: int, kept: int, k: int, accuracy: float) -> float:
    """The sum of the docstring: k arms rated too low, or for some j too many worse ones rated too
    high."""
    q = exp(-pulls * accuracy**2 / 2)
    return k * q + sum((size - j) * q / (kept - j + 1) for j in range(1, k + 1))


@given(
    size=st.integers(2, 200),
    accuracy=st.floats(0.01, 0.25),
    risk=st.floats(1e-6, 0.5),
    data=st.data(),
)
def test_a_round_is_as_long_as_its_accounting_needs_and_no_longer(
    size: int, accuracy: float, risk: float, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, size - 1))
    kept = max(k, ceil(size / 2))
    pulls = round_length(size, kept, k, accuracy, risk)
    assert chance_of_a_bad_round(pulls, size, kept, k, accuracy) <= risk * (1 + 1e-9)
    assert chance_of_a_bad_round(pulls - 1, size, kept, k, accuracy) > risk * (1 - 1e-9)


def test_for_one_arm_a_round_is_no_longer_than_in_the_source() -> None:
    for size in range(2, 100):
        assert round_length(size, ceil(size / 2), 1, 0.1, 0.05) <= ceil(2 / 0.1**2 * log(3 / 0.05))


def test_a_round_keeps_every_rank_at_its_risk() -> None:
    # Two levels a hair more than the accuracy apart: keeping fewer than k of the upper ones is a
    # bad round.
    size, kept, k, accuracy, risk, runs = 8, 4, 4, 0.3, 0.3, 2000
    rng = np.random.default_rng(0)
    means = np.array([0.6501] * k + [0.35] * (size - k))
    pulls = round_length(size, kept, k, accuracy, risk)
    ratings = rng.binomial(pulls, means, (runs, size)) / pulls
    bad = sum(means[best(rating, kept, rng)].min() < 0.6 for rating in ratings)
    assert binom.sf(bad - 1, runs, risk) > BELIEVABLE


@pytest.mark.parametrize(
    ("n", "k", "sizes"), [(20, 1, [20, 10, 5, 3, 2]), (20, 4, [20, 10, 5]), (20, 13, [20])]
)
def test_rounds_halve_down_to_k_with_shrinking_accuracy_and_risk(
    finish: Finish, n: int, k: int, sizes: list[int]
) -> None:
    rng, requests = np.random.default_rng(0), list[Pulls]()
    search = ALGORITHM.start(Problem(n, k, FixedConfidence(0.4, 0.1)), rng)
    answer = finish(search, BernoulliBandit(np.linspace(0, 1, n)), rng, requests)
    assert [request.arms.size for request in requests] == sizes
    assert answer.top.size == k
    for r, (request, kept) in enumerate(zip(requests, [*sizes[1:], k], strict=True)):
        expected = round_length(request.arms.size, kept, k, 0.1 * 0.75**r, 0.05 / 2**r)
        assert set(request.times) == {expected}


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize(
    "means",
    [
        np.linspace(0, 1, 6),
        np.array([0.9, 0.5, 0.5, 0.29, 0.29, 0.29]),
        np.array([0.71, 0.5, 0.5, 0.5, 0.5, 0.29]),
    ],
    ids=["spread", "three-levels", "close"],
)
def test_every_chosen_arm_is_nearly_as_good_as_the_one_of_its_rank(
    finish: Finish, means: FloatArray, k: int
) -> None:
    epsilon, delta, runs = 0.2, 0.2, 200
    failures = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        theta = rng.permutation(means)
        search = ALGORITHM.start(Problem(6, k, FixedConfidence(epsilon, delta)), rng)
        failures += not elementwise(theta, finish(search, BernoulliBandit(theta), rng).top, epsilon)
    assert binom.sf(failures - 1, runs, delta) > BELIEVABLE
