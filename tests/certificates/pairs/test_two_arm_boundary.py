"""Two arms, and a walk that ends without a lead: how often the wrong one is ahead, at any means."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest

from shortlist.certificates.frame import fixed_design, swap_failure
from shortlist.certificates.pairs import fallback as module
from shortlist.certificates.pairs.fallback import (
    COARSEST,
    MOST_DISTANCE,
    MOST_WALKED,
    REFUTED,
    USED,
    TwoArmBoundary,
    _level_ends,
    _tilts,
    boundary,
    log_odds,
    mistaken,
    undecided,
)
from shortlist.reward_models import Binary


def behind(better: Fraction, worse: Fraction, pulls: int, distance: int) -> Fraction:
    """P(never `distance` apart, and the worse arm ahead at the end), and half of ties, by pulls."""
    up, down = better * (1 - worse), worse * (1 - better)
    chances = {0: Fraction(1)}  # of leads
    for _ in range(pulls):
        after: dict[int, Fraction] = {}
        for lead, chance in chances.items():
            for step, share in ((1, up), (-1, down), (0, 1 - up - down)):
                after[lead + step] = after.get(lead + step, Fraction(0)) + chance * share
        chances = {lead: chance for lead, chance in after.items() if abs(lead) < distance}
    wrong = sum((chance for lead, chance in chances.items() if lead < 0), Fraction(0))
    return wrong + chances.get(0, Fraction(0)) / 2


@pytest.mark.parametrize(("pulls", "distance"), [(1, 1), (2, 1), (3, 2), (9, 3), (12, 5), (8, 9)])
@pytest.mark.parametrize("gap", [Fraction(1, 20), Fraction(1, 5), Fraction(3, 5)])
def test_a_walk_is_counted_exactly(pulls: int, distance: int, gap: Fraction) -> None:
    for worse in (Fraction(0), (1 - gap) / 7, (1 - gap) / 2, 1 - gap):
        better = worse + gap
        moves = better + worse - 2 * better * worse
        if gap == moves:  # the walk can only go up: no odds
            continue
        tilts, chances = np.array([float(gap / moves)]), np.array([float(moves)])
        found = undecided(tilts, chances, pulls, distance)
        expected = float(behind(better, worse, pulls, distance))
        assert found[0] == pytest.approx(expected, rel=1e-5)
        assert found[0] >= expected


def level_of(found: TwoArmBoundary, gap: Fraction, better: Fraction, worse: Fraction) -> int:
    """The level of the average of two means."""
    average = (better + worse) / 2
    height = float(2 * average * (1 - average) + gap**2 / 2)
    return int(np.flatnonzero(found.moves <= height * (1 + 1e-12))[0])


@pytest.mark.parametrize(("pulls", "delta"), [(12, 0.3), (30, 0.2), (60, 0.15)])
@pytest.mark.parametrize("gap", [Fraction(1, 5), Fraction(1, 4), Fraction(1, 2)])
def test_no_means_of_a_level_fail_more_often_than_it_says(
    gap: Fraction, pulls: int, delta: float
) -> None:
    found = boundary(float(gap), pulls, delta)
    assert found is not None
    grid = [Fraction(i, 20) for i in range(21)]
    for better, worse in product(grid, grid):
        if better - worse < gap:
            continue
        level = level_of(found, gap, better, worse)
        fails = float(behind(better, worse, pulls, found.distance))
        assert fails <= delta - found.errors[level]
        moves = float(better + worse - 2 * better * worse)
        assert moves >= found.moves[level] * (1 - 1e-12)
        tilt = float(better - worse) / moves
        assert tilt >= np.tanh(found.log_odds[level] / 2) * (1 - 1e-12)


def test_levels_cover_all_average_means() -> None:
    for gap in (0.005, 0.05, 0.3, 0.9):
        ends = _level_ends(gap)
        assert ends[0] == (1 + gap**2) / 2
        assert ends[-1] == gap
        assert (np.diff(ends) < 0).all()
        assert (ends[:-1] / ends[1:]).max() <= COARSEST + 1e-9


def test_odds_are_finite_in_every_level() -> None:
    ends = np.array([0.2, np.nextafter(0.1, 1), 0.1])
    assert log_odds(_tilts(ends, 0.1)) == pytest.approx(np.log([3, 2e9]), rel=1e-6)


def test_a_level_begins_at_its_least_mean() -> None:
    found = boundary(0.1, 400, 0.05)
    assert found is not None
    heights = 2 * found.means * (1 - found.means) + 0.1**2 / 2
    assert heights == pytest.approx(found.moves)
    assert found.means[-1] == pytest.approx(0.05)  # no two means 0.1 apart have a smaller average
    assert (np.diff(found.means) < 0).all()


@pytest.mark.parametrize("delta", [0.2, 0.05, 0.01, 1e-4])
@pytest.mark.parametrize("gap", [0.3, 0.05, 0.01])
def test_no_nearer_boundary_would_do(gap: float, delta: float) -> None:
    pulls = int(1.5 * fixed_design(2, 1, gap, delta, Binary()))
    found = boundary(gap, pulls, 0.9 * delta)
    assert found is not None
    assert found.pulls == pulls
    most = USED * 0.9 * delta
    tilts = gap / _level_ends(gap)[:-1]
    left = most - undecided(tilts, found.moves, pulls, found.distance)
    assert found.errors == pytest.approx(left)
    assert (found.floors <= 1 - REFUTED).all()
    assert found.floors * found.errors == pytest.approx(mistaken(found.log_odds, found.distance))
    nearer = found.distance - 1
    middle = undecided(tilts[:1], found.moves[:1], pulls, nearer) if nearer else np.array([0.5])
    needed = mistaken(log_odds(tilts[:1]), nearer)
    assert needed[0] > (1 - REFUTED) * (most - middle[0])


def test_a_boundary_is_far_enough_at_every_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """If another level than the first is the worst one, the distance grows until that is fine."""
    nearest = boundary(0.1, 400, 0.05)
    assert nearest is not None

    def worse(tilts: object, moves: np.ndarray, pulls: int, c: int) -> np.ndarray:
        return np.where(moves < 0.2, 0.06 if c < nearest.distance + 3 else 0.0, 0.0)

    monkeypatch.setattr(module, "undecided", worse)
    found = boundary.__wrapped__(0.1, 400, 0.05)
    assert found is not None
    assert found.distance == nearest.distance + 3


@pytest.mark.parametrize(
    ("gap", "pulls", "delta"),
    [
        (0.1, 0, 0.05),
        (0.1, MOST_WALKED + 1, 0.05),
        (1.0, 10, 0.05),
        (1 - 1e-9, 10, 0.05),  # its levels are lost to rounding
        (0.1, 10, 0.05),  # as few pulls fail more often even without a boundary
        (1e-3, MOST_WALKED, 1.001 * swap_failure(1e-3, MOST_WALKED)),  # too far away
    ],
)
def test_there_may_be_none(gap: float, pulls: int, delta: float) -> None:
    assert boundary(gap, pulls, delta) is None


def test_as_far_as_it_may_be_sums_are_exact() -> None:
    """After so many pulls all walks have ended, and what is left over is nothing."""
    found = undecided(np.array([0.016]), np.array([0.5]), MOST_WALKED, MOST_DISTANCE)
    assert 0 <= found[0] < 1e-6


def test_failures_of_a_pair_are_those_of_a_table() -> None:
    """P(Bin(2, q) < Bin(2, p)) + half of ties, by hand."""
    p, q = Fraction(2, 5), Fraction(3, 5)
    law = [[comb(2, i) * m**i * (1 - m) ** (2 - i) for i in range(3)] for m in (p, q)]
    by_hand = sum(
        law[0][i] * law[1][j] * (1 if i > j else Fraction(i == j, 2))
        for i, j in product(range(3), repeat=2)
    )
    assert behind(q, p, 2, 3) == by_hand
