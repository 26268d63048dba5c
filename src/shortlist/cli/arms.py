"""The file that names the arms of an experiment."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from shortlist.cli.numbers import whole_number
from shortlist.cli.output import note
from shortlist.errors import InvalidInput
from shortlist.reading.columns import Columns, Line, read_columns
from shortlist.reading.labels import COLUMN, check_called_arm

if TYPE_CHECKING:
    from shortlist.arms import Arm, Label

TERMS = frozenset(["cost", "limit"])  # what may be said of an arm beside
ALIKE = frozenset(["costs", "price", "prices", "limits", "max", "maximum", "quota"])
arms_argument = click.argument(
    "arms",
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
    metavar="ARMS",
)


def read_arms(path: str) -> "list[str] | list[Arm]":
    """One label a line, or a CSV with a column `arm`; labels are taken as they stand.

    Columns `cost` and `limit` say what belongs to an arm; others are not read."""
    table = read_columns(path, only=COLUMN)
    if not table.rows:
        raise InvalidInput(f"{path} is empty, but must hold one label a line")
    hint = f" (a label with a {table.separator} needs quotes)"
    if not table.headed:
        _check_headless(table, hint)
    lines = list(table.lines(hint))
    for line in lines:
        if not line[COLUMN].strip():
            raise InvalidInput(
                f"{line.where} has the label {line[COLUMN]!r}, but a label must not be empty"
            )
    _note_unread(path, table)
    if not TERMS & set(table.names):
        return [line[COLUMN] for line in lines]
    return [_arm(line) for line in lines]


def _note_unread(path: str, table: Columns) -> None:
    """Say that a column is not read that may be a cost or a limit by another name."""
    meant = [name for name in table.names if name in ALIKE]
    if meant and not TERMS & set(table.names):
        read = f"`{COLUMN}`, `cost` and `limit`"
        note(f"{path}: the column `{meant[0]}` is not read; those that are read are called {read}")


def labels_in(arms: "list[str] | list[Arm]") -> list[str]:
    """The labels of arms that were read."""
    return [arm if isinstance(arm, str) else arm.label for arm in arms]


def labelled(name: str, word: str, labels: "Sequence[Label]") -> "Label":
    """The arm that is written so: labels may be whole numbers."""
    for label in labels:
        if str(label) == word:
            return label
    raise InvalidInput(f"`{name}` is {word!r}, but must be one of the arms")


def _arm(line: Line) -> "Arm":
    """An arm with what belongs to it; an empty cell says nothing."""
    from shortlist.arms import Arm

    cost, limit = (line.cells.get(name, "").strip() for name in ("cost", "limit"))
    try:
        return Arm(line[COLUMN], *_terms(cost, limit))
    except ValueError as error:
        raise InvalidInput(f"{line.where}: {error}") from None


def _terms(cost: str, limit: str) -> tuple[float, int | None]:
    from shortlist.evaluation.command import decimal

    most = whole_number(limit)
    if limit and most is None:
        raise InvalidInput(f"limit {limit!r} must be a whole number")
    return decimal(cost) if cost else 1.0, most


def _check_headless(table: Columns, hint: str) -> None:
    """Refuse what may be a header, so that none becomes an arm."""
    cells = table.rows[0][1]
    check_called_arm(table.path, table.first, cells)
    if len(cells) > 1:
        raise InvalidInput(
            f"{table.path}, line {table.first} has {len(cells)} columns, but none of them is"
            f" called `{COLUMN}`{hint}"
        )
