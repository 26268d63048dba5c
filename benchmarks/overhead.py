"""Overhead of a search apart from its pulls on the paper's panels with 1000 arms: `python
benchmarks/overhead.py`.

`certified` to epsilon = delta = 0.01, `expected-loss` at the budgets of budget.py. The time it
takes to simulate the rewards is taken off; times are those of the processor. Every run is made
three times with the same seed: the fastest shows what the search costs, the first, in brackets,
also what else the machine did. As a yardstick, the same call times an empty Python function.

Then what the engine costs per pull of an instant function: `select` and `Experiment.run` in memory,
in microseconds of the processor, and `select` with 4 workers and a SQLite store, in microseconds on
the clock; the least of three runs. `--engine` prints only these."""

import statistics
import time
import timeit
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np
from budget import BUDGETS
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

from shortlist import Experiment, Result, select
from shortlist.algorithms import find
from shortlist.driver import counted, finish
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem
from shortlist.reproduction import PANELS, Panel
from shortlist.reward_models import Binary
from shortlist.search import Pulls, Rewards
from shortlist.simulation.worlds import BernoulliBandit

LIMIT = 1.0  # microseconds
REPEATS = 3  # of every run


def overhead(
    algorithm: str, panel: Panel, goal: Goal, rng: np.random.Generator
) -> tuple[int, float]:
    """The pulls of one run and the seconds it spent on anything but drawing them."""
    bandit, drawing = BernoulliBandit(rng.permutation(panel.means())), 0.0

    def pull(request: Pulls) -> Rewards:
        nonlocal drawing
        before = time.process_time()
        rewards = bandit.pull(request.arms, request.times, rng)
        drawing += time.process_time() - before
        return rewards

    started = time.process_time()
    outcome = finish(counted(find(algorithm), Problem(panel.n, panel.k, goal, Binary()), rng), pull)
    return int(outcome.pulls.sum()), time.process_time() - started - drawing


def typical(algorithm: str, panel: Panel, goal: Goal, runs: int) -> tuple[float, float, float]:
    """Mean pulls, and in microseconds per pull the median over runs of the overhead, at its least
    and at first."""
    measured = [
        [overhead(algorithm, panel, goal, np.random.default_rng(seed)) for _ in range(REPEATS)]
        for seed in range(runs)
    ]
    costs = [[seconds / pulls * 1e6 for pulls, seconds in each] for each in measured]
    pulls = statistics.mean(each[0][0] for each in measured)
    return pulls, statistics.median(map(min, costs)), statistics.median(each[0] for each in costs)


def empty_call() -> float:
    """Microseconds for an empty Python function."""
    return min(timeit.repeat("f()", "def f(): pass", number=100_000, repeat=5)) * 10


def instant(arm: int) -> float:
    """A reward that costs nothing to get."""
    return (arm * 7919 % 97) / 97


def in_memory() -> Result:
    """A selection that is kept nowhere."""
    return select(instant, arms=10, k=3, budget=20_000, progress=False)


def by_run() -> Result:
    """An experiment in memory."""
    return Experiment.create(10, 3, budget=20_000).run(instant, progress=False)


def in_a_file() -> Result:
    """A selection in a file, on four threads."""
    with TemporaryDirectory() as folder:
        store = Path(folder) / "store.db"
        return select(instant, arms=10, k=3, budget=4_000, progress=False, store=store, workers=4)


ENGINE: tuple[tuple[str, Callable[[], Result], Callable[[], float], int], ...] = (
    ("select in memory, processor", in_memory, time.process_time, 20),
    ("Experiment.run in memory, processor", by_run, time.process_time, 40),
    ("select in SQLite, 4 workers, clock", in_a_file, time.perf_counter, 400),
)


def per_pull(run: Callable[[], Result], clock: Callable[[], float]) -> float:
    """Microseconds per pull, the least of three runs."""
    costs = []
    for _ in range(REPEATS):
        begun = clock()
        result = run()
        costs.append((clock() - begun) / result.pulls * 1e6)
    return min(costs)


def engine() -> Table:
    """What the engine costs per pull of an instant function."""
    table = Table("engine", "µs per pull", "at most", box=SIMPLE_HEAD)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an instant function always gives the same
        for name, run, clock, limit in ENGINE:
            cost = per_pull(run, clock)
            colour = "green" if cost <= limit else "red"
            table.add_row(name, f"[{colour}]{cost:.1f}[/]", str(limit))
    return table


@click.command()
@click.option("--runs", default=20, show_default=True, help="Runs per panel.")
@click.option("--engine", "alone", is_flag=True, help="Print only what the engine costs.")
def main(runs: int, alone: bool) -> None:
    """Print pulls and overhead per panel, and the cost of the engine per pull."""
    Console().print(engine())
    if alone:
        return
    table = Table(box=SIMPLE_HEAD)
    table.add_column("panel", no_wrap=True)
    for name in ("certified, pulls", "µs a pull", "expected loss, pulls", "µs a pull"):
        table.add_column(name, justify="right")
    worst = worst_first = 0.0
    for name, panel in track(
        [each for each in PANELS.items() if each[1].n >= 1000], transient=True
    ):
        row = [name]
        for algorithm, goal in (
            ("certified", FixedConfidence(0.01, 0.01)),
            ("expected-loss", FixedBudget(BUDGETS[name])),
        ):
            pulls, cost, first = typical(algorithm, panel, goal, runs)
            worst, worst_first = max(worst, cost), max(worst_first, first)
            row += [
                f"{pulls:,.0f}",
                f"[{'green' if cost < LIMIT else 'red'}]{cost:.2f}[/] ({first:.2f})",
            ]
        table.add_row(*row)
    found = f"at most {worst:.2f} µs ({worst_first:.2f} at first; limit {LIMIT:g})"
    Console().print(table, f"{found}; an empty Python call: {empty_call():.3f} µs")


if __name__ == "__main__":
    main()
