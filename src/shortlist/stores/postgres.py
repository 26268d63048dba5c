"""A store in PostgreSQL, which programs on several machines may share.

Needs psycopg and psycopg_pool: `pip install 'shortlist[postgres]'`."""

import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from threading import local
from typing import Any, TypeVar, get_type_hints

import numpy as np
import psycopg
from psycopg import Connection
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from shortlist.errors import (
    InvalidInput,
    NotAllowed,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreInterrupted,
    StoreLocked,
    StoreMissing,
    StoreReadOnly,
    Unreachable,
)
from shortlist.stores.address import check_address, shown_place, without_secrets
from shortlist.stores.base import TOLD, Event, ServerClock
from shortlist.stores.sql import SQLStore, TranslatedErrors, check_process
from shortlist.stores.sqlite import Mode

logger = logging.getLogger("shortlist.stores")
ESCAPE = "\ue000"  # PostgreSQL has no character 0 in texts


def escaped(text: str) -> str:
    """A text as it is stored, without the character 0."""
    return text.replace(ESCAPE, f"{ESCAPE}1").replace("\0", f"{ESCAPE}0")


def unescaped(text: str) -> str:
    """The text that is stored so."""
    return text.replace(f"{ESCAPE}0", "\0").replace(f"{ESCAPE}1", ESCAPE)


# a conflict, or the server ended the transaction: nothing of it was written
UNDONE = (pg.SerializationFailure, pg.DeadlockDetected, pg.IdleInTransactionSessionTimeout)
WAITED = (pg.LockNotAvailable, pg.QueryCanceled)
REFUSED = (pg.ReadOnlySqlTransaction, pg.InsufficientPrivilege)
FULL = (pg.DiskFull, pg.OutOfMemory, pg.ConfigurationLimitExceeded)
DAMAGED = (pg.DataCorrupted, pg.IndexCorrupted, pg.UndefinedTable, pg.UndefinedColumn)
# errors of a connection that no retry would mend; in another language they are retried for a while
FINAL = re.compile(
    r"authentication|password|pg_hba|role |does not exist|translate host|certificate"
)


class PostgresErrors(TranslatedErrors):
    """A block in which errors of PostgreSQL become errors of this package."""

    quotable = False  # messages of psycopg may quote the password

    def __init__(self, url: str, timeout: float) -> None:
        self._url = url
        self._timeout = timeout

    def translate(self, error: BaseException) -> StoreError | NotAllowed | None:
        """The corresponding error of this package."""
        if not isinstance(error, psycopg.Error):
            return None
        place = shown_place(self._url)
        message = without_secrets(" ".join(str(error).split()), self._url)
        if isinstance(error, PoolClosed):
            return StoreError(f"{place} cannot be used: it was closed")
        if isinstance(error, PoolTimeout):
            return Unreachable(f"{place} did not answer within {self._timeout:g} s")
        if isinstance(error, UNDONE) or is_lost(error):
            return StoreInterrupted(
                f"the connection to {place} was lost; nothing of this step was written ({message})"
            )
        if isinstance(error, WAITED):
            return StoreLocked(
                f"{place} was locked by another program for more than {self._timeout:g} s"
            )
        if isinstance(error, REFUSED):
            return StoreReadOnly(f"{place} can be read, but not written ({message})")
        if isinstance(error, FULL):
            return StoreFull(
                f"there is no room left for {place}; nothing of this step was written, and nothing"
                f" is lost ({message})"
            )
        if isinstance(error, DAMAGED):
            return StoreDamaged(f"{place} is not a store of shortlist, or is damaged ({message})")
        return StoreError(f"{place} cannot be used: {message}")


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is lost: the server ended it, or the reason is unknown."""
    state = error.sqlstate or ""
    unknown = isinstance(error, psycopg.OperationalError) and not state
    return unknown or state.startswith("08") or state in ("57P01", "57P02", "57P03", "53300")


def permanent_error(error: psycopg.OperationalError, url: str) -> StoreError | None:
    """The error of a connection that no retry would mend; None if the server may be starting."""
    said = without_secrets(" ".join(str(error).split()), url)
    if not FINAL.search(said):
        return None
    kind = StoreMissing if "does not exist" in said else StoreError
    return kind(f"{shown_place(url)} cannot be opened: {said}")


SCHEMA = "shortlist"
LOCK = 0x73686F72  # "shor": held while the tables are created
VERSION = 1


def append_only(*tables: str) -> tuple[str, ...]:
    """Triggers that refuse to update or delete rows of these tables, but for those of deleted
    experiments."""
    return tuple(
        statement
        for table in tables
        for statement in (
            f"""CREATE TRIGGER {table}_refuse BEFORE UPDATE OR TRUNCATE ON {table}
            EXECUTE FUNCTION refuse('the log is append-only')""",
            f"""CREATE TRIGGER {table}_refuse_delete BEFORE DELETE ON {table} FOR EACH ROW
            EXECUTE FUNCTION refuse_unless_deleted()""",
        )
    )


TABLES: tuple[str, ...] = (
    "CREATE TABLE version (version bigint NOT NULL)",
    f"INSERT INTO version VALUES ({VERSION})",
    """CREATE TABLE experiments (
        id bigint PRIMARY KEY,
        name text NOT NULL UNIQUE,
        origin text NOT NULL,               -- the name it was created with
        settings text NOT NULL,             -- JSON; empty if it was deleted
        summary text NOT NULL               -- the part of them that lists show
    )""",
    """CREATE TABLE rewards (
        experiment bigint NOT NULL,
        seq bigint NOT NULL,                -- position in the log, shared with events
        ticket bigint NOT NULL,
        arm bigint NOT NULL,                -- from 0
        reward double precision NOT NULL,
        time double precision NOT NULL,     -- when it was told, in seconds since 1970
        link bigint NOT NULL,               -- checksum of this row and of the link before it
        PRIMARY KEY (experiment, seq)
    )""",
    "CREATE UNIQUE INDEX one_reward_a_ticket ON rewards (experiment, ticket)",
    """CREATE TABLE events (
        experiment bigint NOT NULL,
        seq bigint NOT NULL,
        kind text NOT NULL,
        ticket bigint NOT NULL,             -- the first it is about
        span bigint NOT NULL,               -- how many
        text text NOT NULL,                 -- step: digest, lease: worker, fail: reason
        time double precision NOT NULL,     -- lease: when it ends
        author text NOT NULL,               -- name of the token it was written with, or empty
        link bigint NOT NULL,
        PRIMARY KEY (experiment, seq)
    )""",
    """CREATE TABLE heads (
        experiment bigint PRIMARY KEY,      -- 0: the list of experiments itself
        first bigint NOT NULL,              -- link that its log begins with
        last bigint NOT NULL,               -- position of the last entry
        link bigint NOT NULL,               -- and its link
        told bigint NOT NULL,               -- rewards
        state text NOT NULL,                -- when a worker asked last
        kept text NOT NULL                  -- active, archived or deleted
    ) WITH (fillfactor = 50)                -- its rows change with every step""",
    "INSERT INTO heads VALUES (0, 0, 0, 0, 0, '', 'active')",
    """CREATE TABLE checkpoints (           -- hints: they may be removed at any time
        experiment bigint NOT NULL,
        first bigint NOT NULL,              -- position before its first entry
        last bigint NOT NULL,               -- position of its last entry
        link bigint NOT NULL,               -- and its link
        content bytea NOT NULL,
        PRIMARY KEY (experiment, first)
    )""",
    "CREATE INDEX names_taken ON events (text) WHERE experiment = 0",
    """CREATE TABLE tokens (
        number bigint GENERATED ALWAYS AS IDENTITY,
        name text PRIMARY KEY,
        scope text NOT NULL,
        digest text NOT NULL,               -- SHA-256 of the secret
        created double precision NOT NULL,  -- seconds since 1970
        revoked double precision,           -- null as long as it is not
        expires double precision,           -- null: never
        experiment text                     -- the only one it is for; null: all
    )""",
    """CREATE VIEW reward_list AS SELECT name AS experiment, ticket,
        CASE jsonb_typeof(settings::jsonb -> 'arms') WHEN 'array'
            THEN coalesce(settings::jsonb -> 'arms' -> arm::int ->> 'arm',
                          settings::jsonb -> 'arms' ->> arm::int)
            ELSE arm::text END AS arm,
        reward, to_timestamp(time) AS told_at
        FROM rewards JOIN experiments ON id = experiment""",
    """CREATE VIEW event_list AS SELECT coalesce(name, '') AS experiment, kind, ticket, span, text,
        author, CASE WHEN abs(time) < 1e11 THEN to_timestamp(time) END AS at
        FROM events LEFT JOIN experiments ON id = experiment""",
    """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$""",
    """CREATE FUNCTION refuse_unless_deleted() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN
            IF EXISTS (SELECT 1 FROM shortlist.heads
                       WHERE experiment = old.experiment AND kept = 'deleted') THEN
                RETURN old;
            END IF;
            RAISE EXCEPTION 'the log is append-only';
        END $$""",
    """CREATE FUNCTION refuse_other_settings() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN
            IF (old.id, old.origin) IS DISTINCT FROM (new.id, new.origin)
                OR (old.settings, old.summary) IS DISTINCT FROM (new.settings, new.summary)
                AND NOT EXISTS (SELECT 1 FROM shortlist.heads
                                WHERE experiment = old.id AND kept = 'deleted')
                OR old.name IS DISTINCT FROM new.name
                AND NOT EXISTS (SELECT 1 FROM shortlist.events WHERE experiment = 0
                                AND text = new.name AND ticket = old.id) THEN
                RAISE EXCEPTION 'the list is append-only';
            END IF;
            RETURN new;
        END $$""",
    *append_only("rewards", "events"),
    """CREATE TRIGGER experiments_refuse BEFORE DELETE OR TRUNCATE ON experiments
        EXECUTE FUNCTION refuse('the list is append-only')""",
    """CREATE TRIGGER experiments_refuse_update BEFORE UPDATE ON experiments FOR EACH ROW
        EXECUTE FUNCTION refuse_other_settings()""",
    """CREATE TRIGGER tokens_refuse BEFORE DELETE OR TRUNCATE ON tokens
        EXECUTE FUNCTION refuse('tokens are revoked, never removed')""",
    """CREATE TRIGGER tokens_refuse_update BEFORE UPDATE ON tokens FOR EACH ROW
        WHEN (old.revoked IS NOT NULL
            OR (old.name, old.scope, old.digest, old.created, old.expires, old.experiment)
            IS DISTINCT FROM
            (new.name, new.scope, new.digest, new.created, new.expires, new.experiment))
        EXECUTE FUNCTION refuse('a token is only ever revoked')""",
)


def prepare(connection: Connection[Any], mode: Mode, place: str) -> None:
    """Create the tables if they are missing and the mode allows it."""
    version = version_of(connection, place)
    if version == 0 and mode != "rwc":
        raise StoreMissing(f"there is no store in {place}; create an experiment to make one")
    if version == 0:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            if version_of(connection, place) == 0:  # no other program created them meanwhile
                _make_tables(connection, place)


def version_of(connection: Connection[Any], place: str) -> int:
    """The schema version of the tables; 0 if there are none."""
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = %s"
    (count,) = _one(connection, tables, SCHEMA)
    if not count:
        return 0
    (table,) = _one(connection, "SELECT to_regclass(%s)::text", f"{SCHEMA}.version")
    if table is None:
        raise StoreDamaged(
            f"{place} has tables of another program in its schema {SCHEMA}, but must have those of"
            " a store"
        )
    (version,) = _one(connection, f"SELECT max(version) FROM {SCHEMA}.version")
    if version is None or version > VERSION:
        raise StoreError(
            f"{place} has schema version {version}, but this version of shortlist knows at most"
            f" {VERSION}: upgrade shortlist"
        )
    return int(version)


def _make_tables(connection: Connection[Any], place: str) -> None:
    _make_schema(connection, place)
    connection.execute(f"SET LOCAL search_path = {SCHEMA}")
    for statement in TABLES:
        connection.execute(statement.encode())


def _make_schema(connection: Connection[Any], place: str) -> None:
    (encoding,) = _one(connection, "SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise StoreError(f"{place} has the encoding {encoding}, but must be a database in UTF8")
    (exists,) = _one(connection, "SELECT count(*) FROM pg_namespace WHERE nspname = %s", SCHEMA)
    if not exists:  # an administrator may have created it for roles that may not
        connection.execute(f"CREATE SCHEMA {SCHEMA}")


def _one(connection: Connection[Any], statement: str, *values: object) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(statement.encode(), values or None).fetchone()
    assert row is not None
    return row


FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0  # seconds before the next try; doubles each time
MAX_CONNECTIONS = 20  # of one program
# a lost connection is noticed within a minute
CONNECTION: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "fallback_application_name": "shortlist",
}
IDLE = 600  # seconds after which the server ends an idle transaction
# Durable means on the disk: servers that acknowledge earlier are told not to.
SESSION = f"""SELECT set_config('search_path', '{SCHEMA}', false),
    set_config('lock_timeout', %s, false),
    set_config('idle_in_transaction_session_timeout', '{IDLE}s', false),
    set_config('default_transaction_read_only', %s, false),
    CASE current_setting('synchronous_commit') WHEN 'off'
        THEN set_config('synchronous_commit', 'on', false) END"""
TIME = "SELECT extract(epoch FROM clock_timestamp())::double precision"
NUMBER, REAL, TEXT = "bigint", "double precision", "text"
FROM_PYTHON: dict[str, Callable[[Any], Any]] = {NUMBER: int, REAL: float, TEXT: escaped}
OF_PYTHON = {int: NUMBER, float: REAL}  # the rest are texts
OF_NUMPY = {name: REAL if TOLD[name] == np.float64 else NUMBER for name in TOLD.names or ()}
OF_EVENTS = {name: OF_PYTHON.get(kind, TEXT) for name, kind in get_type_hints(Event).items()}
TYPES = {"seq": NUMBER, "link": NUMBER, **OF_NUMPY, **OF_EVENTS}
Got = TypeVar("Got")


class Connections:
    """A pool of connections. Threads may share it; a forked process may not use it."""

    locking = " FOR UPDATE"
    order = "number"

    def __init__(self, url: str, mode: Mode, timeout: float) -> None:
        check_address(url)
        self.place = shown_place(url)
        self._url, self._mode, self._timeout = url, mode, timeout
        self._errors = PostgresErrors(url, timeout)
        self._process = os.getpid()
        self._clock = ServerClock(lambda: float(self.query(TIME)[0][0]))
        self._own = local()  # the connection of the transaction that this thread is in
        self._given = {
            **CONNECTION,
            **_settings(url),
            "autocommit": True,
            "client_encoding": "utf8",
        }
        self._retry(self._prepare)
        self._pool = ConnectionPool(
            kwargs=self._given,
            min_size=0,
            max_size=MAX_CONNECTIONS,
            open=True,
            configure=self._configure,
            timeout=timeout,
            reconnect_timeout=timeout,
            num_workers=1,
        )

    @contextmanager
    def exclusive(self, arrived: Callable[[], bool]) -> Iterator[None]:
        """A transaction; if the block raises, nothing is written."""
        check_process(self._process, self.place)
        connection = self._retry(self._begun)
        self._own.connection = connection
        try:
            with self._errors:
                yield
                answered = self._commit(connection)
        finally:
            self._own.connection = None
            self._give_back(connection)
        if not answered and not arrived():
            raise StoreInterrupted(
                f"the connection to {self.place} was lost; nothing of this step was written"
            )

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Execute a statement and return all rows."""
        return [tuple(map(_given, row)) for row in self.rows(statement, values)]

    def streamed(self, statement: str, values: Sequence[object]) -> "nullcontext[Iterable[Any]]":
        """Rows can be read anywhere: they are fetched at once."""
        return nullcontext(self.rows(statement, values))

    def forget(self) -> None:
        """The server removes deleted rows from its files on its own (VACUUM)."""

    def rows(self, statement: str, values: Sequence[object] = ()) -> Iterable[Any]:
        """Execute a statement and return its rows, decoded one by one."""
        check_process(self._process, self.place)
        own: Connection[Any] | None = getattr(self._own, "connection", None)
        if own is not None:
            return _answer(own, statement, values)
        return self._retry(lambda: self._ask(statement, values))

    def insert(
        self, table: str, columns: Sequence[str], identity: int, rows: Sequence[Any]
    ) -> None:
        """Insert rows of an experiment into a table, with one statement."""
        if not rows:
            return
        types = [TYPES[name] for name in columns]
        given = [
            list(map(FROM_PYTHON[kind], column))
            for kind, column in zip(types, zip(*rows, strict=True), strict=True)
        ]
        places = ", ".join(f"?::{kind}[]" for kind in types)
        names = ", ".join(columns)
        statement = (
            f"INSERT INTO {table} (experiment, {names}) SELECT ?::bigint, * FROM unnest({places})"
        )
        self.rows(statement, (identity, *given))

    def now(self) -> float:
        """Return seconds since 1970, by the clock of the server."""
        return self._clock()

    def close(self) -> None:
        """Close all connections. They cannot be used afterwards."""
        if self._process == os.getpid():
            self._pool.close()

    def _prepare(self) -> None:
        with self._connect() as connection:
            prepare(connection, self._mode, self.place)

    def _connect(self) -> Connection[Any]:
        try:
            return psycopg.connect(**self._given)
        except psycopg.OperationalError as error:
            permanent = permanent_error(error, self._url)
            if permanent is not None:
                raise permanent from None
            raise

    def _configure(self, connection: Connection[Any]) -> None:
        read_only = "on" if self._mode == "ro" else "off"
        connection.execute(SESSION, (f"{round(1000 * self._timeout)}ms", read_only))

    def _ask(self, statement: str, values: Sequence[object]) -> Iterable[Any]:
        connection = self._pool.getconn()
        try:
            return _answer(connection, statement, values)
        finally:
            self._give_back(connection)

    def _begun(self) -> Connection[Any]:
        """A connection with an open transaction."""
        connection = self._pool.getconn()
        try:
            connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        except BaseException:
            self._give_back(connection)
            raise
        return connection

    def _commit(self, connection: Connection[Any]) -> bool:
        """Commit; False if the reply was lost, so it is unknown whether it was made."""
        if connection.info.transaction_status is TransactionStatus.INERROR:
            raise StoreError(f"{self.place} refused a statement of this step: nothing was written")
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if not is_lost(error):
                raise
            logger.warning("The reply of %s to a commit was lost.", self.place)
            return False
        return True

    def _give_back(self, connection: Connection[Any]) -> None:
        """Return a connection to the pool, which discards a broken one."""
        with suppress(psycopg.Error):
            if connection.info.transaction_status is not TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        self._pool.putconn(connection)

    def _retry(self, act: Callable[[], Got]) -> Got:
        """Repeat a call that writes nothing until it succeeds or the timeout is over."""
        deadline, pause = time.monotonic() + self._timeout, FIRST_PAUSE
        while True:
            try:
                with self._errors:
                    return act()
            except StoreInterrupted as error:
                if time.monotonic() + pause > deadline:
                    raise Unreachable(f"{self.place} does not answer: {error}") from None
                if pause == FIRST_PAUSE:
                    logger.warning("%s does not answer; retrying: %s", self.place, error)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def _settings(url: str) -> dict[str, Any]:
    """The connection settings in an address."""
    try:
        return conninfo_to_dict(url)
    except psycopg.Error as error:
        said = without_secrets(" ".join(str(error).split()), url)
        raise InvalidInput(f"`store` is {shown_place(url)}, but {said}") from None


def _answer(connection: Connection[Any], statement: str, values: Sequence[object]) -> Iterable[Any]:
    text = statement.replace("?", "%s").encode()
    sent = [escaped(value) if isinstance(value, str) else value for value in values]
    cursor = connection.execute(text, sent or None, binary=True)
    return () if cursor.description is None else cursor


def _given(value: Any) -> Any:
    return unescaped(value) if isinstance(value, str) else value


class PostgresStore(SQLStore):
    """Experiments in a PostgreSQL database, in the schema `shortlist`.

    Threads may share it; every process opens its own. Writers of the same experiment wait for each
    other; those of different experiments do not.

    Args:
        url: The address, such as postgresql://user@host:5432/database.
        mode: "ro" to read, "rw" to write, "rwc" to also create missing tables.
        timeout: Seconds to wait for other writers, and for a server that does not answer."""

    def __init__(self, url: str, mode: Mode = "rw", *, timeout: float = 30.0) -> None:
        self._connections = Connections(url, mode, timeout)
        super().__init__(self._connections)

    def __repr__(self) -> str:
        return f"<PostgresStore {self._connections.place}>"
