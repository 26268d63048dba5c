"""Log-optimal charges: feasible, and best."""

import numpy as np
import pytest
from scipy.optimize import minimize

from shortlist.certification.plans.charges import log_optimal


def test_one_mean_has_a_closed_form() -> None:
    matrix = np.array([[0.2, 0.5, 0.6]])
    believed = np.array([0.3, 0.3, 0.4])

    q = log_optimal(matrix, believed, 1e-8)

    assert np.allclose(q, believed / matrix[0], rtol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_charges_are_feasible_and_within_the_gap_of_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(0.01, 2.0, (4, 7))
    believed = rng.dirichlet(np.ones(7))
    gap = 1e-4

    q = log_optimal(matrix, believed, gap)

    assert (matrix @ q).max() <= 1 + 1e-12
    best = minimize(
        lambda log_q: -believed @ log_q,
        np.log(q) - 0.1,
        constraints={"type": "ineq", "fun": lambda log_q: 1 - matrix @ np.exp(log_q)},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert believed @ np.log(q) >= -best.fun - 2 * gap


def test_a_large_gap_is_left_at_once() -> None:
    matrix = np.array([[0.5, 0.5], [0.9, 0.1]])

    q = log_optimal(matrix, np.array([0.5, 0.5]), 10.0)

    assert (matrix @ q).max() < 1
