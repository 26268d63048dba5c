"""A store in one SQLite file: survives crashes, and any number of programs on one machine may share
it."""

import os
from pathlib import Path

from shortlist.storage.connection import Mode, OpenFile
from shortlist.storage.schema import check_integrity
from shortlist.storage.sql import SQLStore


class SQLiteStore(SQLStore):
    """Experiments in the file `path`. Threads may share it; every process must open its own.

    A writer waits up to `timeout` seconds for the others. With mode "ro" nothing is ever
    written. A new file is for its owner only."""

    def __init__(
        self, path: str | os.PathLike[str], mode: Mode = "rw", *, timeout: float = 30.0
    ) -> None:
        self.path = Path(path)
        self._file = OpenFile(self.path, mode, timeout)
        super().__init__(self._file)

    def verify(self) -> None:
        """Refuse a file that SQLite itself finds damaged, beside what reading it finds."""
        with self._file as database:
            check_integrity(database, self.path)
        super().verify()
