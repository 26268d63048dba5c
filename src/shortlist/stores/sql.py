"""A store in a SQL database; `sqlite.py` and `postgres.py` provide the databases.

The tables have the same names and columns in both; those of rewards and events have the fields of
their records. In a statement, `?` is a placeholder of a value. Checksums are verified whenever a
log is read."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
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
    StoreReadOnly,
)
from shortlist.stores.base import (
    CHANGES,
    NOTHING,
    TOLD,
    Event,
    Kept,
    Kind,
    Listed,
    News,
    RewardRow,
    Scope,
    Token,
    archived,
    listed_settings,
    name_taken,
    no_such_experiment,
    no_such_token,
    retried,
    token_exists,
)
from shortlist.stores.checksums import (
    EMPTY,
    ROWS,
    Head,
    first_head,
    joined,
    news_of,
    packed,
    unpacked,
    verified,
    with_links,
)

LIST = 0  # the id of the list of experiments, which is a log, too
REWARD = ("seq", *(TOLD.names or ()), "link")
EVENT = ("seq", *Event._fields, "link")
STRETCH = "WHERE experiment = ? AND seq > ? AND seq <= ? ORDER BY seq"
REWARDS = f"SELECT {', '.join(REWARD)} FROM rewards {STRETCH}"
EVENTS = f"SELECT {', '.join(EVENT)} FROM events {STRETCH}"
HEAD = "SELECT last, link, kept FROM heads WHERE experiment = ?"
NAMES = "SELECT id, name, kept FROM experiments JOIN heads ON experiment = id ORDER BY id"
LISTED = """SELECT name, summary, told, state, kept FROM experiments JOIN heads ON experiment = id
            WHERE kept <> 'deleted' ORDER BY id"""
FIND = """SELECT id FROM experiments JOIN heads ON experiment = id
          WHERE name = ? AND kept <> 'deleted'"""
ORIGIN = "SELECT origin FROM experiments WHERE id = ?"
TAKEN = "SELECT count(*) FROM events WHERE experiment = 0 AND text = ?"
LAST = "SELECT coalesce(max(id), 0) FROM experiments"
SETTINGS = """SELECT settings, first, origin FROM experiments JOIN heads ON experiment = id
              WHERE id = ?"""
EXPERIMENT = """INSERT INTO experiments (id, name, origin, settings, summary)
                VALUES (?, ?, ?, ?, ?)"""
BEGINNING = """INSERT INTO heads (experiment, first, last, link, told, state, kept)
               VALUES (?, ?, ?, ?, 0, '', 'active')"""
SET_HEAD = """UPDATE heads SET last = ?, link = ?, told = told + ?, state = coalesce(?, state)
              WHERE experiment = ?"""
SET_STATE = "UPDATE heads SET state = ? WHERE experiment = ? AND state <> ?"
SET_NAME = "UPDATE experiments SET name = ? WHERE id = ?"
SET_KEPT = "UPDATE heads SET kept = ? WHERE experiment = ?"
DELETE = (
    "DELETE FROM rewards WHERE experiment = ?",
    "DELETE FROM events WHERE experiment = ?",
    "DELETE FROM checkpoints WHERE experiment = ?",
    "UPDATE experiments SET settings = '', summary = '' WHERE id = ?",
    "UPDATE heads SET first = 0, last = 0, link = 0, told = 0, state = '' WHERE experiment = ?",
)
FIRST = "SELECT first FROM heads WHERE experiment = ?"
LINK = """SELECT link FROM rewards WHERE experiment = ? AND seq = ? UNION ALL
          SELECT link FROM events WHERE experiment = ? AND seq = ?"""
CHECKPOINTS = """SELECT first, last, link, content FROM checkpoints
                 WHERE experiment = ? AND last <= ? ORDER BY first"""
CHECKPOINT = """INSERT INTO checkpoints (experiment, first, last, link, content)
                VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
CHECKED = "SELECT coalesce(max(last), 0) FROM checkpoints WHERE experiment = ?"
ORPHANS = """SELECT experiment, seq FROM (SELECT experiment, seq FROM rewards UNION ALL
                                          SELECT experiment, seq FROM events) AS entry
             WHERE seq > coalesce((SELECT last FROM heads
                                   WHERE heads.experiment = entry.experiment), 0)"""
TOKENS = f"SELECT {', '.join(Token._fields)} FROM tokens ORDER BY {{}}"
TOKEN = f"""INSERT INTO tokens ({", ".join(Token._fields)})
            VALUES ({", ".join("?" for _ in Token._fields)})"""
REVOKE = "UPDATE tokens SET revoked = ? WHERE name = ? AND revoked IS NULL"


class Database(Protocol):
    """An open database. Thread-safe; raises errors of this package."""

    place: str  # its name in error messages
    locking: str  # suffix of a SELECT that locks its rows until the block ends
    order: str  # the column that orders tokens by creation

    def exclusive(self, arrived: Callable[[], bool]) -> AbstractContextManager[None]:
        """A transaction; if the reply to its commit is lost, `arrived` checks whether it was
        made."""

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Execute a statement and return all rows."""

    def streamed(
        self, statement: str, values: Sequence[object]
    ) -> AbstractContextManager[Iterable[Any]]:
        """The same one by one, since there may be millions; without columns of text."""

    def insert(
        self, table: str, columns: Sequence[str], identity: int, rows: Sequence[Any]
    ) -> None:
        """Insert rows of an experiment into a table."""

    def forget(self) -> None:
        """Let no copy of deleted rows be left in its files, as far as this can be seen to."""

    def now(self) -> float:
        """Return seconds since 1970, by the clock of the machine that holds it."""

    def close(self) -> None:
        """Close it."""


def check_process(opened_by: int, place: str) -> None:
    """Refuse to use a store in a process that was forked after it was opened."""
    if opened_by != os.getpid():
        raise StoreError(
            f"{place} was opened by process {opened_by}, but is used by {os.getpid()}: open the"
            " experiment again in every process"
        )


class TranslatedErrors(ABC):
    """A block in which errors of a database become errors of this package.

    A class and not a generator, for speed: every tell goes through it."""

    quotable = True  # whether the message of the database may be shown

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # a lone surrogate, as in names of files that are not UTF-8
        if isinstance(error, UnicodeEncodeError):
            raise InvalidInput(
                f"the text is {error.object!r}, but must be valid Unicode"
            ) from error
        translated = None if error is None else self.translate(error)
        if translated is not None:
            raise translated from error if self.quotable else None

    @abstractmethod
    def translate(self, error: BaseException) -> ShortlistError | None:
        """The corresponding error of this package; None if the database did not raise it."""


@dataclass
class Cache:
    """What was read from a database; all of it can be read again."""

    ids: dict[str, int] = field(default_factory=dict)
    # up to where every log was read and verified
    heads: dict[str, Head] = field(default_factory=dict)
    # what this store wrote last, between which heads: it need not be read back
    written: dict[str, tuple[tuple[Head, Head], News]] = field(default_factory=dict)

    def copy(self) -> "Cache":
        """A copy that can change."""
        return Cache(self.ids.copy(), self.heads.copy(), self.written.copy())


@dataclass
class Block:
    """An exclusive block; others may use its cache only after its end."""

    cache: Cache
    locked: dict[str, Head] = field(default_factory=dict)  # heads of logs that it has locked
    frozen: set[str] = field(default_factory=set)  # those of them that are archived
    due: set[str] = field(default_factory=set)  # those that need another checkpoint
    # whether its last write is in the database; then all of the block is
    arrived: Callable[[], bool] = bool


class ThreadState(local):
    """The state of one thread."""

    block: Block | None = None  # the exclusive block that it is in


class SQLStore:
    """Experiments in a database. Threads may share it; every process opens its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._shared = Cache()
        self._thread = ThreadState()

    def names(self) -> list[str]:
        """Return the names of all experiments but archived ones, in the order of their creation."""
        if self._block is not None:
            self._locked_head(LIST)  # no other program creates one meanwhile
        rows = self._database.query(NAMES)
        if {identity: (name, kept) for identity, name, kept in rows} != self._catalogue():
            raise StoreDamaged(f"{self._place} is damaged: its list of experiments is incomplete")
        return [name for _, name, kept in rows if kept == Kept.ACTIVE]

    def _catalogue(self) -> dict[Any, tuple[Any, Any]]:
        """Names and what is kept by number, as the log of the list says."""
        head, _ = self._ending(HEAD, LIST, self._place)
        where = f"the list of experiments in {self._place}"
        events = self._database.query(EVENTS, (LIST, 0, head.position))
        known: dict[Any, tuple[Any, Any]] = {}
        for event in verified(EMPTY, head, (), events, where).events:
            name, kept = known.get(event.ticket, ("", Kept.ACTIVE))
            named = event.text if event.kind in (Kind.CREATE, Kind.RENAME) else name
            known[event.ticket] = (named, CHANGES.get(event.kind, kept))
        return known

    def listed(self) -> list[Listed]:
        """Return all experiments, archived ones included, without reading their logs."""
        return [
            Listed(name, *_summary(summary), told, state, kept == Kept.ARCHIVED)
            for name, summary, told, state, kept in self._database.query(LISTED)
        ]

    def settings(self, name: str) -> str:
        """Return the settings of the experiment of this name."""
        rows = self._database.query(SETTINGS, (self._id(name),))
        settings, first, origin = rows[0] if len(rows) == 1 else (None, None, None)
        readable = isinstance(settings, str) and isinstance(origin, str)
        if not readable or first != first_head(str(origin), str(settings)).link:
            raise StoreDamaged(f"the settings of {self._where(name)} were changed")
        return str(settings)

    def origin(self, name: str) -> str:
        """Return the name that the experiment was created with."""
        return str(self._database.query(ORIGIN, (self._id(name),))[0][0])

    @retried
    def create(self, name: str, settings: str, author: str = "") -> None:
        """Add an experiment with an empty log; raise `StoreExists` if the name is or was taken."""
        with self.exclusive():
            self._check_free(name)
            identity = self._database.query(LAST)[0][0] + 1
            first = first_head(name, settings)
            summary = json.dumps(listed_settings(settings))
            self._database.query(EXPERIMENT, (identity, name, name, settings, summary))
            self._database.query(BEGINNING, (identity, first.link, *first))
            self._note(Kind.CREATE, identity, name, author)
            self._in_block().arrived = lambda: self._found(LIST, SETTINGS, (identity,), settings)

    def _check_free(self, name: str) -> None:
        """Refuse a name that is or was used; no other program may use it meanwhile."""
        self._locked_head(LIST)
        if self._database.query(TAKEN, (name,))[0][0]:
            raise StoreExists(name_taken(name, self._place))

    def _note(self, kind: Kind, identity: int, text: str, author: str) -> None:
        """Add an entry to the list of experiments."""
        before = self._locked_head(LIST)
        event = Event(kind, identity, 0, text, self.now(), author)
        _, others, head = with_links(before, (), [event])
        self._database.insert("events", EVENT, LIST, others)
        self._database.query(SET_HEAD, (*head, 0, None, LIST))

    def change(self, name: str, kind: Kind, new_name: str = "", author: str = "") -> None:
        """Rename, archive, restore or delete an experiment."""
        self._change(name, kind, new_name, author)
        if kind is Kind.DELETE:
            self._database.forget()

    @retried
    def _change(self, name: str, kind: Kind, new_name: str, author: str) -> None:
        with self.exclusive():
            if kind is Kind.RENAME:
                self._check_free(new_name)
            self._locked_head(LIST)
            identity = self._id(name)
            self._head(name)  # no other program writes to it meanwhile
            self._note(kind, identity, new_name, author)
            if kind is Kind.RENAME:
                self._database.query(SET_NAME, (new_name, identity))
            else:
                self._database.query(SET_KEPT, (CHANGES[kind], identity))
            for statement in DELETE if kind is Kind.DELETE else ():
                self._database.query(statement, (identity,))
            position = self._locked_head(LIST).position
            at = (LIST, position, LIST, position)
            link = self._locked_head(LIST).link
            block = self._in_block()
            block.arrived = lambda: self._found(LIST, LINK, at, link)
            for cached in (block.cache.ids, block.cache.heads, block.cache.written):
                cached.pop(name, None)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Return a block that excludes other writers of the logs it reads or writes.

        Its writes are durable when it ends; if it raises, nothing is written."""
        if self._block is not None:
            yield
            return
        block = Block(self._shared.copy())
        try:
            with self._database.exclusive(lambda: block.arrived()):
                self._thread.block = block
                try:
                    yield
                finally:
                    self._thread.block = None
        except BaseException:
            self._shared = Cache()
            raise
        self._shared = block.cache
        for name in block.due:
            with suppress(ShortlistError):  # a checkpoint is only a hint
                self._make_checkpoints(name)

    def read(
        self, name: str, after: int = 0, until: int | None = None, *, hints: bool = False
    ) -> News:
        """Return the entries of a log after this position; verify their checksums.

        With `until`, only those up to that position. With `hints`, checkpoints may be used."""
        # All entries up to the head exist, whatever is added meanwhile: they were written with it.
        head = self._head(name)
        if head.position < after:
            raise StoreDamaged(
                f"{self._where(name)} ends with row {head.position}, but had {after} rows before"
            )
        before, cache = self._before(name, after), self._cache
        if until is not None and until < head.position:
            return self._read(name, before, self._before(name, max(after, until)))
        if head == before:
            return News(NOTHING, (), after)
        between, written = cache.written.get(name, (None, None))
        if written is not None and between == (before, head):
            cache.heads[name] = head
            return written
        if hints and after == 0 and head.position >= ROWS:
            news = self._read_with_hints(name, before, head)
        else:
            news = self._read(name, before, head)
        cache.heads[name] = head
        return news

    def _read(self, name: str, before: Head, head: Head) -> News:
        new = self._id(name), before.position, head.position
        events = self._database.query(EVENTS, new)
        with self._database.streamed(REWARDS, new) as rewards:
            return verified(before, head, rewards, events, self._where(name))

    def _read_with_hints(self, name: str, before: Head, head: Head) -> News:
        """The entries between two heads, from checkpoints as far as they can be believed."""
        parts: list[News] = []
        end = before
        for first, last, link, content in self._checkpoints(name, head):
            news = unpacked(content, end, Head(last, link)) if first == end.position else None
            if news is None:
                break
            parts.append(news)
            end = Head(last, link)
        if not parts or self._before(name, end.position) != end:
            return self._read(name, before, head)
        return joined([*parts, self._read(name, end, head)])

    def _checkpoints(self, name: str, head: Head) -> list[Any]:
        try:
            rows = self._database.query(CHECKPOINTS, (self._id(name), head.position))
        except StoreDamaged:  # of the hints
            return []
        return [row for row in rows if all(isinstance(number, int) for number in row[:3])]

    def _make_checkpoints(self, name: str) -> None:
        """Add checkpoints for the complete stretches of a log that have none."""
        with self.exclusive():
            identity, head = self._id(name), self._head(name)
            position = self._database.query(CHECKED, (identity,))[0][0]
            while position + ROWS <= head.position:
                before = self._before(name, position)
                end = self._before(name, position + ROWS)
                content = packed(self._read(name, before, end), before, end)
                row = (identity, position, end.position, end.link, content)
                self._database.query(CHECKPOINT, row)
                position = end.position

    def append(
        self,
        name: str,
        told: Iterable[RewardRow] = (),
        events: Iterable[Event] = (),
        state: str | None = None,
    ) -> None:
        """Add rewards and events to a log; allowed only inside `exclusive`.

        `state` is shown in lists from then on."""
        block = self._in_block()
        identity, before = self._id(name), self._head(name)
        rewards, others, head = with_links(before, told, events)
        if head == before:
            if state is not None:
                self._database.query(SET_STATE, (state, identity, state))
            return
        if name in block.frozen:
            raise StoreReadOnly(archived(name, self._place))
        if head.position // ROWS > before.position // ROWS:
            block.due.add(name)
        self._database.insert("rewards", REWARD, identity, rewards)
        self._database.insert("events", EVENT, identity, others)
        self._database.query(SET_HEAD, (*head, len(rewards), state, identity))
        block.locked[name] = head
        block.cache.written[name] = (before, head), news_of(rewards, others, head)
        at = (identity, head.position)
        block.arrived = lambda: self._found(identity, LINK, (*at, *at), head.link)

    def tokens(self) -> list[Token]:
        """Return all tokens in the order of their creation, including revoked ones."""
        rows = self._database.query(TOKENS.format(self._database.order))
        try:
            return [Token(name, Scope(scope), *rest) for name, scope, *rest in rows]
        except ValueError as error:
            raise StoreDamaged(f"{self._place} is damaged: a token has {error}") from error

    @retried
    def add_token(self, token: Token) -> None:
        """Add a token; raise `StoreExists` if the name is or was taken."""
        with self.exclusive():
            self._locked_head(LIST)
            if any(each.name == token.name for each in self.tokens()):
                raise StoreExists(token_exists(token.name, self._place))
            self._database.query(TOKEN, token)
            found = "SELECT digest FROM tokens WHERE name = ?", (token.name,), token.digest
            self._in_block().arrived = lambda: self._found(LIST, *found)

    @retried
    def revoke_token(self, name: str, now: float) -> None:
        """Revoke a token; revoking it again changes nothing."""
        with self.exclusive():
            self._locked_head(LIST)
            tokens = self.tokens()
            if all(each.name != name for each in tokens):
                raise StoreMissing(no_such_token(name, tokens, self._place))
            self._database.query(REVOKE, (now, name))

    def verify(self) -> None:
        """Raise `StoreDamaged` if there are rows after the end of a log, which `read` skips."""
        for identity, position in self._database.query(ORPHANS):
            raise StoreDamaged(
                f"{self._place} has a row {position} after the end of experiment {identity}"
            )

    def now(self) -> float:
        """Return seconds since 1970, by the clock of the machine that holds the database."""
        return self._database.now()

    def close(self) -> None:
        """Close the database. The store cannot be used afterwards."""
        self._database.close()

    @property
    def _block(self) -> Block | None:
        return self._thread.block

    @property
    def _cache(self) -> Cache:
        block = self._thread.block
        return self._shared if block is None else block.cache

    @property
    def _place(self) -> str:
        return self._database.place

    def _in_block(self) -> Block:
        if self._block is None:
            raise StoreError("append was called outside of exclusive(), but needs it")
        return self._block

    def _found(self, log: int, statement: str, values: Sequence[object], expected: object) -> bool:
        """Whether a statement finds the expected value, once the lock on the log is free."""
        self._locked_head(log)
        return any(row[0] == expected for row in self._database.query(statement, values))

    def _id(self, name: str) -> int:
        known = self._cache.ids.get(name)
        if known is not None:
            return known
        rows = self._database.query(FIND, (name,))
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise StoreMissing(no_such_experiment(name, self.names(), self._place))
        self._cache.ids[name] = identity = rows[0][0]
        return identity

    def _where(self, name: str) -> str:
        return f"experiment {name!r} in {self._place}"

    def _head(self, name: str) -> Head:
        """The end of a log; inside a block, the log is locked."""
        block, identity = self._block, self._id(name)
        if block is None:
            return self._ending(HEAD, identity, self._where(name))[0]
        if name not in block.locked:
            locking = HEAD + self._database.locking
            head, kept = self._ending(locking, identity, self._where(name))
            block.locked[name] = head
            if kept == Kept.ARCHIVED:
                block.frozen.add(name)
        return block.locked[name]

    def _locked_head(self, identity: int) -> Head:
        return self._ending(HEAD + self._database.locking, identity, self._place)[0]

    def _ending(self, statement: str, identity: int, where: str) -> tuple[Head, object]:
        match self._database.query(statement, (identity,)):
            case [(int(position), int(link), kept)] if kept in set(Kept):
                if kept == Kept.DELETED:
                    raise StoreMissing(f"{where} was deleted")
                return Head(position, link), kept
        raise StoreDamaged(f"the end of {where} was changed")

    def _before(self, name: str, after: int) -> Head:
        """The head that the log had when it ended at this position."""
        head, identity = self._cache.heads.get(name), self._id(name)
        if head is not None and head.position == after:
            return head
        if after == 0:
            rows = self._database.query(FIRST, (identity,))
        else:
            rows = self._database.query(LINK, (identity, after, identity, after))
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise StoreDamaged(f"row {after} of {self._where(name)} is missing or doubled")
        return Head(after, rows[0][0])


def _summary(text: object) -> tuple[Any, Any, Any]:
    """Arms, k and algorithm as they were noted at creation."""
    try:
        data = json.loads(str(text))
        return data["arms"], data["k"], data["algorithm"]
    except (ValueError, TypeError, LookupError):
        return None, None, None
