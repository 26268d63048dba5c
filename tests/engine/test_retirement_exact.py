"""The guarantee among the arms that stay, in exact arithmetic: every history of 0/1 rewards of a
small experiment is played, and the probability of those with a wrong promise is added up.

Arm 2 leaves after a number of requests that is fixed, or when its own rewards say so: it is settled
which arm leaves, and when may depend on anything. Histories in which it stays are left out."""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import product
from math import comb, floor
from typing import NamedTuple

import numpy as np
import pytest
from attack_scale import number_of_runs

from shortlist.algorithms import find
from shortlist.arrays import BoolArray, IntArray
from shortlist.driver import Outcome, counted
from shortlist.engine.replay import staying
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Pulls, Rewards, advance

N, EPSILON, DELTA, BUDGET = 3, 0.2, 0.45, number_of_runs(10, 12)
PROBLEM = Problem(N, 1, FixedConfidence(EPSILON, DELTA, BUDGET), Binary())
TENTHS = 10
MEANS = (1, 3, 5, 7, 9)  # in tenths
UNIT = TENTHS**BUDGET  # of probabilities: small enough for integers of 64 bits
History = tuple[tuple[int, ...], ...]  # successes by entry, request by request


class End(NamedTuple):
    """What a history comes to."""

    won: tuple[int, ...]  # by arm, of pulls that were made
    lost: tuple[int, ...]
    orders: int  # histories of single rewards that look so
    top: int
    bound: float | None


Leaves = Callable[[History], bool]  # whether arm 2 leaves after these replies
LEAVES: dict[str, Leaves] = {
    "at once": lambda history: True,
    "after a request": lambda history: len(history) == 1,
    "after it led": lambda history: len(history) == 1 and history[0][2] > max(history[0][:2]),
}


def left_by(history: History, leaves: Leaves) -> bool:
    """Whether arm 2 has left before the request that follows."""
    return any(leaves(history[:end]) for end in range(len(history) + 1))


def played(history: History, leaves: Leaves) -> Pulls | Outcome:
    """The request after these replies, or the outcome."""
    run = counted(find("certified"), PROBLEM, np.random.default_rng(1), min_batch=6)
    turn = advance(run, None)
    for place, won in enumerate(history):
        sums = np.array(won, dtype=np.float64)
        left = np.array([2]) if left_by(history[:place], leaves) else None
        turn = advance(run, Rewards(sums, sums.copy(), retired=left))
    return turn


def ends(
    leaves: Leaves,
    history: History = (),
    won: tuple[int, ...] = (0, 0, 0),
    lost: tuple[int, ...] = (0, 0, 0),
    orders: int = 1,
) -> Iterator[End]:
    """All ends of histories that begin so; when it has left, arm 2 only loses."""
    if history and not left_by(history, leaves):
        return
    turn = played(history, leaves)
    if isinstance(turn, Outcome):
        answer = staying(turn, [2], PROBLEM, "certified", seed=1).answer
        yield End(won, lost, orders, int(answer.top[0]), answer.regret_bound)
        return
    arms, times = turn.arms.tolist(), turn.times.tolist()
    gone = [arm == 2 and left_by(history, leaves) for arm in arms]
    choices = [(0,) if out else range(t + 1) for t, out in zip(times, gone, strict=True)]
    for reply in product(*choices):
        more_won, more_lost, ways = list(won), list(lost), orders
        for arm, t, wins, out in zip(arms, times, reply, gone, strict=True):
            more_won[arm] += 0 if out else wins
            more_lost[arm] += 0 if out else t - wins
            ways *= comb(t, wins)
        yield from ends(leaves, (*history, reply), tuple(more_won), tuple(more_lost), ways)


class Ends(NamedTuple):
    """All ends, one row each, in whole numbers: nothing is rounded."""

    won: IntArray  # (ends, arms)
    lost: IntArray
    orders: IntArray  # (ends,)
    top: IntArray
    promised: IntArray  # tenths that may be lost

    @classmethod
    def of(cls, found: Iterable[End]) -> "Ends":
        won, lost, orders, top, bounds = zip(*found, strict=True)
        promised = [UNIT if bound is None else floor(10 * Fraction(bound)) for bound in bounds]
        return cls(*map(np.array, (won, lost, orders, top, promised)))

    def probabilities(self, tenths: IntArray) -> IntArray:
        """Of every end, as so many of UNIT, where the means are so many tenths."""
        each = tenths**self.won * (TENTHS - tenths) ** self.lost
        unmade = BUDGET - (self.won + self.lost).sum(axis=1)
        result: IntArray = self.orders * each.prod(axis=1) * TENTHS**unmade
        return result

    def wrong(self, tenths: IntArray, stay: list[int]) -> BoolArray:
        """Where more is lost against the best that stays than was promised."""
        result: BoolArray = tenths[stay].max() - tenths[self.top] > self.promised
        return result


@pytest.mark.rates
@pytest.mark.parametrize("leaves", LEAVES)
def test_a_promise_about_those_that_stay_is_wrong_with_probability_delta_at_most(
    leaves: str,
) -> None:
    found = Ends.of(ends(LEAVES[leaves]))
    wrong_at_all = 0
    for means in product(MEANS, repeat=N):
        tenths = np.array(means)
        each = found.probabilities(tenths)
        assert each.sum() == UNIT or (leaves == "after it led" and each.sum() < UNIT)
        wrong = int(each[found.wrong(tenths, [0, 1])].sum())
        assert Fraction(wrong, UNIT) <= DELTA
        wrong_at_all = max(wrong_at_all, wrong)
    assert wrong_at_all > 0  # a promise is not always right: something was tested
