"""A race whose arms may be pulled only so often."""

import numpy as np
import pytest

from shortlist.certificates.pairs.search import pairs_search
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Answer, Pulls, Rewards, advance


def raced(
    means: list[float], k: int, limits: tuple[int | None, ...], **pace: int | None
) -> tuple[Answer, np.ndarray[tuple[int, ...], np.dtype[np.int64]], int]:
    """The answer, the pulls of every arm, and how many requests there were."""
    rng = np.random.default_rng(4)
    problem = Problem(len(means), k, FixedConfidence(0.1, 0.1), Binary(), limits=limits)
    race = pairs_search(problem, rng, **pace)  # type: ignore[arg-type]
    pulls, requests = np.zeros(len(means), dtype=np.int64), 0
    turn = advance(race, None)
    while isinstance(turn, Pulls):
        np.add.at(pulls, turn.arms, turn.times)
        requests += 1
        sums = rng.binomial(turn.times, np.array(means)[turn.arms]).astype(np.float64)
        turn = advance(race, Rewards(sums, sums))
    return turn, pulls, requests


PACES: list[dict[str, int]] = [{}, {"rounds": 1}, {"rounds": 3}, {"least": 30}]


@pytest.mark.parametrize("pace", PACES)
def test_arms_that_cannot_be_told_apart_are_pulled_as_often_as_they_may(
    pace: dict[str, int],
) -> None:
    answer, pulls, requests = raced([0.5] * 4, 2, (20,) * 4, **pace)
    assert pulls.tolist() == [20] * 4
    assert requests <= pace.get("rounds", 80)
    assert answer.regret_bound is None or answer.regret_bound > 0.1
    assert answer.evidence["safety net"] is False


@pytest.mark.parametrize("pace", PACES)
def test_it_ends_when_no_pair_of_others_is_open(pace: dict[str, int]) -> None:
    answer, pulls, _ = raced([0.6, 0.5, 0.5], 1, (None, 12, 15), **pace)
    assert (pulls[1:] <= [12, 15]).all()
    assert answer.regret_bound is None or answer.regret_bound > 0.1


@pytest.mark.parametrize("pace", [{}, {"rounds": 8}, {"least": 30}])
def test_the_others_go_on_until_they_are_resolved(pace: dict[str, int]) -> None:
    answer, pulls, _ = raced([0.7, 0.5, 0.01], 1, (None, None, 20), **pace)
    assert answer.regret_bound is not None
    assert answer.regret_bound <= 0.1
    assert pulls[2] <= 20 < pulls[:2].min()
