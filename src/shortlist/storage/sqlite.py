"""A store in one SQLite file: survives crashes, and any number of programs on one machine may share
it. What is read is checked against the chain of its log."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from shortlist.errors import StoreDamaged, StoreError, StoreExists, StoreMissing
from shortlist.storage.chain import NOBODY, Head, beginning, chained, checked, enlisted, news_of
from shortlist.storage.connection import Mode, OpenFile
from shortlist.storage.schema import check_integrity
from shortlist.storage.store import Event, News, RewardRow, Told, no_such_experiment
from shortlist.storage.tokens import Scope, Token, no_such_token, token_exists
from shortlist.validation import shown

HEAD = "SELECT last, link FROM heads WHERE experiment = ?"
REWARDS = """SELECT seq, ticket, arm, reward, time, link FROM rewards
             WHERE experiment = ? AND seq > ? AND seq <= ? ORDER BY seq"""
EVENTS = """SELECT seq, kind, ticket, span, text, time, link FROM events
            WHERE experiment = ? AND seq > ? AND seq <= ? ORDER BY seq"""
EXPERIMENT = "INSERT INTO experiments (id, name, settings) VALUES (?, ?, ?)"
BEGINNING = "INSERT INTO heads VALUES (?, ?, ?, ?)"
SET_HEAD = "UPDATE heads SET last = ?, link = ? WHERE experiment = ?"
REWARD = "INSERT INTO rewards VALUES ({}, ?, ?, ?, ?, ?, ?)"
EVENT = "INSERT INTO events VALUES ({}, ?, ?, ?, ?, ?, ?, ?)"
FIRST = "SELECT first FROM heads WHERE experiment = ?"
LINK = """SELECT link FROM rewards WHERE experiment = ? AND seq = ? UNION ALL
          SELECT link FROM events WHERE experiment = ? AND seq = ?"""
ORPHANS = """SELECT experiment, seq FROM (SELECT experiment, seq FROM rewards UNION ALL
                                          SELECT experiment, seq FROM events) AS entry
             WHERE seq > coalesce((SELECT last FROM heads
                                   WHERE heads.experiment = entry.experiment), 0)"""
TOKENS = "SELECT name, scope, digest, created, revoked FROM tokens ORDER BY rowid"
REVOKE = "UPDATE tokens SET revoked = ? WHERE name = ? AND revoked IS NULL"
NOTHING = Told.of(())


class SQLiteStore:
    """Experiments in the file `path`. Threads may share it; every process must open its own.

    A writer waits up to `timeout` seconds for the others. With mode "ro" nothing is ever
    written. A new file is for its owner only."""

    def __init__(
        self, path: str | os.PathLike[str], mode: Mode = "rw", *, timeout: float = 30.0
    ) -> None:
        self.path = Path(path)
        self._ids: dict[str, int] = {}
        self._heads: dict[str, Head] = {}  # as far as every log was read and found right
        self._locked: dict[str, Head] = {}  # where logs end while nobody else can write
        # what this store wrote last, between which heads: nobody need read that back
        self._written: dict[str, tuple[tuple[Head, Head], News]] = {}
        self._file = OpenFile(self.path, mode, timeout)

    def names(self) -> list[str]:
        """The experiments there are, in the order in which they were made."""
        with self._file.consistent():
            rows = self._file.query("SELECT id, name FROM experiments ORDER BY id")
            (head,) = self._file.query(HEAD, (0,)) or [None]
        roll = NOBODY
        for identity, name in rows:
            roll = enlisted(roll, *self._listed(identity, name))
        if roll != head:
            raise StoreDamaged(f"{self.path} is damaged: its list of experiments is not complete")
        return [name for _, name in rows]

    def settings(self, name: str) -> str:
        """What the experiment of that name was made with."""
        identity = self._id(name)
        with self._file.consistent():
            rows = self._file.query("SELECT settings FROM experiments WHERE id = ?", (identity,))
            firsts = self._file.query(FIRST, (identity,))
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
            self._file.query(EXPERIMENT, (identity, name, settings))
            self._file.query(BEGINNING, (identity, first.link, *first))
            (roll,) = self._file.query(HEAD, (0,))
            self._set_head(0, enlisted(Head(*roll), identity, name))

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Let nobody else write meanwhile, in this program or any other.

        What is written inside is durable when the block ends; if it raises, nothing of it was
        written."""
        try:
            with self._file.exclusive():
                yield
        except BaseException:
            for known in (self._ids, self._heads, self._written):
                known.clear()
            raise
        finally:
            self._locked.clear()

    def read(self, name: str, after: int = 0) -> News:
        """What was added to a log after that position, if it is as it was written."""
        with self._file as database:
            # All up to the head is there, whatever is added meanwhile: it was written with them.
            head = self._head(name)
            if head.position < after:
                raise StoreDamaged(
                    f"{self._where(name)} ends with row {head.position}, but had {after} before"
                )
            before = self._before(name, after)
            if head == before:
                return News(NOTHING, (), after)
            if name in self._written and self._written[name][0] == (before, head):
                self._heads[name] = head
                return self._written[name][1]
            new = self._id(name), after, head.position
            rewards = database.execute(REWARDS, new)
            events = database.execute(EVENTS, new).fetchall()
            news = checked(before, head, rewards, events, self._where(name))
            self._heads[name] = head
            return news

    def append(
        self, name: str, told: Iterable[RewardRow] = (), events: Iterable[Event] = ()
    ) -> None:
        """Add rewards and events to a log; only inside `exclusive`."""
        with self._file as database:
            if not database.in_transaction:
                raise StoreError("append was called outside of exclusive(), but needs it")
            identity, before = self._id(name), self._head(name)
            rewards, others, head = chained(before, told, events)
            for statement, rows in ((REWARD, rewards), (EVENT, others)):
                if rows:
                    database.executemany(statement.format(identity), rows)
            self._set_head(identity, head)
            self._locked[name] = head
            self._written[name] = (before, head), news_of(rewards, others, head)

    def tokens(self) -> list[Token]:
        """All that were ever made, in that order, revoked ones included."""
        rows = self._file.query(TOKENS)
        try:
            return [Token(name, Scope(scope), *rest) for name, scope, *rest in rows]
        except ValueError as error:
            raise StoreDamaged(f"{self.path} is damaged: a token has {error}") from error

    def add_token(self, token: Token) -> None:
        """Add one, unless there was ever one of that name."""
        with self.exclusive():
            if any(each.name == token.name for each in self.tokens()):
                raise StoreExists(token_exists(token.name, str(self.path)))
            self._file.query("INSERT INTO tokens VALUES (?, ?, ?, ?, ?)", token)

    def revoke_token(self, name: str, now: float) -> None:
        """Let a token allow nothing any more; a second time changes nothing."""
        with self.exclusive():
            tokens = self.tokens()
            if all(each.name != name for each in tokens):
                raise StoreMissing(no_such_token(name, tokens, str(self.path)))
            self._file.query(REVOKE, (now, name))

    def verify(self) -> None:
        """Refuse a file that SQLite itself finds damaged, beside what reading it finds."""
        with self._file as database:
            check_integrity(database, self.path)
            for identity, position in self._file.query(ORPHANS):
                raise StoreDamaged(
                    f"{self.path} has a row {position} of experiment {identity}, which ended before"
                )

    def close(self) -> None:
        """Let go of the file. The store cannot be used afterwards."""
        self._file.close()

    def _id(self, name: str) -> int:
        if name not in self._ids:
            names = self.names()
            if name not in names:
                raise StoreMissing(no_such_experiment(name, names, str(self.path)))
            self._ids[name] = names.index(name) + 1
        return self._ids[name]

    def _listed(self, identity: object, name: object) -> tuple[int, str]:
        if not (isinstance(identity, int) and isinstance(name, str)):
            raise StoreDamaged(f"{self.path} is damaged: an experiment is called {shown(name)}")
        return identity, name

    def _where(self, name: str) -> str:
        return f"experiment {name!r} in {self.path}"

    def _head(self, name: str) -> Head:
        """Where the log ends."""
        if name in self._locked:
            return self._locked[name]
        with self._file as database:
            rows = database.execute(HEAD, (self._id(name),)).fetchall()
            if len(rows) != 1 or not all(isinstance(value, int) for value in rows[0]):
                raise StoreDamaged(f"the end of {self._where(name)} is not as it was written")
            head = Head(*rows[0])
            if database.in_transaction:
                self._locked[name] = head
        return head

    def _set_head(self, identity: int, head: Head) -> None:
        self._file.query(SET_HEAD, (*head, identity))

    def _before(self, name: str, after: int) -> Head:
        """The head that the log had when it ended with that position."""
        known, identity = self._heads.get(name), self._id(name)
        if known is not None and known.position == after:
            return known
        if after == 0:
            rows = self._file.query(FIRST, (identity,))
        else:
            rows = self._file.query(LINK, (identity, after, identity, after))
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise StoreDamaged(f"row {after} of {self._where(name)} is missing, or there twice")
        return Head(after, rows[0][0])
