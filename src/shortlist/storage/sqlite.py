"""A store in one SQLite file: survives crashes, and any number of programs on one machine may share
it.

Write-ahead log with synchronous = FULL: what was committed is on the disk. A transaction that will
write takes the write lock at its beginning (BEGIN IMMEDIATE), so it never finds out in its middle
that somebody else was quicker. Before it commits, the file must still be the one that was opened.
What is read is checked against the chain of the log. Not for network drives: write-ahead logging
needs shared memory."""

import os
import random
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Literal
from urllib.parse import quote

from shortlist.errors import StoreDamaged, StoreError, StoreExists, StoreMissing
from shortlist.storage import files
from shortlist.storage.chain import NOBODY, Head, beginning, chained, checked, enlisted, news_of
from shortlist.storage.schema import VERSIONS, back_up, check_integrity, upgrade, version_of
from shortlist.storage.store import Event, News, RewardRow, Told, no_such_experiment
from shortlist.storage.words import InWords, is_busy

Mode = Literal["ro", "rw", "rwc"]  # read, write, write and make the file if there is none

HEAD = "SELECT last, link FROM heads WHERE experiment = ?"
REWARDS = """SELECT seq, ticket, arm, reward, time, link FROM rewards
             WHERE experiment = ? AND seq > ? AND seq <= ? ORDER BY seq"""
EVENTS = """SELECT seq, kind, ticket, span, text, time, link FROM events
            WHERE experiment = ? AND seq > ? AND seq <= ? ORDER BY seq"""
REWARD = "INSERT INTO rewards VALUES ({}, ?, ?, ?, ?, ?, ?)"
EVENT = "INSERT INTO events VALUES ({}, ?, ?, ?, ?, ?, ?, ?)"
FIRST = "SELECT first FROM heads WHERE experiment = ?"
LINK = """SELECT link FROM rewards WHERE experiment = ? AND seq = ? UNION ALL
          SELECT link FROM events WHERE experiment = ? AND seq = ?"""
ORPHANS = """SELECT experiment, seq FROM (SELECT experiment, seq FROM rewards UNION ALL
                                          SELECT experiment, seq FROM events) AS entry
             WHERE seq > coalesce((SELECT last FROM heads
                                   WHERE heads.experiment = entry.experiment), 0)"""


class SQLiteStore:
    """Experiments in the file `path`. Threads may share it; every process must open its own.

    A writer waits up to `timeout` seconds for the others. With mode "ro" nothing is ever
    written. A new file is for its owner only."""

    def __init__(
        self, path: str | os.PathLike[str], mode: Mode = "rw", *, timeout: float = 30.0
    ) -> None:
        self.path = Path(path)
        self._timeout = timeout
        self._in_words = InWords(self.path, timeout)
        self._lock = RLock()
        self._ids: dict[str, int] = {}
        self._heads: dict[str, Head] = {}  # as far as every log was read and found right
        # what this store wrote last, between which heads: nobody need read that back
        self._written: dict[str, tuple[tuple[Head, Head], News]] = {}
        self._process = os.getpid()
        with self._in_words:
            self._connection: sqlite3.Connection = self._connect(mode)
        try:
            with self._in_words:
                self._prepare(mode)
        except BaseException:
            self._connection.close()
            raise

    def names(self) -> list[str]:
        """The experiments there are, in the order in which they were made."""
        with self._consistent():
            rows = self._query("SELECT id, name FROM experiments ORDER BY id")
            (head,) = self._query(HEAD, (0,)) or [None]
        roll = NOBODY
        for identity, name in rows:
            roll = enlisted(roll, *self._listed(identity, name))
        if roll != head:
            raise StoreDamaged(f"{self.path} is damaged: its list of experiments is not complete")
        return [name for _, name in rows]

    def settings(self, name: str) -> str:
        """What the experiment of that name was made with."""
        identity = self._id(name)
        with self._consistent():
            rows = self._query("SELECT settings FROM experiments WHERE id = ?", (identity,))
            firsts = self._query(FIRST, (identity,))
        settings = rows[0][0] if rows else None
        if not isinstance(settings, str) or firsts != [(beginning(name, settings).link,)]:
            raise StoreDamaged(f"the settings of {self._where(name)} are not as they were written")
        return settings

    def create(self, name: str, settings: str) -> None:
        """Add an experiment with an empty log, unless there is one of that name."""
        with self.exclusive():
            names = self.names()
            if name in names:
                raise StoreExists(f"there is an experiment {name!r} in {self.path} already")
            identity, first = len(names) + 1, beginning(name, settings)
            self._query("INSERT INTO experiments VALUES (?, ?, ?)", (identity, name, settings))
            self._query("INSERT INTO heads VALUES (?, ?, ?, ?)", (identity, first.link, *first))
            (roll,) = self._query(HEAD, (0,))
            self._set_head(0, enlisted(Head(*roll), identity, name))

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Let nobody else write meanwhile, in this program or any other.

        What is written inside is durable when the block ends; if it raises, nothing of it was
        written."""
        with self._lock, self._in_words:
            database = self._database()
            if database.in_transaction:
                yield
                return
            self._patiently("BEGIN IMMEDIATE")
            try:
                yield
                self._identity.check()
                database.execute("COMMIT")
            except BaseException:
                # SQLite itself ends it after some errors, a full disk among them
                if database.in_transaction:
                    database.execute("ROLLBACK")
                for known in (self._ids, self._heads, self._written):
                    known.clear()
                raise

    def read(self, name: str, after: int = 0) -> News:
        """What was added to a log after that position, if it is as it was written."""
        with self._lock, self._in_words:
            where = self._where(name)
            # All up to the head is there, whatever is added meanwhile: it was written with them.
            head, before = self._head(self._id(name), where), self._before(name, after)
            if head.position < after:
                raise StoreDamaged(f"{where} ends with row {head.position}, but had {after} before")
            if head == before:
                return News(Told.of(()), (), after)
            if name in self._written and self._written[name][0] == (before, head):
                self._heads[name] = head
                return self._written[name][1]
            new = self._id(name), after, head.position
            rewards = self._database().execute(REWARDS, new)
            events = self._database().execute(EVENTS, new)
            news = checked(before, head, rewards, events, where)
            self._heads[name] = head
            return news

    def append(
        self, name: str, told: Iterable[RewardRow] = (), events: Iterable[Event] = ()
    ) -> None:
        """Add rewards and events to a log; only inside `exclusive`."""
        with self._lock, self._in_words:
            database = self._database()
            if not database.in_transaction:
                raise StoreError("append was called outside of exclusive(), but needs it")
            identity = self._id(name)
            before = self._head(identity, self._where(name))
            rewards, others, head = chained(before, told, events)
            for statement, rows in ((REWARD, rewards), (EVENT, others)):
                database.executemany(statement.format(identity), rows)
            self._set_head(identity, head)
            self._written[name] = (before, head), news_of(rewards, others, head)

    def verify(self) -> None:
        """Refuse a file that SQLite itself finds damaged, beside what reading it finds."""
        with self._lock, self._in_words:
            check_integrity(self._database(), self.path)
            for identity, position in self._query(ORPHANS):
                raise StoreDamaged(
                    f"{self.path} has a row {position} of experiment {identity}, which ended before"
                )

    def close(self) -> None:
        """Let go of the file. The store cannot be used afterwards."""
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
        if self.path.is_dir():
            raise StoreMissing(f"{self.path} is a directory, but must be a file")
        if mode != "rwc" and not self.path.exists():
            raise StoreMissing(f"there is no file {self.path}, and only a new experiment makes one")
        if not self.path.parent.is_dir():
            raise StoreMissing(
                f"there is no directory {self.path.parent} to put {self.path.name} in"
            )

    def _prepare(self, mode: Mode) -> None:
        """See to it that the file is a store of the last version, or that a copy of it is."""
        with self._consistent():
            version = version_of(self._connection, self.path)
        if mode == "ro":
            self._prepare_to_read(version)
            return
        if version == 0:
            self._patiently("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        if version < len(VERSIONS):
            self._upgrade()
        self._identity = files.Identity(self.path)

    def _prepare_to_read(self, version: int) -> None:
        if version == 0:
            raise StoreError(f"{self.path} is empty, and only a new experiment makes a store of it")
        if version < len(VERSIONS):
            original = self._connection
            self._connection = files.in_memory(b"")
            original.backup(self._connection)
            original.close()
            upgrade(self._connection, version, self.path)
        self._connection.execute("PRAGMA query_only = ON")

    def _upgrade(self) -> None:
        """Bring the file to the last version, unless somebody else did meanwhile."""
        self._patiently("BEGIN IMMEDIATE")
        try:
            version = version_of(self._connection, self.path)
            if 0 < version < len(VERSIONS):
                back_up(self.path, version)
            if version < len(VERSIONS):
                upgrade(self._connection, version, self.path)
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

    @contextmanager
    def _consistent(self) -> Iterator[None]:
        """Let all that is read inside be of one moment."""
        with self._lock, self._in_words:
            database = self._database()
            if database.in_transaction:
                yield
                return
            database.execute("BEGIN")
            try:
                yield
            finally:
                if database.in_transaction:
                    database.execute("ROLLBACK")

    def _query(self, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
        with self._lock, self._in_words:
            rows: list[Any] = self._database().execute(statement, values).fetchall()
            return rows

    def _id(self, name: str) -> int:
        if name not in self._ids:
            names = self.names()
            if name not in names:
                raise StoreMissing(no_such_experiment(name, names, str(self.path)))
            self._ids[name] = names.index(name) + 1
        return self._ids[name]

    def _listed(self, identity: object, name: object) -> tuple[int, str]:
        if not (isinstance(identity, int) and isinstance(name, str)):
            raise StoreDamaged(f"{self.path} is damaged: an experiment is called {name!r}")
        return identity, name

    def _where(self, name: str) -> str:
        return f"experiment {name!r} in {self.path}"

    def _head(self, identity: int, where: str) -> Head:
        """Where the log ends."""
        rows = self._query(HEAD, (identity,))
        if len(rows) != 1 or not all(isinstance(value, int) for value in rows[0]):
            raise StoreDamaged(f"the end of {where} is not as it was written")
        return Head(*rows[0])

    def _set_head(self, identity: int, head: Head) -> None:
        self._query("UPDATE heads SET last = ?, link = ? WHERE experiment = ?", (*head, identity))

    def _before(self, name: str, after: int) -> Head:
        """The head that the log had when it ended with that position."""
        known, identity = self._heads.get(name), self._id(name)
        if known is not None and known.position == after:
            return known
        if after == 0:
            rows = self._query(FIRST, (identity,))
        else:
            rows = self._query(LINK, (identity, after, identity, after))
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise StoreDamaged(f"row {after} of {self._where(name)} is missing, or there twice")
        return Head(after, rows[0][0])

    def _database(self) -> sqlite3.Connection:
        if self._process != os.getpid():
            raise StoreError(
                f"{self.path} was opened by process {self._process}, but is used by {os.getpid()}: "
                "open the experiment again in every process"
            )
        return self._connection
