"""What limits leave of a search, at the ends of what may be asked."""

import numpy as np

from shortlist.algorithms import find
from shortlist.certificates.frame import limited_pulls
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import SubGaussian
from shortlist.simulation.simulate import drive
from shortlist.simulation.worlds import GaussianBandit


def test_limits_stay_where_no_fixed_design_could_be_drawn() -> None:
    goal = FixedConfidence(1e-10, 1e-9)
    problem = Problem(3, 1, goal, SubGaussian(0.5), limits=(5, 7, None))
    assert limited_pulls(problem).tolist()[:2] == [5, 7]


def test_limits_that_differ_leave_a_true_bound_for_rewards_without_a_range() -> None:
    limits = (20, 40, 80, 160, 20, 40, 80, 160)
    goal = FixedConfidence(0.01, 0.1)
    problem = Problem(8, 3, goal, SubGaussian(0.5), limits=limits)
    wrong = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        means = rng.permutation(np.linspace(0, 1, 8))
        outcome = drive(find("certified"), problem, GaussianBandit(means), rng)
        assert (outcome.pulls <= limits).all()
        assert outcome.answer.regret_bound is not None
        wrong += aggregate_regret(means, outcome.answer.top) > outcome.answer.regret_bound
    assert wrong <= 4  # of 10 at delta = .1: more has a probability of 2e-3
