"""Expected loss: what it spends, what a longer budget changes, and what a holdout proves."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from shortlist import instances, select
from shortlist.algorithms import find
from shortlist.algorithms.expected_loss import expected_loss
from shortlist.arrays import FloatArray
from shortlist.errors import InvalidInput
from shortlist.problem import FixedBudget, Problem
from shortlist.reward_models import Binary
from shortlist.search import Answer, Pulls
from shortlist.simulation.simulate import simulate
from shortlist.simulation.worlds import BernoulliBandit

MEANS = np.linspace(0.9, 0.1, 40)


def requests(
    budget: int, finish: Callable[..., Answer], **options: float
) -> tuple[list[Pulls], Answer]:
    """What is asked for within this budget, with the same seeds for every budget."""
    asked: list[Pulls] = []
    search = find("expected-loss").start(
        Problem(40, 10, FixedBudget(budget), Binary()), rng(1), **options
    )
    return asked, finish(search, BernoulliBandit(MEANS), rng(2), asked)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("budget", [40, 41, 79, 80, 81, 500, 1234])
def test_exactly_the_budget_is_spent(budget: int, finish: Callable[..., Answer]) -> None:
    asked, answer = requests(budget, finish)
    assert sum(request.total for request in asked) == budget
    assert answer.regret_bound is None
    assert answer.confidence is None


def test_a_longer_budget_begins_with_the_same_requests(finish: Callable[..., Answer]) -> None:
    short, _ = requests(700, finish)
    long, _ = requests(2000, finish)
    for one, other in zip(short[:-1], long, strict=False):
        assert one.arms.tolist() == other.arms.tolist()
        assert one.times.tolist() == other.times.tolist()
    assert len(long) > len(short)
    # the last one is cut off where the budget ends
    assert short[-1].total <= long[len(short) - 1].total


def test_no_arm_grows_by_more_than_half_at_once(finish: Callable[..., Answer]) -> None:
    asked, _ = requests(2000, finish)
    pulls = np.zeros(40, dtype=np.int64)
    for request in asked:
        assert np.all(request.times <= np.maximum(1, pulls[request.arms] // 2)) or not pulls.any()
        pulls[request.arms] += request.times
    assert pulls[5:15].mean() > 2 * pulls[[0, 1, 2, 37, 38, 39]].mean()  # the boundary is at 10


@pytest.mark.parametrize(
    ("means", "k", "budget"),
    [(instances.uniform(200), 50, 2500), (instances.two_group(200, 20), 20, 2500)],
    ids=["uniform", "two groups"],
)
def test_it_loses_far_less_than_pulling_evenly(means: FloatArray, k: int, budget: int) -> None:
    ours, evenly = (
        simulate(name, means, k=k, budget=budget, runs=12) for name in ("expected-loss", "uniform")
    )
    assert ours.regret.mean() < 0.5 * evenly.regret.mean()


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_holdout_gives_a_bound_that_holds_within_the_same_budget(share: float) -> None:
    runs = simulate(
        "expected-loss", MEANS, k=10, budget=2000, runs=8, options={"holdout": share, "delta": 0.1}
    )
    assert runs.pulls.max() <= 2000
    assert runs.pulls.min() > 1900
    assert np.all((runs.bound > 0) & (runs.bound < 0.5))
    assert binom.sf(int(np.sum(runs.regret > runs.bound)) - 1, 8, 0.1) > 1e-4


def test_the_confidence_of_a_holdout_is_that_of_its_delta(finish: Callable[..., Answer]) -> None:
    asked, answer = requests(2000, finish, holdout=0.5, delta=0.01)
    assert answer.confidence == pytest.approx(0.99)
    assert answer.evidence["pulls explored"] == 1000
    assert answer.evidence["pulls certified"] == sum(request.total for request in asked) - 1000


def test_a_holdout_too_small_for_every_arm_proves_nothing(finish: Callable[..., Answer]) -> None:
    _, answer = requests(100, finish, holdout=0.1)
    assert answer.regret_bound is None


@pytest.mark.parametrize("holdout", [-0.1, 1.0, math.nan])
def test_a_holdout_that_is_no_share_is_refused(holdout: float) -> None:
    with pytest.raises(InvalidInput, match="`holdout` is "):
        next(expected_loss(Problem(4, 2, FixedBudget(50)), rng(0), holdout=holdout))


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_a_delta_that_is_no_probability_is_refused(delta: float) -> None:
    with pytest.raises(InvalidInput, match="`delta` is "):
        next(expected_loss(Problem(4, 2, FixedBudget(50)), rng(0), holdout=0.5, delta=delta))


def test_a_larger_holdout_proves_more_however_large_it_is() -> None:
    bounds = [
        simulate(
            "expected-loss", [0.6, 0.4], k=1, budget=10**power, options={"holdout": 0.5}
        ).bound[0]
        for power in range(3, 11)
    ]
    assert np.all(np.diff(bounds) <= 0)
    assert bounds[-1] < 1e-4


def test_a_holdout_proves_with_the_confidence_that_was_asked_for() -> None:
    result = select(
        lambda arm: arm > 2, arms=4, k=1, budget=80, delta=0.001, options={"holdout": 0.5}
    )
    assert result.confidence == 0.999
