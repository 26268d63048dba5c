"""Which budgets to try on a panel: those where the curves fall, found by a pilot."""

from collections.abc import Iterable, Sequence

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.reproduction.anytime import ANYTIME
from shortlist.reproduction.measure import measure
from shortlist.reproduction.methods import ON_BUDGET
from shortlist.reproduction.panels import Panel
from shortlist.reproduction.rows import Row

FIRST = 2  # pulls per arm at the first rung: below that, some methods cannot start
STEP = 1.4  # from rung to rung
RUNGS = 18  # at most: by then an arm has been pulled more than 600 times


def pilot(panel: Panel, runs: int, seed: int) -> list[Row]:
    """Every method at rising budgets, until none of its runs fails.

    Anytime methods come last and go as far as the others did, in one run each."""
    rows = [
        row
        for method in ON_BUDGET
        if method not in ANYTIME
        for row in _climb(panel, method, runs, seed)
    ]
    top = max(row.budget for row in rows)
    rungs = [budget for budget in ladder(panel.n) if budget <= top]
    for method in ON_BUDGET:
        if method in ANYTIME:
            rows += measure("pilot", panel, method, rungs, runs, seed)
    return rows


def ladder(n_arms: int) -> list[int]:
    """The rungs: budgets in geometric progression."""
    return [int(FIRST * n_arms * STEP**rung) for rung in range(RUNGS)]


def _climb(panel: Panel, method: str, runs: int, seed: int) -> Iterable[Row]:
    for budget in ladder(panel.n):
        (row,) = measure("pilot", panel, method, [budget], runs, seed)
        yield row
        if row.failures == 0:
            return


def budgets(rows: Sequence[Row], count: int) -> tuple[int, ...]:
    """At most `count` budgets where the pilot's curves fall, rounded to three digits.

    Between two rungs the steepest curve falls by max over methods of (rate before - rate after).
    Budgets stand at equal steps of the sum of these, from the last rung at which every run of every
    method fails to the first at which none does: so every curve has its points while it falls, and
    none is spent where nothing changes. The last budget is one rung further, as a pilot of few runs
    may miss a rare failure."""
    rungs = sorted({row.budget for row in rows})
    rates = np.array([_falling(rows, method, rungs) for method in ON_BUDGET])  # (methods, rungs)
    fallen = np.concatenate([[0.0], np.cumsum(np.max(rates[:, :-1] - rates[:, 1:], axis=0))])
    end = np.flatnonzero(fallen == fallen[-1])[0]
    start = min(np.flatnonzero(fallen == 0)[-1], end)
    levels = np.linspace(0, fallen[-1], count - 1)
    logs = np.interp(levels, fallen[start : end + 1], np.log(rungs[start : end + 1]))
    return tuple(sorted({_round(budget) for budget in (*np.exp(logs), STEP * rungs[end])}))


def _falling(rows: Sequence[Row], method: str, rungs: Sequence[int]) -> FloatArray:
    """The failure rate of a method at every rung, never rising; beyond its last rung it stays as it
    was."""
    rates = {row.budget: row.failures / row.runs for row in rows if row.method == method}
    falling: FloatArray = np.fmin.accumulate([rates.get(rung, np.nan) for rung in rungs])
    return falling


def _round(budget: float) -> int:
    """To three significant digits."""
    unit = 10 ** max(0, len(str(int(budget))) - 3)
    return int(round(budget / unit) * unit)
