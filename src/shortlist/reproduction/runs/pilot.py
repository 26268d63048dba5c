"""A pilot of few runs, to find the budgets where the curves of a panel fall."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from shortlist.reproduction.design.budgets import Rates, ladder
from shortlist.reproduction.design.methods import ON_BUDGET, Method
from shortlist.reproduction.design.panels import Panel
from shortlist.reproduction.runs.measure import measure
from shortlist.reproduction.runs.rows import ResultRow


def pilot(panel: Panel, runs: int, seed: int) -> list[ResultRow]:
    """Every method at rising budgets, until none of its runs fails.

    Anytime methods come last and go as far as the others did, in one run each."""
    told = [method for method in ON_BUDGET if not method.anytime]
    rows = [row for method in told for row in _climb(panel, method, runs, seed)]
    highest = max(row.budget for row in rows)
    rungs = [budget for budget in ladder(panel.n) if budget <= highest]
    for method in ON_BUDGET:
        if method.anytime:
            rows += measure("pilot", panel, method, rungs, runs, seed)
    return rows


def _climb(panel: Panel, method: Method, runs: int, seed: int) -> Iterator[ResultRow]:
    for budget in ladder(panel.n):
        (row,) = measure("pilot", panel, method, [budget], runs, seed)
        yield row
        if row.failures == 0:
            return


def failure_rates(rows: Iterable[ResultRow], panel: Panel) -> dict[str, Rates]:
    """What the pilot of a panel found: of every method, the rate at every rung it tried."""
    rates: dict[str, dict[int, float]] = defaultdict(dict)
    for row in rows:
        if row.part == "pilot" and row.panel == panel.name:
            rates[row.method][row.budget] = row.failures / row.runs
    return dict(rates)
