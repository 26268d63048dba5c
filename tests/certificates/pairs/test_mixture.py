"""The mixture of clocks: a small epsilon costs little where gaps are large."""

import numpy as np
import pytest

from shortlist.certificates.pairs.bound import FARTHEST_GAP, GAP_RATIO, LARGE_GAP, GapMixture
from shortlist.simulation.simulate import simulate


@pytest.mark.parametrize("least", [1e-12, 1e-6, 1e-3, 0.01, 0.05, 0.2, 0.9, 3.0])
def test_weights_add_up_to_one_and_gaps_go_up_to_the_farthest(least: float) -> None:
    mixture = GapMixture.of(least)
    assert mixture.weights.sum() == pytest.approx(1)
    assert (mixture.weights > 0).all()
    assert (np.diff(mixture.multiples) > 0).all()
    assert mixture.multiples[3:].max(initial=0) * least < FARTHEST_GAP


@pytest.mark.parametrize("least", [1e-6, 1e-3, 0.05, 0.15, 0.9])
def test_large_gaps_alone_leave_out_those_near_the_least(least: float) -> None:
    mixture = GapMixture.of_large(least)
    assert mixture.weights.sum() == pytest.approx(1)
    assert mixture.multiples[0] == LARGE_GAP
    assert mixture.multiples[1:].max(initial=0) * least < FARTHEST_GAP
    assert mixture.multiples[-1] * GAP_RATIO * least >= FARTHEST_GAP


@pytest.mark.parametrize("epsilon", [0.01, 1e-4, 1e-7, 1e-10])
def test_arms_that_are_far_apart_are_told_soon_however_small_epsilon_is(epsilon: float) -> None:
    for means, k in (([0.9, 0.1], 1), ([0.9, 0.8, 0.3, 0.2], 2)):
        runs = simulate("certified", means, k=k, epsilon=epsilon, delta=0.05, runs=3, seed=8)
        assert runs.pulls.max() < 500
