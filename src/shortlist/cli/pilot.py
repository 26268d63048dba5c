"""The file that holds what a pilot gave."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shortlist.cli.arms import COLUMN, check_called_arm
from shortlist.errors import InvalidInput
from shortlist.reading.columns import Columns, Line, read_columns

if TYPE_CHECKING:
    from shortlist.arrays import FloatArray, IntArray

TOTALS = ("sum", "successes")


def read_pilot(path: str) -> tuple["IntArray", "FloatArray"]:
    """Pulls and sum of rewards of every arm, from columns pulls and sum, or pulls and successes.

    A column arm is welcome, and checked; others are ignored."""
    import numpy as np

    table = read_columns(path)
    _check_header(table)
    lines = list(table.lines())
    _check_labels(lines, path)
    pulls = [_whole(line, "pulls") for line in lines]
    sums = [_total(line, count) for line, count in zip(lines, pulls, strict=True)]
    return np.array(pulls, dtype=np.int64), np.array(sums, dtype=np.float64)


def _check_header(table: Columns) -> None:
    if COLUMN not in table.names:
        check_called_arm(table.path, table.first, table.header)
    if "pulls" not in table.names or sum(name in table.names for name in TOTALS) != 1:
        found = ", ".join(table.header) or "nothing"
        raise InvalidInput(
            f"{table.path} begins with {found}, but must begin with columns pulls and"
            f" {' or '.join(TOTALS)}"
        )


def _check_labels(lines: Sequence[Line], path: str) -> None:
    labels = Counter(line[COLUMN].strip() for line in lines if COLUMN in line.cells)
    double = next((label for label, times in labels.items() if times > 1), None)
    if double is not None:
        raise InvalidInput(f"two lines of {path} are labelled {double!r}, but labels must differ")


def _whole(line: Line, column: str) -> int:
    from shortlist.validation import COUNTABLE

    cell = line[column].strip()
    try:
        value = int(cell)
    except ValueError:
        value = -1
    if not 0 <= value <= COUNTABLE:
        rule = "of at least 0" if value < 0 else f"of at most {COUNTABLE:,}"
        raise InvalidInput(
            f"{line.where} says {cell!r}, but {column} must be a whole number {rule}"
        )
    return value


def _total(line: Line, pulls: int) -> float:
    """The sum of rewards in [0, 1], or of successes and failures."""
    total = float(_whole(line, "successes")) if "successes" in line.cells else _sum(line)
    if not 0 <= total <= pulls:
        raise InvalidInput(
            f"{line.where} says {total:g}, but rewards in [0, 1] add up to at most {pulls} in"
            f" {pulls} pulls"
        )
    return total


def _sum(line: Line) -> float:
    cell = line["sum"].strip()
    try:
        return float(cell)
    except ValueError:
        raise InvalidInput(f"{line.where} says {cell!r}, but sum must be a number") from None
