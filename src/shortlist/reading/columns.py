"""Files of columns: a CSV with a header, or one value a line; every error names file and line."""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from shortlist.errors import InvalidInput
from shortlist.reading.files import open_text

MOST_ROWS = 10**6  # as many as there may be arms, below a header
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
Rows = tuple[tuple[int, list[str]], ...]  # each with the number of its line


@dataclass(frozen=True, slots=True)
class Line:
    """One line: where it stands, for messages, and its cells by the names of their columns."""

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
    separator: str  # between two cells, in words

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name.lower() for name in self.header)

    def lines(self, hint: str = "", *, pad: bool = False) -> Iterator[Line]:
        """Every line, if it has a cell for each column; with `pad` it may end early."""
        _check_different(self.path, self.names)
        for number, row in self.rows:
            where = f"{self.path}, line {number}"
            missing = len(self.header) - len(row)
            if missing < 0 or (missing and not pad):
                rule = f"must have {len(self.header)}: {', '.join(self.header)}"
                raise InvalidInput(f"{where} has {len(row)} values, but {rule}{hint}")
            yield Line(where, dict(zip(self.names, [*row, *[""] * missing], strict=True)))


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

    Those of the header count if there is one, else those of any line: nothing that may be two
    cells is taken for one without a word."""
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
