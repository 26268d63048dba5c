"""The command of live tests, `shares`, and the counts of `tell --counts`."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import click

from shortlist.cli.files import labelled
from shortlist.cli.options import open_experiment, store_options
from shortlist.cli.output import format_option, note, print_rows
from shortlist.errors import ConflictingReward, InvalidInput
from shortlist.reading.counts import decimal, whole
from shortlist.reading.files import FileLine, read_columns

SUMS = ("sum", "conversions")  # names of the column with the sums
METRIC = "metric:"  # begins the name of a column with the sums of a metric


@dataclass(slots=True)
class BlockCounts:
    """What a file says of a block."""

    rows: dict[str, tuple[float, ...]] = field(default_factory=dict)  # per label
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)  # per metric and label


@click.command()
@click.option("--block", metavar="NAME", help="Name of the block. Default: the date in UTC.")
@store_options
@format_option
def shares(*, block: str | None, store: str, name: str | None, style: str) -> None:
    """Open a block of a live test and print the share of every arm in percent.

    A block is a day, or whatever is told together. Its shares never change: repeating the command
    prints the same. Set them before the first visitor of the block comes. Tell the results with
    `shortlist tell --counts`.

    \b
    Example:
      shortlist create arms.csv -k 1 --epsilon 0.01 --rewards binary --per-day 5000 --store live.db
      shortlist shares --block 2026-03-02 --store live.db
    """
    with open_experiment(store, name) as experiment:
        opened = experiment.shares(block)
    rows = [
        {"block": opened.block, "arm": arm, "percent": percent}
        for arm, percent in opened.percent.items()
    ]
    print_rows(rows, style)
    if not opened.block:
        note("the test has ended: show the chosen arms, and tell nothing")


def tell_counts(path: str, block: str | None, store: str, name: str | None) -> None:
    """Tell the blocks in a file; one that was told before with other counts stops no other."""
    told, refused = read_counts(path, block), list[ConflictingReward]()
    with open_experiment(store, name) as experiment:
        labels = experiment.settings.labels
        for each, block_counts in told.items():
            counts = {labelled("arm", arm, labels): row for arm, row in block_counts.rows.items()}
            metrics = {
                name: {labelled("arm", arm, labels): total for arm, total in sums.items()}
                for name, sums in block_counts.metrics.items()
            }
            try:
                receipt = experiment.tell_counts(each, counts, metrics=metrics)
                note(f"block {each!r}: {receipt.state}")
            except ConflictingReward as error:
                refused.append(error)
    for other in refused[1:]:
        note(f"refused: {other}")
    if refused:
        raise refused[0]


def void_block(block: str, reason: str, store: str, name: str | None) -> None:
    """Leave out a block whose data were lost."""
    with open_experiment(store, name) as experiment:
        receipt = experiment.void_block(block, reason)
    note(f"block {block!r}: {receipt.state}")


def read_counts(path: str, block: str | None) -> dict[str, BlockCounts]:
    """Counts of every block from a CSV with columns `arm`, `visitors`, `sum` or `conversions`, and
    perhaps `block`, `squares` and `metric:NAME`."""
    table = read_columns(path)
    _check_columns(path, table.first, table.names)
    measured = [name for name in table.names if name.startswith(METRIC)]
    told: dict[str, BlockCounts] = {}
    for line in table.lines():
        named = line.cells.get("block", "").strip() or block
        if named is None:
            raise InvalidInput(f"{line.where} has no `block`, but needs one: a column, or --block")
        if block is not None and named != block:
            raise InvalidInput(f"{line.where} is of block {named!r}, but --block is {block!r}")
        found, label = told.setdefault(named, BlockCounts()), line["arm"].strip()
        if label in found.rows:
            raise InvalidInput(f"{line.where} has the arm {label!r} again, but each has one row")
        found.rows[label] = _row(line)
        for column in measured:
            sums = found.metrics.setdefault(column.removeprefix(METRIC), {})
            sums[label] = decimal(line, column)
    if not told:
        raise InvalidInput(f"{path} holds no counts, but must hold a row per arm")
    return told


def _row(line: FileLine) -> tuple[float, ...]:
    column = next(name for name in SUMS if name in line.cells)
    squares = line.cells.get("squares", "").strip()
    more = (decimal(line, "squares"),) if squares else ()
    total = decimal(line, column)
    if column == "conversions" and not total.is_integer():
        raise InvalidInput(
            f"{line.where} has {line[column]} `conversions`, but they must be a whole number: the"
            " column `sum` has sums of other rewards"
        )
    return (whole(line, "visitors"), total, *more)


def _check_columns(path: str, first: int, names: Sequence[str]) -> None:
    missing = [name for name in ("arm", "visitors") if name not in names]
    missing += [] if any(name in names for name in SUMS) else ["sum"]
    if missing:
        raise InvalidInput(
            f"{path}, line {first} has no column `{missing[0]}`, but must be block,arm,visitors,sum"
        )
