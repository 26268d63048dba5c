"""SwapBounds on swaps against the roots of their equations."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp

from shortlist.arrays import FloatArray
from shortlist.certificates.pairs.bound import MOST_REFINED, pair_gaps, set_gap

LOG_WEIGHTS = np.log([0.7, 0.2, 0.1])


def root(log_wealth: FloatArray, clock: FloatArray, level: float) -> float:
    """The gap at which the wealth reaches exp(level)."""

    def excess(gap: float) -> float:
        return float(logsumexp(LOG_WEIGHTS + log_wealth + clock * gap)) - level

    return float(brentq(excess, -1e4, 1e4, xtol=1e-12))


@pytest.mark.parametrize("seed", range(5))
def test_pair_gaps_are_just_above_the_roots(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clock = np.sort(rng.uniform(0.5, 40, (30, 3)), axis=1)
    down, up = rng.normal(0, 4, (2, 30, 3))
    levels = rng.uniform(2, 8, 30)
    found = pair_gaps(down, up, clock, LOG_WEIGHTS, levels)
    roots = [root(d + u, c, h) for d, u, c, h in zip(down, up, clock, levels, strict=True)]
    assert (found >= np.array(roots) - 1e-9).all()
    assert np.median(found - roots) < 1e-3


@pytest.mark.parametrize("seed", range(8))
def test_set_gap_bounds_every_swap_of_two_or_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clock = np.sort(rng.uniform(5, 60, 3))
    strengths = clock / clock[0]
    down = rng.normal(0, 1, (4, 1)) * strengths + rng.normal(0, 0.2, (4, 3)) - strengths**2 / 4
    up = rng.normal(0, 1, (5, 1)) * strengths + rng.normal(0, 0.2, (5, 3)) - strengths**2 / 4
    levels = np.array([4.0, 6.0, 7.5, 9.0])
    worst = -np.inf
    for m in (2, 3, 4):
        for a in combinations(range(4), m):
            for b in combinations(range(5), m):
                wealth = down[list(a)].sum(0) + up[list(b)].sum(0)
                worst = max(worst, root(wealth, clock, levels[m - 1]))
    found = set_gap(down, up, clock, LOG_WEIGHTS, levels)
    assert found >= worst - 1e-9
    assert found <= worst + 0.05 * abs(worst) + 0.05


def test_more_pairs_than_are_refined_are_bounded_by_their_best_single_clock() -> None:
    rng = np.random.default_rng(9)
    many = MOST_REFINED + 1
    clock = rng.uniform(0.5, 40, (many, 3))
    down, up = rng.normal(0, 4, (2, many, 3))
    levels = np.full(many, 5.0)
    rough = pair_gaps(down, up, clock, LOG_WEIGHTS, levels)
    few = slice(200)
    refined = pair_gaps(down[few], up[few], clock[few], LOG_WEIGHTS, levels[few])
    assert (rough[few] >= refined - 1e-12).all()
    assert (rough[few] > refined).any()
