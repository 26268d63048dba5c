"""Pulls of `certified` for many arms under constraints: `python benchmarks/constraints.py`.

A few minutes. 0/1 rewards, delta = .01, new means in every run, arms shuffled. Quotas: 1000 arms in
20 groups of 50, K = 100, epsilon = .01; means are 0, .001 ... .999 in any order (uniform), or lie
within .2 of the level of their group, .2 to .8 (levels). Matchings: means uniform on [0, 1],
epsilon = .02. With --peer also CLUCB-PAC with the same families, which takes millions of pulls."""

import time
from collections.abc import Callable

import click
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from shortlist.arrays import FloatArray
from shortlist.constraints import Constraint, Matching, Quotas
from shortlist.simulation.simulate import simulate

Instance = tuple[Constraint, FloatArray, int, float]  # family, means, k, epsilon
GROUPS = np.repeat(np.arange(20), 50)


def uniform(rng: np.random.Generator) -> FloatArray:
    return rng.permutation(np.arange(1000) / 1000)


def levels(rng: np.random.Generator) -> FloatArray:
    return np.clip(0.2 + 0.6 * GROUPS / 19 + rng.uniform(-0.2, 0.2, 1000), 0, 1)


def quotas(
    means: Callable[[np.random.Generator], FloatArray], low: int, high: int
) -> Callable[[np.random.Generator], Instance]:
    family = Quotas(GROUPS.tolist(), dict.fromkeys(range(20), (low, high)), k=100)
    return lambda rng: (family, means(rng), 100, 0.01)


def matching(size: int) -> Callable[[np.random.Generator], Instance]:
    rows, columns = np.divmod(np.arange(size**2), size)
    family = Matching(rows.tolist(), columns.tolist())
    return lambda rng: (family, rng.uniform(0, 1, size**2), size, 0.02)


INSTANCES = {
    "uniform, 5 of each group": quotas(uniform, 5, 5),
    "uniform, 3 to 7 of each": quotas(uniform, 3, 7),
    "levels, 5 of each group": quotas(levels, 5, 5),
    "levels, 2 to 10 of each": quotas(levels, 2, 10),
    "matching 20 x 20": matching(20),
    "matching 30 x 30": matching(30),
}


@click.command()
@click.option("--runs", default=10, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--peer", is_flag=True, help="Also run CLUCB-PAC.")
@click.option("--only", type=click.Choice(list(INSTANCES)), multiple=True, help="[all]")
def main(runs: int, seed: int, peer: bool, only: tuple[str, ...]) -> None:
    table = Table(box=SIMPLE_HEAD, title=f"delta = .01, {runs} runs, seed {seed}")
    for column in ("instance", "algorithm", "mean pulls", "s.e.", "failures", "s per run"):
        table.add_column(column, no_wrap=True, justify="left" if column == "instance" else "right")
    for name in only or INSTANCES:
        for algorithm in ("certified", "clucb-pac") if peer else ("certified",):
            table.add_row(name, algorithm, *measured(name, algorithm, runs, seed))
    Console(width=100).print(table)


def measured(name: str, algorithm: str, runs: int, seed: int) -> list[str]:
    pulls, failures = [], 0
    begun = time.perf_counter()
    for number in range(runs):
        family, means, k, epsilon = INSTANCES[name](np.random.default_rng([seed, number]))
        own = np.random.SeedSequence([seed, number]).generate_state(1)[0]
        found = simulate(
            algorithm,
            means,
            k=k,
            epsilon=epsilon,
            delta=0.01,
            constraint=family,
            runs=1,
            seed=int(own),
        )
        pulls.append(float(found.pulls[0]))
        failures += int(found.failed[0])
    seconds = (time.perf_counter() - begun) / runs
    error = np.std(pulls, ddof=1) / np.sqrt(runs) if runs > 1 else np.nan
    return [f"{np.mean(pulls):,.0f}", f"{error:,.0f}", f"{failures} of {runs}", f"{seconds:.1f}"]


if __name__ == "__main__":
    main()
