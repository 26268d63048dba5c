"""Elim and ReverseElim put aside hardly any arm on the wrong side."""

from collections.abc import Callable
from math import ceil, log
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

from shortlist.algorithms.improved_top_k import Removal, elim, reverse_elim
from shortlist.arrays import IntArray
from shortlist.search import Pulls
from shortlist.simulation.worlds import BernoulliBandit

Finish = Callable[..., Any]
RUNS = number_of_runs(150, 5000)
BELIEVABLE = 1e-6

PHI, GAMMA, DELTA = 0.2, 0.2, 0.4


def mistakes(
    finish: Finish, remove: Callable[..., Removal], sizes: list[int], best_removed: bool
) -> IntArray:
    """Over runs, how many arms of the group that should stay go: a high, a middle and a low group,
    PHI apart."""
    rng = np.random.default_rng(1)
    means = np.repeat([0.6, 0.41 if best_removed else 0.59, 0.4], sizes)
    wrong = means[-1] if best_removed else means[0]
    counts = []
    for _ in range(RUNS):
        theta = rng.permutation(means)
        removed = finish(
            remove(np.arange(means.size), GAMMA, PHI, DELTA, rng), BernoulliBandit(theta), rng
        )
        assert removed.size == np.unique(removed).size == max(1, means.size // 10)
        counts.append((theta[removed] == wrong).sum())
    return np.array(counts)


@pytest.mark.parametrize("sizes", [[10, 30, 10], [25, 0, 25], [3, 3, 2], [1, 0, 2]])
def test_at_most_a_share_of_the_best_is_eliminated(finish: Finish, sizes: list[int]) -> None:
    failures = int((mistakes(finish, elim, sizes, best_removed=False) > GAMMA * sizes[0]).sum())
    assert binom.sf(failures - 1, RUNS, DELTA) > BELIEVABLE


@pytest.mark.parametrize("sizes", [[10, 30, 10], [25, 0, 25], [2, 3, 3], [2, 0, 1]])
def test_at_most_a_share_of_the_others_is_accepted(finish: Finish, sizes: list[int]) -> None:
    failures = int(
        (mistakes(finish, reverse_elim, sizes, best_removed=True) > GAMMA * sizes[2]).sum()
    )
    assert binom.sf(failures - 1, RUNS, DELTA) > BELIEVABLE


@pytest.mark.parametrize("remove", [elim, reverse_elim])
def test_every_arm_is_pulled_as_often_as_the_lemma_asks(
    finish: Finish, remove: Callable[..., Removal]
) -> None:
    rng, requests = np.random.default_rng(2), list[Pulls]()
    finish(
        remove(np.arange(30), 0.01, 0.1, 0.05, rng),
        BernoulliBandit(np.full(30, 0.5)),
        rng,
        requests,
    )
    (request,) = requests
    assert request.arms.tolist() == list(range(30))
    assert set(request.times) == {ceil(2 / 0.1**2 * log(2 / (0.01 * 0.05)))}  # E13: c = 2


@pytest.mark.parametrize(
    ("size", "removed"), [(2, 1), (9, 1), (10, 1), (19, 1), (20, 2), (105, 10)]
)
def test_a_tenth_goes_and_never_nothing(finish: Finish, size: int, removed: int) -> None:
    rng, bandit = np.random.default_rng(3), BernoulliBandit(np.full(size, 0.5))
    for remove in (elim, reverse_elim):
        # E12
        assert finish(remove(np.arange(size), 0.1, 0.5, 0.1, rng), bandit, rng).size == removed


def test_the_worst_go_one_way_and_the_best_the_other(finish: Finish) -> None:
    rng, means = np.random.default_rng(4), np.linspace(1, 0, 20)
    theta = rng.permutation(means)
    low = finish(elim(np.arange(20), 0.01, 0.04, 0.01, rng), BernoulliBandit(theta), rng)
    high = finish(reverse_elim(np.arange(20), 0.01, 0.04, 0.01, rng), BernoulliBandit(theta), rng)
    assert sorted(theta[low]) == sorted(means[-2:])
    assert sorted(theta[high]) == sorted(means[:2])
