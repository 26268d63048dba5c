"""Exploration where pulls cost differently: within the budget, cheap arms first, and for less."""

from typing import Any

import numpy as np
import pytest

from shortlist.algorithms import find
from shortlist.driver import Outcome
from shortlist.problem import FixedBudget, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian
from shortlist.search import Pulls, Rewards, advance
from shortlist.simulation.simulate import drive
from shortlist.simulation.worlds import BernoulliBandit

COSTS = (1.0, 9.0, 2.0, 0.5, 9.0, 1.0)


def requests(budget: float, costs: Any = COSTS, **options: Any) -> list[Pulls]:
    """What the search asks for, of arms of which every second reward is 1."""
    limits = options.pop("limits", None)
    problem = Problem(len(costs), 2, FixedBudget(budget), Binary(), costs=costs, limits=limits)
    search = find("expected-loss").start(problem, np.random.default_rng(1), **options)
    asked, reply = [], None
    while isinstance(turn := advance(search, reply), Pulls):
        asked.append(turn)
        sums = (turn.times // 2).astype(np.float64)
        reply = Rewards(sums, sums)
    return asked


def price(asked: list[Pulls], costs: Any = COSTS) -> float:
    return float(sum(np.array(costs)[each.arms] @ each.times for each in asked))


@pytest.mark.parametrize("budget", [22.5, 30, 100.25, 5000])
@pytest.mark.parametrize("options", [{}, {"max_rounds": 1}, {"max_rounds": 4}, {"min_batch": 12}])
def test_the_rest_of_the_budget_is_too_small_for_any_pull(
    budget: float, options: dict[str, Any]
) -> None:
    asked = requests(budget, **options)
    assert price(asked) <= budget * (1 + 1e-9)
    assert len(asked) <= options.get("max_rounds", len(asked))
    if "max_rounds" not in options:
        assert price(asked) > budget - 9
        assert all(each.total >= options.get("min_batch", 1) for each in asked[:-3])


def test_arms_that_cost_no_more_than_usual_come_first() -> None:
    first = requests(1000)[0]
    assert first.arms.tolist() == [0, 2, 3, 5]
    assert requests(1000, (3.0,) * 6)[0].arms.tolist() == list(range(6))


def test_limits_are_kept_and_what_they_leave_goes_to_others() -> None:
    limits = (3, None, 2, 4, 5, 1)
    asked = requests(300, limits=limits)
    pulls = np.zeros(6, dtype=np.int64)
    for each in asked:
        np.add.at(pulls, each.arms, each.times)
    assert [pulls[arm] for arm in (0, 2, 3, 4, 5)] == [3, 2, 4, 5, 1]
    assert price(asked) > 300 - 9
    assert price(requests(10_000, limits=(3, 4, 2, 4, 5, 1))) == 3 + 36 + 4 + 2 + 45 + 1


@pytest.mark.parametrize("model", [Bounded(), SubGaussian(0.5)])
def test_arms_never_pulled_do_not_disturb_rewards_of_any_kind(model: RewardModel) -> None:
    costs = (*(1.0,) * 30, *(40.0,) * 30)
    problem = Problem(60, 5, FixedBudget(1300), model, costs=costs)
    means = np.linspace(0.2, 0.8, 60)
    rng = np.random.default_rng(3)
    search = find("expected-loss").start(problem, rng)
    reply = None
    while isinstance(turn := advance(search, reply), Pulls):
        draws = [means[arm] + 0.1 * rng.standard_normal(n) for arm, n in _pairs(turn)]
        clipped = [np.clip(each, 0, 1) for each in draws]
        reply = Rewards(
            np.array([each.sum() for each in clipped]), np.array([each @ each for each in clipped])
        )
    assert turn.top.size == 5


def _pairs(turn: Pulls) -> list[tuple[int, int]]:
    return list(zip(turn.arms.tolist(), turn.times.tolist(), strict=True))


def test_a_holdout_is_paid_from_the_same_budget() -> None:
    asked = requests(2000, holdout=0.5)
    assert price(asked) <= 2000
    assert price(asked[:-1]) <= 1000 + 1e-6


def test_knowing_the_costs_saves_two_fifths_where_money_is_short() -> None:
    """docs/costs.md: up to four pulls an arm the same regret for 0.6 of the money, 20 seeds."""
    lost = np.array([_lost_blind_and_aware(seed, pulls_an_arm=3) for seed in range(300, 320)])
    blind, aware = lost.mean(axis=0)
    assert aware <= blind


def _lost_blind_and_aware(seed: int, pulls_an_arm: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    means = rng.permutation((np.arange(100) + 0.5) / 100)
    costs = rng.choice([1.0, 10.0], 100)

    def outcome(problem: Problem) -> Outcome:
        return drive(find("expected-loss"), problem, BernoulliBandit(means), rng)

    blind = outcome(Problem(100, 10, FixedBudget(100 * pulls_an_arm), Binary()))
    money = 0.6 * float(blind.pulls @ costs)
    aware = outcome(Problem(100, 10, FixedBudget(money), Binary(), costs=tuple(costs.tolist())))
    assert aware.spending is not None
    assert aware.spending.sum() <= money * (1 + 1e-9)
    return (
        aggregate_regret(means, blind.answer.top),
        aggregate_regret(means, aware.answer.top),
    )
