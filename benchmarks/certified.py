"""What `certified` pays on the paper's 15 panels: `python benchmarks/certified.py --workers 2`.

A few minutes. The yardstick is the simplest form of the split certificate, with both streams drawn
in parallel and the plain offset, in 20 runs of its own. Rounds are the mean and the largest."""

import click
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

from shortlist.reproduction import PANELS, Panel
from shortlist.simulation.simulate import Runs, simulate

SIMPLEST = {  # mean pulls
    "two-group-100": 1.44e5,
    "two-group-250": 9.2e4,
    "two-group-500": 6.6e4,
    "synthetic-0.5-100": 5.0e4,
    "synthetic-0.5-250": 4.4e4,
    "synthetic-0.5-500": 3.6e4,
    "uniform-100": 1.28e5,
    "uniform-250": 1.15e5,
    "uniform-500": 8.9e4,
    "synthetic-6-100": 3.3e6,
    "synthetic-6-250": 2.6e6,
    "synthetic-6-500": 1.5e6,
    "rte-30": 7.7e4,
    "rte-50": 1.19e5,
    "rte-80": 5.9e4,
}


@click.command()
@click.option("--runs", default=20, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--workers", default=2, show_default=True)
@click.option("--certificate", default="auto", show_default=True, help="auto, plans or split")
@click.option("--panel", "names", type=click.Choice(list(PANELS)), multiple=True, help="[all]")
def main(runs: int, seed: int, workers: int, certificate: str, names: tuple[str, ...]) -> None:
    table = Table(
        box=SIMPLE_HEAD, title=f"certified, epsilon = delta = 0.01, {runs} runs, seed {seed}"
    )
    table.add_column("panel", no_wrap=True)
    for column in ("mean pulls", "ratio", "failures", "mean regret", "rounds", "ms per run"):
        table.add_column(column, justify="right")
    ratios = []
    panels = [PANELS[name] for name in names or PANELS]
    for panel in track(panels, console=Console(stderr=True), transient=True):
        outcome = measure(panel, runs, seed, workers, certificate)
        ratios.append(outcome.pulls.mean() / SIMPLEST[panel.name])
        milliseconds = 1e3 * outcome.seconds * min(workers, runs) / runs
        table.add_row(*row(panel, outcome, ratios[-1]), f"{milliseconds:.0f}")
    table.caption = f"geometric mean of the ratios: {np.exp(np.log(ratios).mean()):.3f}"
    Console(width=100).print(table)


def measure(panel: Panel, runs: int, seed: int, workers: int, certificate: str) -> Runs:
    return simulate(
        "certified",
        panel.means(),
        k=panel.k,
        epsilon=panel.epsilon,
        delta=panel.delta,
        runs=runs,
        seed=seed,
        workers=workers,
        options={"certificate": certificate},
    )


def row(panel: Panel, outcome: Runs, ratio: float) -> tuple[str, ...]:
    return (
        panel.name,
        f"{outcome.pulls.mean():,.0f}",
        f"{ratio:.2f}",
        str(outcome.failed.sum()),
        f"{outcome.regret.mean():.5f}",
        f"{outcome.rounds.mean():.1f} ({outcome.rounds.max()})",
    )


if __name__ == "__main__":
    main()
