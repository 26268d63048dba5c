"""Text files, CSV files with a header or one value per line, and Parquet files.

Every error message names the file and the line. The column of labels is called `arm`.
Features of the arms come from a file of their own, or from columns of another one."""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shortlist.errors import InvalidInput

if TYPE_CHECKING:
    from shortlist.arrays import FloatArray
import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import IO, Any

import click

LONGEST_LINE = 64 * 2**20  # characters: the settings of an experiment with a million arms


@contextmanager
def open_text(path: str) -> Iterator[Iterator[str]]:
    """The lines of a file in UTF-8, or of stdin for -; errors while reading name the file."""
    try:
        with click.open_file(path, encoding="utf-8-sig") as file:
            yield _lines(file, path)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} holds the byte 0x{error.object[error.start]:02x}, but must be a UTF-8 file"
        ) from error
    except csv.Error as error:
        raise InvalidInput(f"{path} cannot be read as a CSV: {error}") from error


def _lines(file: IO[Any], path: str) -> Iterator[str]:
    """Every line; one without an end is refused, not read to the end."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise InvalidInput(
                f"{path} has a line of more than {LONGEST_LINE:,} characters, but must be lines of"
                " text"
            )
        yield line


ENDINGS = (".parquet", ".pq")
MOST_VALUES = 3 * 10**7  # as many as the most cells take, a line each with arm, item and score

Values = Mapping[str, Sequence[Any]]  # of every column


def is_parquet(path: str) -> bool:
    """Whether a file is to be read as Parquet, by its name."""
    return Path(path).suffix.lower() in ENDINGS


def read_parquet(path: str) -> Values:
    """The columns of a file by name, None where a value is missing."""
    reader = next((each for name, each in READERS.items() if find_spec(name)), None)
    if reader is None:
        raise InvalidInput(
            f"{path} is a Parquet file, but neither pyarrow nor polars is installed:"
            " pip install 'shortlist[parquet]'"
        )
    try:
        return reader(path)
    except InvalidInput:
        raise
    except Exception as error:  # each library has errors of its own for what is no Parquet
        raise InvalidInput(f"{path} cannot be read as a Parquet file: {error}") from error


def _by_pyarrow(path: str) -> Values:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        _check_size(path, file.metadata.num_rows, file.metadata.num_columns)
        table = file.read()
    columns: dict[str, Sequence[Any]] = table.to_pydict()
    return columns


def _by_polars(path: str) -> Values:
    import polars

    frame = polars.scan_parquet(path)
    rows = frame.select(polars.len()).collect().item()
    _check_size(path, rows, len(frame.collect_schema()))
    return frame.collect().to_dict(as_series=False)


def _check_size(path: str, rows: int, columns: int) -> None:
    if rows * columns > MOST_VALUES:
        raise InvalidInput(
            f"{path} has {rows:,} rows of {columns:,} values, but must have at most"
            f" {MOST_VALUES:,} values"
        )


READERS = {"pyarrow": _by_pyarrow, "polars": _by_polars}


MOST_ROWS = 10**6  # as many as there may be arms, below a header
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
Rows = tuple[tuple[int, list[str]], ...]  # each with the number of its line


@dataclass(frozen=True, slots=True)
class FileLine:
    """One line: its place, for messages, and its cells by the names of their columns."""

    where: str
    cells: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.cells[name]


@dataclass(frozen=True, slots=True)
class Columns:
    """The lines of a file that are not blank, and the header above them.

    Columns are looked up by the names in `header` in lower case."""

    path: str
    header: tuple[str, ...]  # as it stands in the file, or the one column that needs none
    headed: bool  # whether it stands in the file
    first: int  # the first line that is not blank
    rows: Rows  # below the header
    separator: str  # between two cells: comma, semicolon or tab

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name.lower() for name in self.header)

    def lines(self, hint: str = "", *, pad: bool = False) -> Iterator[FileLine]:
        """Every line, if it has a cell for each column; with `pad` it may end early."""
        _check_different(self.path, self.names)
        for number, row in self.rows:
            where = f"{self.path}, line {number}"
            missing = len(self.header) - len(row)
            if missing < 0 or (missing and not pad):
                rule = f"must have {len(self.header)}: {', '.join(self.header)}"
                raise InvalidInput(f"{where} has {len(row)} values, but {rule}{hint}")
            yield FileLine(where, dict(zip(self.names, [*row, *[""] * missing], strict=True)))


def read_columns(path: str, only: str | None = None) -> Columns:
    """Read a CSV in UTF-8, or stdin for -; commas, semicolons or tabs part its cells.

    Its first line is a header. With `only`, it is one if that name is in it; otherwise the file is
    this one column."""
    with open_text(path) as file:
        text = list(islice(file, MOST_ROWS + 2))
        if len(text) > MOST_ROWS + 1:
            raise InvalidInput(f"{path} has more lines than {MOST_ROWS:,}, but that is the limit")
        parted = {separator: _rows(text, separator) for separator in SEPARATORS}
    separator, rows = max(parted.items(), key=lambda each: _fit(each[1], only))
    begins = _header(rows)
    headed = only is None or only in map(str.lower, begins)
    header = begins if headed else (str(only),)
    first = rows[0][0] if rows else 0
    below = rows[1:] if headed else rows
    return Columns(path, header, headed, first, below, SEPARATORS[separator])


def _rows(text: Sequence[str], separator: str) -> Rows:
    reader = csv.reader(text, delimiter=separator)
    return tuple((reader.line_num, row) for row in reader if not _blank(row))


def _fit(rows: Rows, only: str | None) -> tuple[bool, int]:
    """How well a separator fits: whether it shows the column `only`, then how many cells it parts.

    Those of the header count if there is one, else those of any line: two cells are never taken
    for one."""
    header = _header(rows)
    named = only is not None and only in map(str.lower, header)
    if named or only is None:
        return named, len(header)
    return named, max((len(row) for _, row in rows), default=0)


def _header(rows: Rows) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in rows[0][1]) if rows else ()


def _check_different(path: str, names: Sequence[str]) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1 and name]
    if twice:
        raise InvalidInput(f"two columns of {path} are called `{twice[0]}`, but names must differ")


def _blank(row: list[str]) -> bool:
    """Whether there is nothing in a line; quotes with nothing in them are something."""
    return row != [""] and not any(cell.strip() for cell in row)


COLUMN = "arm"  # what the column of labels is called in every file
# other likely names of that column: as a first line hardly ever the label of an arm
OTHER_NAMES = frozenset(["arms", "id", "item", "items", "label", "labels", "name", "variant"])


def check_called_arm(path: str, first: int, cells: Sequence[str]) -> None:
    """Refuse a first line that names the column of labels differently."""
    word = next((cell.strip() for cell in cells if cell.strip().lower() in OTHER_NAMES), None)
    if word is not None:
        raise InvalidInput(
            f"{path}, line {first} says {word!r}, as if that were the name of a column, but the"
            f" column of labels must be called `{COLUMN}` (if an arm is called so, write a first"
            f" line `{COLUMN}` above it)"
        )


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
        hint = number_hint(line[name])
        raise InvalidInput(
            f"{line.where} says {line[name]!r}, but {name} must be a finite number{hint}"
        )
    return value


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def number_hint(cell: object) -> str:
    """How to write a number that stands there as a percentage or with a decimal comma."""
    text = str(cell).strip()
    number = _number(text.rstrip("% ").replace(",", "."))
    if text.endswith("%") and math.isfinite(number):
        return f": write {number / 100:.12g} for {text}"
    if "," in text and re.fullmatch(r"[-+0-9.,]+", text):
        return ": write decimals with a point, and nothing between thousands"
    return ""


TRUTHS = {"true": 1.0, "false": 0.0}  # what other programs write for right and wrong


def truth(cell: str) -> float | None:
    """1 for true and 0 for false, in any case; None for anything else."""
    return TRUTHS.get(cell.strip().lower())
