"""Log-optimal charges: feasible, and best."""

import numpy as np
import pytest

from shortlist.arrays import FloatArray
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.planning import log_optimal, log_optimal_among


def least_upper_bound(matrix: FloatArray, believed: FloatArray) -> float:
    """Of sum p ln q under A q <= 1: sum p ln(p / (w A)) - 1 + sum w for any w, by slow EM."""
    weights = np.full(matrix.shape[0], 1 / matrix.shape[0])
    for _ in range(20_000):
        weights = weights * (matrix @ (believed / (weights @ matrix)))
    return float(believed @ np.log(believed / (weights @ matrix)) - 1 + weights.sum())


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

    assert (matrix @ q).max() <= 1 + gap
    assert believed @ np.log(q) >= least_upper_bound(matrix, believed) - 2 * gap


@pytest.mark.parametrize("seed", range(10))
def test_few_means_at_first_do_as_well_as_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    matrix = np.exp(rng.normal(0, 0.5, (40, 9)).cumsum(axis=0) / 3)  # neighbours are alike
    believed = rng.dirichlet(np.ones(9))
    gap = 1e-4

    q = log_optimal_among(matrix, believed, gap, 7)

    assert (matrix @ q).max() <= 1 + gap
    assert believed @ np.log(q) >= believed @ np.log(log_optimal(matrix, believed, gap)) - 2 * gap
    monkeypatch.setattr(tuning, "CUTS", 1)
    if seed == 0:  # at the first means alone (*) is broken between them
        assert (matrix @ log_optimal_among(matrix, believed, gap, 7)).max() > 1.001


def test_a_method_cut_short_still_charges(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.array([[0.5, 0.5], [0.9, 0.1]])
    monkeypatch.setattr(tuning, "NEWTON_STEPS", 1)

    q = log_optimal(matrix, np.array([0.5, 0.5]), 1e-3)

    assert q.min() > 0  # whether it is enough, `moments` checks


def test_what_cannot_be_factorised_ends_the_search_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matrix = np.array([[1.0, 0.2], [0.5, 1.0]])
    believed = np.array([0.5, 0.5])
    monkeypatch.setattr("scipy.linalg.lapack.dposv", lambda *_, **__: (None, None, 1))

    q = log_optimal(matrix, believed, 1e-4)

    assert q.tolist() == pytest.approx((believed / matrix.mean(axis=0)).tolist())
