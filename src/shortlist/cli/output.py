"""How results are printed: a record or a list of rows, as a table, JSON or CSV."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from shortlist.display import Count

Record = Mapping[str, object]

format_option = click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="How to print the result.",
)


def print_record(record: Record, style: str) -> None:
    """One result: a line per figure, a JSON object, or a CSV header and row."""
    if style == "json":
        _print_json(record)
    elif style == "csv":
        _print_csv([_flat(record)])
    else:
        _print_table(
            [{"figure": name, "value": value} for name, value in _flat(record, " ").items()],
            header=False,
        )


def print_rows(rows: Sequence[Record], style: str) -> None:
    """Several results with the same figures: a row each."""
    if style == "json":
        _print_json(rows)
    elif style == "csv":
        _print_csv([_flat(row) for row in rows])
    else:
        _print_table(rows)


def progress_bar(what: str, total: int) -> "AbstractContextManager[Count]":
    """What to call with the number done, to see it on stderr."""
    from shortlist.display import counting

    return counting(what, total)


def _flat(record: Record, joint: str = "_") -> dict[str, object]:
    """{"pulls": {"mean": 1}} as {"pulls_mean": 1}."""
    flat: dict[str, object] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            flat.update({f"{name}{joint}{inner}": each for inner, each in value.items()})
        else:
            flat[name] = value
    return flat


def _print_json(data: object) -> None:
    click.echo(json.dumps(_finite(data), allow_nan=False))


def _finite(data: object) -> object:
    """The same data with null for infinities and NaN, for which JSON has no word."""
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


def _print_table(rows: Sequence[Record], header: bool = True) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD if header else None, show_header=header)
    for position, name in enumerate(rows[0]):
        numbers = all(isinstance(row[name], int | float | None) for row in rows)
        right = numbers or (not header and position > 0)
        table.add_column(name, justify="right" if right else "left", no_wrap=position == 0)
    for row in rows:
        table.add_row(*(Text(_readable(value)) for value in row.values()))  # a label is no markup
    Console().print(table)


def _readable(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(_joined(value))
