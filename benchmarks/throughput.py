"""How fast an experiment on SQLite is, every reward durable: `python benchmarks/throughput.py`."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from shortlist.engine import Experiment, Ticket

N_ARMS, K, PULLS = 10_000, 100, 1_000_000
SINGLE = 2_000  # rewards told one at a time: each waits for the disk


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the table."""

    what: str
    value: float
    unit: str
    limit: str
    met: bool

    def row(self) -> tuple[str, str, str, str]:
        """What is measured, the value, its limit and whether it is met."""
        return (
            self.what,
            f"{self.value:,.3g} {self.unit}",
            self.limit,
            "[green]yes" if self.met else "[red]no",
        )


def rate(what: str, count: int, seconds: float, least: int) -> Measurement:
    return Measurement(what, count / seconds, "/s", f">= {least:,} /s", count / seconds >= least)


def duration(what: str, seconds: float, most: float) -> Measurement:
    return Measurement(what, seconds, "s", f"< {most:g} s", seconds < most)


def reward(ticket: Ticket) -> float:
    """Better for a higher arm; cheap, since what is measured is everything around it."""
    return ((ticket.seed % 9973) / 9973 + int(ticket.arm) / N_ARMS) / 2


def asked(experiment: Experiment, pulls: int, size: int) -> tuple[list[list[Ticket]], list[float]]:
    """Tickets for this many pulls, and the duration of every ask."""
    batches, seconds = [], []
    for _ in range(pulls // size):
        started = time.perf_counter()
        batches.append(list(experiment.ask(size)))
        seconds.append(time.perf_counter() - started)
    return batches, seconds


def tell_all(experiment: Experiment, batches: list[list[Ticket]]) -> float:
    """Tell every batch at once; how long it took, without working out the rewards."""
    told = [[(ticket, reward(ticket)) for ticket in batch] for batch in batches]
    started = time.perf_counter()
    for batch in told:
        experiment.tell_many(batch)
    return time.perf_counter() - started


def measurements(path: Path) -> Iterator[Measurement]:
    experiment = Experiment.create(
        N_ARMS, K, store=path, budget=PULLS + N_ARMS, algorithm="adaptive-top-k"
    )
    batches, seconds = asked(experiment, 50_000, 50)
    yield duration(
        f"ask for 50 tickets, {N_ARMS:,} arms, up to 50,000 under way, median",
        median(seconds),
        0.005,
    )
    yield duration("the same, slowest of 1,000", max(seconds), 0.05)
    yield rate("tell in batches of 50", 50_000, tell_all(experiment, batches), 10_000)
    batches, _ = asked(experiment, 100_000, 500)
    yield rate("tell in batches of 500", 100_000, tell_all(experiment, batches), 20_000)
    singles, _ = asked(experiment, SINGLE, 1)
    yield rate("tell one by one", SINGLE, tell_all(experiment, singles), 1_000)
    while (missing := PULLS - experiment.status().told) > 0:
        tickets = experiment.ask(min(missing, 10_000))
        experiment.tell_many((ticket, reward(ticket)) for ticket in tickets)
    experiment.close()
    started = time.perf_counter()
    Experiment.open(path)
    yield duration(f"reopen after {PULLS:,} rewards", time.perf_counter() - started, 5)


def main() -> None:
    table = Table("what", "measured", "limit", "met")
    # the system's folder may be in memory, which would flatter
    with TemporaryDirectory(dir=Path.cwd()) as folder:
        for measurement in measurements(Path(folder, "store.db")):
            table.add_row(*measurement.row())
    Console().print(table)


if __name__ == "__main__":
    main()
