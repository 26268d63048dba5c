"""Print a record or rows as a table, JSON or CSV."""

import csv
import io
import json
import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import click

from shortlist.formatting import Tabular, TextTable, flat, no_formula, printable, readable

if TYPE_CHECKING:
    from shortlist.engine.progress import Count

Record = Mapping[str, object]

format_option = click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="Output format.",
)


def print_summary(result: Tabular | TextTable, summary: Record, style: str) -> None:
    """Print one result: its table, its summary as JSON, or as a CSV header and row."""
    if style == "json":
        print_json(summary)
    elif style == "csv":
        _print_csv([flat(summary)])
    else:
        print_tables(result)


def print_rows(rows: Sequence[Record], style: str) -> None:
    """Print several results with the same fields, one row each."""
    if style == "json":
        print_json(rows)
    elif style == "csv":
        _print_csv([flat(row) for row in rows])
    else:
        print_tables(_table(rows))


def print_tables(shown: Tabular | TextTable) -> None:
    """Print tables, as wide as the terminal."""
    from rich.console import Console

    Console().print(shown)


def progress_bar(what: str, total: int) -> "AbstractContextManager[Count]":
    """A progress bar on stderr; call it with the number done."""
    from shortlist.engine.progress import counting

    return counting(what, total)


def print_json(data: object) -> None:
    """Print one line of JSON; infinities and NaN become null."""
    print_data(json.dumps(_finite(data), allow_nan=False) + "\n")


def print_data(text: str) -> None:
    """Print data as it is; on a terminal, without control characters."""
    click.echo(printable(text, keep="\n") if sys.stdout.isatty() else text, nl=False)


def note(text: str) -> None:
    """Print a message on stderr, without control characters."""
    click.echo(printable(text, keep="\n\t"), err=True)


def _finite(data: object) -> object:
    if isinstance(data, Mapping):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _print_csv(rows: Sequence[Record]) -> None:
    if not rows:
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: no_formula(_joined(value)) for name, value in row.items()} for row in rows
    )
    print_data(text.getvalue())


def _joined(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _table(rows: Sequence[Record]) -> TextTable:
    """A table with numbers right-aligned and texts left-aligned."""
    header = list(rows[0])
    numeric = [all(isinstance(row[name], int | float | None) for row in rows) for name in header]
    cells = [[readable(value) for value in row.values()] for row in rows]
    return TextTable(header, cells, align="".join("r" if each else "l" for each in numeric))
