"""An anytime algorithm asked at marks answers as it would at those budgets."""

import numpy as np
import pytest
from scipy.stats import fisher_exact

from shortlist import instances
from shortlist.algorithms import ALGORITHMS, find
from shortlist.problem import FixedBudget, Problem
from shortlist.regret import aggregate_regret
from shortlist.reproduction.runs import course
from shortlist.simulation.simulate import drive, simulate
from shortlist.simulation.worlds import BernoulliBandit

BANDIT = BernoulliBandit(instances.uniform(40))
BELIEVABLE = 1e-4
ANYTIME = [name for name, algorithm in ALGORITHMS.items() if algorithm.anytime]


@pytest.mark.parametrize("method", ANYTIME)
def test_one_mark_is_a_run_with_that_budget(method: str) -> None:
    problem = Problem(40, 15, FixedBudget(900), BANDIT.model)
    rng = np.random.default_rng(np.random.SeedSequence(5))
    shuffled = BANDIT.with_means(rng.permutation(BANDIT.means))
    outcome = drive(find(method), problem, shuffled, rng)
    spent, lost = int(outcome.pulls.sum()), aggregate_regret(shuffled.means, outcome.answer.top)
    assert course(find(method), problem, BANDIT, [900], np.random.SeedSequence(5)) == [
        (spent, lost)
    ]


@pytest.mark.parametrize("method", ANYTIME)
def test_every_mark_is_met_exactly(method: str) -> None:
    marks = [120, 301, 302, 1000]
    problem = Problem(40, 15, FixedBudget(marks[-1]), BANDIT.model)
    stops = course(find(method), problem, BANDIT, marks, np.random.SeedSequence(1))
    assert [pulls for pulls, _ in stops] == marks


@pytest.mark.parametrize("method", ANYTIME)
def test_marks_before_do_not_change_how_often_a_budget_fails(method: str) -> None:
    epsilon, runs, marks = 0.04, 60, [90, 150, 220, 300]
    problem = Problem(40, 15, FixedBudget(marks[-1]), BANDIT.model)
    courses = [
        course(find(method), problem, BANDIT, marks, seed)
        for seed in np.random.SeedSequence(2).spawn(runs)
    ]
    at_marks = sum(stops[-1][1] > epsilon + 1e-9 for stops in courses)
    alone = int(
        simulate(
            method, BANDIT.means, k=15, epsilon=epsilon, budget=300, runs=runs, seed=3
        ).failed.sum()
    )
    assert 0 < alone < runs
    assert (
        fisher_exact(np.array([[at_marks, runs - at_marks], [alone, runs - alone]])).pvalue
        > BELIEVABLE
    )
