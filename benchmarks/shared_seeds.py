"""Arms on shared seeds: mean pulls of certified by correlation, next to KN on such arms.

python benchmarks/shared_seeds.py --runs 100
python benchmarks/shared_seeds.py --inventory --runs 10"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from shortlist import select, simulate
from shortlist.arrays import FloatArray, IntArray

DELTA, FIRST = 0.05, 20
CASES: list[tuple[str, int, FloatArray, dict[str, Any]]] = [
    ("normal, one ahead by .15", 1, np.r_[0.15, np.zeros(9)], {"rewards": "normal"}),
    (
        "normal, three ahead by .2, sd .8 to 1.25",
        3,
        np.r_[np.full(3, 0.2), np.zeros(7)],
        {"rewards": "normal", "sd": np.linspace(0.8, 1.25, 10)},
    ),
    ("0/1 near .4, one ahead by .075", 1, 0.4 + np.r_[0.075, np.zeros(9)], {}),
]


Rows = Callable[[IntArray, int], FloatArray]  # of these arms, and how many: (rows, arms)


def normal_arms(means: FloatArray, correlation: float, rng: np.random.Generator) -> Rows:
    """Normal arms of deviation 1 on shared seeds."""

    def pull(arms: IntArray, size: int) -> FloatArray:
        shared = np.sqrt(correlation) * rng.standard_normal((size, 1))
        own = np.sqrt(1 - correlation) * rng.standard_normal((size, arms.size))
        rows: FloatArray = means[arms] + shared + own
        return rows

    return pull


def kn(pull: Rows, n: int, epsilon: float) -> tuple[int, int]:
    """Kim and Nelson 2001, c = 1, on shared seeds: the arm that is left, and the pulls."""
    left = np.arange(n)
    x = pull(left, FIRST)
    h2 = ((2 * DELTA / (n - 1)) ** (-2 / (FIRST - 1)) - 1) * (FIRST - 1)
    s2 = (x[:, :, None] - x[:, None, :]).var(axis=0, ddof=1)
    sums, pulls, r = x.sum(axis=0), FIRST * n, FIRST
    while left.size > 1:
        mean = sums[left] / r
        width = np.maximum(0, (h2 * s2[np.ix_(left, left)] / epsilon**2 - r) * epsilon / (2 * r))
        left = left[(mean[:, None] >= mean[None, :] - width).all(axis=1)]
        if left.size > 1:
            sums[left] += pull(left, 1)[0]
            pulls, r = pulls + left.size, r + 1
    return int(left[0]), pulls


def inventory(runs: int, epsilon: float = 1.0) -> None:
    """The cheapest of the 200 designs of examples/inventory.py, by certified and by KN."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from inventory import DESIGNS, cost_per_day

    spent = []
    for run in range(runs):
        seeds = iter(range(10**6 * (run + 1), 10**6 * (run + 2)))

        def pull(arms: IntArray, size: int, seeds: Any = seeds) -> FloatArray:
            some = [next(seeds) for _ in range(size)]
            return np.array([[-cost_per_day(DESIGNS[arm], seed) for arm in arms] for seed in some])

        goal: dict[str, Any] = {"k": 1, "epsilon": epsilon, "rewards": "normal", "minimize": True}
        ours = select(cost_per_day, arms=DESIGNS, seeds="shared", seed=run, progress=False, **goal)
        arm, pulls = kn(pull, len(DESIGNS), epsilon)
        print(
            f"| {run} | {ours.top[0]} | {ours.pulls:,} | {DESIGNS[arm]} | {pulls:,} |", flush=True
        )
        spent.append((ours.pulls, pulls))
    print("| mean | | {:,.0f} | | {:,.0f} |".format(*np.mean(spent, axis=0)))


def _kn_pulls(correlation: float, rng: np.random.Generator) -> int:
    means = CASES[0][2]
    return kn(normal_arms(means, correlation, rng), means.size, 0.1)[1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--correlations", type=float, nargs="*", default=[0, 0.5, 0.8, 0.95])
    parser.add_argument("--inventory", action="store_true")
    given = parser.parse_args()
    if given.inventory:
        inventory(given.runs)
        return
    print("| arms | K | epsilon | " + " | ".join(map(str, given.correlations)) + " |")
    print("|---" * (3 + len(given.correlations)) + "|")
    for name, k, means, how in CASES:
        epsilon = 0.1 if how else 0.05
        cells = []
        for correlation in given.correlations:
            goal: dict[str, Any] = {"k": k, "epsilon": epsilon, "delta": DELTA, "seed": given.seed}
            world: dict[str, Any] = {"seeds": "shared", "correlation": correlation, **how}
            done = simulate("certified", means, runs=given.runs, **goal, **world)
            cells.append(f"{done.pulls.mean():,.0f} ({done.failed.sum()} failed)")
        print(f"| {name} | {k} | {epsilon} | " + " | ".join(cells) + " |", flush=True)
    rng = np.random.default_rng(given.seed)
    cells = [
        f"{np.mean([_kn_pulls(rho, rng) for _ in range(given.runs)]):,.0f}"
        for rho in given.correlations
    ]
    print("| KN, first row | 1 | 0.1 | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
