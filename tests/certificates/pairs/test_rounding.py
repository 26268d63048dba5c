"""Gaps are rounded outward: by how much, and that pairs and sets both are."""

from dataclasses import replace

import numpy as np
import pytest
from mpmath import mp

from shortlist.arrays import ROUNDED
from shortlist.certificates.frame import log_swaps
from shortlist.certificates.pairs.planning import BatchSizes, pilot_stage
from shortlist.certificates.pairs.search import PairsRace
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Bounded, SubGaussian
from shortlist.simulation.worlds import BetaBandit


def test_what_rounding_can_take_off_a_gap_is_added_to_it() -> None:
    """The more stages, the farther from 0, the slower the clock and the more blurred, the more."""
    problem = Problem(3, 1, FixedConfidence(0.1, 0.05), SubGaussian(0.5))
    race = PairsRace(problem, np.random.default_rng(0), BatchSizes())
    slow, fast = np.array([1e-3, 1.0]), np.array([10.0, 20.0])
    level = race.levels.max()
    assert race._rounded(fast) == pytest.approx(2 * ROUNDED * (1 + level / 10))
    assert race._rounded(slow) == pytest.approx(2 * ROUNDED * (1 + level * 1000))
    race.pulls[:] = 2
    race.sums[:] = 2e6
    assert race._rounded(fast) == pytest.approx(2 * ROUNDED * (1 + 1e6 + level / 10))
    race.stages.add(pilot_stage(3, race.mixture.weights.size, 1))
    race.problem = replace(problem, blur=1e-3)
    found = race._rounded(fast)
    assert found == pytest.approx(3 * ROUNDED * (1 + 1e6 + level / 10) + 2e-3)


def test_gaps_of_pairs_and_of_sets_are_raised_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(6, 3, FixedConfidence(0.1, 0.05), Bounded())
    rng = np.random.default_rng(2)
    race = PairsRace(problem, rng, BatchSizes())
    for _ in range(12):
        stages, arms = race.movers()
        assert race.ready(stages)
        times = race.stages.times(stages, arms)
        rewards = BetaBandit(np.full(6, 0.5)).pull(arms, times, rng)
        race.book(stages, arms, rewards)
        race.stand()
    race.gaps[:] = np.inf
    race._tighten()
    pairs, sets = race.gaps.copy(), race._set_bound()
    monkeypatch.setattr(PairsRace, "_rounded", lambda self, clock: np.float64(0.5))
    race.gaps[:] = np.inf
    race._tighten()
    known = np.isfinite(pairs)
    assert known.any()
    assert race.gaps[known] == pytest.approx(pairs[known] + 0.5)
    assert race._set_bound() == pytest.approx(sets + 3 * 0.5)


@pytest.mark.parametrize(("n", "k"), [(5, 2), (1000, 3), (10**6, 2), (10**6, 1)])
def test_swaps_are_not_counted_as_fewer_than_they_are(n: int, k: int) -> None:
    with mp.workdps(60):
        for m, found in enumerate(log_swaps(n, k), start=1):
            exactly = mp.log(mp.binomial(k, m) * mp.binomial(n - k, m))
            assert exactly <= found <= exactly + 1e-5
