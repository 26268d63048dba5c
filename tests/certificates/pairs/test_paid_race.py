"""The swap race where costs differ: within the money, and rather by cheap pulls."""

import numpy as np
import pytest

from shortlist.certificates.pairs.search import pairs_search
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Answer, Pulls, Rewards, advance

COSTS = (1.0, 8.0, 1.0, 0.5)
MEANS = np.array([0.55, 0.5, 0.45, 0.3])


def run(budget: float | None, factor: float | None = None) -> tuple[Answer, np.ndarray, float]:
    """The answer, the pulls of every arm, and what they cost: as declared, or so many times."""
    goal = FixedConfidence(0.03, 0.1, budget)
    problem = Problem(4, 1, goal, Binary(), costs=COSTS)
    rng = np.random.default_rng(2)
    search, reply = pairs_search(problem, rng), None
    pulls, spent = np.zeros(4, dtype=np.int64), 0.0
    while isinstance(turn := advance(search, reply), Pulls):
        price = turn.times * np.array(COSTS)[turn.arms] * (factor or 1.0)
        spent += price.sum()
        np.add.at(pulls, turn.arms, turn.times)
        sums = rng.binomial(turn.times, MEANS[turn.arms]).astype(np.float64)
        reply = Rewards(sums, sums, None, None if factor is None else price)
    return turn, pulls, spent


@pytest.mark.parametrize("budget", [20.0, 500.5, 3000.0])
def test_the_race_ends_within_the_money_with_what_it_has_proved(budget: float) -> None:
    answer, _, spent = run(budget)
    assert spent <= budget * (1 + 1e-9)
    assert answer.regret_bound is None or answer.regret_bound >= 0
    if budget > 100:
        assert answer.regret_bound is not None


def test_what_pulls_did_cost_ends_it_sooner_or_later() -> None:
    _, dear, spent = run(1000.0, 2.0)
    _, cheap, less = run(1000.0, 0.5)
    assert max(spent - 1000, less - 1000) <= 200  # the last request was within it by declared costs
    assert dear.sum() < cheap.sum()


def test_a_dear_arm_in_doubt_is_pulled_less_often_than_a_cheap_one() -> None:
    _, pulls, _ = run(None)
    assert pulls[0] > 1.3 * pulls[1]
