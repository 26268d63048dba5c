"""The file that holds what a pilot gave."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from shortlist.errors import InvalidInput

if TYPE_CHECKING:
    from shortlist.arrays import FloatArray, IntArray

Line = tuple[str, dict[str, str]]  # where it stands, and its values by column
TOTALS = ("sum", "successes")


def read_pilot(path: str) -> tuple["IntArray", "FloatArray"]:
    """Pulls and sum of rewards of every arm: a CSV with columns pulls and sum, or pulls and
    successes.

    A column label is welcome, and checked; others are ignored. Errors name the file and the
    line."""
    import numpy as np

    try:
        lines = list(_lines(path))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(
            f"{path} cannot be read as text ({error}), but must be a UTF-8 file"
        ) from error
    _check_labels(lines, path)
    pulls = [_whole(line, "pulls") for line in lines]
    sums = [_total(line, count) for line, count in zip(lines, pulls, strict=True)]
    return np.array(pulls, dtype=np.int64), np.array(sums, dtype=np.float64)


def _lines(path: str) -> Iterator[Line]:
    with click.open_file(path, encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        header = [cell.strip() for cell in next(reader, [])]
        _check_header(header, path)
        for row in reader:
            if any(cells := [cell.strip() for cell in row]):
                where = f"{path}, line {reader.line_num}"
                if len(cells) != len(header):
                    rule = f"must have {len(header)}: {', '.join(header)}"
                    raise InvalidInput(f"{where} has {len(cells)} values, but {rule}")
                yield where, dict(zip(header, cells, strict=True))


def _check_header(header: Sequence[str], path: str) -> None:
    if "pulls" not in header or sum(name in header for name in TOTALS) != 1:
        found = ", ".join(header) or "nothing"
        raise InvalidInput(
            f"{path} begins with {found}, but must begin with columns pulls and"
            f" {' or '.join(TOTALS)}"
        )


def _check_labels(lines: Sequence[Line], path: str) -> None:
    labels = Counter(values["label"] for _, values in lines if "label" in values)
    double = next((label for label, times in labels.items() if times > 1), None)
    if double is not None:
        raise InvalidInput(f"two lines of {path} are labelled {double!r}, but labels must differ")


def _whole(line: Line, column: str) -> int:
    where, values = line
    try:
        value = int(values[column])
    except ValueError:
        value = -1
    if value < 0:
        raise InvalidInput(
            f"{where} says {values[column]!r}, but {column} must be a whole number of at least 0"
        )
    return value


def _total(line: Line, pulls: int) -> float:
    """The sum of rewards in [0, 1], or of successes and failures."""
    where, values = line
    if "successes" in values:
        total = float(_whole(line, "successes"))
    else:
        try:
            total = float(values["sum"])
        except ValueError:
            raise InvalidInput(
                f"{where} says {values['sum']!r}, but sum must be a number"
            ) from None
    if not 0 <= total <= pulls:
        raise InvalidInput(
            f"{where} says {total:g}, but rewards in [0, 1] add up to at most {pulls} in {pulls}"
            " pulls"
        )
    return total
