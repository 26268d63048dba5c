"""A store in one SQLite file: survives crashes, and all programs of one machine may share it.

The file uses a write-ahead log with synchronous = FULL: what is committed is on the disk. A
transaction that writes takes the write lock at its start (BEGIN IMMEDIATE), so it does not fail
later because another program was faster. Not for network drives: write-ahead logging needs shared
memory.

While the file is open, SQLite keeps two more files next to it: `-wal` with the last writes and
`-shm` with what the programs share. If one of the three is removed or replaced, writes are lost; so
before a commit all must still be the files that were opened."""

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock, RLock, get_ident
from types import TracebackType
from typing import Any, Literal
from urllib.parse import quote

from shortlist.errors import (
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreMissing,
    StoreReadOnly,
    StoreReplaced,
)
from shortlist.stores.base import this_machine
from shortlist.stores.sql import SQLStore, TranslatedErrors, check_process

BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
REFUSED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
DAMAGED = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_TOOBIG,
)


class SQLiteErrors(TranslatedErrors):
    """A block in which errors of SQLite become errors of this package."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._timeout = timeout

    def translate(self, error: BaseException) -> StoreError | None:
        """The corresponding error of this package."""
        if isinstance(error, sqlite3.Error):
            return _error(error, self._path, self._timeout)
        # Python could not decode the message of SQLite
        if isinstance(error, UnicodeDecodeError):
            return StoreDamaged(
                f"{self._path} is not a store of shortlist, or is damaged ({error.object!r})"
            )
        return None


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another program holds the lock."""
    return _code(error) in BUSY


def _code(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF  # the rest is detail


def _error(error: sqlite3.Error, path: Path, timeout: float) -> StoreError:
    code = _code(error)
    if code in BUSY:
        return StoreLocked(f"{path} was locked by another program for more than {timeout:g} s")
    if code in REFUSED:
        return StoreReadOnly(f"{path} can be read, but not written ({error})")
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(
            f"there is no room left for {path}; nothing of this step was written, and nothing"
            " is lost"
        )
    if code in DAMAGED or _undecodable(error):
        return StoreDamaged(f"{path} is not a store of shortlist, or is damaged ({error})")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreReadOnly(
            f"{path} cannot be opened; both it and its directory must be accessible ({error})"
        )
    return StoreError(f"{path} cannot be used: {error}")


def _undecodable(error: sqlite3.Error) -> bool:
    """Whether Python could not decode a text; SQLite has no error code for that."""
    return not hasattr(error, "sqlite_errorcode") and "decode" in str(error)


MAX_READERS = 8  # connections of readers that are kept
TRIES = 5  # to copy a file that is being written to
WAL, ROLLBACK = b"\2\2", b"\1\1"  # bytes 18 and 19: how the file is written and read

# Closing a file releases all locks of this process on it, so no lock may be taken meanwhile.
opening = Lock()


def make(path: Path) -> None:
    """Create an empty file that only its owner may read and write, unless it exists.

    SQLite gives its other files the same rights."""
    with suppress(OSError):  # SQLite reports why it cannot be created
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


class Identity:
    """The identity of the files that a store was opened with."""

    def __init__(self, path: Path) -> None:
        real = os.path.realpath(path)  # SQLite puts the others next to the target of a link
        self._name = path.name
        self._files = {file: _number(file) for file in (str(path), f"{real}-wal", f"{real}-shm")}

    def check(self) -> None:
        """Raise `StoreReplaced` if they are not the files that were opened."""
        for file, opened in self._files.items():
            found = _number(file)
            if found != opened:
                happened = "deleted or moved" if found is None else "replaced by another file"
                raise StoreReplaced(
                    f"{file} was {happened} while {self._name} was open; nothing of this step was"
                    " written; earlier rewards can be exported while it stays open"
                )


def is_out_of_reach(path: Path) -> bool:
    """Whether no program has the file open and this one cannot create the files of SQLite
    next to it."""
    real = Path(os.path.realpath(path))
    return not os.access(real.parent, os.W_OK) and not Path(f"{real}-wal").exists()


def copy_to_memory(path: Path) -> sqlite3.Connection:
    """Copy the file to memory, unless another program opens or changes it meanwhile."""
    for _ in range(TRIES):
        before = _state(path)
        content = _content(path)
        if _state(path) == before and is_out_of_reach(path):
            return in_memory(content)
        time.sleep(0.05)
    raise StoreReadOnly(f"{path} is being written to, and its directory is read-only")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreReadOnly(f"{path} cannot be opened: {error.strerror}") from error


def _state(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def in_memory(content: bytes) -> sqlite3.Connection:
    """A database in memory with this content."""
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    if content[18:20] == WAL:
        content = content[:18] + ROLLBACK + content[20:]  # there is no -wal in memory
    if content:
        memory.deserialize(content)
    return memory


def _number(file: str) -> tuple[int, int] | None:
    """The device and inode of a file, which no other file has while it is open."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


APPLICATION_ID = 0x73686F72  # "shor": distinguishes a store from other SQLite files
VERSION = 1


def append_only(*tables: str) -> tuple[str, ...]:
    """Triggers that refuse to update or delete rows of these tables, but for those of deleted
    experiments."""
    deleted = "(SELECT kept FROM heads WHERE heads.experiment = old.experiment) IS 'deleted'"
    return tuple(
        f"""CREATE TRIGGER {table}_refuse_{action} BEFORE {action} ON {table}{unless}
            BEGIN SELECT RAISE (ABORT, 'the log is append-only'); END"""
        for table in tables
        for action, unless in (("UPDATE", ""), ("DELETE", f" WHEN NOT {deleted}"))
    )


TABLES: tuple[str, ...] = (
    """CREATE TABLE experiments (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        origin TEXT NOT NULL,       -- the name it was created with
        settings TEXT NOT NULL,     -- JSON; empty if it was deleted
        summary TEXT NOT NULL       -- the part of them that lists show
    ) STRICT""",
    """CREATE TABLE rewards (
        experiment INTEGER NOT NULL,
        seq INTEGER NOT NULL,       -- position in the log, shared with events
        ticket INTEGER NOT NULL,
        arm INTEGER NOT NULL,       -- from 0
        reward REAL NOT NULL,
        time REAL NOT NULL,         -- when it was told, in seconds since 1970
        link INTEGER NOT NULL,      -- checksum of this row and of the link before it
        PRIMARY KEY (experiment, seq)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE events (
        experiment INTEGER NOT NULL,     -- 0: the list of experiments itself
        seq INTEGER NOT NULL,
        kind TEXT NOT NULL,
        ticket INTEGER NOT NULL,    -- the first it is about
        span INTEGER NOT NULL,      -- how many
        text TEXT NOT NULL,         -- step: digest, lease: worker, fail: reason
        time REAL NOT NULL,         -- lease: when it ends
        author TEXT NOT NULL,       -- name of the token it was written with; empty without one
        link INTEGER NOT NULL,
        PRIMARY KEY (experiment, seq)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE heads (
        experiment INTEGER PRIMARY KEY,  -- 0: the list of experiments itself
        first INTEGER NOT NULL,          -- link that its log begins with
        last INTEGER NOT NULL,           -- position of the last entry
        link INTEGER NOT NULL,           -- and its link
        told INTEGER NOT NULL,           -- rewards
        state TEXT NOT NULL,             -- when a worker asked last
        kept TEXT NOT NULL               -- active, archived or deleted
    ) STRICT""",
    "INSERT INTO heads VALUES (0, 0, 0, 0, 0, '', 'active')",
    """CREATE TABLE checkpoints (        -- hints: they may be removed at any time
        experiment INTEGER NOT NULL,
        first INTEGER NOT NULL,          -- position before its first entry
        last INTEGER NOT NULL,           -- position of its last entry
        link INTEGER NOT NULL,           -- and its link
        content BLOB NOT NULL,
        PRIMARY KEY (experiment, first)
    ) STRICT""",
    "CREATE UNIQUE INDEX one_reward_a_ticket ON rewards (experiment, ticket)",
    "CREATE INDEX names_taken ON events (text) WHERE experiment = 0",
    *append_only("rewards", "events"),
    """CREATE TRIGGER experiments_refuse_DELETE BEFORE DELETE ON experiments
        BEGIN SELECT RAISE (ABORT, 'the list is append-only'); END""",
    """CREATE TRIGGER experiments_refuse_UPDATE BEFORE UPDATE ON experiments
        WHEN (old.id, old.origin) IS NOT (new.id, new.origin)
            OR (old.settings, old.summary) IS NOT (new.settings, new.summary)
            AND (SELECT kept FROM heads WHERE experiment = old.id) IS NOT 'deleted'
            OR old.name IS NOT new.name AND NOT EXISTS (
                SELECT 1 FROM events WHERE experiment = 0 AND text = new.name AND ticket = old.id)
        BEGIN SELECT RAISE (ABORT, 'the list is append-only'); END""",
    """CREATE TABLE tokens (
        name TEXT PRIMARY KEY,
        scope TEXT NOT NULL,
        digest TEXT NOT NULL,       -- SHA-256 of the secret
        created REAL NOT NULL,      -- seconds since 1970
        revoked REAL,               -- null as long as it is not
        expires REAL,               -- null: never
        experiment TEXT             -- the only one it is for; null: all
    ) STRICT""",
    """CREATE VIEW reward_list AS SELECT name AS experiment, ticket,
        CASE json_type(settings, '$.arms[' || arm || ']')
            WHEN 'object' THEN json_extract(settings, '$.arms[' || arm || '].arm')
            ELSE coalesce(json_extract(settings, '$.arms[' || arm || ']'), arm) END AS arm,
        reward, strftime('%Y-%m-%dT%H:%M:%fZ', time, 'unixepoch') AS told_at
        FROM rewards JOIN experiments ON id = experiment""",
    """CREATE VIEW event_list AS SELECT coalesce(name, '') AS experiment, kind, ticket, span, text,
        author, CASE WHEN abs(time) < 1e11
            THEN strftime('%Y-%m-%dT%H:%M:%fZ', time, 'unixepoch') END AS at
        FROM events LEFT JOIN experiments ON id = experiment""",
    """CREATE TRIGGER tokens_refuse_DELETE BEFORE DELETE ON tokens
        BEGIN SELECT RAISE (ABORT, 'tokens are revoked, never removed'); END""",
    """CREATE TRIGGER tokens_refuse_UPDATE BEFORE UPDATE ON tokens
        WHEN old.revoked IS NOT NULL
            OR (old.name, old.scope, old.digest, old.created, old.expires, old.experiment)
            IS NOT (new.name, new.scope, new.digest, new.created, new.expires, new.experiment)
        BEGIN SELECT RAISE (ABORT, 'a token is only ever revoked'); END""",
)


def version_of(database: sqlite3.Connection, path: Path) -> int:
    """The schema version of a store, 0 if the file is empty; inside a transaction of the caller."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreDamaged(
            f"{path} is a database of another program, but must be a store of shortlist"
        )
    if version > VERSION:
        raise StoreError(
            f"{path} has schema version {version}, but this version of shortlist knows at most"
            f" {VERSION}: upgrade shortlist"
        )
    if version == VERSION:
        _check_schema(database, path)
    return int(version)


def make_tables(database: sqlite3.Connection) -> None:
    """Create the tables in an empty file, inside a transaction of the caller."""
    for statement in TABLES:
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {VERSION}")


def check_integrity(database: sqlite3.Connection, path: Path) -> None:
    """Raise `StoreDamaged` if SQLite finds a wrong page, index or type."""
    (found, *_) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise StoreDamaged(f"{path} is damaged: {' '.join(str(found).split())}")


def _check_schema(database: sqlite3.Connection, path: Path) -> None:
    """Raise `StoreDamaged` if a table, an index or a trigger is missing or was changed."""
    for kind, name, text in sorted(_schema() - _schema_of(database)):
        raise StoreDamaged(
            f"{path} is damaged: its {kind} {name} was changed ({' '.join(text.split())})"
        )


@cache
def _schema() -> frozenset[tuple[str, str, str]]:
    """The schema of a new file."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        make_tables(database)
        return _schema_of(database)


def _schema_of(database: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    rows = database.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return frozenset(rows)


Mode = Literal["ro", "rw", "rwc"]  # read; write; write, and create if missing


@lru_cache
def _insertion(table: str, columns: tuple[str, ...], identity: int) -> str:
    names, places = ", ".join(columns), ", ".join("?" for _ in columns)
    return f"INSERT INTO {table} (experiment, {names}) VALUES ({identity}, {places})"


class OpenFile:
    """An open SQLite file; with mode "ro", a copy in memory if it cannot be shared.

    Threads may share it and wait for each other; a forked process may not use it."""

    locking = ""  # a transaction that writes locks the whole file
    order = "rowid"

    def __init__(self, path: Path, mode: Mode, timeout: float) -> None:
        self.path = path
        self.place = str(path)
        self._timeout = timeout
        self._errors = SQLiteErrors(path, timeout)
        self._lock = RLock()
        self._process = os.getpid()
        self._writer = 0  # the thread that is in a transaction
        self._readers: list[sqlite3.Connection] | None = None  # None: a copy in memory
        self._readers_lock = Lock()
        self._closed = False
        with self._errors:
            self._connection: sqlite3.Connection = self._connect(mode)
        try:
            with self._errors:
                self._prepare(mode)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> sqlite3.Connection:
        """The connection, for this thread only; errors of the block are translated."""
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
            self._errors.__exit__(kind, error, traceback)

    @contextmanager
    def exclusive(self, arrived: Callable[[], bool]) -> Iterator[None]:
        """A transaction that excludes other writers; if the block raises, nothing is written."""
        del arrived  # no reply can be lost
        with self as database:
            self._execute_when_free("BEGIN IMMEDIATE")
            self._writer = get_ident()
            try:
                yield
                self._identity.check()
                database.execute("COMMIT")
            finally:
                self._writer = 0
                # after some errors, such as a full disk, SQLite has rolled back already
                if database.in_transaction:
                    database.execute("ROLLBACK")

    @contextmanager
    def consistent(self) -> Iterator[None]:
        """A block whose reads see one state of the database."""
        with self as database:
            database.execute("BEGIN")
            try:
                yield
            finally:
                if database.in_transaction:
                    database.execute("ROLLBACK")

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Execute a statement and return all rows."""
        with self._reading() as database:
            rows: list[Any] = database.execute(statement, values).fetchall()
            return rows

    @contextmanager
    def streamed(self, statement: str, values: Sequence[object]) -> Iterator[Iterable[Any]]:
        """Execute a statement and return its rows one by one."""
        with self._reading() as database:
            cursor = database.execute(statement, values)
            try:
                yield cursor
            finally:
                cursor.close()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for this thread. Readers have their own: none waits for a writer."""
        check_process(self._process, self.place)
        own = None if self._writer == get_ident() else self._own_reader()
        if own is None:
            with self as database:
                yield database
            return
        try:
            with self._errors:
                yield own
        finally:
            self._put_back(own)

    def _own_reader(self) -> sqlite3.Connection | None:
        """A connection of its own for a reader; None if the file is not the one that was opened,
        or cannot be opened again."""
        with self._readers_lock:
            if self._closed or self._readers is None:
                return None
            if self._readers:
                return self._readers.pop()
        own: sqlite3.Connection | None = None
        try:
            with opening:
                own = self._connected("ro")
            self._identity.check()
            own.execute("PRAGMA query_only = ON")
        except (sqlite3.Error, StoreReplaced):
            if own is not None:
                own.close()
            return None
        return own

    def _put_back(self, own: sqlite3.Connection) -> None:
        with self._readers_lock:
            if self._readers is not None and not self._closed and len(self._readers) < MAX_READERS:
                self._readers.append(own)
                return
        own.close()

    def forget(self) -> None:
        """Write the log of writes into the file and empty it: it may hold deleted rows."""
        with self as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def insert(
        self, table: str, columns: Sequence[str], identity: int, rows: Sequence[Any]
    ) -> None:
        """Insert rows of an experiment into a table."""
        if rows:
            with self as database:
                database.executemany(_insertion(table, tuple(columns), identity), rows)

    def now(self) -> float:
        """Return seconds since 1970, by the clock of this machine."""
        return this_machine()

    def close(self) -> None:
        """Close the file. It cannot be used afterwards."""
        if self._process == os.getpid():
            with self._readers_lock:
                self._closed = True
                readers, self._readers = self._readers or [], None
            for own in (*readers, self._connection):
                own.close()

    def __del__(self) -> None:
        """Close what was not closed, of which Python 3.13 warns."""
        with suppress(Exception):
            self.close()

    def _connect(self, mode: Mode) -> sqlite3.Connection:
        with opening:
            self._check_path(mode)
            if mode == "rwc":
                make(self.path)
            if mode == "ro" and is_out_of_reach(self.path):
                return copy_to_memory(self.path)
            self._readers = []
            return self._connected(mode)

    def _connected(self, mode: Mode) -> sqlite3.Connection:
        return sqlite3.connect(
            f"file:{quote(str(self.path.absolute()))}?mode={mode}",
            uri=True,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
        )

    def _check_path(self, mode: Mode) -> None:
        if "\0" in self.place:
            raise StoreMissing(f"{self.path} cannot be a file: its name contains the character 0")
        try:
            directory = self.path.is_dir()
        except OSError as error:  # such as a name that is too long
            raise StoreMissing(f"{self.path} cannot be a file: {error.strerror}") from error
        if directory:
            raise StoreMissing(f"{self.path} is a directory, but must be a file")
        if mode != "rwc" and not self.path.exists():
            raise StoreMissing(f"there is no file {self.path}; create an experiment to make one")
        if not self.path.parent.is_dir():
            raise StoreMissing(
                f"there is no directory {self.path.parent} to put {self.path.name} in"
            )

    def _prepare(self, mode: Mode) -> None:
        """Check that the file is a store; make one of an empty file."""
        with self.consistent():
            version = version_of(self._connection, self.path)
        if mode == "ro":
            self._prepare_to_read(version)
        else:
            self._prepare_to_write(version)
        self._identity = Identity(self.path)

    def _prepare_to_write(self, version: int) -> None:
        if version == 0:
            self._execute_when_free("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA secure_delete = ON")  # for deleted experiments
        if version < VERSION:
            self._make_tables()

    def _prepare_to_read(self, version: int) -> None:
        if version < VERSION:
            raise StoreError(f"{self.path} is empty; create an experiment to make a store of it")
        self._connection.execute("PRAGMA query_only = ON")

    def _make_tables(self) -> None:
        """Create the tables, unless another program did meanwhile."""
        self._execute_when_free("BEGIN IMMEDIATE")
        try:
            if version_of(self._connection, self.path) < VERSION:
                make_tables(self._connection)
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _execute_when_free(self, statement: str) -> None:
        """Execute a statement that SQLite may refuse at once while others write."""
        end = time.monotonic() + self._timeout
        while True:
            try:
                self._connection.execute(statement)
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() >= end:
                    raise
                time.sleep(random.uniform(0.001, 0.02))  # random, to avoid another collision
            else:
                return


class SQLiteStore(SQLStore):
    """Experiments in a SQLite file. Threads may share it; every process opens its own.

    Args:
        path: The file. Only its owner may read a new file.
        mode: "ro" to read, "rw" to write, "rwc" to also create a missing file.
        timeout: Seconds that a writer waits for other writers."""

    def __init__(
        self, path: str | os.PathLike[str], mode: Mode = "rw", *, timeout: float = 30.0
    ) -> None:
        self.path = Path(path)
        self._file = OpenFile(self.path, mode, timeout)
        super().__init__(self._file)

    def verify(self) -> None:
        """Raise `StoreDamaged` also for damage that only SQLite itself detects."""
        with self._file as database:
            check_integrity(database, self.path)
        super().verify()
