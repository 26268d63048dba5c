"""Pulls of the swap race on few arms: 0/1 rewards, declared only as rewards in [0, 1].

python benchmarks/pairs.py --runs 400 --seed 0 --workers 2"""

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from shortlist.certificates.frame import fixed_design
from shortlist.certificates.pairs.search import pairs_search
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary
from shortlist.simulation.worlds import BernoulliBandit

DELTA = 0.05
HEAD = (
    "| means | K | epsilon | pulls | s.e. | asked for "
    "| design | largest / design | fallback | failures |"
)


@dataclass(frozen=True)
class Row:
    """One instance of the table."""

    name: str
    means: tuple[float, ...]
    k: int
    epsilon: float
    asked: int  # pulls to aim at


ROWS = (
    Row(".55 .45", (0.55, 0.45), 1, 0.09, 205),
    Row(".6, 4 × .5", (0.6, *[0.5] * 4), 1, 0.09, 790),
    Row(".95, .85 … .05", tuple(np.linspace(0.95, 0.05, 10)), 1, 0.09, 300),
    Row(".98, 9 × .88", (0.98, *[0.88] * 9), 1, 0.09, 420),
    Row(".6 .5", (0.6, 0.5), 1, 0.05, 340),
    Row(".5 .5", (0.5, 0.5), 1, 0.05, 1200),
    Row("5 × .5", (0.5,) * 5, 1, 0.05, 5600),
    Row(".5 .45 .45 .4 .4", (0.5, 0.45, 0.45, 0.4, 0.4), 1, 0.05, 2300),
    Row(".9 … .1 (10)", tuple(np.linspace(0.9, 0.1, 10)), 3, 0.05, 1000),
    Row("10 × .5", (0.5,) * 10, 3, 0.05, 6900),
    Row(".05 .045", (0.05, 0.045), 1, 0.005, 15500),
    Row(".05 .05", (0.05, 0.05), 1, 0.005, 18000),
    Row(".05 .045 .04", (0.05, 0.045, 0.04), 1, 0.005, 20000),
    Row("24 × .3", (0.3,) * 24, 3, 0.05, 25000),
)


def run(row: Row, seed: int, index: int, rounds: int | None) -> tuple[int, bool, bool]:
    """Pulls, whether the fallback decided, and whether it failed."""
    rng = np.random.default_rng([seed, ROWS.index(row), index])
    bandit = BernoulliBandit(rng.permutation(np.array(row.means)))
    problem = Problem(len(row.means), row.k, FixedConfidence(row.epsilon, DELTA))
    search = pairs_search(problem, rng, rounds=rounds)
    pulls = 0
    request = next(search)
    while True:
        pulls += request.total
        try:
            request = search.send(bandit.pull(request.arms, request.times, rng))
        except StopIteration as stop:
            lost = aggregate_regret(bandit.means, stop.value.top)
            fallback = bool(stop.value.evidence["fallback design"])
            return pulls, fallback, lost > row.epsilon + 1e-9


def chunk(task: tuple[Row, int, range, int | None]) -> list[tuple[int, bool, bool]]:
    row, seed, indices, rounds = task
    return [run(row, seed, index, rounds) for index in indices]


def tasks(
    row: Row, runs: int, seed: int, rounds: int | None
) -> Iterator[tuple[Row, int, range, int | None]]:
    for start in range(0, runs, 20):
        yield row, seed, range(start, min(start + 20, runs)), rounds


def line(row: Row, results: list[tuple[int, bool, bool]]) -> str:
    pulls, fallback, failed = (np.array(column) for column in zip(*results, strict=True))
    n = len(row.means)
    design = n * fixed_design(n, row.k, row.epsilon, DELTA, Binary())
    error = pulls.std() / np.sqrt(pulls.size)
    return (
        f"| {row.name} | {row.k} | {row.epsilon} | {pulls.mean():,.0f} | {error:,.0f} "
        f"| {row.asked:,} | {design:,} | {pulls.max() / design:.3f} | {fallback.mean():.2f} "
        f"| {failed.sum()} of {failed.size} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--rows", type=int, nargs="*", default=range(len(ROWS)))
    options = parser.parse_args()
    print(HEAD, "|---" * 10 + "|", sep="\n")
    with ProcessPoolExecutor(options.workers) as pool:
        for row in (ROWS[i] for i in options.rows):
            start = time.perf_counter()
            parts = pool.map(chunk, tasks(row, options.runs, options.seed, options.rounds))
            print(line(row, [result for part in parts for result in part]), flush=True)
            print(f"<!-- {time.perf_counter() - start:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
