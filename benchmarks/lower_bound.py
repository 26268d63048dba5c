"""What a search pays on the hard instance of Section 4: `python benchmarks/lower_bound.py`.

About 12 seconds. Three tables: the budget uniform sampling needs as epsilon falls, the same as n
grows, and coins told by a search."""

import numpy as np
from rich.console import Console
from rich.table import Table

from shortlist.algorithms import find
from shortlist.theory import (
    Reduction,
    TosserTally,
    demonstrate,
    least_budget,
    least_pulls,
    measured_cost,
    tally,
)

ETA = 0.1
EPSILONS = np.geomspace(0.05, 0.002, 6)
SIZES = (250, 500, 1000, 2000)
SEARCHES = ("uniform", "adaptive-top-k", "adaptive-top-k-tight")
COINS = 4000


def main() -> None:
    console = Console()
    console.print(budgets_by_epsilon(), budgets_by_size(), coins_told())


def budgets_by_epsilon(n_arms: int = 1000) -> Table:
    growth = demonstrate(EPSILONS, n_arms, eta=ETA)
    table = _table(
        f"n = {n_arms}, eta = {ETA}",
        "epsilon",
        "tosses / n",
        "fitted",
        "H / n",
        "proved: tosses / n >=",
    )
    for each in growth.needed:
        table.add_row(
            f"{each.epsilon:.4f}",
            f"{each.tosses_per_arm:.1f}",
            f"{growth.intercept - growth.slope * np.log(each.epsilon):.1f}",
            f"{each.h / n_arms:.0f}",
            f"{least_pulls(n_arms, each.epsilon, ETA) / n_arms:.2f}",
        )
    table.caption = (
        f"tosses / n = {growth.intercept:.0f} + {growth.slope:.1f} ln(1/epsilon), R^2 ="
        f" {growth.r_squared:.4f}"
    )
    return table


def budgets_by_size(epsilon: float = 0.02) -> Table:
    table = _table(f"epsilon = {epsilon}, eta = {ETA}", "n", "tosses", "tosses / n")
    for n_arms in SIZES:
        budget = least_budget("uniform", n_arms, epsilon, eta=ETA, runs=100, seed=0)
        table.add_row(f"{n_arms}", f"{budget}", f"{budget / n_arms:.1f}")
    return table


def coins_told(n_arms: int = 80, epsilon: float = 0.2, eta: float = 0.2) -> Table:
    table = _table(
        f"{COINS} coins hidden among {n_arms}, epsilon = eta = {eta}",
        "search",
        "C",
        *TosserTally.__slots__,
    )
    for name in SEARCHES:
        cost = measured_cost(name, n_arms, epsilon, eta)
        seen = tally(Reduction(find(name), n_arms, epsilon, cost, eta), COINS, seed=0)
        table.add_row(
            name, f"{cost:.0f}", *(str(getattr(seen, field)) for field in TosserTally.__slots__)
        )
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right", overflow="fold")
    return table


if __name__ == "__main__":
    main()
