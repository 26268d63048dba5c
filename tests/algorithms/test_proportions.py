"""Proportions make the least rate of evidence as large as can be."""

import numpy as np
import pytest
from attack_scale import number_of_runs

from shortlist.algorithms.likelihood_ratio import (
    BERNOULLI,
    GAUSSIAN,
    Divergence,
    best_proportions,
    swap_evidence,
)
from shortlist.arrays import FloatArray

SCALE = 10**8  # evidence takes whole pulls


def rate(divergence: Divergence, means: FloatArray, shares: FloatArray, epsilon: float) -> float:
    pulls = np.round(SCALE * shares).astype(np.int64)
    others = np.arange(1, means.size)
    return float(swap_evidence(divergence, means, pulls, 0, others, epsilon).min() / SCALE)


def proportions(divergence: Divergence, means: FloatArray, epsilon: float) -> FloatArray:
    own, others = best_proportions(divergence, means[0], means[1:], epsilon)
    return np.append(own, others)


@pytest.mark.rates
@pytest.mark.parametrize("epsilon", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("divergence", [BERNOULLI, GAUSSIAN])
@pytest.mark.parametrize(
    "means",
    [[0.6, 0.5], [0.5, 0.5, 0.5], [0.98, 0.88, 0.3, 0.01], [0.02, 0.01, 0.001], [0.7, 0.69, 0.1]],
)
def test_no_other_proportions_gather_evidence_much_faster(
    divergence: Divergence, means: list[float], epsilon: float
) -> None:
    theta, rng = np.array(means), np.random.default_rng(0)
    shares = proportions(divergence, theta, epsilon)
    assert shares.sum() == pytest.approx(1)
    assert shares.min() > 0
    reached = rate(divergence, theta, shares, epsilon)
    for width in (0.02, 0.3, 2.0):
        for _ in range(number_of_runs(12, 300)):
            tried = shares * np.exp(width * rng.standard_normal(theta.size))
            assert rate(divergence, theta, tried / tried.sum(), epsilon) <= 1.01 * reached


def test_normal_arms_that_tie_below_the_best_get_one_over_root_of_their_number() -> None:
    # Garivier, Kaufmann (2016): the best arm gets sqrt(n - 1) times the share of each other
    shares = proportions(GAUSSIAN, np.array([0.7, 0.4, 0.4, 0.4, 0.4]), 0.1)
    assert shares[0] / shares[1:] == pytest.approx([2.0] * 4, rel=0.01)


def test_a_rival_that_is_closer_gets_more() -> None:
    shares = proportions(BERNOULLI, np.array([0.6, 0.55, 0.4, 0.1]), 0.02)
    assert np.all(np.diff(shares[1:]) < 0)
