"""Arms that retire during a swap race: nothing that is said of the others rests on them."""

import numpy as np
import pytest

from shortlist.arrays import FloatArray
from shortlist.certification.pairs.swap_race import swap_race
from shortlist.certification.retired import Retired, informed
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Answer, Pulls, Rewards, advance

PROBLEM = Problem(6, 1, FixedConfidence(0.1, 0.05), Binary())


def played(
    means: FloatArray, gone: int, batch: int, problem: Problem = PROBLEM, **pace: int
) -> tuple[list[Pulls], Answer]:
    """A race whose rewards add up to these means, in which an arm leaves in a batch."""
    retired, asked = Retired(problem.n_arms), list[Pulls]()
    race = swap_race(problem, np.random.default_rng(0), retired, **pace)
    search = informed(race, retired)
    turn = advance(search, None)
    pulls, sums = np.zeros(problem.n_arms), np.zeros(problem.n_arms)
    while isinstance(turn, Pulls):
        asked.append(turn)
        given = np.zeros(turn.arms.size)
        for entry, (arm, times) in enumerate(zip(turn.arms, turn.times, strict=True)):
            pulls[arm] += times
            given[entry] = np.rint(means[arm] * pulls[arm]) - sums[arm]
            sums[arm] += given[entry]
        left = np.array([gone]) if len(asked) > batch else None
        turn = advance(search, Rewards(given, given.copy(), retired=left))
    return asked, turn


def test_what_a_leaver_beat_is_compared_with_the_others_before_samples_decide() -> None:
    """Arm 1 is known to be below arm 0, and arm 2 is not: of the two nothing is known."""
    means = np.array([0.8, 0.58, 0.7, 0.1, 0.1, 0.1])
    before, _ = played(means, gone=0, batch=10**9, rounds=2)
    assert {1, 3, 4, 5}.isdisjoint(before[1].arms.tolist())  # they are settled
    assert {0, 2} <= set(before[1].arms.tolist())

    asked, answer = played(means, gone=0, batch=0, rounds=2)
    assert {1, 2} <= set(asked[1].arms.tolist())
    assert 0 not in asked[1].arms
    assert answer.top.tolist() == [2]


def test_an_arm_that_leaves_in_the_last_round_brings_one_more() -> None:
    means = np.array([0.8, 0.58, 0.7, 0.1, 0.1, 0.1])
    asked, answer = played(means, gone=0, batch=1, rounds=2)
    assert len(asked) == 3
    assert 1 in asked[2].arms
    assert answer.top.tolist() == [2]


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("batch", [0, 3])
def test_an_arm_that_has_left_is_neither_asked_for_nor_chosen(k: int, batch: int) -> None:
    means = np.array([0.95, 0.8, 0.7, 0.4, 0.3, 0.2])
    problem = Problem(6, k, FixedConfidence(0.1, 0.05), Binary())
    asked, answer = played(means, gone=0, batch=batch, problem=problem)
    assert len(asked) > batch + 1
    assert all(0 not in each.arms for each in asked[batch + 1 :])
    assert answer.top.tolist() == list(range(1, k + 1))
    assert answer.regret_bound is not None
    assert answer.regret_bound <= 0.1
