"""One SQLite file, opened: who may write when, and whether it is still the file it was.

Write-ahead log with synchronous = FULL: what was committed is on the disk. A transaction that will
write takes the write lock at its beginning (BEGIN IMMEDIATE), so it never finds out in its middle
that somebody else was quicker. Before it commits, the file must still be the one that was opened.
Not for network drives: write-ahead logging needs shared memory."""

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Literal
from urllib.parse import quote

from shortlist.errors import StoreError, StoreMissing
from shortlist.storage import files
from shortlist.storage.clock import this_machine
from shortlist.storage.schema import VERSION, make_tables, version_of
from shortlist.storage.words import SQLiteInWords, is_busy

Mode = Literal["ro", "rw", "rwc"]  # read, write, write and make the file if there is none


def check_process(opened_by: int, place: str) -> None:
    """Refuse what was carried into another process."""
    if opened_by != os.getpid():
        raise StoreError(
            f"{place} was opened by process {opened_by}, but is used by {os.getpid()}: open the"
            " experiment again in every process"
        )


@lru_cache
def _insertion(table: str, columns: tuple[str, ...], identity: int) -> str:
    names, places = ", ".join(columns), ", ".join("?" for _ in columns)
    return f"INSERT INTO {table} (experiment, {names}) VALUES ({identity}, {places})"


class OpenFile:
    """The file of a store, or with mode "ro" a copy of it where it cannot be shared.

    Threads may share it, and wait for one another; a process that was forked may not use it."""

    locking = ""  # a transaction that writes has locked all of it
    order = "rowid"

    def __init__(self, path: Path, mode: Mode, timeout: float) -> None:
        self.path = path
        self.place = str(path)
        self._timeout = timeout
        self._in_words = SQLiteInWords(path, timeout)
        self._lock = RLock()
        self._process = os.getpid()
        with self._in_words:
            self._connection: sqlite3.Connection = self._connect(mode)
        try:
            with self._in_words:
                self._prepare(mode)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> sqlite3.Connection:
        """The connection, for this thread only; errors of the block are put in words."""
        check_process(self._process, self.place)
        self._lock.acquire()
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()
        if error is not None:
            self._in_words.__exit__(kind, error, traceback)

    @contextmanager
    def exclusive(self, arrived: Callable[[], bool]) -> Iterator[None]:
        """Let nobody else write meanwhile; if the block raises, nothing of it was written."""
        del arrived  # there is no answer to be lost on the way
        with self as database:
            self._patiently("BEGIN IMMEDIATE")
            try:
                yield
                self._identity.check()
                database.execute("COMMIT")
            finally:
                # SQLite itself ends it after some errors, a full disk among them
                if database.in_transaction:
                    database.execute("ROLLBACK")

    @contextmanager
    def consistent(self) -> Iterator[None]:
        """Let all that is read inside be of one moment."""
        with self as database:
            database.execute("BEGIN")
            try:
                yield
            finally:
                if database.in_transaction:
                    database.execute("ROLLBACK")

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """All rows of a statement's answer."""
        with self as database:
            rows: list[Any] = database.execute(statement, values).fetchall()
            return rows

    def reading(self) -> "OpenFile":
        """Where what `rows` gives is read, as no other thread uses the connection."""
        return self

    def rows(self, statement: str, values: Sequence[object]) -> Iterable[Any]:
        """The rows of a statement's answer one by one."""
        return self._connection.execute(statement, values)

    def insert(
        self, table: str, columns: Sequence[str], identity: int, rows: Sequence[Any]
    ) -> None:
        """Add rows of an experiment to a table."""
        if rows:
            with self as database:
                database.executemany(_insertion(table, tuple(columns), identity), rows)

    def now(self) -> float:
        """Seconds since 1970, by the clock of this machine, which has the file."""
        return this_machine()

    def close(self) -> None:
        """Let go of the file. It cannot be used afterwards."""
        if self._process == os.getpid():
            self._connection.close()

    def _connect(self, mode: Mode) -> sqlite3.Connection:
        with files.opening:
            self._check_there(mode)
            if mode == "rwc":
                files.make(self.path)
            if mode == "ro" and files.is_out_of_reach(self.path):
                return files.copy_to_memory(self.path)
            return sqlite3.connect(
                f"file:{quote(str(self.path.absolute()))}?mode={mode}",
                uri=True,
                timeout=self._timeout,
                isolation_level=None,
                check_same_thread=False,
            )

    def _check_there(self, mode: Mode) -> None:
        if "\0" in self.place:
            raise StoreMissing(f"{self.path} cannot be a file: no name has the character 0")
        try:
            directory = self.path.is_dir()
        except OSError as error:  # as of a name that is too long
            raise StoreMissing(f"{self.path} cannot be a file: {error.strerror}") from error
        if directory:
            raise StoreMissing(f"{self.path} is a directory, but must be a file")
        if mode != "rwc" and not self.path.exists():
            raise StoreMissing(f"there is no file {self.path}, and only a new experiment makes one")
        if not self.path.parent.is_dir():
            raise StoreMissing(
                f"there is no directory {self.path.parent} to put {self.path.name} in"
            )

    def _prepare(self, mode: Mode) -> None:
        """See to it that the file is a store, or say why it is none."""
        with self.consistent():
            version = version_of(self._connection, self.path)
        if mode == "ro":
            self._prepare_to_read(version)
        else:
            self._prepare_to_write(version)
        self._identity = files.Identity(self.path)

    def _prepare_to_write(self, version: int) -> None:
        if version == 0:
            self._patiently("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        if version < VERSION:
            self._make_tables()

    def _prepare_to_read(self, version: int) -> None:
        if version < VERSION:
            raise StoreError(f"{self.path} is empty, and only a new experiment makes a store of it")
        self._connection.execute("PRAGMA query_only = ON")

    def _make_tables(self) -> None:
        """Make a store of the empty file, unless another program did meanwhile."""
        self._patiently("BEGIN IMMEDIATE")
        try:
            if version_of(self._connection, self.path) < VERSION:
                make_tables(self._connection)
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _patiently(self, statement: str) -> None:
        """Execute what SQLite, to be safe from deadlocks, may refuse at once while others write."""
        end = time.monotonic() + self._timeout
        while True:
            try:
                self._connection.execute(statement)
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() >= end:
                    raise
                time.sleep(random.uniform(0.001, 0.02))  # so that they do not meet again
            else:
                return
