"""True means cross a proven threshold with probability delta at most, whenever one looks."""

from math import log, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import betaln, xlog1py, xlogy

from shortlist.algorithms.likelihood_ratio import (
    BERNOULLI,
    Comparison,
    Threshold,
    c_exp,
    customary,
    iterated_logarithm,
    mixture,
)
from shortlist.arrays import BoolArray, FloatArray


def crossing(threshold: Threshold, thetas: tuple[float, float], delta: float, most: int) -> float:
    """The exact probability that two arms of these means, pulled in turn, ever cross it."""
    alive = np.ones((1, 1))  # (sums of one arm, sums of the other)
    for pull in range(2 * most):
        arm = pull % 2
        theta = thetas[arm]
        pad = ((0, 1), (0, 0)) if arm == 0 else ((0, 0), (0, 1))
        failed = np.pad((1 - theta) * alive, pad)
        won = np.pad(theta * alive, [after[::-1] for after in pad])
        alive = failed + won
        if pull:
            alive[crossed(threshold, alive, thetas, delta)] = 0
    return 1 - float(alive.sum())


def crossed(
    threshold: Threshold, alive: FloatArray, thetas: tuple[float, float], delta: float
) -> BoolArray:
    own, rival = alive.shape[0] - 1, alive.shape[1] - 1
    first = own * BERNOULLI.between(np.arange(own + 1) / own, np.array(thetas[0]))
    second = rival * BERNOULLI.between(np.arange(rival + 1) / rival, np.array(thetas[1]))
    comparison = Comparison(own, np.array([rival]), own + rival, 1, delta)
    over: BoolArray = first[:, None] + second > threshold(comparison)[0]
    return over


@pytest.mark.parametrize("thetas", [(0.5, 0.6), (0.02, 0.1), (0.9, 0.99), (0.001, 0.999)])
@pytest.mark.parametrize("threshold", [mixture, iterated_logarithm])
def test_true_means_cross_it_with_probability_delta_at_most(
    threshold: Threshold, thetas: tuple[float, float]
) -> None:
    assert crossing(threshold, thetas, 0.3, 60) <= 0.3


def test_the_customary_threshold_is_crossed_too_often_by_true_means() -> None:
    # so the test above can fail, and no bound may rest on this one
    assert crossing(customary, (0.5, 0.6), 0.3, 60) > 0.3


@given(st.integers(1, 10**6), st.floats(0, 1))
def test_the_mixture_is_at_most_two_roots_of_n_below_the_largest_likelihood(
    pulls: int, share: float
) -> None:
    total = share * pulls  # rewards in [0, 1] need not add up to a whole number
    mixed = betaln(total + 0.5, pulls - total + 0.5) - log(pi)
    likelihood = xlogy(total, share) + xlog1py(pulls - total, -share)
    assert likelihood - mixed <= log(2 * np.sqrt(pulls)) + 1e-8


def test_the_mixture_threshold_is_not_above_that_of_the_theorem() -> None:
    comparison = Comparison(30, np.array([1, 30, 500]), 531, 4, 0.1)
    theorem = np.log(
        2 * (30 + comparison.rivals) * 4 / 0.1
    )  # Theorem 10 with the pulls of the pair
    assert np.all(mixture(comparison) <= theorem + 1e-12)
    assert mixture(comparison)[1] == pytest.approx(theorem[1])


@pytest.mark.parametrize("x", [0.05, 0.7, 3.0, 40.0])
def test_c_exp_is_the_least_over_exponents_and_slices(x: float) -> None:
    chernoff = minimize_scalar(
        lambda b: (x - np.log1p(-b)) / b,
        bounds=(1e-9, 1 - 1e-9),
        method="bounded",
        options={"xatol": 1e-12},
    )
    ratios = np.linspace(1.0001, 1.5, 200_000)
    slices = ratios * (chernoff.fun + log(pi**2 / 3) - 2 * np.log(np.log(ratios)))
    assert c_exp(x) == pytest.approx(slices.min(), rel=1e-6)


def test_iterated_logarithm_splits_the_level_over_two_arms() -> None:
    comparison = Comparison(100, np.array([20]), 200, 3, 0.05)
    expected = 3 * log(1 + log(100)) + 3 * log(1 + log(20)) + 2 * c_exp(log(60) / 2)
    assert iterated_logarithm(comparison)[0] == pytest.approx(expected)
