"""Arms that retire during a swap race: nothing that is said of the others rests on them."""

import numpy as np
import pytest

from shortlist.arrays import FloatArray
from shortlist.certificates.frame import Retired, informed
from shortlist.certificates.pairs.planning import BatchSizes
from shortlist.certificates.pairs.search import PairsRace, complete_samples, pairs_search
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Answer, Pulls, Rewards, advance


def played(
    means: FloatArray, gone: int, batch: int, problem: Problem
) -> tuple[list[Pulls], Answer]:
    """A race whose rewards add up to these means, in which an arm leaves in a batch."""
    retired, asked = Retired(problem.n_arms), list[Pulls]()
    race = pairs_search(problem, np.random.default_rng(0), retired)
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


def test_what_only_a_leaver_beat_has_its_sample_completed_before_samples_decide() -> None:
    """Arm 1 is known to be below arm 0, which leaves, and nothing is known of arms 1 and 2."""
    problem = Problem(3, 1, FixedConfidence(0.2, 0.1), Binary())
    retired = Retired(3)
    race = PairsRace(problem, np.random.default_rng(0), BatchSizes(rounds=2), retired)
    race.gaps[1, 0] = -0.1
    race.choose(np.array([0]))
    search = informed(complete_samples(race, 1, at_once=True), retired)

    first = advance(search, None)
    assert isinstance(first, Pulls)
    assert first.arms.tolist() == [0, 2]  # the other is below arm 0, whatever the samples say
    second = advance(search, Rewards(np.zeros(2), np.zeros(2), retired=np.array([0])))
    assert isinstance(second, Pulls)
    assert second.arms.tolist() == [1]
    won = second.times.astype(np.float64)
    answer = advance(search, Rewards(won, won, retired=np.array([0])))
    assert isinstance(answer, Answer)
    assert answer.top.tolist() == [1]
    assert answer.evidence["safety net"]


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
