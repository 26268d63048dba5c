"""Failure curves with their bands, and the pulls a method needs until it rarely fails."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, isinf

import numpy as np
from scipy.special import logit

from shortlist.arrays import FloatArray, IntArray
from shortlist.reproduction.design.panels import Panel
from shortlist.reproduction.runs.rows import ResultRow

Z = 1.959964  # 95 % of a normal law
RARELY = 0.1  # the failure probability at which methods are compared


def wilson(failures: IntArray, runs: IntArray) -> tuple[FloatArray, FloatArray]:
    """The 95 % band of Wilson (1927) for the probability of a failure."""
    rate = failures / runs
    centre = rate + Z**2 / (2 * runs)
    half = Z * np.sqrt(rate * (1 - rate) / runs + (Z / (2 * runs)) ** 2)
    scale = 1 + Z**2 / runs
    return np.maximum(0, (centre - half) / scale), np.minimum(1, (centre + half) / scale)


@dataclass(frozen=True, slots=True)
class Need:
    """Pulls from which on at most 10 % of the runs fail, with a 95 % interval.

    Infinite if no budget was enough."""

    pulls: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there were runs enough to bound it, or to see that no budget is enough."""
        return isfinite(self.high) or isinf(self.low)

    def surely_less(self, other: "Need") -> bool:
        """Whether the intervals say so."""
        return self.high < other.low


@dataclass(frozen=True)
class Curve:
    """The failure probability of one method on one panel against the budget."""

    method: str
    budgets: IntArray
    failures: IntArray
    runs: IntArray

    @cached_property
    def rates(self) -> FloatArray:
        """The share of runs that failed."""
        rates: FloatArray = self.failures / self.runs
        return rates

    @cached_property
    def band(self) -> tuple[FloatArray, FloatArray]:
        """Its 95 % band."""
        return wilson(self.failures, self.runs)

    @cached_property
    def need(self) -> Need:
        """Where the curve falls to 10 %, and where the two ends of its band do."""
        least = min(0.5 / (float(self.runs.min()) + 1), RARELY / 2)  # half a failure
        return Need(*(crossing(self.budgets, rates, least) for rates in (self.rates, *self.band)))


def crossing(budgets: IntArray, rates: FloatArray, least: float, level: float = RARELY) -> float:
    """The budget from which on the rate is at most `level`.

    Between two budgets the log-odds of the rate are taken to be a line in the logarithm of the
    budget, as failure curves nearly are; rates within `least` of 0 or 1 are moved there, as their
    log-odds are unknown."""
    above = np.flatnonzero(rates > level)
    if above.size == 0:
        return float(budgets[0])
    last = int(above[-1])
    if last == budgets.size - 1:
        return inf
    before, after = logit(np.clip(rates[last : last + 2], least, 1 - least))
    share = (before - logit(level)) / (before - after)
    return float(budgets[last] * (budgets[last + 1] / budgets[last]) ** share)


Curves = Mapping[str, Mapping[str, Curve]]  # panel -> method -> curve


def curves(rows: Iterable[ResultRow], panels: Iterable[Panel]) -> Curves:
    """The curves of these panels."""
    of_panel = {panel.name: list[ResultRow]() for panel in panels}
    for row in rows:
        if row.part == "curve" and row.panel in of_panel:
            of_panel[row.panel].append(row)
    return {name: _of_panel(own) for name, own in of_panel.items()}


def _of_panel(rows: list[ResultRow]) -> dict[str, Curve]:
    found = {}
    for method in dict.fromkeys(row.method for row in rows):
        own = sorted((row for row in rows if row.method == method), key=lambda row: row.budget)
        found[method] = Curve(
            method,
            budgets=np.array([row.budget for row in own]),
            failures=np.array([row.failures for row in own]),
            runs=np.array([row.runs for row in own]),
        )
    return found
