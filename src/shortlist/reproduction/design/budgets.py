"""Which budgets to try on a panel: those where the curves fall, as a pilot saw them."""

from collections.abc import Mapping, Sequence

import numpy as np

from shortlist.arrays import FloatArray

FIRST = 2  # pulls per arm at the first rung: below that, some methods cannot start
STEP = 1.4  # from rung to rung
RUNGS = 18  # at most: by then an arm has been pulled more than 600 times

Rates = Mapping[int, float]  # budget -> share of runs that failed


def ladder(n_arms: int) -> list[int]:
    """The rungs: budgets in geometric progression."""
    return [int(FIRST * n_arms * STEP**rung) for rung in range(RUNGS)]


def budgets(pilot: Mapping[str, Rates], count: int) -> tuple[int, ...]:
    """At most `count` budgets where the failure rates of the methods fall, to three digits.

    Between two rungs the steepest curve falls by max over methods of (rate before - rate after).
    Budgets stand at equal steps of the sum of these, from the last rung at which every run of every
    method fails to the first at which none does: so every curve has its points while it falls, and
    none is spent where nothing changes. The last budget is one rung further, as a pilot of few runs
    may miss a rare failure."""
    rungs = sorted({rung for rates in pilot.values() for rung in rates})
    curves = np.array([_falling(rates, rungs) for rates in pilot.values()])  # (methods, rungs)
    steepest = np.max(curves[:, :-1] - curves[:, 1:], axis=0)
    fallen = np.concatenate([[0.0], np.cumsum(steepest)])  # (rungs,)
    end = np.flatnonzero(fallen == fallen[-1])[0]
    start = min(np.flatnonzero(fallen == 0)[-1], end)
    steps = np.linspace(0, fallen[-1], count - 1)
    logs = np.interp(steps, fallen[start : end + 1], np.log(rungs[start : end + 1]))
    return tuple(sorted({_round(budget) for budget in (*np.exp(logs), STEP * rungs[end])}))


def _falling(rates: Rates, rungs: Sequence[int]) -> FloatArray:
    """The rate at every rung, never rising; beyond a method's last rung it stays as it was."""
    falling: FloatArray = np.fmin.accumulate([rates.get(rung, np.nan) for rung in rungs])
    return falling


def _round(budget: float) -> int:
    """To three significant digits."""
    unit = 10 ** max(0, len(str(int(budget))) - 3)
    return int(round(budget / unit) * unit)
