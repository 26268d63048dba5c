"""The cells of a test set that were evaluated: arm, item, score, cost, seconds and info."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from shortlist.errors import InvalidInput
from shortlist.reading.files import is_parquet
from shortlist.result.plots import plain_frame
from shortlist.validation import shown


class EvaluatedCell(NamedTuple):
    """The score of an arm on an item, and what was told with it."""

    arm: Any
    item: Any
    score: float
    cost: float
    seconds: float | None  # that the call took; None if it came without an info
    info: Any  # None if there is none
    repetition: int | None = None  # of its item, from 0; None if each item is scored once


class EvaluatedCells(Sequence[EvaluatedCell]):
    """All cells of a run, in the order in which they were asked for.

    They are read when they are first needed."""

    def __init__(self, load: Callable[[], Sequence[EvaluatedCell]]) -> None:
        self._load = load
        self._rows: tuple[EvaluatedCell, ...] | None = None
        self.frames: str | None = None  #: library of the data frames given, and of `to_frame`

    @property
    def rows(self) -> tuple[EvaluatedCell, ...]:
        """One row per cell."""
        if self._rows is None:
            self._rows = tuple(self._load())
        return self._rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def __iter__(self) -> Iterator[EvaluatedCell]:
        return iter(self.rows)

    def __getstate__(self) -> dict[str, Any]:
        return {"_rows": self.rows, "_load": None, "frames": self.frames}

    def __repr__(self) -> str:
        return f"<{len(self):,} cells>"

    def to_frame(self, library: str | None = None) -> Any:
        """Return the cells as a data frame with a row per cell.

        Args:
            library: "pandas" or "polars". Default: that of the data frame of arms or scores that
                was given, else the first that is installed.

        Returns:
            The data frame: arm, item, score, cost, seconds, and info as JSON; with `repeats` also
            the repetition.

        Raises:
            InvalidInput: If neither is installed."""
        records = [cell._asdict() | {"info": _text(cell)} for cell in self]
        columns = self._columns
        rows = [{name: row[name] for name in columns} for row in records]
        return plain_frame(rows, library or self.frames)

    @property
    def _columns(self) -> tuple[str, ...]:
        """The columns of a table; without repetitions if there is one of each only."""
        if any(cell.repetition is not None for cell in self):
            return EvaluatedCell._fields
        return EvaluatedCell._fields[:-1]

    def write(self, path: str | Path) -> None:
        """Write the cells to a CSV or Parquet file, which `scores=` takes as it is.

        Args:
            path: Name of the file, which ends in .csv or .parquet.

        Raises:
            InvalidInput: The name ends otherwise, neither pyarrow nor polars is installed for
                Parquet, or the file cannot be written."""
        suffix = Path(path).suffix.lower()
        if suffix != ".csv" and not is_parquet(str(path)):
            raise InvalidInput(f"`path` is {shown(str(path))}, but must end in .csv or .parquet")
        try:
            if is_parquet(str(path)):
                self._write_parquet(str(path))
            else:
                self._write_csv(path)
        except OSError as error:
            raise InvalidInput(f"{shown(str(path))} cannot be written: {error}") from error

    def _write_csv(self, path: str | Path) -> None:
        columns = self._columns
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(columns)
            for cell in self:
                seconds = "" if cell.seconds is None else repr(cell.seconds)
                figures = (repr(cell.score), repr(cell.cost), seconds)
                row = (cell.arm, cell.item, *figures, _text(cell) or "", cell.repetition)
                table.writerow(row[: len(columns)])

    def _write_parquet(self, path: str) -> None:
        columns: dict[str, list[Any]] = {name: [] for name in self._columns}
        for cell in self:
            row = cell._replace(arm=str(cell.arm), item=str(cell.item), info=_text(cell))
            for name in columns:
                columns[name].append(getattr(row, name))
        if find_spec("pyarrow"):
            from pyarrow import table
            from pyarrow.parquet import write_table

            write_table(table(columns), path)
        elif find_spec("polars"):
            import polars

            polars.DataFrame(columns).write_parquet(path)
        else:
            raise InvalidInput(
                f"{shown(path)} is a Parquet file, but neither pyarrow nor polars is installed:"
                " pip install 'shortlist[parquet]'"
            )


def _text(cell: EvaluatedCell) -> str | None:
    """The info as JSON."""
    return None if cell.info is None else json.dumps(cell.info, ensure_ascii=False)
