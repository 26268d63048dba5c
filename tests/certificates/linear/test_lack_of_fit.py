"""The test of lack of fit: its level, its power, and its null distribution."""

import numpy as np
import pytest
from scipy.special import chdtrc

from shortlist.certificates.linear.lack_of_fit import LackOfFit, _tail, lack_of_fit
from shortlist.certificates.linear.planning import ArmSums
from shortlist.features import Features


def seen(
    means: np.ndarray[tuple[int], np.dtype[np.float64]], pulls: int, seed: int, noise: str
) -> ArmSums:
    rng = np.random.default_rng(seed)
    counts = rng.integers(pulls // 2, 2 * pulls, size=means.size)
    if noise == "binary":
        sums = rng.binomial(counts, means).astype(float)
        return ArmSums(counts, sums, sums)
    each = [means[arm] + 0.05 * rng.normal(size=n) for arm, n in enumerate(counts)]
    return ArmSums(
        counts,
        np.array([float(rewards.sum()) for rewards in each]),
        np.array([float((rewards**2).sum()) for rewards in each]),
    )


def p_values(residual: float, noise: str, misfit: float = 0.0, runs: int = 60) -> list[float]:
    found = []
    for run in range(runs):
        rng = np.random.default_rng(run)
        x = rng.normal(size=(40, 3))
        means = np.clip(0.5 + x @ [0.1, 0.05, 0.0] + residual * rng.normal(size=40), 0.05, 0.95)
        basis = Features(x).basis
        test = lack_of_fit(basis, seen(means, 60, run, noise), misfit, binary=noise == "binary")
        assert test.arms == 40
        assert test.p_value is not None
        found.append(test.p_value)
    return found


@pytest.mark.parametrize("noise", ["binary", "normal"])
def test_p_values_are_even_where_means_are_linear(noise: str) -> None:
    values = p_values(0.0, noise)
    assert 0.3 < np.mean(values) < 0.7
    assert np.mean(np.array(values) < 0.05) < 0.2


@pytest.mark.parametrize(("noise", "residual"), [("binary", 0.15), ("normal", 0.03)])
def test_residuals_are_seen(noise: str, residual: float) -> None:
    assert np.mean(np.array(p_values(residual, noise)) < 0.01) > 0.9


def test_a_declared_misfit_is_no_lack_of_fit() -> None:
    values = np.array(p_values(0.01, "normal"))
    allowed = np.array(p_values(0.01, "normal", misfit=0.03))
    assert (values < 0.01).mean() > 0.4
    assert (allowed < 0.01).mean() == 0


def test_few_arms_are_not_tested() -> None:
    basis = Features(np.random.default_rng(0).normal(size=(8, 3))).basis
    few = ArmSums(np.array([9, 9, 9, 9, 4, 4, 0, 0]), np.zeros(8), np.zeros(8))
    assert lack_of_fit(basis, few, 0.0, binary=True) == LackOfFit(None, 4)
    assert not LackOfFit(None, 4).rejected
    assert LackOfFit(0.001, 4).rejected


def test_rewards_that_do_not_vary_are_linear_or_not() -> None:
    x = np.random.default_rng(0).normal(size=(12, 2))
    counts = np.full(12, 6)
    for bend, p_value in ((0.0, 1.0), (0.1, 0.0)):
        means = 0.5 + x @ [0.1, 0.05] + bend * x[:, 0] ** 2
        sums = ArmSums(counts, counts * means, counts * means**2)
        assert lack_of_fit(Features(x).basis, sums, 0.0, binary=False).p_value == p_value


@pytest.mark.parametrize("freedom", [1, 2, 10, 60])
@pytest.mark.parametrize("times", [0.3, 0.9, 1.0, 1.2, 2.0, 6.0])
def test_the_tail_of_equal_weights_is_that_of_chi_square(freedom: int, times: float) -> None:
    exact = chdtrc(freedom, times * freedom)
    assert _tail(np.full(freedom, 3.0), 3 * times * freedom) == pytest.approx(
        exact, rel=0.2, abs=0.13
    )


def test_the_tail_of_unequal_weights_is_right() -> None:
    weights = np.array([5.0, 3.0, 1.0, 1.0, 0.2, 0.0])
    draws = np.random.default_rng(0).chisquare(1, size=(200_000, 6)) @ weights
    for statistic in (12.0, 25.0, 40.0):
        assert _tail(weights, statistic) == pytest.approx((draws >= statistic).mean(), rel=0.1)
