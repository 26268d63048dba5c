"""Bands are Wilson's, and a need is where a curve falls to 10 % for good."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from shortlist.reproduction.design import Panel
from shortlist.reproduction.findings import Curve, Need, crossing, curves, wilson
from shortlist.reproduction.runs import row_of

BUDGETS = np.array([1000, 2000, 4000, 8000])


@given(st.integers(1, 300), st.data())
def test_the_band_is_that_of_scipy(runs: int, data: st.DataObject) -> None:
    failures = data.draw(st.integers(0, runs))
    low, high = wilson(np.array([failures]), np.array([runs]))
    expected = binomtest(failures, runs).proportion_ci(method="wilson")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_a_crossing_is_exact_on_a_curve_of_logistic_shape() -> None:
    rates = 1 / (1 + 9 * (BUDGETS / 2900) ** 4)
    assert crossing(BUDGETS, rates, 1e-9) == pytest.approx(2900)
    assert crossing(BUDGETS, np.array([1.0, 0.3, 0.1, 0.0]), 0.01) == pytest.approx(4000)


def test_a_crossing_to_no_failure_counts_half_a_failure() -> None:
    assert crossing(BUDGETS, np.array([1.0, 0.9, 0.0, 0.0]), 0.01) == crossing(
        BUDGETS, np.array([1, 0.9, 0.01, 0]), 0.01
    )


def test_a_curve_that_rises_again_has_crossed_only_where_it_stays_low() -> None:
    assert crossing(BUDGETS, np.array([0.0, 0.9, 0.1, 0.0]), 0.01) == pytest.approx(4000)


def test_a_curve_that_never_falls_needs_any_budget_and_a_low_one_the_first() -> None:
    assert crossing(BUDGETS, np.array([1.0, 1.0, 0.9, 0.2]), 0.01) == inf
    assert crossing(BUDGETS, np.array([0.1, 0.0, 0.0, 0.0]), 0.01) == 1000


@given(st.integers(1, 60), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_a_need_lies_in_its_interval(runs: int, rates: list[float]) -> None:
    failures = np.round(np.array(rates) * runs).astype(np.int64)
    need = Curve("sar", BUDGETS, failures, np.full(4, runs)).need
    assert 1000 <= need.low <= need.pulls <= need.high


def test_needs_differ_only_if_their_intervals_do() -> None:
    assert Need(10, 9, 11).surely_less(Need(13, 12, 15))
    assert not Need(10, 9, 12).surely_less(Need(13, 12, 15))


def test_a_need_is_known_unless_too_few_runs_leave_its_upper_end_open() -> None:
    assert Need(10, 9, 11).known
    assert Need(inf, inf, inf).known  # no budget was enough, and that is sure
    assert not Need(10, 9, inf).known


def test_curves_gather_rows_by_panel_and_method_in_order_of_budget() -> None:
    panel = Panel("uniform", 20, 5)
    rows = [
        row_of("curve", panel, "sar", budget, [budget] * 2, [1.0, 0.0]) for budget in (300, 100)
    ]
    other = row_of("pilot", panel, "sar", 50, [50], [0.0])
    curve = curves([*rows, other], [panel])["uniform-5"]["sar"]
    assert curve.budgets.tolist() == [100, 300]
    assert curve.rates.tolist() == [0.5, 0.5]
