"""How results are printed, as a table, JSON or CSV; and the progress bar."""

import csv
import io
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import click

from shortlist.tables import Tabular, TextTable, flat, readable

Record = Mapping[str, object]
REFRESH = 0.1  # seconds between two looks of the progress bar

format_option = click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="How to print the result.",
)


def print_summary(result: Tabular, summary: Record, style: str) -> None:
    """One result: its own table, its summary as a JSON object, or as a CSV header and row."""
    if style == "json":
        print_json(summary)
    elif style == "csv":
        _print_csv([flat(summary)])
    else:
        print_tables(result)


def print_rows(rows: Sequence[Record], style: str) -> None:
    """Several results with the same figures: a row each."""
    if style == "json":
        print_json(rows)
    elif style == "csv":
        _print_csv([flat(row) for row in rows])
    else:
        print_tables(_table(rows))


def print_tables(shown: Tabular | TextTable) -> None:
    """Tables on stdout, as wide as the terminal."""
    from rich.console import Console

    Console().print(shown)


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """A bar on stderr if that is a terminal; yields what to call with the number done, or None."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    # No refreshing thread: worker processes are forked while the bar is up.
    with Progress(console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(label, total=total)
        shown = time.monotonic()

        def show(done: int) -> None:
            nonlocal shown
            due = time.monotonic() - shown >= REFRESH
            shown = time.monotonic() if due else shown
            bar.update(task, completed=done, refresh=due)

        bar.refresh()
        yield show


def print_json(data: object) -> None:
    """One line of JSON; null for infinities and NaN, for which it has no word."""
    click.echo(json.dumps(_finite(data), allow_nan=False))


def _finite(data: object) -> object:
    if isinstance(data, Mapping):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _print_csv(rows: Sequence[Record]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _joined(value) for name, value in row.items()} for row in rows)
    click.echo(text.getvalue(), nl=False)


def _joined(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _table(rows: Sequence[Record]) -> TextTable:
    """Numbers on the right, words on the left."""
    header = list(rows[0])
    numeric = [all(isinstance(row[name], int | float | None) for row in rows) for name in header]
    cells = [[readable(value) for value in row.values()] for row in rows]
    return TextTable(header, cells, align="".join("r" if each else "l" for each in numeric))
