"""Halve, EstKthArm and EpsSplit do what their lemmas say."""

from collections.abc import Callable
from math import ceil, inf, log
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from shortlist.algorithms.improved_top_k import eps_split, est_kth_arm, halve, pulls_for
from shortlist.arrays import FloatArray
from shortlist.search import Pulls
from shortlist.simulation.worlds import BernoulliBandit, GaussianBandit

Finish = Callable[..., Any]
RUNS = number_of_runs(150, 5000)
BELIEVABLE = 1e-6  # a correct algorithm is called wrong with this probability

LADDER = np.linspace(1, 0, 60)
TIES = np.repeat([0.9, 0.5, 0.1], 10)
CASES = {
    "first of many": (LADDER, 1, 0.5),
    "few of many": (LADDER, 6, 0.5),
    "half": (LADDER, 30, 0.2),
    "all but one": (LADDER, 59, 0.1),
    "all": (LADDER, 60, 0.1),
    "last of a tie": (TIES, 20, 0.4),
    "first of a tie": (TIES, 11, 0.05),
    "all equal": (np.full(20, 0.5), 7, 0.3),
    "certain rewards": (np.repeat([1.0, 0.0], [5, 10]), 5, 0.3),
    "two arms": (np.array([0.8, 0.3]), 1, 0.5),
    "second of two": (np.array([0.8, 0.3]), 2, 0.5),
    "one arm": (np.array([0.4]), 1, 0.5),
}


def rarely(failures: int, probability: float, runs: int = RUNS) -> bool:
    """Whether so many failures are believable where each run fails with at most this
    probability."""
    return bool(binom.sf(failures - 1, runs, probability) > BELIEVABLE)


@pytest.mark.parametrize(("means", "k", "tau"), CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("delta", [0.05, 0.4])
def test_value_lies_in_the_interval_of_the_theorem(
    finish: Finish, means: FloatArray, k: int, tau: float, delta: float
) -> None:
    rng = np.random.default_rng(1)
    phi, arms = 0.1, np.arange(means.size)
    low, high = means[k - 1] - phi, means[ceil((1 - tau) * k) - 1] + phi
    failures = 0
    for _ in range(RUNS):
        bandit = BernoulliBandit(rng.permutation(means))
        value = finish(est_kth_arm(arms, k, tau, phi, delta, rng), bandit, rng)
        failures += not low <= value <= high
    assert rarely(failures, delta)


def test_value_needs_no_range_of_rewards(finish: Finish) -> None:
    rng = np.random.default_rng(2)
    bandit = GaussianBandit(rng.permutation(100 + 10 * LADDER))
    value = finish(est_kth_arm(np.arange(60), 6, 0.1, 0.2, 0.01, rng), bandit, rng)
    assert value == pytest.approx(100 + 10 * LADDER[5], abs=0.2)


def test_counts_are_those_of_the_repaired_algorithm(finish: Finish) -> None:
    rng, requests = np.random.default_rng(3), list[Pulls]()
    tau, phi, delta = 0.3, 0.2, 0.1
    bandit = BernoulliBandit(rng.permutation(LADDER[:20]))
    finish(est_kth_arm(np.arange(20), 4, tau, phi, delta, rng), bandit, rng, requests)
    half, level = phi / 2, delta / 2  # E8: the other half is for the mean
    t, p, d = tau / 4, half / 4, level / 8
    expected = []
    for size in (20, 10, 5):
        expected.append((size, ceil(2 / p**2 * log(32 / (t * d * level)))))
        t, p, d = 0.75 * t, 0.75 * p, d / 2
    expected.append((4, ceil(2 / half**2 * log(32 / (tau * level)))))  # E6
    expected.append((1, ceil(2 / phi**2 * log(4 / delta))))  # E8
    assert [(request.arms.size, request.times[0]) for request in requests] == expected
    assert all(np.ptp(request.times) == 0 for request in requests)


def test_count_bounds_the_error_of_a_mean() -> None:
    phi, failure, p = 0.2, 0.3, 0.5
    pulls = pulls_for(phi, failure)
    near = binom.cdf(ceil(pulls * (p + phi / 2)) - 1, pulls, p) - binom.cdf(
        pulls * (p - phi / 2), pulls, p
    )
    assert 1 - near <= failure
    with pytest.raises(OverflowError, match="more pulls than a float can say"):
        pulls_for(1e-200, failure)


def test_equal_means_are_drawn_from_at_random(finish: Finish) -> None:
    rng, drawn = np.random.default_rng(4), np.zeros(5, dtype=np.int64)
    for _ in range(RUNS):
        requests = list[Pulls]()
        finish(
            est_kth_arm(np.arange(5), 5, 0.1, 0.5, 0.5, rng),
            BernoulliBandit(np.ones(5)),
            rng,
            requests,
        )
        drawn[requests[-1].arms[0]] += 1
    assert binom.cdf(drawn.min(), RUNS, 1 / 5) > BELIEVABLE
    assert binom.sf(drawn.max() - 1, RUNS, 1 / 5) > BELIEVABLE


@pytest.mark.parametrize(("k", "tau", "most"), [(4, 0.4, 1), (5, 0.4, 2), (10, 0.4, 3)])
def test_only_the_lowest_few_are_drawn_from(finish: Finish, k: int, tau: float, most: int) -> None:
    rng, drawn = np.random.default_rng(5), set()
    means = np.linspace(1, 0, 10)
    for _ in range(200):
        requests = list[Pulls]()
        finish(
            est_kth_arm(np.arange(10), k, tau, 0.05, 0.1, rng),
            BernoulliBandit(means),
            rng,
            requests,
        )
        drawn.add(int(requests[-1].arms[0]))
    assert drawn == set(range(k - most, k))  # E7: ranks k - floor(tau k / 2) .. k


@pytest.mark.parametrize(("k", "value"), [(0, inf), (-3, inf), (4, -inf)])
def test_a_rank_out_of_range_costs_nothing(finish: Finish, k: int, value: float) -> None:
    rng, requests = np.random.default_rng(6), list[Pulls]()
    assert finish(est_kth_arm(np.arange(3), k, 0.1, 0.1, 0.1, rng), None, rng, requests) == value
    assert not requests


@pytest.mark.parametrize("means", [LADDER, TIES, np.full(30, 0.5)], ids=["ladder", "ties", "equal"])
@pytest.mark.parametrize("k", [1, 7, 20])
def test_few_low_arms_survive_the_halving(finish: Finish, means: FloatArray, k: int) -> None:
    rng, tau, phi, delta = np.random.default_rng(7), 0.8, 0.2, 0.8
    failures = 0
    for _ in range(RUNS):
        theta = rng.permutation(means)
        kept, _ = finish(
            halve(np.arange(means.size), k, tau, phi, delta, rng), BernoulliBandit(theta), rng
        )
        failures += (theta[kept] < means[k - 1] - phi).sum() > tau * delta * k / 4
    assert rarely(failures, delta / 4)


@given(n=st.integers(1, 40), data=st.data())
def test_halving_splits_the_arms_in_two(finish: Finish, n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n))
    rng, arms = np.random.default_rng(0), np.arange(100, 100 + n)
    kept, dropped = finish(
        halve(arms, k, 0.5, 0.9, 0.9, rng), BernoulliBandit(np.full(200, 0.5)), rng
    )
    assert kept.size == k
    assert sorted([*kept, *dropped]) == arms.tolist()


def test_dropped_arms_come_best_first(finish: Finish) -> None:
    rng, means = np.random.default_rng(8), np.linspace(1, 0, 9)
    theta = rng.permutation(means)
    _, dropped = finish(halve(np.arange(9), 2, 0.1, 0.1, 0.01, rng), BernoulliBandit(theta), rng)
    assert theta[dropped].tolist() == means[2:].tolist()


def test_a_split_at_a_gap_makes_few_mistakes(finish: Finish) -> None:
    rng, tau, phi, delta = np.random.default_rng(9), 0.5, 0.25, 0.5
    core, k, m = 45, 50, 55
    means = np.repeat([0.80, 0.79, 0.78, 0.5], [core, k - core, m - k, 45])
    failures, counts = 0, set()
    for _ in range(RUNS):
        theta = rng.permutation(means)
        chosen = finish(
            eps_split(np.arange(100), k, core, tau, phi, delta, rng), BernoulliBandit(theta), rng
        )
        assert np.unique(chosen).size == k
        mistakes = int((theta[chosen] < means[k - 1]).sum())
        counts.add(mistakes)
        failures += mistakes > m - core + tau * delta * core / 4
    assert max(counts) > 0
    assert rarely(failures, delta / 4)


def test_a_split_is_filled_with_the_best_of_the_dropped(finish: Finish) -> None:
    rng, means = np.random.default_rng(10), np.linspace(1, 0, 12)
    theta = rng.permutation(means)
    chosen = finish(
        eps_split(np.arange(12), 6, 3, 0.5, 0.05, 0.1, rng), BernoulliBandit(theta), rng
    )
    assert sorted(theta[chosen], reverse=True) == means[:6].tolist()
