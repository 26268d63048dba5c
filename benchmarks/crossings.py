"""Pulls of the pairs certificate as a multiple of those of the split certificate, by n and K.

python benchmarks/crossings.py --runs 6 --seed 12 --workers 2

A few minutes. In every run fresh means are drawn from a family and both certificates choose from
them; rewards are 0/1. A ratio is the geometric mean over the runs; below 1 the pairs certificate is
better. The last column names the certificate that `certified` uses by default."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import click
import numpy as np

from shortlist.algorithms.certified import suitable
from shortlist.arrays import FloatArray
from shortlist.problem import FixedConfidence, Problem
from shortlist.simulation.parallel import parallel_map
from shortlist.simulation.simulate import simulate

DELTA = 0.05
ARMS = (10, 20, 30, 40, 60, 100)


@dataclass(frozen=True)
class Family:
    """A distribution of means, and an epsilon at which runs are short."""

    name: str
    epsilon: float
    draw: Callable[[np.random.Generator, int], FloatArray]


def even(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.uniform(0.1, 0.9, n)


def low(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.beta(2, 18, n)


FAMILIES = (Family("uniform on [.1, .9]", 0.05, even), Family("Beta(2, 18)", 0.025, low))


@dataclass(frozen=True)
class Cell:
    """One entry of the table."""

    family: Family
    n: int
    k: int

    @property
    def number(self) -> int:
        """What tells its random numbers from those of other cells."""
        return zlib.crc32(f"{self.family.name} {self.n} {self.k}".encode())


def sizes() -> Iterator[tuple[int, int]]:
    for n in ARMS:
        for k in sorted({1, 2, n // 5, n // 2}):
            yield n, k


def log_ratio(task: tuple[Cell, int, int]) -> float:
    """ln(pulls of the pairs / pulls of the split certificate) on the same fresh means."""
    cell, seed, index = task
    rng = np.random.default_rng([seed, cell.number, index])
    means = cell.family.draw(rng, cell.n)
    run = partial(
        simulate,
        "certified",
        means,
        k=cell.k,
        epsilon=cell.family.epsilon,
        delta=DELTA,
        seed=int(rng.integers(2**62)),
    )
    pairs = run(options={"certificate": "pairs"})
    split = run(options={"certificate": "split"})
    return float(np.log(pairs.pulls[0] / split.pulls[0]))


def shown(cell: Cell, runs: int, seed: int, workers: int) -> str:
    """The ratio of a cell, and by which factor its standard error may move it."""
    tasks = [(cell, seed, index) for index in range(runs)]
    logs = np.array(parallel_map(log_ratio, tasks, workers))
    error = logs.std(ddof=1) / np.sqrt(runs)
    return f"{np.exp(logs.mean()):.2f} ×/÷ {np.exp(error):.2f}"


@click.command()
@click.option("--runs", default=6, show_default=True, type=click.IntRange(min=2))
@click.option("--seed", default=12, show_default=True)
@click.option("--workers", default=2, show_default=True)
def main(runs: int, seed: int, workers: int) -> None:
    columns = [f"{family.name}, ε {family.epsilon:g}" for family in FAMILIES]
    print("| n | K | K(n − K) |", " | ".join(columns), "| takes |")
    print("|---" * (4 + len(columns)) + "|")
    for n, k in sizes():
        ratios = [shown(Cell(family, n, k), runs, seed, workers) for family in FAMILIES]
        taken = suitable(Problem(n, k, FixedConfidence(FAMILIES[0].epsilon, DELTA)))
        print(f"| {n} | {k} | {k * (n - k):,} |", " | ".join(ratios), f"| {taken} |", flush=True)


if __name__ == "__main__":
    main()
