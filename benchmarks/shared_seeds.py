"""Arms on shared seeds: mean pulls of certified by correlation, next to KN on such arms.

python benchmarks/shared_seeds.py --runs 100"""

import argparse
from typing import Any

import numpy as np

from shortlist import simulate
from shortlist.arrays import FloatArray

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


def kn(means: FloatArray, correlation: float, epsilon: float, rng: np.random.Generator) -> int:
    """Pulls of Kim and Nelson 2001, c = 1, on shared seeds; normal rewards of deviation 1."""

    def pull(arms: FloatArray, size: int) -> FloatArray:
        shared = np.sqrt(correlation) * rng.standard_normal((size, 1))
        own = np.sqrt(1 - correlation) * rng.standard_normal((size, arms.size))
        rows: FloatArray = means[arms.astype(int)] + shared + own
        return rows

    n = means.size
    left = np.arange(n).astype(float)
    x = pull(left, FIRST)
    h2 = ((2 * DELTA / (n - 1)) ** (-2 / (FIRST - 1)) - 1) * (FIRST - 1)
    s2 = (x[:, :, None] - x[:, None, :]).var(axis=0, ddof=1)
    sums, pulls, r = x.sum(axis=0), FIRST * n, FIRST
    while left.size > 1:
        now = left.astype(int)
        mean = sums[now] / r
        width = np.maximum(0, (h2 * s2[np.ix_(now, now)] / epsilon**2 - r) * epsilon / (2 * r))
        left = left[(mean[:, None] >= mean[None, :] - width).all(axis=1)]
        if left.size > 1:
            sums[left.astype(int)] += pull(left, 1)[0]
            pulls, r = pulls + left.size, r + 1
    return pulls


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--correlations", type=float, nargs="*", default=[0, 0.5, 0.8, 0.95])
    given = parser.parse_args()
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
        f"{np.mean([kn(CASES[0][2], rho, 0.1, rng) for _ in range(given.runs)]):,.0f}"
        for rho in given.correlations
    ]
    print("| KN, first row | 1 | 0.1 | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
