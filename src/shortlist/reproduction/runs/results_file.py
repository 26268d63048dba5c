"""The results in one CSV file that may be cut off at any moment, and gone on with.

Rows are appended in the order of the tasks, each task's at once, so the file is always the
beginning of the finished one. Only its last task may be incomplete, and is done again."""

import csv
import io
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from shortlist.errors import InvalidInput
from shortlist.reproduction.runs.rows import COLUMNS, ResultRow, read
from shortlist.reproduction.runs.tasks import TaskName, name_of


class ResultsFile:
    """The results of one design, in a folder of their own."""

    def __init__(
        self, folder: Path, record: Mapping[str, object], anytime: Collection[str]
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        _claim(folder / "settings.json", record)
        self.path = folder / "results.csv"
        self.anytime = anytime
        self.rows = self._recover()

    @property
    def done(self) -> set[TaskName]:
        """The names of all tasks whose rows are here."""
        return {self._task(row) for row in self.rows}

    def append(self, rows: Sequence[ResultRow]) -> None:
        """Add the rows of one task; they are on the disk when this returns."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_lines(row.cells() for row in rows))
            file.flush()
            os.fsync(file.fileno())
        self.rows += rows

    def _task(self, row: ResultRow) -> TaskName:
        return name_of(row, self.anytime)

    def _recover(self) -> list[ResultRow]:
        """All rows but those of the last task; the file is cut off there."""
        lines = self._whole_lines()
        table = enumerate(csv.reader(lines[1:]), start=2)
        rows = [read(cells, f"line {number} of {self.path}") for number, cells in table]
        tasks = [list(group) for _, group in groupby(rows, key=self._task)]
        kept = sum(map(len, tasks[:-1]))
        replace(self.path, "".join(lines[: 1 + kept]))
        return rows[:kept]

    def _whole_lines(self) -> list[str]:
        """The header and all lines that were written to their end."""
        header = _lines([COLUMNS])
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines(keepends=True) or [header]
        if lines[0] != header:
            raise InvalidInput(
                f"{self.path} begins with {lines[0].strip()!r}, but must hold results"
            )
        return lines


def replace(path: Path, text: str) -> None:
    """Write a file so that at any moment there is either the old one or the new one."""
    draft = path.with_name(path.name + ".part")
    with draft.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _claim(path: Path, record: Mapping[str, object]) -> None:
    """Note the record of a folder's design, or refuse to mix it with another."""
    if not path.exists():
        replace(path, json.dumps(record, indent=2) + "\n")
    found = json.loads(path.read_text(encoding="utf-8"))
    for name in found | dict(record):
        was = json.dumps(found.get(name))
        now = json.dumps(record.get(name))
        if now != was:
            raise InvalidInput(
                f"`{name}` is {now}, but must be {was} to go on with {path.parent}; choose another"
                " folder"
            )


def _lines(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
