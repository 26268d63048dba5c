"""Slopes are exponents, and a theorem holds if pulls grow no faster than it says."""

from collections.abc import Callable

import pytest

from shortlist.reproduction import findings as theorems
from shortlist.reproduction.design import SWEPT, Panel, sweep_over_epsilon, sweep_over_n
from shortlist.reproduction.findings import judge_theorems
from shortlist.reproduction.runs import ResultRow, row_of

OVER_N = sweep_over_n(2)
OVER_EPSILON = sweep_over_epsilon(4)


def rows(pulls: Callable[[str, Panel], float]) -> list[ResultRow]:
    panels = {*OVER_N, *OVER_EPSILON}
    return [
        row_of("sweep", panel, method.name, 0, [int(pulls(method.name, panel))], [0.0])
        for panel in panels
        for method in SWEPT
    ]


def promised(method: str, panel: Panel) -> float:
    return 100 * theorems.PROMISES[method](panel) if method in theorems.PROMISES else 1.0


def test_the_slope_of_a_power_law_is_its_exponent() -> None:
    x = [1.0, 2.0, 8.0, 50.0]
    assert theorems.slope(x, [3 * value**0.7 for value in x]) == pytest.approx(0.7)


def test_pulls_in_proportion_to_what_is_promised_keep_every_promise() -> None:
    verdicts = [verdict for _, _, verdict in judge_theorems(rows(promised), OVER_N, OVER_EPSILON)]
    assert verdicts == ["holds"] * 5


def test_pulls_that_grow_faster_over_epsilon_keep_it_only_in_part() -> None:
    worse = rows(lambda method, panel: promised(method, panel) / panel.epsilon)
    verdicts = [verdict for _, _, verdict in judge_theorems(worse, OVER_N, OVER_EPSILON)]
    assert verdicts[:3] == ["holds in part"] * 3


def test_pulls_that_grow_faster_over_both_do_not_keep_it() -> None:
    worse = rows(lambda method, panel: promised(method, panel) ** 1.3)
    verdicts = [verdict for _, _, verdict in judge_theorems(worse, OVER_N, OVER_EPSILON)]
    assert verdicts[:3] == ["does not hold"] * 3


def test_nothing_is_judged_where_nothing_was_swept() -> None:
    assert judge_theorems([], (), ()) == []
