"""Arms on shared seeds: mean pulls of certified by correlation, next to KN on such arms.

python benchmarks/shared_seeds.py --runs 100
python benchmarks/shared_seeds.py --inventory --runs 10
python benchmarks/shared_seeds.py --budget --runs 200"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from shortlist import select, simulate
from shortlist.arrays import FloatArray

DELTA = 0.05
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


def inventory(runs: int, seed: int, epsilon: float = 1.0) -> None:
    """The cheapest of the 200 designs of examples/inventory.py, by certified and by KN."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from inventory import DESIGNS, cost_per_day

    spent = []
    goal: dict[str, Any] = {"k": 1, "epsilon": epsilon, "rewards": "normal", "minimize": True}
    for run in range(seed, seed + runs):
        how: dict[str, Any] = {"arms": DESIGNS, "seeds": "shared", "seed": run, "progress": False}
        ours = select(cost_per_day, **how, **goal)
        theirs = select(cost_per_day, algorithm="kn", **how, **goal)
        print(
            f"| {run} | {ours.top[0]} | {ours.pulls:,} | {theirs.top[0]} | {theirs.pulls:,} |",
            flush=True,
        )
        spent.append((ours.pulls, theirs.pulls))
    print("| mean | | {:,.0f} | | {:,.0f} |".format(*np.mean(spent, axis=0)))


def budgets(runs: int, seed: int, correlations: list[float]) -> None:
    """Mean regret of expected-loss within a budget, on own seeds and on shared ones."""
    print("| n | K | budget | ocba-m, own | own | " + " | ".join(map(str, correlations)) + " |")
    print("|---" * (5 + len(correlations)) + "|")
    for n, k, budget in ((20, 5, 1000), (20, 1, 600), (100, 10, 3000)):
        how: dict[str, Any] = {"k": k, "budget": budget, "rewards": "normal", "sd": 2.0}
        how |= {"runs": runs, "seed": seed}
        means = np.linspace(0, 1.5, n)
        cells = [simulate(name, means, **how) for name in ("ocba-m", "expected-loss")]
        for correlation in correlations:
            world: dict[str, Any] = {"seeds": "shared", "correlation": correlation}
            cells.append(simulate("expected-loss", means, **how, **world))
        text = " | ".join(f"{done.regret.mean():.4f}" for done in cells)
        print(f"| {n} | {k} | {budget:,} | {text} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--correlations", type=float, nargs="*", default=[0, 0.5, 0.8, 0.95])
    parser.add_argument("--inventory", action="store_true")
    parser.add_argument("--budget", action="store_true")
    given = parser.parse_args()
    if given.budget:
        budgets(given.runs, given.seed, given.correlations)
        return
    if given.inventory:
        inventory(given.runs, given.seed)
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
    cells = []
    for correlation in given.correlations:
        goal = {"k": 1, "epsilon": 0.1, "delta": DELTA, "seed": given.seed, "rewards": "normal"}
        world = {"seeds": "shared", "correlation": correlation}
        done = simulate("kn", CASES[0][2], runs=given.runs, **goal, **world)
        cells.append(f"{done.pulls.mean():,.0f}")
    print("| kn, first row | 1 | 0.1 | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
