"""Charges of arms with unknown variances: their moments, caps and rounding."""

import numpy as np
import pytest
from scipy.stats import chi2

from shortlist.certificates.charged.bound import caps_of, charged_bound, charges, inflation

NODES, MASS = np.polynomial.hermite_e.hermegauss(160)
MASS = MASS / MASS.sum()


@pytest.mark.parametrize("times", [2, 4, 10, 60])
@pytest.mark.parametrize("top", [0.05, 0.5, 1.5])  # slope^2 cap^2 / N
@pytest.mark.parametrize("share", [0.05, 0.4, 1.0])  # of the cap's square: sigma^2
@pytest.mark.parametrize("slope", [0.35, 1.0])  # as a share of the strength
def test_no_moment_of_a_charge_is_more_than_its_proof_allows(
    times: int, top: float, share: float, slope: float
) -> None:
    """E exp(-l h) <= exp(-l min(g, R)), by Gauss-Hermite and quantiles of chi-square."""
    strength, reach = 1.0 / slope, 4.0  # so that the slope itself is 1
    cap = np.sqrt(top * times)
    sigma = cap * np.sqrt(share)
    seen = sigma**2 * chi2.ppf((np.arange(4000) + 0.5) / 4000, times - 1) / (times - 1)
    for g in (0.01, 0.5, 2.0, 5.0):
        evidence = (g + sigma / np.sqrt(times) * NODES)[:, None]
        how = (np.array(times), np.array(1.0), strength, np.array(cap), reach)
        each = charges(evidence, seen[None, :], *how)
        moment = float(MASS @ np.exp(-strength * each).mean(axis=1))
        assert moment <= np.exp(-strength * min(g, reach)) * (1 + 1e-5)


def test_the_inflation_is_that_of_the_formula_and_at_least_1() -> None:
    times, caps = np.array([2.0, 5.0, 40.0]), np.array([0.0, 1.0, 3.0])
    factor = inflation(np.full(3, 0.7), times, caps)
    z = 0.49 * caps**2 / (times * (times - 1))
    assert factor[0] == pytest.approx(1)
    assert np.allclose(factor[1:], np.expm1(z[1:]) / z[1:])
    assert (factor >= 1).all()


def test_a_deviation_that_pulls_do_not_bound_is_charged_without_limit() -> None:
    assert inflation(np.array([10.0]), np.array([2.0]), np.array([5.0]))[0] == np.inf
    how = (np.array([2]), np.array([10.0]), 10.0, np.array([5.0]), 1.0)
    assert charges(np.array([-50.0]), np.array([1.0]), *how)[0] == np.inf


def test_caps_are_too_small_with_the_allowed_probability() -> None:
    rng, wrong, runs = np.random.default_rng(1), 0, 4000
    for _ in range(runs):
        squares = rng.chisquare(14, 8)  # deviation 1, 15 pulls
        wrong += bool((caps_of(squares, 15, 0.2) < 1).any())
    assert 0.15 * runs < wrong < 0.2 * runs


def test_a_bound_is_the_sum_of_charges_and_of_the_level() -> None:
    assert charged_bound(np.array([0.1, 0.2]), 5.0, np.exp(-2.0)) == pytest.approx(0.7)


def test_arms_far_on_their_side_are_not_charged() -> None:
    how = (np.array([30, 30]), np.array([1.0, 1.0]), 1.0, np.array([1.0, 1.0]), 4.0)
    each = charges(np.array([-9.0, 9.0]), np.ones(2), *how)
    assert each[0] == 0
    assert each[1] > 9
