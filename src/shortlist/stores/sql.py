"""What a store in a SQL database says to it, and what it needs of one.

In a statement `?` stands for a value. The tables have the same names and columns in every
database; columns of rewards and events are those of their records.

A block in which errors of a database become errors of this package.

A store in the tables of a SQL database, whichever that is: every log is read along its chain."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from threading import local
from types import TracebackType
from typing import Any, Protocol, Self

from shortlist.errors import (
    InvalidInput,
    ShortlistError,
    StoreDamaged,
    StoreError,
    StoreExists,
    StoreMissing,
)
from shortlist.stores.base import (
    NOTHING,
    TOLD,
    Event,
    News,
    RewardRow,
    Scope,
    Token,
    no_such_experiment,
    no_such_token,
    token_exists,
)
from shortlist.stores.checksums import NOBODY, Head, beginning, chained, checked, enlisted, news_of
from shortlist.stores.retry import insistent
from shortlist.validation import shown

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


class InWords(ABC):
    """What every database shares; a class and not a generator, since every tell goes through it."""

    quotable = True  # whether what the database says may be shown as it is

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # half of a character, as in names of files that are not UTF-8
        if isinstance(error, UnicodeEncodeError):
            raise InvalidInput(f"{error.object!r} is to be stored, but is no valid text") from error
        told = None if error is None else self.told(error)
        if told is not None:
            raise told from error if self.quotable else None

    @abstractmethod
    def told(self, error: BaseException) -> ShortlistError | None:
        """The error of this package that says the same; None if the database did not raise it."""


@dataclass
class Known:
    """What was read of a database already; all of it can be read again."""

    ids: dict[str, int] = field(default_factory=dict)
    # as far as every log was read and found right
    heads: dict[str, Head] = field(default_factory=dict)
    # what this store wrote last, between which heads: nobody need read that back
    written: dict[str, tuple[tuple[Head, Head], News]] = field(default_factory=dict)

    def copied(self) -> "Known":
        """The same, to go on from."""
        return Known(self.ids.copy(), self.heads.copy(), self.written.copy())


@dataclass
class Block:
    """An exclusive block: what it knows is true for others only after its end."""

    known: Known
    locked: dict[str, Head] = field(default_factory=dict)  # where logs end as nobody else writes
    # whether what was written last is in the database; all of a block is there, or nothing
    arrived: Callable[[], bool] = bool


class Own(local):
    """What every thread has for itself."""

    block: Block | None = None  # that it is in


class SQLStore:
    """Experiments in a database. Threads may share it; every process must open its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._shared = Known()
        self._own = Own()

    def names(self) -> list[str]:
        """The experiments there are, in the order in which they were made."""
        if self._block is not None:
            self._locked_head(ROLL)  # nobody else makes one meanwhile
        return self._listed()

    def _listed(self) -> list[str]:
        rows = self._database.query(NAMES)
        roll = NOBODY
        made = [(identity, name) for identity, name, *_ in rows if identity is not None]
        names = [_named(identity, name, self._place) for identity, name in made]
        for identity, name in names:
            roll = enlisted(roll, identity, name)
        if not rows or rows[0][2:] != roll:
            raise StoreDamaged(f"{self._place} is damaged: its list of experiments is not complete")
        return [name for _, name in names]

    def settings(self, name: str) -> str:
        """What the experiment of that name was made with."""
        rows = self._database.query(SETTINGS, (self._id(name),))
        settings, first = rows[0] if len(rows) == 1 else (None, None)
        if not isinstance(settings, str) or first != beginning(name, settings).link:
            raise StoreDamaged(f"the settings of {self._where(name)} are not as they were written")
        return settings

    @insistent
    def create(self, name: str, settings: str) -> None:
        """Add an experiment with an empty log, unless there is one of that name."""
        with self.exclusive():
            names = self.names()
            if name in names:
                raise StoreExists(f"there is an experiment {name!r} in {self._place} already")
            identity, first = len(names) + 1, beginning(name, settings)
            self._database.query(EXPERIMENT, (identity, name, settings))
            self._database.query(BEGINNING, (identity, first.link, *first))
            roll = enlisted(self._locked_head(ROLL), identity, name)
            self._database.query(SET_HEAD, (*roll, ROLL))
            self._in_block().arrived = lambda: self._found(ROLL, SETTINGS, (identity,), settings)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Let nobody else write meanwhile to what is read or written inside.

        What is written inside is durable when the block ends; if it raises, nothing of it was
        written."""
        if self._block is not None:
            yield
            return
        block = Block(self._shared.copied())
        try:
            with self._database.exclusive(lambda: block.arrived()):
                self._own.block = block
                try:
                    yield
                finally:
                    self._own.block = None
        except BaseException:
            self._shared = Known()
            raise
        self._shared = block.known

    def read(self, name: str, after: int = 0) -> News:
        """What was added to a log after that position, if it is as it was written."""
        # All up to the head is there, whatever is added meanwhile: it was written with them.
        head = self._head(name)
        if head.position < after:
            raise StoreDamaged(
                f"{self._where(name)} ends with row {head.position}, but had {after} before"
            )
        before, known = self._before(name, after), self._known
        if head == before:
            return News(NOTHING, (), after)
        between, written = known.written.get(name, (None, None))
        if written is not None and between == (before, head):
            known.heads[name] = head
            return written
        new = self._id(name), after, head.position
        events = self._database.query(EVENTS, new)
        with self._database.reading():
            rewards = self._database.rows(REWARDS, new)
            news = checked(before, head, rewards, events, self._where(name))
        known.heads[name] = head
        return news

    def append(
        self, name: str, told: Iterable[RewardRow] = (), events: Iterable[Event] = ()
    ) -> None:
        """Add rewards and events to a log; only inside `exclusive`."""
        block = self._in_block()
        identity, before = self._id(name), self._head(name)
        rewards, others, head = chained(before, told, events)
        if head == before:
            return
        self._database.insert("rewards", REWARD, identity, rewards)
        self._database.insert("events", EVENT, identity, others)
        self._database.query(SET_HEAD, (*head, identity))
        block.locked[name] = head
        block.known.written[name] = (before, head), news_of(rewards, others, head)
        at = (identity, head.position)
        block.arrived = lambda: self._found(identity, LINK, (*at, *at), head.link)

    def tokens(self) -> list[Token]:
        """All that were ever made, in that order, revoked ones included."""
        rows = self._database.query(TOKENS.format(self._database.order))
        try:
            return [Token(name, Scope(scope), *rest) for name, scope, *rest in rows]
        except ValueError as error:
            raise StoreDamaged(f"{self._place} is damaged: a token has {error}") from error

    @insistent
    def add_token(self, token: Token) -> None:
        """Add one, unless there was ever one of that name."""
        with self.exclusive():
            self._locked_head(ROLL)
            if any(each.name == token.name for each in self.tokens()):
                raise StoreExists(token_exists(token.name, self._place))
            self._database.query(TOKEN, token)
            found = "SELECT digest FROM tokens WHERE name = ?", (token.name,), token.digest
            self._in_block().arrived = lambda: self._found(ROLL, *found)

    @insistent
    def revoke_token(self, name: str, now: float) -> None:
        """Let a token allow nothing any more; a second time changes nothing."""
        with self.exclusive():
            self._locked_head(ROLL)
            tokens = self.tokens()
            if all(each.name != name for each in tokens):
                raise StoreMissing(no_such_token(name, tokens, self._place))
            self._database.query(REVOKE, (now, name))

    def verify(self) -> None:
        """Refuse what reading every log does not find: rows of a log behind its end."""
        for identity, position in self._database.query(ORPHANS):
            raise StoreDamaged(
                f"{self._place} has a row {position} of experiment {identity}, which ended before"
            )

    def now(self) -> float:
        """Seconds since 1970, by the clock of the machine that keeps the database."""
        return self._database.now()

    def close(self) -> None:
        """Let go of the database. The store cannot be used afterwards."""
        self._database.close()

    @property
    def _block(self) -> Block | None:
        return self._own.block

    @property
    def _known(self) -> Known:
        block = self._own.block
        return self._shared if block is None else block.known

    @property
    def _place(self) -> str:
        return self._database.place

    def _in_block(self) -> Block:
        if self._block is None:
            raise StoreError("append was called outside of exclusive(), but needs it")
        return self._block

    def _found(self, log: int, statement: str, values: Sequence[object], expected: object) -> bool:
        """Whether that is there, when nobody holds the lock on that log any more."""
        self._locked_head(log)
        return any(row[0] == expected for row in self._database.query(statement, values))

    def _id(self, name: str) -> int:
        known = self._known.ids.get(name)
        if known is not None:
            return known
        names = self._listed()
        if name not in names:
            raise StoreMissing(no_such_experiment(name, names, self._place))
        self._known.ids[name] = identity = names.index(name) + 1
        return identity

    def _where(self, name: str) -> str:
        return f"experiment {name!r} in {self._place}"

    def _head(self, name: str) -> Head:
        """Where the log ends, and inside a block will as long as that does not append to it."""
        block, identity = self._block, self._id(name)
        if block is None:
            return self._ending(HEAD, identity, self._where(name))
        if name not in block.locked:
            locking = HEAD + self._database.locking
            block.locked[name] = self._ending(locking, identity, self._where(name))
        return block.locked[name]

    def _locked_head(self, identity: int) -> Head:
        return self._ending(HEAD + self._database.locking, identity, self._place)

    def _ending(self, statement: str, identity: int, where: str) -> Head:
        match self._database.query(statement, (identity,)):
            case [(int(position), int(link))]:
                return Head(position, link)
        raise StoreDamaged(f"the end of {where} is not as it was written")

    def _before(self, name: str, after: int) -> Head:
        """The head that the log had when it ended with that position."""
        known, identity = self._known.heads.get(name), self._id(name)
        if known is not None and known.position == after:
            return known
        if after == 0:
            rows = self._database.query(FIRST, (identity,))
        else:
            rows = self._database.query(LINK, (identity, after, identity, after))
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise StoreDamaged(f"row {after} of {self._where(name)} is missing, or there twice")
        return Head(after, rows[0][0])


def _named(identity: object, name: object, place: str) -> tuple[int, str]:
    if not (isinstance(identity, int) and isinstance(name, str)):
        raise StoreDamaged(f"{place} is damaged: an experiment is called {shown(name)}")
    return identity, name
