"""The instances as the paper defines them, arm by arm."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.arrays import FloatArray
from shortlist.errors import InvalidInput
from shortlist.instances import lower_bound, rte, synthetic, two_group, uniform
from shortlist.theory import hardness


def test_two_groups() -> None:
    np.testing.assert_array_equal(two_group(5, 2), [0.7, 0.7, 0.3, 0.3, 0.3])


def test_uniform_arm_by_arm() -> None:
    np.testing.assert_allclose(uniform(1000), [1 - i / 1000 for i in range(1, 1001)])


@pytest.mark.parametrize("p", [0.5, 1, 6])
def test_synthetic_arm_by_arm(p: float) -> None:
    n, k = 40, 10
    above = [(1 - k / n) + k / n * (1 - i / k) ** p for i in range(1, k + 1)]
    below = [(1 - k / n) - (n - k) / n * ((i - k) / (n - k)) ** p for i in range(k + 1, n + 1)]
    np.testing.assert_allclose(synthetic(p, n, k), above + below, atol=1e-15)


@given(st.integers(2, 300), st.data())
def test_synthetic_1_is_uniform(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n - 1))
    np.testing.assert_allclose(synthetic(1, n, k), uniform(n), atol=1e-12)


@given(st.floats(0.1, 20), st.integers(2, 300), st.data())
def test_synthetic_spans_0_to_1_best_first_with_its_boundary_at_arm_k(
    p: float, n: int, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, n - 1))
    means = synthetic(p, n, k)
    assert means[-1] == 0
    assert means[0] < 1
    assert np.all(np.diff(means) <= 0)
    assert means[k - 1] == pytest.approx(1 - k / n)


def test_rte_is_164_workers_best_first() -> None:
    means = rte()
    assert means.shape == (164,)
    assert np.all(np.diff(means) <= 0)
    assert 0 < means[-1] < 0.5 < means[0] <= 1


@pytest.mark.parametrize(("surplus", "good"), [(-1, 4), (0, 5), (1, 6)])
def test_lower_bound_has_half_good_coins_but_for_the_embedded_one(surplus: int, good: int) -> None:
    means = lower_bound(10, 0.1, surplus)
    assert int((means == 0.6).sum()) == good
    assert int((means == 0.4).sum()) == 10 - good


def test_lower_bound_hardness_ignores_epsilon_only_where_the_boundary_is_no_tie() -> None:
    n, eta = 200, 0.1
    for epsilon in (0.1, 0.01, 0.001):
        assert hardness(lower_bound(n, eta), n // 2, epsilon).h == pytest.approx(n / (4 * eta**2))
        for surplus in (-1, 1):  # the paper claims the same of these
            assert hardness(lower_bound(n, eta, surplus), n // 2, epsilon).h > n / (2 * epsilon**2)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: two_group(5, 5), "`k` is 5, but must be between 1 and n_arms - 1 = 4"),
        (lambda: two_group(5, 0), "`k` is 0"),
        (lambda: synthetic(2, 5, 6), "`k` is 6"),
        (lambda: synthetic(0, 5, 2), "`p` is 0, but must be a finite number greater than 0"),
        (lambda: synthetic(float("nan"), 5, 2), "`p` is nan"),
        (lambda: uniform(1), "`n` is 1"),
        (lambda: lower_bound(7), "`n` is 7, but must be even"),
        (
            lambda: lower_bound(8, 0.5),
            "`eta` is 0.5, but must be a number greater than 0 and less than 0.5",
        ),
        (lambda: lower_bound(8, 0.1, 2), "`surplus` is 2, but must be -1, 0 or 1"),
    ],
)
def test_bad_input_is_refused_by_name(build: Callable[[], FloatArray], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        build()
