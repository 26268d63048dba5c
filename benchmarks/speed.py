"""How fast searches run, and their memory, against our limits: `python benchmarks/speed.py`."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from shortlist import instances
from shortlist.simulation.simulate import Runs, simulate

UNIFORM = instances.uniform(1000)
MANY = 100_000
MILLION = 1_000_000
PEAK_MEMORY = "peak-memory"  # the argument that makes this file the child process that is measured


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the table."""

    what: str
    value: float
    unit: str
    limit: float | None = None

    def row(self) -> tuple[str, str, str, str]:
        """What is measured, the value, its limit and whether it is met."""
        limit = "" if self.limit is None else f"< {self.limit:g} {self.unit}"
        met = "" if self.limit is None else "[green]yes" if self.value < self.limit else "[red]no"
        return self.what, f"{self.value:.3g} {self.unit}", limit, met


def to_confidence(algorithm: str, runs: int) -> Runs:
    return simulate(algorithm, UNIFORM, k=500, epsilon=0.01, delta=0.01, runs=runs)


def adaptive_top_k() -> Measurement:
    runs = to_confidence("adaptive-top-k", 200)
    return Measurement(
        "adaptive-top-k, uniform n = 1000, k = 500, 200 runs on one core", runs.seconds, "s", 2
    )


def clucb_pac() -> Measurement:
    runs = to_confidence("clucb-pac", 5)
    share = runs.seconds / runs.pulls.sum() * 1e6
    what = f"clucb-pac, the same, per pull ({runs.pulls.mean():.3g} pulls per run)"
    return Measurement(what, share, "µs", 5)


def budgeted(algorithm: str, limit: float | None = None) -> Callable[[], Measurement]:
    def measure() -> Measurement:
        runs = simulate(algorithm, UNIFORM, k=500, budget=29_000, runs=10)
        return Measurement(
            f"{algorithm}, n = 1000, 29 000 pulls, per run", runs.seconds / 10 * 1e3, "ms", limit
        )

    return measure


def certified() -> Measurement:
    # of the processor, like every time below: the same on a machine that is busy
    before = time.process_time()
    runs = to_confidence("certified", 10)
    what = f"certified, uniform n = 1000, k = 500, per run ({runs.pulls.mean():.3g} pulls)"
    return Measurement(what, (time.process_time() - before) / 10, "s", 0.15)


def certified_of_many(k: int) -> Callable[[], Measurement]:
    def measure() -> Measurement:
        before = time.process_time()
        runs = simulate("certified", instances.uniform(MANY), k=k, epsilon=0.05, delta=0.05)
        what = (
            f"certified, uniform n = {MANY:,}, k = {k:,}, epsilon = 0.05 ({runs.pulls.mean():.3g}"
            " pulls)"
        )
        return Measurement(what, time.process_time() - before, "s", 30)

    return measure


def memory(algorithm: str, n: int, epsilon: float) -> Callable[[], Measurement]:
    """Of a process of its own, since the peak of this one may be due to anything before."""

    def measure() -> Measurement:
        child = subprocess.run(
            [sys.executable, __file__, PEAK_MEMORY, algorithm, str(n), str(epsilon)],
            check=True,
            capture_output=True,
            text=True,
        )
        what = f"{algorithm}, uniform n = {n:,}, k = 1000, epsilon = {epsilon}, peak memory"
        return Measurement(what, int(child.stdout) / 2**30, "GiB", 1)

    return measure


def print_peak_memory(algorithm: str, n: str, epsilon: str) -> None:
    simulate(algorithm, instances.uniform(int(n)), k=1000, epsilon=float(epsilon), delta=0.01)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(peak if sys.platform == "darwin" else peak * 1024)  # bytes there, KiB elsewhere


MEASUREMENTS = (
    adaptive_top_k,
    clucb_pac,
    memory("adaptive-top-k", MILLION, 0.01),
    budgeted("sar", 60),
    budgeted("opt-mai"),
    budgeted("expected-loss"),
    certified,
    *map(certified_of_many, (1000, 10_000, 50_000)),
    memory("certified", MANY, 0.05),
)


def main() -> None:
    started = time.perf_counter()
    table = Table("what", "measured", "limit", "met")
    for measure in MEASUREMENTS:
        table.add_row(*measure().row())
    Console().print(table, f"{time.perf_counter() - started:.1f} s in all")


if __name__ == "__main__":
    print_peak_memory(*sys.argv[2:]) if sys.argv[1:2] == [PEAK_MEMORY] else main()
