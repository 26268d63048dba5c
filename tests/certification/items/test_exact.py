"""The theorem of docs/items.md in exact arithmetic: all orders of small test sets, one by one."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from shortlist.arrays import FloatArray
from shortlist.certification.items.item_race import item_race
from shortlist.items import Items
from shortlist.metrics import aggregate_regret
from shortlist.problem import FixedConfidence, Problem
from shortlist.search import Answer, Pulls, advance, rewards_of

DIFFERENCES = [
    (1,),
    (0,),
    (1, -1),
    (1, 1, -1),
    (0, 0, 0, 1),
    (-1, -1, -1, -1, 1),
    (Fraction(1, 3), Fraction(1, 3), -1, Fraction(1, 2), 0),
]


def wealth(d: tuple[Fraction | int, ...], m: Fraction, stake: Fraction) -> list[Fraction]:
    """The capital after every item, by the formula of Lemma 1; the stake shrinks with losses."""
    capital, seen = [Fraction(1)], Fraction(0)
    for t, each in enumerate(d):
        left = (len(d) * m - seen) / (len(d) - t)
        bet = stake * min(Fraction(1), capital[-1])  # known before
        most = Fraction(9, 10) / (1 - left) if left < 1 else bet
        capital.append(capital[-1] * (1 + min(bet, most) * (left - each)))
        seen += each
    return capital


@pytest.mark.parametrize("d", DIFFERENCES)
@pytest.mark.parametrize("stake", [Fraction(1, 5), Fraction(3)])
def test_capital_against_a_truth_reaches_a_level_as_seldom_as_ville_says(
    d: tuple[Fraction | int, ...], stake: Fraction
) -> None:
    mean = Fraction(sum(d)) / len(d)
    for m in (mean, mean - Fraction(1, 7)):
        paths = [wealth(order, m, stake) for order in permutations(d)]
        for t in range(len(d) + 1):
            assert sum(path[t] for path in paths) <= len(paths)
        for level in (Fraction(11, 10), Fraction(3, 2), Fraction(3)):
            reached = sum(max(path) >= level for path in paths)
            assert Fraction(reached, len(paths)) <= 1 / level


@pytest.mark.parametrize("d", DIFFERENCES)
def test_capital_grows_with_the_difference_it_is_against(d: tuple[Fraction | int, ...]) -> None:
    bounds = [Fraction(each, 8) for each in range(-8, 8)]
    for order in permutations(d):
        ends = []
        for m in bounds:
            capital, seen = Fraction(1), Fraction(0)
            for t, each in enumerate(order):
                left = (len(d) * m - seen) / (len(d) - t)
                most = Fraction(9, 10) / (1 - left) if left < 1 else Fraction(2)
                capital *= 1 + min(Fraction(2), most) * (left - each)
                seen += each
            ends.append(capital)
        assert ends == sorted(ends)


def answered(scores: FloatArray, k: int, epsilon: float, delta: float, budget: int) -> Answer:
    """What a race answers where items stand in this order."""
    problem = Problem(
        len(scores), k, FixedConfidence(epsilon, delta, budget), items=Items(scores.shape[1])
    )
    search = item_race(problem, np.random.default_rng(0))
    drawn = np.zeros(len(scores), dtype=np.int64)
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        each = [
            scores[arm, drawn[arm] : drawn[arm] + times]
            for arm, times in zip(turn.arms, turn.times, strict=True)
        ]
        drawn[turn.arms] += turn.times
        assert (drawn <= scores.shape[1]).all()
        entries = np.repeat(np.arange(turn.arms.size), turn.times)
        turn = advance(search, rewards_of(np.concatenate(each), entries, turn.arms.size))
    return turn


SMALL = {
    "one item": [[0], [1]],
    "two items, a tie": [[0, 1], [1, 0]],
    "three items, one decides": [[1, 0, 0], [1, 0, 1], [1, 0, 0]],
    "all items alike": [[0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]],
    "one item decides against many": [[0.4, 0.4, 0.4, 0.4, 1], [0.5, 0.5, 0.5, 0.5, 0]],
    "luck comes early": [[1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 1, 0, 1, 0]],
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("delta", [0.3, 0.9])
def test_over_all_orders_bounds_fail_with_probability_delta_at_most(
    name: str, k: int, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shortlist.certification.items.tuning.FIRST", 1)
    scores = np.array(SMALL[name], dtype=np.float64)
    n, size = scores.shape
    if k >= n:
        return
    for budget in range(n, n * size + 1, 2):
        wrong, orders = 0, list(permutations(range(size)))
        for order in orders:
            answer = answered(scores[:, order], k, 0.05, delta, budget)
            regret = aggregate_regret(scores.mean(1), answer.top)
            assert answer.regret_bound is not None
            wrong += regret > answer.regret_bound + 1e-9
        assert wrong <= delta * len(orders)


@pytest.mark.parametrize("name", SMALL)
def test_when_all_cells_are_seen_the_answer_is_exact(name: str) -> None:
    scores = np.array(SMALL[name], dtype=np.float64)
    answer = answered(scores, 1, 1e-6, 0.05, scores.size)

    assert aggregate_regret(scores.mean(1), answer.top) == 0
    assert answer.regret_bound == pytest.approx(0, abs=1e-9)
