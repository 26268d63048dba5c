"""A store in one SQLite file: survives crashes, and any number of programs on one machine may share
it.

Write-ahead log with synchronous = FULL: what was committed is on the disk. A transaction that will
write takes the write lock at its beginning (BEGIN IMMEDIATE), so it never finds out in its middle
that somebody else was quicker. Not for network drives: write-ahead logging needs shared memory."""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Literal
from urllib.parse import quote

from shortlist.errors import (
    InvalidInput,
    StoreDamaged,
    StoreError,
    StoreExists,
    StoreFull,
    StoreLocked,
    StoreMissing,
    StoreReadOnly,
)
from shortlist.storage.schema import VERSIONS, upgrade, version_of
from shortlist.storage.store import Event, Kind, News, RewardRow, Told, no_such_experiment

Mode = Literal["ro", "rw", "rwc"]  # read, write, write and make the file if there is none

LAST = """SELECT max(coalesce((SELECT max(seq) FROM rewards WHERE experiment = :id), 0),
                     coalesce((SELECT max(seq) FROM events WHERE experiment = :id), 0))"""
NEW_REWARDS = """SELECT ticket, arm, reward, time FROM rewards
                 WHERE experiment = :id AND seq > :after AND seq <= :last ORDER BY seq"""
NEW_EVENTS = """SELECT kind, ticket, span, text, time FROM events AS event
                WHERE experiment = :id AND seq > :after AND seq <= :last
                AND (:everything OR kind != 'lease' OR span > (
                    SELECT count(*) FROM rewards WHERE experiment = :id AND seq <= :last
                    AND ticket >= event.ticket AND ticket < event.ticket + event.span
                )) ORDER BY seq"""


class SQLiteStore:
    """Experiments in the file `path`. Threads may share it; every process must open its own.

    A writer waits up to `timeout` seconds for the others. With mode "ro" nothing is ever
    written."""

    def __init__(
        self, path: str | os.PathLike[str], mode: Mode = "rw", *, timeout: float = 30.0
    ) -> None:
        self.path = Path(path)
        self._timeout = timeout
        self._lock = RLock()
        self._ids: dict[str, int] = {}
        self._process = os.getpid()
        self._check_there(mode)
        with self._in_words():
            self._connection: sqlite3.Connection = self._connect(mode)
        try:
            self._prepare(mode)
        except BaseException:
            self._connection.close()
            raise

    def names(self) -> list[str]:
        """The experiments there are, in the order in which they were made."""
        return [name for (name,) in self._query("SELECT name FROM experiments ORDER BY id")]

    def settings(self, name: str) -> str:
        """What the experiment of that name was made with."""
        ((settings,),) = self._query(
            "SELECT settings FROM experiments WHERE id = ?", (self._id(name),)
        )
        return str(settings)

    def create(self, name: str, settings: str) -> None:
        """Add an experiment with an empty log, unless there is one of that name."""
        with self.exclusive():
            if name in self.names():
                raise StoreExists(f"there is an experiment {name!r} in {self.path} already")
            self._query("INSERT INTO experiments (name, settings) VALUES (?, ?)", (name, settings))

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Let nobody else write meanwhile, in this program or any other.

        What is written inside is durable when the block ends; if it raises, nothing of it was
        written."""
        with self._lock, self._in_words():
            database = self._database()
            if database.in_transaction:
                yield
                return
            database.execute("BEGIN IMMEDIATE")
            try:
                yield
                database.execute("COMMIT")
            except BaseException:
                # SQLite itself ends it after some errors, a full disk among them
                if database.in_transaction:
                    database.execute("ROLLBACK")
                self._ids.clear()
                raise

    def read(self, name: str, after: int = 0, *, everything: bool = False) -> News:
        """What was added to a log after that position; leases of tickets that are all told only
        with `everything`."""
        with self._lock, self._in_words():
            database = self._database()
            bounds = {"id": self._id(name), "after": after, "everything": everything}
            # Positions are given out under the write lock: all up to `last` are there, whatever is
            # added meanwhile.
            (last,) = database.execute(LAST, bounds).fetchone()
            if last == after:
                return News(Told.of(()), (), last)
            told = Told.of(database.execute(NEW_REWARDS, {**bounds, "last": last}))
            events = database.execute(NEW_EVENTS, {**bounds, "last": last})
            return News(told, [Event(Kind(kind), *rest) for kind, *rest in events], last)

    def append(
        self, name: str, told: Iterable[RewardRow] = (), events: Iterable[Event] = ()
    ) -> None:
        """Add rewards and events to a log; only inside `exclusive`."""
        with self._lock, self._in_words():
            database = self._database()
            if not database.in_transaction:
                raise StoreError("append was called outside of exclusive(), but needs it")
            identity = self._id(name)
            (seq,) = database.execute(LAST, {"id": identity}).fetchone()
            rewards = [(identity, position, *row) for position, row in enumerate(told, seq + 1)]
            others = [
                (identity, position, *row)
                for position, row in enumerate(events, seq + 1 + len(rewards))
            ]
            database.executemany("INSERT INTO rewards VALUES (?, ?, ?, ?, ?, ?)", rewards)
            database.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", others)

    def close(self) -> None:
        """Let go of the file. The store cannot be used afterwards."""
        if self._process == os.getpid():
            self._connection.close()

    def _check_there(self, mode: Mode) -> None:
        if self.path.is_dir():
            raise StoreMissing(f"{self.path} is a directory, but must be a file")
        if mode != "rwc" and not self.path.exists():
            raise StoreMissing(f"there is no file {self.path}, and only a new experiment makes one")
        if not self.path.parent.is_dir():
            raise StoreMissing(
                f"there is no directory {self.path.parent} to put {self.path.name} in"
            )

    def _connect(self, mode: Mode) -> sqlite3.Connection:
        address = f"file:{quote(str(self.path.absolute()))}?mode={mode}"
        if (
            mode == "ro"
            and not os.access(self.path.parent, os.W_OK)
            and not Path(f"{self.path}-wal").exists()
        ):
            # even a reader would make a file for shared memory, and here it cannot
            address += "&immutable=1"
        return sqlite3.connect(
            address, uri=True, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )

    def _prepare(self, mode: Mode) -> None:
        """See to it that the file is a store of the last version."""
        with self._in_words():
            version = version_of(self._connection, self.path)
            if mode == "ro" and version < len(VERSIONS):
                raise StoreError(
                    f"{self.path} has schema version {version}, but {len(VERSIONS)} is needed: "
                    "open it for writing once, which upgrades it"
                )
            if version == 0:
                self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            if version < len(VERSIONS):
                with self.exclusive():
                    upgrade(self._connection, self.path)

    def _query(self, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
        with self._lock, self._in_words():
            rows: list[Any] = self._database().execute(statement, values).fetchall()
            return rows

    def _id(self, name: str) -> int:
        if name not in self._ids:
            rows = self._query("SELECT id FROM experiments WHERE name = ?", (name,))
            if not rows:
                raise StoreMissing(no_such_experiment(name, self.names(), str(self.path)))
            self._ids[name] = rows[0][0]
        return self._ids[name]

    def _database(self) -> sqlite3.Connection:
        if self._process != os.getpid():
            raise StoreError(
                f"{self.path} was opened by process {self._process}, but is used by {os.getpid()}: "
                "open the experiment again in every process"
            )
        return self._connection

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Turn what SQLite says into errors of this package."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._error(error) from error
        # half of a character, as in names of files that are not UTF-8
        except UnicodeEncodeError as error:
            raise InvalidInput(f"{error.object!r} is to be stored, but is no valid text") from error

    def _error(self, error: sqlite3.Error) -> StoreError:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the rest is detail
        path = self.path
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreLocked(
                f"{path} was locked by another program for more than {self._timeout:g} s"
            )
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            return StoreReadOnly(f"{path} can be read, but not written ({error})")
        if code == sqlite3.SQLITE_FULL:
            return StoreFull(
                f"there is no room left for {path}; nothing of this step was written, and nothing"
                " is lost"
            )
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return StoreDamaged(f"{path} is not a store of shortlist, or is damaged ({error})")
        if code == sqlite3.SQLITE_CANTOPEN:
            return StoreReadOnly(
                f"{path} cannot be opened; both it and its directory must be accessible ({error})"
            )
        return StoreError(f"{path} cannot be used: {error}")
