"""The guarantee among the arms that stay, in exact arithmetic: every history of 0/1 rewards of a
small experiment is played, and the probability of those with a wrong promise is added up.

Arm 2 leaves after a number of requests that is fixed, so not because of rewards."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import comb
from typing import NamedTuple

import numpy as np
import pytest

from shortlist.algorithms import find
from shortlist.driver import Outcome, counted
from shortlist.experiment.staying import staying
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Pulls, Rewards, advance

N, EPSILON, DELTA, BUDGET = 3, 0.2, 0.45, 12
PROBLEM = Problem(N, 1, FixedConfidence(EPSILON, DELTA, BUDGET), Binary())
MEANS = [Fraction(tenths, 10) for tenths in (1, 3, 5, 7, 9)]
History = tuple[tuple[int, ...], ...]  # successes by entry, request by request


class End(NamedTuple):
    """What a history comes to."""

    won: tuple[int, ...]  # by arm, of pulls that were made
    lost: tuple[int, ...]
    orders: int  # histories of single rewards that look so
    top: int
    bound: float | None


def played(history: History) -> Pulls | Outcome:
    """The request after these replies, or the outcome."""
    run = counted(find("certified"), PROBLEM, np.random.default_rng(1), least=6)
    turn = advance(run, None)
    for won in history:
        sums = np.array(won, dtype=np.float64)
        turn = advance(run, Rewards(sums, sums.copy()))
    return turn


def ends(
    leaves: int,
    history: History = (),
    won: tuple[int, ...] = (0, 0, 0),
    lost: tuple[int, ...] = (0, 0, 0),
    orders: int = 1,
) -> Iterator[End]:
    """All ends of histories that begin so; from request number `leaves` on arm 2 only loses."""
    turn = played(history)
    if isinstance(turn, Outcome):
        left = {2: "gone"} if len(history) > leaves else {}
        answer = staying(turn, left, PROBLEM, "certified").answer
        yield End(won, lost, orders, int(answer.top[0]), answer.regret_bound)
        return
    arms, times = turn.arms.tolist(), turn.times.tolist()
    gone = [arm == 2 and len(history) >= leaves for arm in arms]
    choices = [(0,) if out else range(t + 1) for t, out in zip(times, gone, strict=True)]
    for reply in product(*choices):
        more_won, more_lost, ways = list(won), list(lost), orders
        for arm, t, wins, out in zip(arms, times, reply, gone, strict=True):
            more_won[arm] += 0 if out else wins
            more_lost[arm] += 0 if out else t - wins
            ways *= comb(t, wins)
        yield from ends(leaves, (*history, reply), tuple(more_won), tuple(more_lost), ways)


def probability(end: End, means: tuple[Fraction, ...]) -> Fraction:
    """Of all histories that look so."""
    result = Fraction(end.orders)
    for won, lost, mean in zip(end.won, end.lost, means, strict=True):
        result *= mean**won * (1 - mean) ** lost
    return result


def is_wrong(end: End, means: tuple[Fraction, ...], stay: tuple[int, ...]) -> bool:
    """Whether more is lost against the best that stays than was promised."""
    lost = max(means[arm] for arm in stay) - means[end.top]
    return end.bound is not None and lost > Fraction(end.bound)


@pytest.mark.parametrize("leaves", [0, 1])
def test_a_promise_about_those_that_stay_is_wrong_with_probability_delta_at_most(
    leaves: int,
) -> None:
    found = list(ends(leaves))
    wrong_at_all = Fraction(0)
    for means in product(MEANS, repeat=N):
        each = [probability(end, means) for end in found]
        assert sum(each) == 1
        wrong = sum(p for p, end in zip(each, found, strict=True) if is_wrong(end, means, (0, 1)))
        assert wrong <= DELTA
        wrong_at_all = max(wrong_at_all, Fraction(wrong))
    assert wrong_at_all > 0  # a promise is not always right: something was tested
