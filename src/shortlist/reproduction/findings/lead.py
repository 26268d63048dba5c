"""Is one method nowhere worse than the others? At every budget where it matters, and where not."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from shortlist.reproduction.findings.curves import Curve, Curves

MATTERS = (0.05, 0.95)  # a budget matters where the failure rate of any method is in between


@dataclass(frozen=True, slots=True)
class Behind:
    """A budget at which another method fails less often than the 95 % band of this one allows."""

    panel: str
    budget: int
    rate: float
    low: float
    rival: str
    rival_rate: float


def behind(curves: Curves, method: str) -> tuple[int, list[Behind]]:
    """How many budgets matter, and at which of them `method` is neither lowest nor tied."""
    found = [_on_panel(panel, own, method) for panel, own in curves.items()]
    return sum(count for count, _ in found), [each for _, worse in found for each in worse]


def _on_panel(panel: str, curves: Mapping[str, Curve], method: str) -> tuple[int, list[Behind]]:
    ours = curves[method]
    rates = np.array([curve.rates for curve in curves.values()])  # (methods, budgets)
    matters = ((rates >= MATTERS[0]) & (rates <= MATTERS[1])).any(axis=0)
    worse = []
    for position in np.flatnonzero(matters & (ours.band[0] > rates.min(axis=0))):
        rival = min(curves.values(), key=lambda curve: float(curve.rates[position]))
        worse.append(
            Behind(
                panel,
                budget=int(ours.budgets[position]),
                rate=float(ours.rates[position]),
                low=float(ours.band[0][position]),
                rival=rival.method,
                rival_rate=float(rival.rates[position]),
            )
        )
    return int(matters.sum()), worse
