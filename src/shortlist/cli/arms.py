"""The file that names the arms of an experiment."""

from collections.abc import Sequence

import click

from shortlist.errors import InvalidInput
from shortlist.reading.columns import Columns, read_columns

COLUMN = "arm"  # what the column of labels is called in every file
# what it is called elsewhere: as a first line hardly ever the label of an arm
ELSEWHERE = frozenset(
    [
        "alternative",
        "alternatives",
        "arms",
        "candidate",
        "candidates",
        "choice",
        "choices",
        "id",
        "ids",
        "item",
        "items",
        "key",
        "keys",
        "label",
        "labels",
        "name",
        "names",
        "option",
        "options",
        "title",
        "titles",
        "treatment",
        "treatments",
        "variant",
        "variants",
    ]
)

arms_argument = click.argument(
    "arms",
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
    metavar="ARMS",
)


def read_arms(path: str) -> list[str]:
    """One label a line, or a CSV with a column `arm`, others beside which are not read; labels are
    taken as they stand."""
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
    return [line[COLUMN] for line in lines]


def check_called_arm(path: str, first: int, cells: Sequence[str]) -> None:
    """Refuse a first line that calls the column of labels something else."""
    word = next((cell.strip() for cell in cells if cell.strip().lower() in ELSEWHERE), None)
    if word is not None:
        raise InvalidInput(
            f"{path}, line {first} says {word!r}, as if that were the name of a column, but the"
            f" column of labels must be called `{COLUMN}` (if an arm is called so, write a first"
            f" line `{COLUMN}` above it)"
        )


def _check_headless(table: Columns, hint: str) -> None:
    """Refuse what may be a header, so that none becomes an arm."""
    cells = table.rows[0][1]
    check_called_arm(table.path, table.first, cells)
    if len(cells) > 1:
        raise InvalidInput(
            f"{table.path}, line {table.first} has {len(cells)} columns, but none of them is"
            f" called `{COLUMN}`{hint}"
        )
