"""Budgets stand where the pilot's curves fall."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.reproduction.design import ON_BUDGET, STEP, Panel, Rates, budgets, ladder
from shortlist.reproduction.runs import failure_rates, pilot, row_of

PANEL = Panel("uniform", 100, 20)
RUNGS = ladder(100)[:12]
NAMES = [method.name for method in ON_BUDGET]


def rates(failures: Mapping[str, Sequence[int]]) -> dict[str, Rates]:
    """What a pilot of 10 runs found: failures of every method from the first rung on."""
    return {
        method: {budget: failed / 10 for budget, failed in zip(RUNGS, counts, strict=False)}
        for method, counts in failures.items()
    }


def falls_at(rung: int) -> list[int]:
    """Fails always before this rung, every second time at it, never after."""
    return [10] * rung + [5, 0]


def test_budgets_go_from_the_last_rung_where_all_fail_to_one_beyond_where_none_does() -> None:
    grid = budgets(
        rates({method: falls_at(4 + place % 3) for place, method in enumerate(NAMES)}), 12
    )
    assert grid[0] == pytest.approx(RUNGS[3], rel=0.01)
    assert grid[-2] == pytest.approx(RUNGS[7], rel=0.01)
    assert grid[-1] == pytest.approx(STEP * RUNGS[7], rel=0.01)


def test_a_curve_that_falls_alone_has_its_share_of_budgets() -> None:
    places = dict.fromkeys(NAMES, falls_at(4)) | {"opt-mai": falls_at(9)}
    grid = budgets(rates(places), 12)
    assert sum(RUNGS[3] <= budget <= RUNGS[5] for budget in grid) >= 4
    assert sum(RUNGS[8] <= budget <= RUNGS[10] for budget in grid) >= 4


def test_no_budget_is_spent_where_nothing_changes() -> None:
    places = dict.fromkeys(NAMES, falls_at(2)) | {"opt-mai": falls_at(9)}
    grid = budgets(rates(places), 12)
    assert sum(1.01 * RUNGS[4] < budget < 0.99 * RUNGS[8] for budget in grid) == 0


counts = st.lists(st.integers(0, 10), min_size=1, max_size=12)


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, counts)), st.integers(2, 15))
def test_budgets_rise_from_the_first_rung_to_one_beyond_the_last_whatever_the_pilot_found(
    failures: dict[str, list[int]], count: int
) -> None:
    grid = budgets(rates(failures), count)
    reached = RUNGS[max(map(len, failures.values())) - 1]
    assert 1 <= len(grid) <= count
    assert list(grid) == sorted(set(grid))
    assert RUNGS[0] * 0.99 <= grid[0]
    assert grid[-1] <= STEP * reached * 1.01


def test_a_pilot_climbs_until_no_run_fails_and_anytime_methods_go_as_far() -> None:
    rows = pilot(Panel("uniform", 30, 10, 0.1), runs=4, seed=0)
    highest = max(row.budget for row in rows)
    for method in ON_BUDGET:
        own = [row for row in rows if row.method == method.name]
        assert [row.budget for row in own] == ladder(30)[: len(own)]
        if method.anytime:
            assert own[-1].budget == highest
        else:
            assert [row.failures == 0 for row in own] == [False] * (len(own) - 1) + [True]


def test_rates_are_read_from_the_pilot_of_that_panel_alone() -> None:
    pilots = [
        row_of("pilot", PANEL, "sar", 200, [200] * 4, [1.0, 0.0, 0.0, 0.0]),
        row_of("pilot", Panel("uniform", 100, 30), "sar", 200, [200], [1.0]),
        row_of("curve", PANEL, "sar", 300, [300], [1.0]),
    ]
    assert failure_rates(pilots, PANEL) == {"sar": {200: 0.25}}
