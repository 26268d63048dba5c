"""How much of every attack and of every statistical test is run, and from which seed.

`make test` runs a bounded part at a fixed seed, `make attack` far more at a new one."""

import os

SCALE = int(os.environ.get("SHORTLIST_ATTACK_SCALE", "1"))  # times as much as in `make test`
SEED = int(os.environ.get("SHORTLIST_ATTACK_SEED", "0"))
AGAIN = f"SHORTLIST_ATTACK_SEED={SEED} SHORTLIST_ATTACK_SCALE={SCALE}"  # repeats this run


def number_of_runs(short: int, long: int) -> int:
    """Number of runs of a statistical test: `short` in `make test`, `long` at a scale of 100, which
    is that of `make attack`."""
    return short if SCALE == 1 else max(short, long * SCALE // 100)
