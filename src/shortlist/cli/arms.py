"""The file that names the arms of an experiment."""

import csv

import click

from shortlist.errors import InvalidInput

arms_argument = click.argument(
    "arms", type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True), metavar="ARMS"
)


def read_arms(path: str) -> list[str]:
    """One label a line, or a CSV whose header names a column `arm`; labels are taken as they stand."""
    try:
        with click.open_file(path, encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path} cannot be read as text ({error}), but must be a UTF-8 file") from error
    header = rows.pop(0)[1] if rows and "arm" in rows[0][1] else ["arm"]
    if not rows:
        raise InvalidInput(f"{path} is empty, but must hold one label a line")
    for line, row in rows:
        if len(row) != len(header):
            rule = f"must have {len(header)}: {', '.join(header)} (a label with a comma needs quotes)"
            raise InvalidInput(f"{path}, line {line} has {len(row)} values, but {rule}")
    column = header.index("arm")
    return [row[column] for _, row in rows]
