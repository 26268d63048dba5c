"""Files of columns: a CSV with a header, or one value a line; every error names file and line."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from shortlist.cli.files import open_text
from shortlist.errors import InvalidInput

MOST_ROWS = 10**6  # as many as there may be arms, below a header


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
    rows: tuple[tuple[int, list[str]], ...]  # below the header, each with the number of its line

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name.lower() for name in self.header)

    def lines(self, hint: str = "", *, pad: bool = False) -> Iterator[Line]:
        """Every line, if it has a cell for each column; with `pad` it may end early."""
        for number, row in self.rows:
            where = f"{self.path}, line {number}"
            missing = len(self.header) - len(row)
            if missing < 0 or (missing and not pad):
                rule = f"must have {len(self.header)}: {', '.join(self.header)}"
                raise InvalidInput(f"{where} has {len(row)} values, but {rule}{hint}")
            yield Line(where, dict(zip(self.names, [*row, *[""] * missing], strict=True)))


def read_columns(path: str, only: str | None = None) -> Columns:
    """Read a CSV in UTF-8, or stdin for -.

    Its first line is a header. With `only`, it is one if that name is in it; otherwise the file is
    this one column."""
    with open_text(path) as file:
        reader = csv.reader(file)
        filled = ((reader.line_num, row) for row in reader if not _blank(row))
        rows = list(islice(filled, MOST_ROWS + 2))
    if len(rows) > MOST_ROWS + 1:
        raise InvalidInput(f"{path} has more lines than {MOST_ROWS:,}, but that is the limit")
    first = rows[0][0] if rows else 0
    begins = [cell.strip() for cell in rows[0][1]] if rows else []
    headed = only is None or only in [name.lower() for name in begins]
    header = tuple(begins) if headed else (str(only),)
    return Columns(path, header, headed, first, tuple(rows[1:] if headed else rows))


def _blank(row: list[str]) -> bool:
    """Whether there is nothing in a line; quotes with nothing in them are something."""
    return row != [""] and not any(cell.strip() for cell in row)
