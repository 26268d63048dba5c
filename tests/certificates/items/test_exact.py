"""The theorem of docs/items.md in exact arithmetic: all orders of small test sets, one by one."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from attack_scale import SCALE
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shortlist.arrays import FloatArray
from shortlist.certificates.items import race as items_race
from shortlist.certificates.items.bound import BettingUpperBound
from shortlist.certificates.items.search import items_search
from shortlist.problem import FixedConfidence, Items, Problem
from shortlist.regret import aggregate_regret
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
    """The wealth after every item, by the formula of Lemma 1; the stake shrinks with losses."""
    wealth, seen = [Fraction(1)], Fraction(0)
    for t, each in enumerate(d):
        left = (len(d) * m - seen) / (len(d) - t)
        bet = stake * min(Fraction(1), wealth[-1])  # known before
        most = Fraction(9, 10) / (1 - left) if left < 1 else bet
        wealth.append(wealth[-1] * (1 + min(bet, most) * (left - each)))
        seen += each
    return wealth


@pytest.mark.parametrize("d", DIFFERENCES)
@pytest.mark.parametrize("stake", [Fraction(1, 5), Fraction(3)])
def test_wealth_against_a_truth_reaches_a_level_as_rarely_as_ville_says(
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
def test_wealth_grows_with_the_difference_it_is_against(d: tuple[Fraction | int, ...]) -> None:
    bounds = [Fraction(each, 8) for each in range(-8, 8)]
    for order in permutations(d):
        ends = []
        for m in bounds:
            wealth, seen = Fraction(1), Fraction(0)
            for t, each in enumerate(order):
                left = (len(d) * m - seen) / (len(d) - t)
                most = Fraction(9, 10) / (1 - left) if left < 1 else Fraction(2)
                wealth *= 1 + min(Fraction(2), most) * (left - each)
                seen += each
            ends.append(wealth)
        assert ends == sorted(ends)


def answered(scores: FloatArray, k: int, epsilon: float, delta: float, budget: int) -> Answer:
    """What a race answers where items stand in this order."""
    problem = Problem(
        len(scores), k, FixedConfidence(epsilon, delta, budget), items=Items(scores.shape[1])
    )
    search = items_search(problem, np.random.default_rng(0))
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


@pytest.mark.attack
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("delta", [0.3, 0.9])
@pytest.mark.parametrize("lopsided", [0, 99], ids=["single", "paired"])
def test_over_all_orders_bounds_fail_with_probability_delta_at_most(
    name: str, k: int, delta: float, lopsided: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items_race, "FIRST_ITEMS", 1)
    monkeypatch.setattr(items_race, "SINGLE_FIRST", 1)
    monkeypatch.setattr(items_race, "LOPSIDED", lopsided)
    scores = np.array(SMALL[name], dtype=np.float64)
    n, size = scores.shape
    if k >= n or (lopsided == 0 and size > 4):  # bounds on arms are tested on all orders below
        return
    for budget in range(n, n * size + 1, 3 if SCALE > 1 else 7):
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


def most_wealth(scores: list[Fraction], held: list[Fraction], m: Fraction) -> Fraction:
    """The largest wealth of an arm against a mean of m, by the formula of Lemma 1."""
    size = len(scores) + len(held)
    wealth, seen, squares, gained = Fraction(1), Fraction(0), Fraction(0), sum(held, Fraction(0))
    largest = wealth
    for t, each in enumerate(scores):
        left = len(scores) - t
        mean = (size * m - gained - seen) / left
        scatter = squares - seen**2 / max(t, 1)
        variance = (10 * Fraction(1, 10) + scatter) / (10 + t)
        gap = Fraction(1, 10) * Fraction(size, left)
        stake = gap / (variance + gap**2)
        most = Fraction(98, 100) / (1 - mean) if mean < 1 else stake
        wealth *= 1 + min(stake, most) * (mean - each)
        largest = max(largest, wealth)
        seen += each
        squares += each**2
    return largest


def test_upper_bounds_have_the_wealth_of_exact_arithmetic() -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        held = [Fraction(int(each), 4) for each in rng.integers(0, 5, rng.integers(0, 4))]
        scores = [Fraction(int(each), 4) for each in rng.integers(0, 5, rng.integers(1, 9))]
        m = Fraction(int(rng.integers(1, 99)), 100)
        band = BettingUpperBound(
            np.array([scores], dtype=np.float64),
            np.ones((1, len(scores)), dtype=np.bool_),
            len(scores) + len(held),
            np.array([len(held)]),
            np.array([float(sum(held))]),
            np.full(len(scores), 0.1),
            np.array([0.1]),
        )
        gains = np.cumsum([float(each) for each in scores]) + float(sum(held))
        unseen = np.arange(len(scores) - 1, -1, -1)
        if (band.size * float(m) - gains > unseen).any():
            assert band.rejects(np.array([float(m)]), np.ones(1), 1e9)
            continue
        exact = float(most_wealth(scores, held, m))
        for level in (0.999 * exact, 1.001 * exact):
            if level > 1:
                found = band.rejects(np.array([float(m)]), np.ones(1), level)
                assert found[0] == (exact > level)


@pytest.mark.parametrize(
    "scores",
    [(1, 0, 0.5, 1, 0.25, 0), (0, 0, 0, 0, 1), (1, 1, 1, 0, 1, 1), (0.4, 0.5, 0.5, 0.6)],
)
@pytest.mark.parametrize("level", [1.25, 2.0])
def test_bounds_on_an_arm_fail_in_no_more_orders_than_their_level_allows(
    scores: tuple[float, ...], level: float
) -> None:
    orders = np.array(list(permutations(scores)), dtype=np.float64)
    none = np.zeros(len(orders))
    for gap, seen in product((0.1, 0.5), range(1, len(scores) + 1)):
        fresh = np.broadcast_to(np.arange(len(scores)) < seen, orders.shape)
        variances = np.full(len(scores), 0.01)
        band = BettingUpperBound(orders, fresh, len(scores), none, none, variances, np.array([gap]))
        upper = band.upper(np.ones(1), level, np.ones(len(orders)))
        wrong = int((upper < np.mean(scores) - 1e-12).sum())
        assert wrong <= len(orders) / level
        if scores == (0, 0, 0, 0, 1) and seen == 3:
            assert wrong > 0  # or nothing was tested


@given(
    scores=arrays(
        np.float64,
        st.tuples(st.integers(2, 5), st.integers(1, 6)),
        elements=st.sampled_from([0.0, 1.0, 0.5, 0.1, 0.3, 0.7, 1 / 3]),
    ),
    data=st.data(),
)
def test_no_bound_is_below_what_unseen_cells_leave_open(
    scores: FloatArray, data: st.DataObject
) -> None:
    n, size = scores.shape
    k = data.draw(st.integers(1, n // 2))
    budget = data.draw(st.integers(n, n * size))
    lopsided = data.draw(st.sampled_from([0, 99]))  # one by one, or in pairs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(items_race, "LOPSIDED", lopsided)
        answer = answered(scores, k, 1e-6, 1e-60, budget)  # bets win nothing
    assert answer.evidence is not None
    reached = np.array(answer.evidence["items"])
    seen = np.where(np.arange(size) < reached[:, None], scores, 0.0)
    least = [sum(map(Fraction, row), Fraction(0)) for row in seen.tolist()]
    most = [each + size - int(done) for each, done in zip(least, reached, strict=True)]
    others = np.setdiff1d(np.arange(n), answer.top)
    lost = [
        sum(max(most[j] - least[i], Fraction(0)) for i, j in zip(answer.top, turn, strict=True))
        for turn in permutations(others, k)
    ]
    assert answer.regret_bound is not None
    assert Fraction(answer.regret_bound) >= Fraction(max(lost)) / size / k
    if len(set(np.sum(scores, axis=1).tolist())) == 1 and set(scores.flat) <= {0.0, 0.5, 1.0}:
        assert (answer.regret_bound == 0) == (not any(lost))
