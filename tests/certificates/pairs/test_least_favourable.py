"""Least favourable means against a search over all of them."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from shortlist.certificates.pairs.planning import MARGIN, information, least_favourable

GAP = 0.09


def evidence(x: float, inside: float, outside: float, ratio: float) -> float:
    """What is learnt against the means x and x + GAP by a pull outside and `ratio` inside."""
    low, high = np.array([x]), np.array([x + GAP])
    found = ratio * information(np.array([inside]), low) + information(np.array([outside]), high)
    return float(found[0])


@pytest.mark.parametrize("ratio", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(
    ("inside", "outside"), [(0.98, 0.88), (0.55, 0.45), (0.5, 0.5), (0.12, 0.05)]
)
def test_no_other_means_are_harder_to_tell(inside: float, outside: float, ratio: float) -> None:
    def found(**steps: int) -> float:
        better, worse = np.array([inside]), np.array([outside])
        return float(least_favourable(better, worse, GAP, np.array([ratio]), **steps)[0])

    best = minimize_scalar(
        evidence, bounds=(1e-4, 1 - GAP - 1e-4), args=(inside, outside, ratio), method="bounded"
    )
    assert found(steps=40) == pytest.approx(best.x, abs=2e-3)
    assert evidence(found(), inside, outside, ratio) < 1.1 * best.fun + 1e-4


def test_the_means_keep_off_0_and_1_however_large_the_gap() -> None:
    ends = np.array([0.0, 1.0])
    for gap in (1e-6, 0.5, 0.9999, 3.0):
        x = least_favourable(ends, ends, gap, np.ones(2))
        assert (x >= MARGIN).all()
        assert (x <= max(MARGIN, 1 - gap)).all()


def test_information_is_the_divergence_of_0_or_1_rewards() -> None:
    found = information(np.array([0.3, 1.0]), np.array([0.5, 0.25]))
    assert found[0] == pytest.approx(0.3 * np.log(0.6) + 0.7 * np.log(1.4))
    assert found[1] == pytest.approx(np.log(4))


def best_rate(low: float, high: float, ratio: float) -> float:
    """What the best bets on .98 inside and .88 outside earn, per pull outside."""
    advance = np.linspace(0.1, 6, 600)
    inner = advance / ratio
    fair = (inner * low < 1) & (advance * (1 - high) < 1)
    inner, advance = inner[fair], advance[fair]
    up = 0.98 * np.log1p(inner * (1 - low)) + 0.02 * np.log1p(-inner * low) + inner * low
    down = 0.88 * np.log1p(-advance * (1 - high)) + 0.12 * np.log1p(advance * high)
    return float((ratio * up + down - advance * high + advance * GAP).max())


def test_bets_around_the_least_favourable_means_earn_all_that_can_be_earned() -> None:
    best = minimize_scalar(evidence, bounds=(0.5, 0.909), args=(0.98, 0.88, 5.0), method="bounded")
    assert best_rate(best.x, best.x + GAP, 5.0) == pytest.approx(best.fun, rel=1e-4)
    assert best.fun == pytest.approx(0.42, abs=0.005)
    assert best_rate(0.98, 0.88, 5.0) == pytest.approx(0.31, abs=0.005)
