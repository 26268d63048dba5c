"""Past results: pulls, sum of rewards and perhaps sum of squares of every arm."""

import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from shortlist.errors import InvalidInput
from shortlist.reading.files import (
    COLUMN,
    FileLine,
    check_called_arm,
    number_hint,
    read_columns,
)

TOTALS = ("sum", "successes")
HEADED = 6  # columns that a message names


def read_totals(path: str, *also: str) -> list[FileLine]:
    """The lines of a file with columns pulls and sum, or pulls and successes, and those of `also`.

    A column arm is welcome, and checked; others are ignored."""
    table = read_columns(path)
    check_header(path, table.first, table.header, ("pulls", *also))
    lines = list(table.lines())
    check_labels([line[COLUMN].strip() for line in lines if COLUMN in line.cells], path)
    return lines


def whole(line: FileLine, column: str, least: int = 0) -> int:
    """The whole number in a column, of at least this much; it may be written as 400.0."""
    from shortlist.validation import COUNTABLE

    cell = line[column].strip()
    try:
        value = int(cell.rstrip("0").removesuffix(".") if "." in cell else cell)
    except ValueError:
        value = -1
    thousands = re.fullmatch(r"[0-9]{1,3}(\.[0-9]{3})+", cell) is not None  # or 3 decimals
    if thousands or not least <= value <= COUNTABLE:
        rule = f"of at least {least}" if value < least else f"of at most {COUNTABLE:,}"
        hint = ": how many, not their share" if cell.endswith("%") else number_hint(cell)
        rule = "with no point or comma in it" if thousands else rule + hint
        raise InvalidInput(
            f"{line.where} says {cell!r}, but {column} must be a whole number {rule}"
        )
    return value


def total(line: FileLine) -> float:
    """The sum of the rewards."""
    return float(whole(line, "successes")) if "successes" in line.cells else decimal(line, "sum")


def decimal(line: FileLine, column: str) -> float:
    """The number in a column."""
    cell = line[column].strip()
    try:
        return float(cell)
    except ValueError:
        rule = f"{column} must be a number{number_hint(cell)}"
        raise InvalidInput(f"{line.where} says {cell!r}, but {rule}") from None


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
        more = f" and {len(header) - HEADED} more" if len(header) > HEADED else ""
        found = ", ".join(header[:HEADED]) + more or "nothing"
        hint = "" if COLUMN in names else "; a column `arm` names the arms"
        hint = "; the sum is pulls times mean" if "mean" in names else hint
        hint = "; scores on a test set go with `scores`" if len(names) > HEADED else hint
        raise InvalidInput(
            f"{path} begins with {found}, but must begin with columns {', '.join(needed)} and"
            f" {' or '.join(TOTALS)}{hint}"
        )


def check_labels(labels: Sequence[str], path: str) -> None:
    """Refuse two arms of one name."""
    double = next((label for label, times in Counter(labels).items() if times > 1), None)
    if double is not None:
        raise InvalidInput(f"two lines of {path} are labelled {double!r}, but labels must differ")


if TYPE_CHECKING:
    from shortlist.arrays import FloatArray, IntArray

BLOCK_COLUMNS = (("arm",), ("visitors",), ("sum", "conversions"), ("squares",))
HUGE = 2**63  # whole numbers from here on may have too many digits to be written
GIVEN = "`counts`"  # source of results that are in no file
NAMES = ("pulls", "sum", "squares")  # of the numbers of an arm in a mapping
RULE = (
    "must be a mapping {arm: (pulls, successes)}, a data frame or a file with columns arm, pulls"
    " and successes or sum"
)


@dataclass(frozen=True, slots=True)
class Counts:
    """Results of every arm, and their place in the input, for messages."""

    source: str  # the file, or `counts`
    where: tuple[str, ...]  # (arms,) as all
    labels: tuple[object, ...] | None  # None if arms have no names
    pulls: "IntArray"
    sums: "FloatArray"
    squares: "FloatArray | None"
    counted: bool  # whether successes were counted, so that rewards are 0 or 1
    groups: tuple[str | None, ...] | None = None  # None if no column names any


def counts_of(counts: object) -> Counts:
    """Read a mapping, a data frame, or a file by its name."""
    if isinstance(counts, str | os.PathLike):
        return _from_file(counts)
    if hasattr(counts, "columns"):
        return _from_frame(counts)
    if isinstance(counts, Mapping):
        return _from_mapping(counts)
    from shortlist.validation import shown

    raise InvalidInput(f"`counts` is {shown(counts)}, but {RULE}")


def _from_file(path: "str | os.PathLike[str]") -> Counts:
    from shortlist.validation import encodable, shown

    name = os.fspath(path)
    known = isinstance(name, str) and encodable(name) and "\0" not in name
    if not known or not (name == "-" or os.path.isfile(name)):
        raise InvalidInput(f"`counts` is {shown(path)}, but there is no such file")
    lines = read_totals(name)
    labels = [line.cells[COLUMN].strip() for line in lines if COLUMN in line.cells]
    for line, label in zip(lines, labels, strict=False):
        if not label:
            raise InvalidInput(f"{line.where} has no label, but a label must not be empty")
    return _counts(name, lines, labels)


def _from_frame(frame: Any) -> Counts:
    names = [str(name).lower() for name in frame.columns]
    check_header(GIVEN, 0, [str(name) for name in frame.columns], ("pulls",))
    columns = {name: list(frame[own]) for name, own in zip(names, frame.columns, strict=True)}
    labels = columns.pop(COLUMN, [])
    rows = zip(*columns.values(), strict=True)
    lines = [
        FileLine(f"`counts`, row {place}", dict(zip(columns, map(_cell, row), strict=True)))
        for place, row in enumerate(rows)
    ]
    check_labels([str(label) for label in labels], GIVEN)
    return _counts(GIVEN, lines, labels)


def _from_mapping(counts: Mapping[Any, Any]) -> Counts:
    from shortlist.validation import MOST_ARMS, shown

    if len(counts) > MOST_ARMS:
        raise InvalidInput(
            f"`counts` has {len(counts):,} arms, but must have {MOST_ARMS:,} at most"
        )
    lines = []
    for label, numbers in counts.items():
        where = f"`counts` of arm {shown(label)}"
        if isinstance(numbers, str | Mapping) or not _sized(numbers):
            raise InvalidInput(
                f"{where} is {shown(numbers)}, but must be (pulls, successes), (pulls, sum) or"
                " (pulls, sum, squares)"
            )
        lines.append(FileLine(where, dict(zip(NAMES, map(_cell, numbers), strict=False))))
    if len({len(line.cells) for line in lines}) > 1:
        raise InvalidInput("`counts` has squares for some arms, but must have them for all or none")
    counted = bool(lines) and len(lines[0].cells) == 2
    return _counts(GIVEN, lines, list(counts), counted=counted)


def _sized(numbers: object) -> bool:
    if isinstance(numbers, tuple):
        return len(numbers) in (2, 3)
    try:
        return len(numbers) in (2, 3) and all(True for _ in numbers)  # type: ignore[arg-type,attr-defined]
    except TypeError:
        return False


def _counts(
    source: str, lines: Sequence[FileLine], labels: Sequence[object], counted: bool = False
) -> Counts:
    import numpy as np

    squared = bool(lines) and "squares" in lines[0].cells
    return Counts(
        source,
        tuple(line.where for line in lines),
        tuple(labels) or None,
        np.array([whole(line, "pulls") for line in lines], dtype=np.int64),
        np.array([total(line) for line in lines], dtype=np.float64),
        np.array([decimal(line, "squares") for line in lines]) if squared else None,
        counted or (bool(lines) and "successes" in lines[0].cells),
        _groups(lines),
    )


def _groups(lines: Sequence[FileLine]) -> tuple[str | None, ...] | None:
    """The groups in a column `group`, if there is one; an empty cell is none."""
    if not lines or "group" not in lines[0].cells:
        return None
    cells = [line["group"].strip() for line in lines]
    return tuple(None if cell in ("", "nan", "None") else cell for cell in cells)


def _cell(value: object) -> str:
    """A number as a file would have it; a whole number may be a float in a data frame."""
    from shortlist.validation import real, shown

    if type(value) is int and abs(value) < HUGE:  # nearly always
        return str(value)
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        return shown(value)
    number = real(value)
    if not math.isfinite(number):
        return str(number)
    if isinstance(value, Integral):
        return str(int(value))
    return str(int(number)) if number.is_integer() else repr(number)


def block_counts(frame: Any) -> dict[Any, tuple[Any, ...]]:
    """Counts of a block of a live test in a data frame: {arm: (visitors, sum, squares)}.

    Columns are arm (or the index of pandas), visitors, sum or conversions, and perhaps squares."""
    from shortlist.reading.scores import with_arm_column

    frame = with_arm_column(frame)
    own = {str(name).lower(): name for name in frame.columns}
    names = [next((name for name in each if name in own), None) for each in BLOCK_COLUMNS]
    if None in names[:3]:
        rule = "must be arm, visitors and conversions (or sum)"
        raise InvalidInput(f"`counts` has the columns {', '.join(own)}, but they {rule}")
    columns = [frame[own[name]].to_list() for name in names if name is not None]
    rows = {label: numbers for label, *numbers in zip(*columns, strict=True)}
    if len(rows) < len(columns[0]):
        raise InvalidInput("two rows of `counts` are of one arm, but every arm has one row")
    return {label: tuple(each) for label, each in rows.items()}
