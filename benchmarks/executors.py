"""How busy `select` keeps its workers, and what a call costs: `python benchmarks/executors.py`,
about half a minute."""

import random
import time
from typing import Any

from rich.console import Console
from rich.table import Table

import shortlist

WORKERS, SECONDS = 8, 0.01
GOALS: tuple[dict[str, Any], ...] = (
    {"algorithm": "certified", "epsilon": 0.05},
    {"algorithm": "expected-loss", "budget": 2000},
    {"algorithm": "adaptive-top-k-tight", "epsilon": 0.1},
)
PLACES: tuple[dict[str, Any], ...] = ({}, {"executor": "threads"}, {"executor": "processes"})


def slow(arm: int, seed: int) -> bool:
    time.sleep(SECONDS)
    return quick(arm, seed)


def quick(arm: int, seed: int) -> bool:
    return random.Random(seed).random() < 0.9 - 0.8 * arm / 9


def main() -> None:
    Console().print(busy(), costs())


def busy() -> Table:
    """Means .9 to .1, the best 3 of 10; the share of the workers' time in which they evaluate."""
    table = Table(
        "algorithm",
        "pulls",
        "seconds",
        "busy",
        title=f"{WORKERS} threads, {SECONDS * 1000:g} ms a pull",
    )
    for goal in GOALS:
        result = shortlist.select(slow, arms=10, k=3, workers=WORKERS, progress=False, **goal)
        share = result.pulls * SECONDS / (WORKERS * result.seconds)
        table.add_row(
            result.algorithm, f"{result.pulls:,}", f"{result.seconds:.1f}", f"{share:.0%}"
        )
    return table


def costs() -> Table:
    """Overhead per pull; the evaluation itself takes almost no time."""
    table = Table("executor", "microseconds", title="one pull")
    for place in PLACES:
        workers = 2 if place else None
        result = shortlist.select(
            quick,
            arms=100,
            k=10,
            budget=5000,
            algorithm="uniform",
            progress=False,
            workers=workers,
            **place,
        )
        table.add_row(place.get("executor", "none"), f"{result.seconds / result.pulls * 1e6:.0f}")
    return table


if __name__ == "__main__":
    main()
