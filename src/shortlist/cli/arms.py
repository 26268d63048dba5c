"""The file that names the arms of an experiment."""

import click

from shortlist.cli.columns import read_columns
from shortlist.errors import InvalidInput

HINT = " (a label with a comma needs quotes)"

arms_argument = click.argument(
    "arms",
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
    metavar="ARMS",
)


def read_arms(path: str) -> list[str]:
    """One label a line, or a CSV with a column `arm`; labels are taken as they stand."""
    table = read_columns(path, only="arm")
    if not table.rows:
        raise InvalidInput(f"{path} is empty, but must hold one label a line")
    if not table.headed and len(table.rows[0][1]) > 1:
        raise InvalidInput(
            f"{path}, line {table.first} has {len(table.rows[0][1])} columns, but none of them is"
            f" called `arm`{HINT}"
        )
    lines = list(table.lines(HINT))
    for line in lines:
        if not line["arm"].strip():
            raise InvalidInput(
                f"{line.where} has the label {line['arm']!r}, but a label must not be empty"
            )
    return [line["arm"] for line in lines]
