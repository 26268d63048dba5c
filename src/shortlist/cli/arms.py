"""The file that names the arms of an experiment."""

import csv

import click

from shortlist.cli.files import open_text
from shortlist.errors import InvalidInput

HINT = "(a label with a comma needs quotes)"

arms_argument = click.argument(
    "arms",
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
    metavar="ARMS",
)


def read_arms(path: str) -> list[str]:
    """One label a line, or a CSV whose header names a column `arm`; labels are taken as they
    stand."""
    with open_text(path) as file:
        reader = csv.reader(file)
        rows = [(reader.line_num, row) for row in reader if not _blank(row)]
    names = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    header = rows.pop(0)[1] if "arm" in names else ["arm"]
    if not rows:
        raise InvalidInput(f"{path} is empty, but must hold one label a line")
    if "arm" not in names and len(names) > 1:
        raise InvalidInput(
            f"{path}, line {rows[0][0]} has {len(names)} columns, but none of them is called `arm`"
            f" {HINT}"
        )
    column = names.index("arm") if "arm" in names else 0
    for line, row in rows:
        if len(row) != len(header):
            rule = f"must have {len(header)}: {', '.join(header)} {HINT}"
            raise InvalidInput(f"{path}, line {line} has {len(row)} values, but {rule}")
        if not row[column].strip():
            raise InvalidInput(
                f"{path}, line {line} has the label {row[column]!r}, but a label must not be empty"
            )
    return [row[column] for _, row in rows]


def _blank(row: list[str]) -> bool:
    """Whether there is nothing in a line; quotes with nothing in them are something."""
    return row != [""] and not any(cell.strip() for cell in row)
