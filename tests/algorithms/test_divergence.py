"""Divergences, the ends of intervals and the evidence against a swap, against slow references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import bernoulli, entropy

from shortlist.algorithms.likelihood_ratio import (
    BERNOULLI,
    GAUSSIAN,
    Divergence,
    bernoulli_ends,
    divergence_of,
    swap_evidence,
)
from shortlist.reward_models import Binary, Bounded, SubGaussian

MEANS = st.sampled_from([0.0, 1e-6, 0.02, 0.3, 0.5, 0.77, 0.999, 1.0])
PULLS = st.sampled_from([1, 7, 400, 10**6])


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.7), (0.0, 0.4), (1.0, 0.4), (0.3, 0.3)])
def test_the_divergence_of_0_and_1_is_the_relative_entropy(p: float, q: float) -> None:
    reference = entropy(bernoulli(p).pmf([0, 1]), bernoulli(q).pmf([0, 1]))
    assert BERNOULLI.between(np.array(p), np.array(q)) == pytest.approx(reference, abs=1e-15)


@pytest.mark.parametrize("divergence", [BERNOULLI, GAUSSIAN])
def test_the_slope_is_the_derivative_in_the_second_mean(divergence: Divergence) -> None:
    p, q, step = np.array([0.2, 0.6]), np.array([0.5, 0.1]), 1e-6
    rise = divergence.between(p, q + step) - divergence.between(p, q - step)
    assert divergence.slope(p, q) == pytest.approx(rise / (2 * step), rel=1e-6)


def test_rewards_with_a_range_have_the_divergence_of_0_and_1() -> None:
    assert divergence_of(Binary()) is divergence_of(Bounded()) is BERNOULLI
    assert divergence_of(SubGaussian(0.5)) is GAUSSIAN


@given(MEANS, PULLS, st.floats(0.1, 40))
def test_an_end_is_where_the_log_term_is_used_up_and_never_nearer(
    mean: float, pulls: int, log_term: float
) -> None:
    lower, upper = bernoulli_ends(np.array([mean]), np.array([pulls]), log_term)
    assert 0 <= lower[0] <= mean <= upper[0] <= 1
    for end, limit in ((lower, 0.0), (upper, 1.0)):
        used = pulls * BERNOULLI.between(np.array([mean]), end)[0]
        inner = end + 1e-6 * (mean - end)
        assert pulls * BERNOULLI.between(np.array([mean]), inner)[0] <= log_term
        assert used >= log_term * (1 - 1e-6) or end[0] == limit


def slow_evidence(
    divergence: Divergence, own: float, rival: float, n_own: int, n_rival: int, epsilon: float
) -> float:
    """By a minimiser that knows nothing of slopes, over the same range as a mean may have."""

    def cost(x: float) -> float:
        near = divergence.between(np.array(own), np.array(x))
        far = divergence.between(np.array(rival), np.array(min(x + epsilon, divergence.high)))
        return float(n_own * near + n_rival * far)

    low, high = max(rival - epsilon, divergence.low), min(own, divergence.high - epsilon)
    if high - low < 1e-12:
        return cost(low)
    found = minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    return min(float(found.fun), cost(low), cost(high))


@given(MEANS, MEANS, PULLS, PULLS, st.sampled_from([0.001, 0.1, 0.6]), st.booleans())
def test_the_evidence_is_the_least_cost_of_means_that_say_otherwise(
    one: float, other: float, n_own: int, n_rival: int, epsilon: float, binary: bool
) -> None:
    divergence = BERNOULLI if binary else GAUSSIAN
    own, rival = max(one, other), min(one, other)
    evidence = swap_evidence(
        divergence, np.array([own, rival]), np.array([n_own, n_rival]), 0, np.array([1]), epsilon
    )
    slow = slow_evidence(divergence, own, rival, n_own, n_rival, epsilon)
    assert evidence[0] == pytest.approx(slow, rel=1e-5, abs=1e-9)


def test_normal_evidence_is_the_squared_distance_over_its_variance() -> None:
    means, pulls = np.array([0.9, 0.2, 0.5]), np.array([30, 10, 60])
    evidence = swap_evidence(GAUSSIAN, means, pulls, 0, np.array([1, 2]), 0.1)
    assert evidence == pytest.approx([2 * 0.8**2 * 300 / 40, 2 * 0.5**2 * 1800 / 90])


def test_an_epsilon_of_everything_is_refuted_by_any_pulls() -> None:
    for means in ([0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.5, 0.5]):
        ones = np.ones(2, dtype=np.int64)
        assert swap_evidence(BERNOULLI, np.array(means), ones, 0, np.array([1]), 1.0)[0] == np.inf
