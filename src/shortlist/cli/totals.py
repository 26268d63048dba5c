"""Files that hold how often every arm was pulled, and what its rewards add up to."""

from collections import Counter
from collections.abc import Sequence

from shortlist.cli.arms import COLUMN, check_called_arm
from shortlist.errors import InvalidInput
from shortlist.reading.columns import Columns, Line, read_columns

TOTALS = ("sum", "successes")


def read_totals(path: str, *also: str) -> list[Line]:
    """The lines of a file with columns pulls and sum, or pulls and successes, and those of `also`.

    A column arm is welcome, and checked; others are ignored."""
    table = read_columns(path)
    _check_header(table, ("pulls", *also))
    lines = list(table.lines())
    _check_labels(lines, path)
    return lines


def whole(line: Line, column: str, least: int = 0) -> int:
    """The whole number in a column, of at least so much."""
    from shortlist.validation import COUNTABLE

    cell = line[column].strip()
    try:
        value = int(cell)
    except ValueError:
        value = -1
    if not least <= value <= COUNTABLE:
        rule = f"of at least {least}" if value < least else f"of at most {COUNTABLE:,}"
        raise InvalidInput(
            f"{line.where} says {cell!r}, but {column} must be a whole number {rule}"
        )
    return value


def total(line: Line) -> float:
    """What the rewards add up to."""
    return float(whole(line, "successes")) if "successes" in line.cells else decimal(line, "sum")


def decimal(line: Line, column: str) -> float:
    """The number in a column."""
    cell = line[column].strip()
    try:
        return float(cell)
    except ValueError:
        raise InvalidInput(f"{line.where} says {cell!r}, but {column} must be a number") from None


def _check_header(table: Columns, needed: Sequence[str]) -> None:
    if COLUMN not in table.names:
        check_called_arm(table.path, table.first, table.header)
    totals = sum(name in table.names for name in TOTALS)
    if totals != 1 or not set(needed) <= set(table.names):
        found = ", ".join(table.header) or "nothing"
        raise InvalidInput(
            f"{table.path} begins with {found}, but must begin with columns {', '.join(needed)} and"
            f" {' or '.join(TOTALS)}"
        )


def _check_labels(lines: Sequence[Line], path: str) -> None:
    labels = Counter(line[COLUMN].strip() for line in lines if COLUMN in line.cells)
    double = next((label for label, times in labels.items() if times > 1), None)
    if double is not None:
        raise InvalidInput(f"two lines of {path} are labelled {double!r}, but labels must differ")
