"""Files that hold how often every arm was pulled, and what its rewards add up to."""

from collections import Counter
from collections.abc import Sequence

from shortlist.errors import InvalidInput
from shortlist.reading.columns import Line, read_columns
from shortlist.reading.labels import COLUMN, check_called_arm

TOTALS = ("sum", "successes")


def read_totals(path: str, *also: str) -> list[Line]:
    """The lines of a file with columns pulls and sum, or pulls and successes, and those of `also`.

    A column arm is welcome, and checked; others are ignored."""
    table = read_columns(path)
    check_header(path, table.first, table.header, ("pulls", *also))
    lines = list(table.lines())
    check_labels([line[COLUMN].strip() for line in lines if COLUMN in line.cells], path)
    return lines


def whole(line: Line, column: str, least: int = 0) -> int:
    """The whole number in a column, of at least this much; it may be written as 400.0."""
    from shortlist.validation import COUNTABLE

    cell = line[column].strip()
    try:
        value = int(cell.rstrip("0").removesuffix(".") if "." in cell else cell)
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


def check_header(path: str, first: int, header: Sequence[str], needed: Sequence[str]) -> None:
    """Refuse columns that are not those `needed` and one with the sum of rewards."""
    names = [name.lower() for name in header]
    if COLUMN not in names:
        check_called_arm(path, first, header)
    totals = sum(name in names for name in TOTALS)
    if totals == len(TOTALS):
        raise InvalidInput(
            f"{path} has columns {' and '.join(TOTALS)}, but must have only one of them"
        )
    if not totals or not set(needed) <= set(names):
        found = ", ".join(header) or "nothing"
        raise InvalidInput(
            f"{path} begins with {found}, but must begin with columns {', '.join(needed)} and"
            f" {' or '.join(TOTALS)}"
        )


def check_labels(labels: Sequence[str], path: str) -> None:
    """Refuse two arms of one name."""
    double = next((label for label, times in Counter(labels).items() if times > 1), None)
    if double is not None:
        raise InvalidInput(f"two lines of {path} are labelled {double!r}, but labels must differ")
