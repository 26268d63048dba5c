"""The linear bound: radius, fit and parabolas against exact values on small cases."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import chdtrc
from scipy.stats import binom

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.linear.bound import (
    bound_over_ball,
    fit_of,
    noise_radius,
)
from shortlist.features import Features
from shortlist.reward_models import UNIT_SIGMA


def mask(arms: tuple[int, ...], n_arms: int) -> BoolArray:
    return np.isin(np.arange(n_arms), arms)


def exact_largest(
    basis: FloatArray, chosen: BoolArray, centre: FloatArray, factor: FloatArray, radius: float
) -> float:
    """max over the ball of the regret of a set: over all sets, each in closed form."""
    n_arms, k = chosen.size, int(chosen.sum())
    own = basis[chosen].sum(0)
    found = []
    for arms in combinations(range(n_arms), k):
        gain = basis[list(arms)].sum(0) - own
        found.append(gain @ centre + radius * np.linalg.norm(np.linalg.solve(factor.T, gain)))
    return float(max(found))


def random_case(rng: np.random.Generator) -> tuple[FloatArray, BoolArray, FloatArray, FloatArray]:
    n_arms = int(rng.integers(2, 8))
    d = int(rng.integers(1, n_arms))
    basis = Features(rng.normal(size=(n_arms, d))).basis
    if rng.random() < 0.2:  # ties
        basis[0] = basis[-1]
    k = int(rng.integers(1, n_arms))
    centre = rng.normal(size=basis.shape[1]) * 10.0 ** rng.uniform(-3, 0)
    chosen = mask(tuple(np.argsort(-basis @ centre)[:k]), n_arms)
    if rng.random() < 0.3:  # any other set
        chosen = mask(tuple(rng.permutation(n_arms)[:k]), n_arms)
    rows = rng.normal(size=(20, basis.shape[1])) * 10.0 ** rng.uniform(0, 3)
    factor = np.linalg.qr(rows)[1]
    return basis, chosen, centre, factor


def test_the_bound_is_never_below_the_exact_maximum_over_all_sets_and_directions() -> None:
    rng = np.random.default_rng(11)
    ratios = []
    for _ in range(1500):
        basis, chosen, centre, factor = random_case(rng)
        radius = float(10 ** rng.uniform(-2, 1.5))
        exact = exact_largest(basis, chosen, centre, factor, radius)
        bound = bound_over_ball(basis, chosen, centre, factor, radius).total
        assert bound >= exact, (basis, chosen, centre, factor, radius)
        if exact > 1e-6:
            ratios.append(bound / exact)
    assert np.median(ratios) < 1.6


def test_the_bound_holds_for_every_boundary_and_direction_of_larger_cases() -> None:
    rng = np.random.default_rng(5)
    basis = Features(rng.normal(size=(60, 4))).basis
    centre = rng.normal(size=4)
    chosen = mask(tuple(np.argsort(-basis @ centre)[:12]), 60)
    factor = np.linalg.qr(rng.normal(size=(30, 4)) * 1.5)[1]
    bound = bound_over_ball(basis, chosen, centre, factor, 3.0).total
    worst = 0.0
    for _ in range(300):
        step = rng.normal(size=4)
        for _ in range(20):  # steepest ascent
            v = centre + np.linalg.solve(factor, 3.0 * step / np.linalg.norm(step))
            best = np.argsort(-basis @ v)[:12]
            gain = basis[best].sum(0) - basis[chosen].sum(0)
            worst = max(worst, float(gain @ v))
            step = np.linalg.solve(factor.T, gain) if gain.any() else rng.normal(size=4)
    assert worst <= bound <= 1.8 * worst


@pytest.mark.parametrize("d", [1, 2, 5, 19, 200])
@pytest.mark.parametrize("delta", [0.3, 0.01, 1e-12, 1e-50])
def test_normal_errors_leave_the_ball_with_probability_delta_at_most(d: int, delta: float) -> None:
    square = noise_radius(d, delta) ** 2
    assert chdtrc(d, square) <= delta
    assert square - d - d * math.log(square / d) == pytest.approx(-2 * math.log(delta))


def outcomes(pulls: IntArray, means: FloatArray) -> list[tuple[float, FloatArray]]:
    """All sums of 0/1 rewards of a design, with their probabilities."""
    each = [
        [(float(binom.pmf(s, n, p)), float(s)) for s in range(n + 1)]
        for n, p in zip(pulls.tolist(), means.tolist(), strict=True)
    ]
    return [
        (math.prod(weight for weight, _ in combined), np.array([s for _, s in combined]))
        for combined in product(*each)
    ]


def worst_regret(means: FloatArray, chosen: BoolArray) -> float:
    k = int(chosen.sum())
    return float(np.sort(means)[-k:].sum() - means[chosen].sum())


CASES = {
    "level ends": ([0.0, 0.5, 1.0], [4, 3, 4]),
    "steep": ([0.02, 0.5, 0.98], [5, 1, 5]),
    "four arms": ([0.3, 0.4, 0.6, 0.7], [2, 2, 2, 2]),
    "a rare arm": ([0.45, 0.5, 0.55, 0.6], [1, 3, 2, 1]),
}


@pytest.mark.parametrize("misfit", [0.0, 0.03])
@pytest.mark.parametrize("name", CASES)
def test_a_bound_on_all_sets_fails_with_probability_delta_at_most(name: str, misfit: float) -> None:
    """Exact: all outcomes of a small design, all sets at once, means off by the misfit."""
    delta = 0.3
    line, counts = np.array(CASES[name][0]), np.array(CASES[name][1])
    basis = Features(line[:, None]).basis
    means = np.clip(line + misfit * np.where(np.arange(line.size) % 2, 1, -1), 0, 1)
    failed = 0.0
    for weight, sums in outcomes(counts, means):
        fit = fit_of(basis, counts, sums / counts)
        assert fit is not None
        radius = fit.radius(delta, misfit)
        for k in range(1, line.size):
            extra = 2 * misfit * min(k, line.size - k)
            bounds = [
                bound_over_ball(basis, mask(arms, line.size), fit.coefficients, fit.factor, radius)
                for arms in combinations(range(line.size), k)
            ]
            losses = [
                worst_regret(means, mask(s, line.size)) for s in combinations(range(line.size), k)
            ]
            if any(loss > bound.total + extra for loss, bound in zip(losses, bounds, strict=True)):
                failed += weight
                break
    assert failed <= delta


def test_a_fit_is_weighted_least_squares_without_the_level() -> None:
    rng = np.random.default_rng(2)
    basis = Features(rng.normal(size=(15, 3))).basis
    pulls = rng.integers(0, 9, size=15)
    means = rng.random(15)
    fit = fit_of(basis, pulls, means)
    assert fit is not None
    rows = np.column_stack([np.ones(15), basis]) * np.sqrt(pulls)[:, None]
    plain = np.linalg.lstsq(rows, means * np.sqrt(pulls), rcond=None)[0]
    assert np.allclose(fit.coefficients, plain[1:])
    information = np.linalg.inv(np.linalg.inv(rows.T @ rows / UNIT_SIGMA**2)[1:, 1:])
    assert np.allclose(fit.factor.T @ fit.factor, information)
    assert 0 < fit.blur < 1e-9
    assert 0 < fit.slack < 1e-9


def test_a_misfit_widens_the_ball_by_the_longest_bias() -> None:
    rng = np.random.default_rng(3)
    basis = Features(rng.normal(size=(9, 2))).basis
    pulls = rng.integers(1, 30, size=9)
    clean = fit_of(basis, pulls, np.zeros(9))
    assert clean is not None
    allowed = clean.radius(0.1, 0.2) - clean.radius(0.1, 0.0)
    longest = 0.0
    for signs in product([-1.0, 1.0], repeat=9):
        moved = fit_of(basis, pulls, 0.2 * np.array(signs))
        assert moved is not None
        longest = max(longest, float(np.linalg.norm(clean.factor @ moved.coefficients)))
    assert longest <= allowed <= 2 * longest


def test_a_design_that_does_not_settle_the_coefficients_has_no_fit() -> None:
    basis = Features(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1e-5]])).basis
    assert fit_of(basis, np.array([4, 4, 0, 0]), np.zeros(4)) is None
    assert fit_of(np.column_stack([basis[:, 0], basis[:, 0]]), np.full(4, 3), np.zeros(4)) is None
    assert fit_of(basis, np.array([4, 4, 4, 4]), np.zeros(4)) is not None
