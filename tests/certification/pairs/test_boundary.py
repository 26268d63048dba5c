"""Two arms end when one is far ahead: how often the wrong one, at any means and looks."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest

from shortlist.certification.design import ROUNDING, fixed_design, swap_failure
from shortlist.certification.pairs.boundary import (
    MOST_DISTANCE,
    MOST_PULLS,
    _cells,
    _failures,
    boundary,
    failure,
)
from shortlist.certification.pairs.net import Net
from shortlist.certification.pairs.swap_race import swap_race
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Pulls, advance
from shortlist.simulation.bandit import BernoulliBandit

Looks = Callable[[int, int], bool]  # of the pulls of each arm and the lead: whether to look then


def always(pulls: int, lead: int) -> bool:
    """Look after every pull."""
    return True


def now_and_then(pulls: int, lead: int) -> bool:
    """Look when that seems worth while: it depends on how far the arms are apart."""
    return pulls % 3 == 0 or abs(lead) == 4


def wrong(
    better: Fraction, worse: Fraction, pulls: int, distance: int, looks: Looks = always
) -> Fraction:
    """P(the worse arm is chosen), by its pulls: the lead of the better arm, place by place."""
    up, down = better * (1 - worse), worse * (1 - better)
    chances = {0: Fraction(1)}  # of leads at which nothing is chosen yet
    failed = Fraction(0)
    for t in range(1, pulls + 1):
        after: dict[int, Fraction] = {}
        for lead, chance in chances.items():
            for step, share in ((1, up), (-1, down), (0, 1 - up - down)):
                after[lead + step] = after.get(lead + step, Fraction(0)) + chance * share
        ends = [lead for lead in after if abs(lead) >= distance and looks(t, lead)]
        failed += sum((after[lead] for lead in ends if lead < 0), Fraction(0))
        chances = {lead: chance for lead, chance in after.items() if lead not in ends}
    failed += sum((chance for lead, chance in chances.items() if lead < 0), Fraction(0))
    return failed + chances.get(0, Fraction(0)) / 2


@pytest.mark.parametrize(("pulls", "distance"), [(1, 1), (2, 1), (3, 2), (9, 3), (12, 5), (8, 9)])
@pytest.mark.parametrize("gap", [Fraction(1, 20), Fraction(1, 5), Fraction(3, 5)])
def test_a_walk_is_counted_exactly(pulls: int, distance: int, gap: Fraction) -> None:
    for worse in (Fraction(0), (1 - gap) / 7, (1 - gap) / 2, 1 - gap):
        better = worse + gap
        moves = better + worse - 2 * better * worse
        if gap == moves:  # the walk can only go up: no odds
            continue
        found = _failures(np.array([float(gap / moves)]), np.array([float(moves)]), pulls, distance)
        expected = float(wrong(better, worse, pulls, distance))
        assert found[0] == pytest.approx(expected, rel=1e-5)
        assert found[0] >= expected


@pytest.mark.parametrize(("pulls", "distance"), [(1, 1), (6, 2), (9, 3), (11, 4), (7, 8)])
@pytest.mark.parametrize("gap", [Fraction(1, 20), Fraction(1, 4), Fraction(7, 10)])
@pytest.mark.parametrize("looks", [always, now_and_then], ids=["always", "now and then"])
def test_no_means_fail_more_often_than_is_said(
    pulls: int, distance: int, gap: Fraction, looks: Looks
) -> None:
    said = failure(float(gap), pulls, distance, float((1 + gap**2) / 2))
    at_edge = failure(float(gap), pulls, distance, 0.32) if gap < Fraction(1, 5) else 0.0
    grid = [Fraction(i, 20) for i in range(21)]
    least_favourable = ((1 + gap) / 2, (1 - gap) / 2)
    pairs = [*product(grid, grid), least_favourable, (gap, Fraction(0))]
    for better, worse in pairs:
        if better - worse < gap:
            continue
        fails = float(wrong(better, worse, pulls, distance, looks))
        assert fails <= said
        if better <= Fraction(1, 5) or worse >= Fraction(4, 5):
            assert fails <= at_edge
    assert said <= 1.05 * float(wrong(*least_favourable, pulls, distance))


def test_without_a_boundary_it_is_the_fixed_design() -> None:
    said = failure(0.1, 90, 91, (1 + 0.1**2) / 2)
    assert swap_failure(0.1, 90) * (1 - ROUNDING) <= said <= 1.01 * swap_failure(0.1, 90)


def test_cells_cover_all_chances_of_a_move() -> None:
    for gap, most in ((0.05, 0.50125), (0.3, 0.545), (0.1, 0.32)):
        ends = _cells(gap, most)
        assert (ends[0], ends[-1]) == (most, gap)
        assert (np.diff(ends) < 0).all()
        assert (ends[:-1] / ends[1:]).max() <= 1.3 + 1e-9


@pytest.mark.parametrize("delta", [0.2, 0.05, 0.01, 1e-4])
@pytest.mark.parametrize("gap", [0.3, 0.05, 0.01])
def test_no_nearer_boundary_would_do(gap: float, delta: float) -> None:
    pulls = int(1.5 * fixed_design(2, 1, gap, delta, Binary()))
    found = boundary(gap, pulls, 0.8 * delta, 0.2)
    assert found is not None
    assert found.pulls == pulls
    assert found.edge_failure < found.failure <= 0.8 * delta
    most = (1 + gap**2) / 2
    assert found.failure == failure(gap, pulls, found.distance, most)
    assert found.distance == 1 or failure(gap, pulls, found.distance - 1, most) > 0.8 * delta
    if gap < 0.2:
        assert found.edge_failure == failure(gap, pulls, found.distance, 2 * 0.2 * (1 - 0.2))
    else:  # no two means near 0 are so far apart
        assert found.edge_failure == 0


@pytest.mark.parametrize(
    ("gap", "pulls", "delta"),
    [
        (0.1, 0, 0.05),
        (0.1, MOST_PULLS + 1, 0.05),
        (1.0, 10, 0.05),
        (0.1, 10, 0.05),  # as few pulls fail more often even without a boundary
        (1e-3, MOST_PULLS, 1.001 * swap_failure(1e-3, MOST_PULLS)),  # too far away
    ],
)
def test_there_may_be_none(gap: float, pulls: int, delta: float) -> None:
    assert boundary(gap, pulls, delta, 0.2) is None


def test_as_far_as_it_may_be_sums_are_exact() -> None:
    """After so many pulls all walks have ended, and what is left over is nothing."""
    found = _failures(np.array([0.016]), np.array([0.5]), MOST_PULLS, MOST_DISTANCE)
    assert found[0] == pytest.approx(1 / (1 + (1.016 / 0.984) ** MOST_DISTANCE), rel=1e-5)


@pytest.mark.parametrize("least", [None, 40])
def test_a_lead_ends_a_race(least: int | None) -> None:
    problem = Problem(2, 1, FixedConfidence(0.1, 0.05), Binary())
    judged = Net(problem, 0, np.random.default_rng(0))
    assert judged.distance is not None
    led = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        search = swap_race(problem, rng, least=least)
        bandit = BernoulliBandit(np.array([0.62, 0.5]))
        pulls, sums = np.zeros(2, dtype=np.int64), np.zeros(2)
        turn = advance(search, None)
        while isinstance(turn, Pulls):
            given = bandit.pull(turn.arms, turn.times, rng)
            np.add.at(pulls, turn.arms, turn.times)
            np.add.at(sums, turn.arms, given.sums)
            turn = advance(search, given)
        assert turn.regret_bound is not None
        assert turn.regret_bound <= 0.1
        assert pulls[0] == pulls[1] <= judged.size
        led += abs(sums[0] - sums[1]) >= judged.distance
    assert led > 10


def test_failures_of_a_pair_are_those_of_a_table() -> None:
    """P(Bin(2, q) < Bin(2, p)) + half of ties, by hand."""
    p, q = Fraction(2, 5), Fraction(3, 5)
    law = [[comb(2, i) * m**i * (1 - m) ** (2 - i) for i in range(3)] for m in (p, q)]
    by_hand = sum(
        law[0][i] * law[1][j] * (1 if i > j else Fraction(i == j, 2))
        for i, j in product(range(3), repeat=2)
    )
    assert wrong(q, p, 2, 3) == by_hand
