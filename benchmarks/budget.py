"""How often each method fails for a number of pulls: `python benchmarks/budget.py --workers 2`.

On the paper's 15 panels, 200 runs each, every method with the same budget; a run fails if it loses
more than 0.01. About five minutes on two cores."""

from itertools import product

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

from shortlist.reproduction import PANELS, Panel
from shortlist.simulation.simulate import simulate

METHODS = ("expected-loss", "uniform", "adaptive-top-k", "opt-mai", "clucb-pac", "sar")
BUDGETS = {
    "two-group-100": 18_500,
    "two-group-250": 17_000,
    "two-group-500": 16_000,
    "synthetic-0.5-100": 6_500,
    "synthetic-0.5-250": 8_500,
    "synthetic-0.5-500": 7_500,
    "uniform-100": 14_500,
    "uniform-250": 19_000,
    "uniform-500": 15_500,
    "synthetic-6-100": 29_000,
    "synthetic-6-250": 36_000,
    "synthetic-6-500": 20_500,
    "rte-30": 6_500,
    "rte-50": 5_900,
    "rte-80": 7_300,
}


@click.command()
@click.option("--runs", default=200, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--workers", default=2, show_default=True)
def main(runs: int, seed: int, workers: int) -> None:
    table = Table(
        box=SIMPLE_HEAD, title=f"Share of {runs} runs with a regret above 0.01, seed {seed}"
    )
    table.add_column("panel", no_wrap=True)
    for column in ("pulls", *METHODS):
        table.add_column(column, justify="right")
    work = list(product(PANELS.values(), METHODS))
    rates: dict[str, list[float]] = {panel.name: [] for panel in PANELS.values()}
    for panel, method in track(work, console=Console(stderr=True), transient=True):
        rates[panel.name].append(failure_rate(panel, method, runs, seed, workers))
    for panel in PANELS.values():
        table.add_row(panel.name, f"{BUDGETS[panel.name]:,}", *marked(rates[panel.name]))
    Console(width=110).print(table)


def failure_rate(panel: Panel, method: str, runs: int, seed: int, workers: int) -> float:
    outcome = simulate(
        method,
        panel.means(),
        k=panel.k,
        budget=BUDGETS[panel.name],
        epsilon=panel.epsilon,
        runs=runs,
        seed=seed,
        workers=workers,
    )
    return float(outcome.failed.mean())


def marked(rates: list[float]) -> list[str]:
    """The rates of a row, the lowest in bold."""
    return [f"[bold]{rate:.3f}[/bold]" if rate == min(rates) else f"{rate:.3f}" for rate in rates]


if __name__ == "__main__":
    main()
