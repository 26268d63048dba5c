"""What a store in a SQL database says to it, and what it needs of one.

In a statement `?` stands for a value. The tables have the same names and columns in every
database; columns of rewards and events are those of their records."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from shortlist.storage.store import TOLD, Event

ROLL = 0  # the list of experiments, which is a log too
REWARD = ("seq", *(TOLD.names or ()), "link")
EVENT = ("seq", *Event._fields, "link")
STRETCH = "WHERE experiment = ? AND seq > ? AND seq <= ? ORDER BY seq"
REWARDS = f"SELECT {', '.join(REWARD)} FROM rewards {STRETCH}"
EVENTS = f"SELECT {', '.join(EVENT)} FROM events {STRETCH}"
HEAD = "SELECT last, link FROM heads WHERE experiment = ?"
NAMES = """SELECT id, name, last, link FROM heads LEFT JOIN experiments ON true
           WHERE experiment = 0 ORDER BY id"""
SETTINGS = """SELECT settings, first FROM experiments JOIN heads ON experiment = id
              WHERE id = ?"""
EXPERIMENT = "INSERT INTO experiments (id, name, settings) VALUES (?, ?, ?)"
BEGINNING = "INSERT INTO heads (experiment, first, last, link) VALUES (?, ?, ?, ?)"
SET_HEAD = "UPDATE heads SET last = ?, link = ? WHERE experiment = ?"
FIRST = "SELECT first FROM heads WHERE experiment = ?"
LINK = """SELECT link FROM rewards WHERE experiment = ? AND seq = ? UNION ALL
          SELECT link FROM events WHERE experiment = ? AND seq = ?"""
ORPHANS = """SELECT experiment, seq FROM (SELECT experiment, seq FROM rewards UNION ALL
                                          SELECT experiment, seq FROM events) AS entry
             WHERE seq > coalesce((SELECT last FROM heads
                                   WHERE heads.experiment = entry.experiment), 0)"""
TOKENS = "SELECT name, scope, digest, created, revoked FROM tokens ORDER BY {}"
TOKEN = "INSERT INTO tokens (name, scope, digest, created, revoked) VALUES (?, ?, ?, ?, ?)"
REVOKE = "UPDATE tokens SET revoked = ? WHERE name = ? AND revoked IS NULL"


class Database(Protocol):
    """A database that is open. Threads may share it; errors are raised in words."""

    place: str  # what messages call it
    locking: str  # behind a SELECT: let nobody else change these rows until the block ends
    order: str  # the column of tokens that grows with every one

    def exclusive(self, arrived: Callable[[], bool]) -> AbstractContextManager[None]:
        """A transaction; if the answer to its commit is lost, `arrived` looks whether it was
        made."""

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """All rows of a statement's answer."""

    def reading(self) -> AbstractContextManager[object]:
        """Where what `rows` gives is read."""

    def rows(self, statement: str, values: Sequence[object]) -> Iterable[Any]:
        """The same one by one, for they may be millions; no texts among them."""

    def insert(
        self, table: str, columns: Sequence[str], identity: int, rows: Sequence[Any]
    ) -> None:
        """Add rows of an experiment to a table."""

    def now(self) -> float:
        """Seconds since 1970, by the clock of the machine that keeps it."""

    def close(self) -> None:
        """Let go of it."""
