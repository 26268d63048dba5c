"""Pulls of certified selection on scores: Beta rewards of a given standard deviation, and 0/1.

python benchmarks/scores.py --runs 20 --seed 0

Every run draws its own means. Uniform: between .05 and .95. Clustered: normal around .5 with a
standard deviation of .057. Rare: 0/1 rewards whose means are uniform between .002 and .02."""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shortlist.algorithms.certified import certified
from shortlist.arrays import FloatArray
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Bounded
from shortlist.search import Answer, Rewards, Search, advance
from shortlist.simulation.simulate import bandit_with

DELTA = 0.05
Means = Callable[[int, np.random.Generator], FloatArray]


def uniform(n: int, rng: np.random.Generator) -> FloatArray:
    return rng.uniform(0.05, 0.95, n)


def clustered(n: int, rng: np.random.Generator) -> FloatArray:
    return np.clip(rng.normal(0.5, 0.057, n), 0.05, 0.95)


def rare(n: int, rng: np.random.Generator) -> FloatArray:
    return rng.uniform(0.002, 0.02, n)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    n: int
    k: int
    epsilon: float
    means: Means
    deviation: float | None  # None: 0/1 rewards
    asked: int | None  # pulls to aim at


ROWS = (
    Row(24, 3, 0.02, clustered, 0.05, 1_600),
    Row(24, 3, 0.02, clustered, 0.1, 3_200),
    Row(24, 3, 0.02, clustered, 0.2, 13_000),
    Row(100, 10, 0.01, uniform, 0.05, 2_500),
    Row(100, 10, 0.01, uniform, 0.1, 4_200),
    Row(100, 10, 0.01, uniform, 0.2, 17_000),
    Row(1000, 100, 0.01, uniform, 0.05, 11_500),
    Row(1000, 100, 0.01, uniform, 0.1, 19_500),
    Row(1000, 100, 0.01, uniform, 0.2, 70_000),
    Row(60, 10, 0.003, rare, None, None),
    Row(100, 10, 0.01, uniform, None, None),
)


def run(row: Row, seed: int, certificate: str) -> tuple[int, bool]:
    """Pulls, and whether the answer loses more than epsilon."""
    rng = np.random.default_rng([seed, ROWS.index(row)])
    means = row.means(row.n, rng)
    problem = Problem(row.n, row.k, FixedConfidence(row.epsilon, DELTA), Bounded()).unit()
    search: Search = certified(problem, rng, certificate=certificate)
    bandit = bandit_with(means, "bernoulli" if row.deviation is None else "beta", row.deviation)
    reply: Rewards | None = None
    pulls = 0
    while not isinstance(turn := advance(search, reply), Answer):
        pulls += turn.total
        reply = bandit.pull(turn.arms, turn.times, rng)
    return pulls, aggregate_regret(means, turn.top) > row.epsilon + 1e-9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--certificate", default="auto")
    options = parser.parse_args()
    print("| n | K | ε | means | sd | pulls | s.e. | asked for | failures | ms per run |")
    print("|---" * 10 + "|")
    for row in ROWS:
        start = time.perf_counter()
        seeds = range(options.runs * options.seed, options.runs * (options.seed + 1))
        pulls, failed = np.array([run(row, seed, options.certificate) for seed in seeds]).T
        milliseconds = 1e3 * (time.perf_counter() - start) / options.runs
        error = pulls.std() / np.sqrt(options.runs)
        asked = f"{row.asked:,}" if row.asked else ""
        instance = f"{row.n} | {row.k} | {row.epsilon} | {row.means.__name__}"
        found = f"{pulls.mean():,.0f} | {error:,.0f} | {asked} | {failed.sum()}"
        print(
            f"| {instance} | {row.deviation or '0/1'} | {found} | {milliseconds:.0f} |", flush=True
        )


if __name__ == "__main__":
    main()
