"""How many files of this package four everyday walks go through: `python
benchmarks/files_touched.py`.

As `sys.setprofile` sees them, in every thread, after each walk was made once: imports do not count.
The last walk needs PostgreSQL, as `service.py --postgres` does; `--no-postgres` leaves it out."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from rich.console import Console
from rich.table import Table

import shortlist
from shortlist import Experiment

PACKAGE = str(Path(shortlist.__file__).parent)
MEANS = [0.95 - arm / 11 for arm in range(10)]


@contextmanager
def watched() -> Iterator[set[str]]:
    """The files of the package whose functions are called inside."""
    seen: set[str] = set()

    def see(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            seen.add(frame.f_code.co_filename.removeprefix(f"{PACKAGE}/"))

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def select() -> set[str]:
    """`select` on 10 arms, to an epsilon."""

    def pull(arm: int, seed: int) -> bool:
        return seed % 1000 < 1000 * MEANS[arm]

    with watched() as seen:
        shortlist.select(pull, arms=10, k=3, epsilon=0.2, rewards="binary", progress=False)
    return seen


def ask_and_tell() -> set[str]:
    """One ticket of an experiment in SQLite, asked for and told."""
    with TemporaryDirectory() as folder:
        experiment = Experiment.create(10, 3, budget=100, store=f"{folder}/store.db")
        experiment.tell(experiment.ask()[0], 0.5)
        with watched() as seen:
            experiment.tell(experiment.ask()[0], 0.5)
        experiment.close()
    return seen


def create_to_result() -> set[str]:
    """An experiment in SQLite from its beginning to its result."""
    with (
        TemporaryDirectory() as folder,
        watched() as seen,
        Experiment.create(10, 3, budget=100, store=f"{folder}/store.db") as experiment,
    ):
        while tickets := experiment.ask(20):
            experiment.tell_many((each, each.seed % 1000 / 1000) for each in tickets)
        experiment.result()
    return seen


def post_of_a_tell(address: str) -> set[str]:
    """A tell that is posted to a service whose store is PostgreSQL."""
    from services import caller, serving

    from shortlist.engine.locate import open_store

    store = open_store(address, "rwc")
    name = f"walk-{time.monotonic_ns()}"
    tickets = Experiment.create(10, 3, budget=100, store=store, name=name).ask(2)
    with watched() as seen, serving(store) as url:
        call = caller(url)
        for ticket in tickets:
            seen.clear()
            told = {"results": [{"ticket": ticket.id, "reward": 0.5}]}
            assert call("POST", f"/v1/experiments/{name}/tell", told).status == 200
            found = set(seen)
    store.close()
    return found


def row(table: Table, walk: str, limit: int, touch: Callable[[], set[str]]) -> None:
    """One line of the table, after the walk was made once without being watched."""
    touch()
    seen = touch()
    colour = "green" if len(seen) <= limit else "red"
    table.add_row(walk, f"[{colour}]{len(seen)}[/]", str(limit), " ".join(sorted(seen)))


@click.command()
@click.option("--postgres/--no-postgres", default=True, help="Whether to make the last walk.")
def main(postgres: bool) -> None:
    """Print the number of files, the limit and the files per walk."""
    table = Table("walk", "files", "at most", "which")
    row(table, "select on 10 arms", 30, select)
    row(table, "ask + tell on SQLite", 16, ask_and_tell)
    row(table, "create ... result", 36, create_to_result)
    if postgres:
        from service import postgres as server

        with server() as address:
            row(table, "POST of a tell, PostgreSQL", 22, lambda: post_of_a_tell(address))
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
