"""SAR decides as its paper says, phase by phase, and keeps within its budget."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist.algorithms import find
from shortlist.algorithms.elimination import clearest, phase_counts
from shortlist.arrays import FloatArray
from shortlist.errors import InvalidInput
from shortlist.problem import FixedBudget, Problem
from shortlist.search import Pulls, Rewards
from shortlist.simulation.worlds import BernoulliBandit

Finish = Callable[..., Any]
ALGORITHM = find("sar")


def literal_sar(rewards: FloatArray, k: int, budget: int) -> tuple[set[int], list[int]]:
    """The pseudo-code on a table of rewards (arm, pull): the answer and the pulls of every arm."""
    n = rewards.shape[0]
    harmonic = Fraction(1, 2) + sum(Fraction(1, i) for i in range(2, n + 1))
    active, accepted, pulls = list(range(n)), set[int](), [0] * n
    for phase in range(1, n):
        count = ceil((budget - n) / (harmonic * (n + 1 - phase)))
        if 0 < k - len(accepted) < len(active):
            for arm in active:
                pulls[arm] = count
            means = {arm: rewards[arm, :count].sum() / count for arm in active}
            ordered = sorted(active, key=lambda arm: -means[arm])
            wanted = k - len(accepted)
            gaps = {arm: means[arm] - means[ordered[wanted]] for arm in ordered[:wanted]}
            gaps |= {arm: means[ordered[wanted - 1]] - means[arm] for arm in ordered[wanted:]}
            arm = max(gaps, key=lambda each: gaps[each])
            if arm in ordered[:wanted]:
                accepted.add(arm)
            active.remove(arm)
    if k - len(accepted) == len(active):
        accepted |= set(active)
    return accepted, pulls


class Table:
    """Arms that give the rewards of a table in order."""

    def __init__(self, rewards: FloatArray) -> None:
        self.rewards = rewards
        self.pulls = np.zeros(rewards.shape[0], dtype=np.int64)

    def pull(self, arms: Any, times: Any, rng: np.random.Generator) -> Rewards:
        sums = np.array(
            [self._next(arm, count).sum() for arm, count in zip(arms, times, strict=True)]
        )
        return Rewards(sums, sums)

    def _next(self, arm: int, count: int) -> FloatArray:
        start = self.pulls[arm]
        self.pulls[arm] += count
        return self.rewards[arm, start : start + count]


@settings(max_examples=60, deadline=None)
@given(n=st.integers(2, 14), seed=st.integers(0, 10**6), data=st.data())
def test_answers_and_pulls_as_the_literal_pseudo_code_does(
    finish: Finish, n: int, seed: int, data: st.DataObject
) -> None:
    k, budget = data.draw(st.integers(1, n - 1)), data.draw(st.integers(n + 1, 20 * n))
    rng = np.random.default_rng(seed)
    rewards = rng.random((n, budget))  # continuous, so that there are no ties
    arms = Table(rewards)
    answer = finish(ALGORITHM.start(Problem(n, k, FixedBudget(budget)), rng), arms, rng)
    accepted, pulls = literal_sar(rewards, k, budget)
    assert set(answer.top) == accepted
    assert arms.pulls.tolist() == pulls


@given(n=st.integers(2, 300), more=st.integers(1, 5000))
def test_the_phases_never_need_more_than_the_budget(n: int, more: int) -> None:
    counts = phase_counts(n, n + more)
    assert counts.size == n - 1
    assert counts.min() >= 1
    assert counts.sum() + counts[-1] <= n + more  # the last phase has two arms


# Multiples of 1/8 keep the comparisons exact and make ties common.
@given(st.lists(st.integers(0, 8), min_size=2, max_size=10), st.data())
def test_several_phases_at_once_decide_as_one_after_another(
    eighths: list[int], data: st.DataObject
) -> None:
    means = np.array(eighths) / 8
    k, phases = data.draw(st.integers(1, means.size - 1)), data.draw(st.integers(1, means.size))
    accept, reject = clearest(means, k, phases, np.random.default_rng(0))
    ordered = np.sort(means)[::-1]
    gaps = np.maximum(means - ordered[k], ordered[k - 1] - means)
    left = np.delete(gaps, np.concatenate([accept, reject]))
    settled = accept.size == k or reject.size == means.size - k
    assert accept.size <= k
    assert reject.size <= means.size - k
    assert accept.size + reject.size == phases or settled
    assert np.all(means[accept] > ordered[k])
    assert np.all(means[reject] <= ordered[k])
    assert left.size == 0 or gaps[np.concatenate([accept, reject])].min() >= left.max()


def test_ties_are_broken_at_random() -> None:
    means = np.array([0.5, 1.0, 0.0, 0.5, 1.0, 0.0])
    firsts = [
        np.concatenate(clearest(means, 3, 1, np.random.default_rng(seed))) for seed in range(60)
    ]
    assert {int(first[0]) for first in firsts} == {1, 2, 4, 5}


def test_pulls_come_before_every_decision(finish: Finish) -> None:
    rng, requests = np.random.default_rng(0), list[Pulls]()
    search = ALGORITHM.start(Problem(30, 7, FixedBudget(600)), rng)
    finish(search, BernoulliBandit(np.full(30, 0.5)), rng, requests)
    sizes = [request.arms.size for request in requests]
    assert sizes[0] == 30
    assert sizes == sorted(sizes, reverse=True)
    assert [request.progress.round for request in requests] == list(range(1, len(requests) + 1))


@pytest.mark.parametrize("budget", [5, 4])
def test_a_budget_without_a_second_pull_is_refused(budget: int) -> None:
    with pytest.raises(InvalidInput, match=f"`budget` is {budget}, but sar (needs more|must pull)"):
        ALGORITHM.start(Problem(5, 2, FixedBudget(budget)), np.random.default_rng(0))
