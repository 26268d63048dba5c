"""One search against simulated arms: what it sees, what is counted, and in which units it
answers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.algorithms import Algorithm
from shortlist.driver import to_unit_scale
from shortlist.errors import InvalidInput
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Bounded, SubGaussian
from shortlist.search import Answer, Pulls, Rewards, Search
from shortlist.simulation.simulate import drive
from shortlist.simulation.worlds import BernoulliBandit, GaussianBandit

GOAL = FixedConfidence(0.1, 0.05)


def scripted(*requests: Pulls, seen: list[Rewards] | None = None) -> Algorithm:
    """An algorithm that makes these requests whatever they give, and chooses arm 0."""

    def search(problem: Problem, rng: np.random.Generator) -> Search:
        for request in requests:
            reply = yield request
            if seen is not None:
                seen.append(reply)
        return Answer(np.array([0]), problem.epsilon, 1 - problem.delta, {"script": True})

    return Algorithm("scripted", search, (FixedConfidence,), "none", "here")


def pulls(arms: list[int], times: list[Any]) -> Pulls:
    return Pulls(np.array(arms), np.array(times))


def test_pulls_and_rewards_are_counted_per_arm_over_all_requests() -> None:
    algorithm = scripted(pulls([0, 2, 2], [3, 1, 4]), pulls([2], [5]))
    problem = Problem(4, 1, GOAL)
    bandit = BernoulliBandit(np.array([1.0, 1, 1, 0]))
    outcome = drive(algorithm, problem, bandit, np.random.default_rng(0))
    assert outcome.pulls.tolist() == [3, 0, 10, 0]
    assert outcome.sums.tolist() == [3, 0, 10, 0]
    np.testing.assert_array_equal(outcome.means(problem), [1, np.nan, 1, np.nan])


def test_a_search_sees_the_unit_scale_and_its_bound_returns_to_the_users() -> None:
    seen: list[Rewards] = []
    problem = Problem(2, 1, FixedConfidence(0.4, 0.05), SubGaussian(2.0))
    bandit = GaussianBandit(np.array([8.0, -8.0]), sigma=2.0)
    outcome = drive(
        scripted(pulls([0, 1], [100_000, 100_000]), seen=seen),
        problem,
        bandit,
        np.random.default_rng(1),
    )
    means = seen[0].sums / 100_000
    assert means == pytest.approx([2, -2], abs=0.01)
    assert seen[0].squares / 100_000 - means**2 == pytest.approx([0.25, 0.25], rel=0.02)
    assert outcome.answer.regret_bound == pytest.approx(0.4)
    assert outcome.answer.evidence == {"script": True}


@given(st.lists(st.floats(-3, 5), min_size=1, max_size=20))
def test_converting_sums_is_converting_every_reward(rewards: list[float]) -> None:
    x = np.array(rewards)
    given = Rewards(np.array([x.sum()]), np.array([(x**2).sum()]))
    converted = to_unit_scale(given, pulls([0], [x.size]), Problem(2, 1, GOAL, Bounded(-3, 5)))
    unit = (x + 3) / 8
    assert converted.sums[0] == pytest.approx(unit.sum(), abs=1e-9)
    assert converted.squares[0] == pytest.approx((unit**2).sum(), abs=1e-9)


@pytest.mark.parametrize("times", [[2**61, 2**61, 2**61], [10**30, 1, 1], [10**400, 1, 1]])
def test_more_pulls_than_can_be_counted_are_refused(times: list[int]) -> None:
    with pytest.raises(InvalidInput, match=r"scripted asks for too many pulls: at most 4\.6e\+18"):
        drive(
            scripted(pulls([0, 1, 2], times)),
            Problem(3, 1, GOAL),
            BernoulliBandit(np.full(3, 0.5)),
            np.random.default_rng(0),
        )
