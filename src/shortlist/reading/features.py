"""Features of the arms from a CSV file, or from columns of another one."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shortlist.errors import InvalidInput
from shortlist.reading.files import COLUMN, Columns, FileLine, read_columns

if TYPE_CHECKING:
    from shortlist.arrays import FloatArray


def read_features(path: str, labels: Sequence[object] | None = None) -> "FloatArray":
    """A matrix from a file with a column per feature and a line per arm.

    With a column `arm` and `labels`, lines are matched by it; else they are in the order of the
    arms."""
    table = read_columns(path)
    _check_header(table)
    names = [name for name in table.names if name != COLUMN]
    lines = list(table.lines())
    if COLUMN in table.names and labels is not None:
        lines = _placed(path, lines, labels)
    return _matrix(lines, names, path)


def read_feature_columns(path: str, names: Sequence[str]) -> "FloatArray":
    """A matrix of these columns of a file, whose lines are arms."""
    table = read_columns(path)
    for name in names:
        if name.lower() not in table.names:
            raise InvalidInput(
                f"`features` is {','.join(names)!r}, but there is no such file, and no column"
                f" {name!r} in {path}"
            )
    return _matrix(list(table.lines()), [name.lower() for name in names], path)


def _check_header(table: Columns) -> None:
    """Refuse a first line of numbers: an arm would be taken for the names of columns."""
    if any(math.isfinite(_number(cell)) for cell in table.header):
        raise InvalidInput(
            f"{table.path}, line {table.first} begins with {table.header[0]!r}, but must be names"
            " of columns"
        )


def _placed(path: str, lines: Sequence[FileLine], labels: Sequence[object]) -> list[FileLine]:
    """The lines in the order of the labels."""
    asked = [str(label) for label in labels]
    known = {line[COLUMN].strip(): line for line in lines}
    if len(known) < len(lines):
        raise InvalidInput(f"two lines of {path} are of the same arm, but every arm needs one")
    for name in known:
        if name not in asked:
            raise InvalidInput(f"{path} has features of arm {name!r}, but there is none")
    for name in asked:
        if name not in known:
            raise InvalidInput(f"{path} has no features of arm {name!r}, but must have some")
    return [known[name] for name in asked]


def _matrix(lines: Sequence[FileLine], names: Sequence[str], path: str) -> "FloatArray":
    import numpy as np

    if not lines or not names:
        raise InvalidInput(f"{path} has no features, but must have a column for each")
    return np.array([[_cell(line, name) for name in names] for line in lines])


def _cell(line: FileLine, name: str) -> float:
    value = _number(line[name])
    if not math.isfinite(value):
        raise InvalidInput(f"{line.where} says {line[name]!r}, but {name} must be a finite number")
    return value


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan
