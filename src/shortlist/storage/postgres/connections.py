"""Connections to one PostgreSQL: who may write when, and what is done when one breaks.

Reads are made again, more and more seldom, until they are answered or patience ends. A transaction
that broke before its end was not made, and whoever began it begins it again. If only the answer to
its commit was lost, it is looked up whether it was made: nothing is lost, and nothing is done
twice. A server that answers has it on its disk, as far as its own settings allow."""

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from threading import local
from typing import Any, TypeVar, get_type_hints

import numpy as np
import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool

from shortlist.errors import InvalidInput, StoreError, StoreInterrupted, Unreachable
from shortlist.storage.address import check_address, shown_place, without_secrets
from shortlist.storage.clock import ServerClock
from shortlist.storage.connection import Mode, check_process
from shortlist.storage.postgres.schema import SCHEMA, prepare
from shortlist.storage.postgres.texts import given, kept
from shortlist.storage.postgres.words import PostgresInWords, is_lost, refused_at_the_door
from shortlist.storage.store import TOLD, Event

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0  # seconds before the next try: doubled each time
MOST = 20  # connections of one program
# a connection to a machine that is gone is noticed within a minute
MANNERS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "fallback_application_name": "shortlist",
}
IDLE = 600  # seconds after which a transaction ends in which a program does nothing
# Durable means on the disk: a server that would answer before that is told not to.
SESSION = f"""SELECT set_config('search_path', '{SCHEMA}', false),
    set_config('lock_timeout', %s, false),
    set_config('idle_in_transaction_session_timeout', '{IDLE}s', false),
    set_config('default_transaction_read_only', %s, false),
    CASE current_setting('synchronous_commit') WHEN 'off'
        THEN set_config('synchronous_commit', 'on', false) END"""
TIME = "SELECT extract(epoch FROM clock_timestamp())::double precision"
NUMBER, REAL, TEXT = "bigint", "double precision", "text"
FROM_PYTHON: dict[str, Callable[[Any], Any]] = {NUMBER: int, REAL: float, TEXT: kept}
OF_PYTHON = {int: NUMBER, float: REAL}  # the rest are texts
OF_NUMPY = {name: REAL if TOLD[name] == np.float64 else NUMBER for name in TOLD.names or ()}
OF_EVENTS = {name: OF_PYTHON.get(kind, TEXT) for name, kind in get_type_hints(Event).items()}
TYPES = {"seq": NUMBER, "link": NUMBER, **OF_NUMPY, **OF_EVENTS}
logger = logging.getLogger("shortlist.storage")
Got = TypeVar("Got")


class Connections:
    """A pool of connections. Threads may share it; a process that was forked may not use it."""

    locking = " FOR UPDATE"
    order = "number"

    def __init__(self, url: str, mode: Mode, timeout: float) -> None:
        check_address(url)
        self.place = shown_place(url)
        self._url, self._mode, self._timeout = url, mode, timeout
        self._in_words = PostgresInWords(url, timeout)
        self._process = os.getpid()
        self._clock = ServerClock(lambda: float(self.query(TIME)[0][0]))
        self._own = local()  # the connection whose transaction this thread is in
        self._given = {**MANNERS, **_settings(url), "autocommit": True, "client_encoding": "utf8"}
        self._insist(self._prepare)
        self._pool = ConnectionPool(
            kwargs=self._given,
            min_size=0,
            max_size=MOST,
            open=True,
            configure=self._configure,
            timeout=timeout,
            reconnect_timeout=timeout,
            num_workers=1,
        )

    @contextmanager
    def exclusive(self, arrived: Callable[[], bool]) -> Iterator[None]:
        """A transaction: what it locks nobody else changes meanwhile; if the block raises, nothing
        of it was written."""
        check_process(self._process, self.place)
        connection = self._insist(self._begun)
        self._own.connection = connection
        try:
            with self._in_words:
                yield
                answered = self._commit(connection)
        finally:
            self._own.connection = None
            self._give_back(connection)
        if not answered and not arrived():
            raise StoreInterrupted(
                f"the connection to {self.place} was lost, and nothing of this step was written"
            )

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """All rows of a statement's answer."""
        return [tuple(map(_given, row)) for row in self.rows(statement, values)]

    def reading(self) -> "nullcontext[None]":
        """Rows can be read anywhere: they were fetched with the answer."""
        return nullcontext()

    def rows(self, statement: str, values: Sequence[object] = ()) -> Iterable[Any]:
        """The rows of a statement's answer, made one by one."""
        check_process(self._process, self.place)
        own: Connection[Any] | None = getattr(self._own, "connection", None)
        if own is not None:
            return _answer(own, statement, values)
        return self._insist(lambda: self._ask(statement, values))

    def insert(
        self, table: str, columns: Sequence[str], identity: int, rows: Sequence[Any]
    ) -> None:
        """Add rows of an experiment to a table, all with one statement."""
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
        """Seconds since 1970, by the clock of the server."""
        return self._clock()

    def close(self) -> None:
        """Let go of all connections. They cannot be used afterwards."""
        if self._process == os.getpid():
            self._pool.close()

    def _prepare(self) -> None:
        with self._connect() as connection:
            prepare(connection, self._mode, self.place)

    def _connect(self) -> Connection[Any]:
        try:
            return psycopg.connect(**self._given)
        except psycopg.OperationalError as error:
            final = refused_at_the_door(error, self._url)
            if final is not None:
                raise final from None
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
        """A connection with a transaction that sees what others commit."""
        connection = self._pool.getconn()
        try:
            connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        except BaseException:
            self._give_back(connection)
            raise
        return connection

    def _commit(self, connection: Connection[Any]) -> bool:
        """End the transaction; False if nobody knows whether it was made."""
        if connection.info.transaction_status is TransactionStatus.INERROR:
            raise StoreError(f"{self.place} refused a statement of this step: nothing was written")
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if not is_lost(error):
                raise
            logger.warning("The answer of %s to a commit was lost.", self.place)
            return False
        return True

    def _give_back(self, connection: Connection[Any]) -> None:
        """Return a connection to the pool, which throws away one that is broken."""
        with suppress(psycopg.Error):
            if connection.info.transaction_status is not TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        self._pool.putconn(connection)

    def _insist(self, act: Callable[[], Got]) -> Got:
        """Do what changes nothing until it is done or patience ends."""
        deadline, pause = time.monotonic() + self._timeout, FIRST_PAUSE
        while True:
            try:
                with self._in_words:
                    return act()
            except StoreInterrupted as error:
                if time.monotonic() + pause > deadline:
                    raise Unreachable(f"{self.place} does not answer: {error}") from None
                if pause == FIRST_PAUSE:
                    logger.warning("%s does not answer, and is asked again: %s", self.place, error)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def _settings(url: str) -> dict[str, Any]:
    """What an address says, as the library of PostgreSQL reads it."""
    try:
        return conninfo_to_dict(url)
    except psycopg.Error as error:
        said = without_secrets(" ".join(str(error).split()), url)
        raise InvalidInput(f"`store` is {shown_place(url)}, but {said}") from None


def _answer(connection: Connection[Any], statement: str, values: Sequence[object]) -> Iterable[Any]:
    text = statement.replace("?", "%s").encode()
    sent = [kept(value) if isinstance(value, str) else value for value in values]
    cursor = connection.execute(text, sent or None, binary=True)
    return () if cursor.description is None else cursor


def _given(value: Any) -> Any:
    return given(value) if isinstance(value, str) else value
