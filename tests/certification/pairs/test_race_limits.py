"""A race whose arms may be pulled only so often."""

import numpy as np
import pytest

from shortlist.certification.pairs.swap_race import swap_race
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Answer, Pulls, Rewards, advance


def raced(
    means: list[float], k: int, limits: tuple[int | None, ...], rounds: int | None = None
) -> tuple[Answer, np.ndarray[tuple[int, ...], np.dtype[np.int64]], int]:
    """The answer, the pulls of every arm, and how many requests there were."""
    rng = np.random.default_rng(4)
    problem = Problem(len(means), k, FixedConfidence(0.1, 0.1), Binary(), limits=limits)
    race = swap_race(problem, rng, rounds=rounds)
    pulls, requests = np.zeros(len(means), dtype=np.int64), 0
    turn = advance(race, None)
    while isinstance(turn, Pulls):
        np.add.at(pulls, turn.arms, turn.times)
        requests += 1
        sums = rng.binomial(turn.times, np.array(means)[turn.arms]).astype(np.float64)
        turn = advance(race, Rewards(sums, sums))
    return turn, pulls, requests


@pytest.mark.parametrize("rounds", [None, 1, 3])
def test_arms_that_cannot_be_told_apart_are_pulled_as_often_as_they_may(rounds: int | None) -> None:
    answer, pulls, requests = raced([0.5] * 4, 2, (20,) * 4, rounds)
    assert pulls.tolist() == [20] * 4
    assert rounds is None or requests <= rounds
    assert answer.regret_bound is None or answer.regret_bound > 0.1
    assert answer.evidence["safety net"] is False


def test_it_ends_when_no_pair_of_others_is_open() -> None:
    answer, pulls, _ = raced([0.9, 0.5, 0.5], 1, (None, 12, 15))
    assert (pulls[1:] <= [12, 15]).all()
    assert answer.regret_bound is None or answer.regret_bound > 0.1


def test_the_others_go_on_until_they_are_resolved() -> None:
    answer, pulls, _ = raced([0.7, 0.5, 0.01], 1, (None, None, 20))
    assert answer.regret_bound is not None
    assert answer.regret_bound <= 0.1
    assert pulls[2] <= 20 < pulls[:2].min()
