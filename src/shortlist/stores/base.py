"""The protocol of a store, the records that it keeps, its clock, and the simplest store: memory.

A store holds experiments by name. Each has settings, written once, and an append-only log of
rewards and events. The log determines the state of the experiment, so two programs that read the
same log agree.

A store may also hold the tokens of a service, without their secrets. A token can be revoked, but
not removed: once a store has had a token, a service that uses it requires one.

The clock of a store times leases for all programs that share the store. A store on a server uses
the clock of the server. Other stores use the clock of the machine; if that is set while a program
runs, a warning is logged."""

import json
import logging
import random
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import wraps
from threading import Lock, RLock
from typing import (
    Any,
    Concatenate,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import (
    InvalidInput,
    StoreError,
    StoreExists,
    StoreInterrupted,
    StoreMissing,
    StoreReadOnly,
)
from shortlist.validation import real, shown

TOLD = np.dtype(
    [("ticket", np.int64), ("arm", np.int64), ("reward", np.float64), ("time", np.float64)]
)
RewardRow: TypeAlias = tuple[int, int, float, float]


class Kind(StrEnum):
    """The kind of an event, which is about `span` tickets from number `ticket` on."""

    # the search asked for them; `text` is the digest of its batch, or of its answer
    STEP = "step"
    LEASE = "lease"  # the worker `text` holds them until `time`
    FAIL = "fail"  # the evaluation failed at `time`, for the reason `text`
    RESUME = "resume"  # the experiment was resumed at `time`, despite its failures
    # they are of a shared seed that is void since `time`, for the reason `text`: none counts
    VOID = "void"
    # the arm number `span` was retired at `time`, for the reason `text`; batch number `ticket`,
    # from 1, was the oldest open one. 0 in logs of earlier versions: the last one asked for
    RETIRE = "retire"
    COST = "cost"  # the actual cost of the pull is the number `text`, not the declared one
    LATE = "late"  # their lease had ended at `time`: their reward is `on_late`
    # the pull was told at `time`, after its arm was retired; it cost the number `text`
    UNUSED = "unused"
    # block number `ticket` of a live test was opened at `time`, with the terms `text`
    OPEN = "open"
    COUNTS = "counts"  # block number `ticket` was told at `time`: the counts per arm are `text`
    # a visitor, whose hash is `text`, was assigned to arm number `span` in block number `ticket`
    ASSIGN = "assign"
    SPENT = "spent"  # at `time` the rest of the budget did not cover the current batch
    AUTHOR = "author"  # the author of this event told their rewards at `time`
    # JSON that was told with the reward: {"info": …, "metrics": {…}}, perhaps with the "seconds" of
    # the call
    INFO = "info"
    # in the list of experiments, about the experiment with the number `ticket`
    CREATE = "create"  # with the name `text`
    RENAME = "rename"  # to the name `text`
    ARCHIVE = "archive"
    RESTORE = "restore"
    DELETE = "delete"  # all that is left of it is this list


class Event(NamedTuple):
    """An entry of a log that is not a reward."""

    kind: Kind
    ticket: int
    span: int
    text: str
    time: float
    author: str = ""  # the name of the token it was written with; empty without one


@dataclass(frozen=True, slots=True)
class Told:
    """Rewards in the order in which they were told, as columns: there may be millions."""

    tickets: IntArray
    arms: IntArray
    rewards: FloatArray
    times: FloatArray  # when they were told, in seconds since 1970

    @classmethod
    def of(cls, rows: Iterable[RewardRow]) -> "Told":
        """Make columns of rows."""
        table = np.fromiter(rows, dtype=TOLD)
        return cls(table["ticket"], table["arm"], table["reward"], table["time"])

    def __iter__(self) -> Iterator[RewardRow]:
        """Iterate over rows of ticket, arm, reward and time."""
        columns = (self.tickets, self.arms, self.rewards, self.times)
        return zip(*(column.tolist() for column in columns), strict=True)

    def rows(self) -> Iterator[RewardRow]:
        """The same."""
        return iter(self)

    def __len__(self) -> int:
        return self.tickets.size

    def between(self, begin: int, end: int) -> "Told":
        """Those from the one of index `begin` to the one before `end`."""
        span = slice(begin, end)
        return Told(self.tickets[span], self.arms[span], self.rewards[span], self.times[span])

    @classmethod
    def joined(cls, parts: Sequence["Told"]) -> "Told":
        """All of them, one after the other."""
        if len(parts) < 2:  # as nearly always
            return parts[0] if parts else NOTHING
        return cls(
            np.concatenate([part.tickets for part in parts]),
            np.concatenate([part.arms for part in parts]),
            np.concatenate([part.rewards for part in parts]),
            np.concatenate([part.times for part in parts]),
        )


NOTHING = Told.of(())


@dataclass(frozen=True, slots=True)
class News:
    """New entries of a log, up to position `last`: rewards and events, each in their own order.

    The order between rewards and events has no meaning."""

    told: Told
    events: Sequence[Event]
    last: int


class Kept(StrEnum):
    """What a store keeps of an experiment."""

    ACTIVE = "active"
    ARCHIVED = "archived"  # read-only, and not in lists
    DELETED = "deleted"  # nothing but its names


CHANGES = {Kind.ARCHIVE: Kept.ARCHIVED, Kind.RESTORE: Kept.ACTIVE, Kind.DELETE: Kept.DELETED}


class Listed(NamedTuple):
    """An experiment in a list, as its store knows it without opening it."""

    name: str
    arms: int | None  # None if the settings cannot be read
    k: int | None
    algorithm: str | None
    told: int  # rewards
    state: str  # when a worker asked last; empty if none did
    archived: bool


def listed_settings(settings: str) -> dict[str, Any]:
    """The part of stored settings that a list shows."""
    try:
        data = json.loads(settings)
        arms = data["arms"]
        count = arms if isinstance(arms, int) else len(arms)
        return {"arms": count, "k": data.get("k"), "algorithm": data.get("algorithm")}
    except (ValueError, TypeError, LookupError, AttributeError):
        return dict.fromkeys(("arms", "k", "algorithm"))


@runtime_checkable
class Store(Protocol):
    """Stores experiments. A method that fails raises a `StoreError`.

    Contract, tested for every store by tests/contracts/test_stores.py:

    - **Append-only.** Settings are written once. Entries of a log are added, never changed, removed
      or reordered, so no position has to be read twice.
    - **One writer.** `exclusive` keeps all other writers, in any program, from the logs that it
      reads or writes. Blocks may be nested. A reader never sees part of a block.
    - **All or nothing.** When an exclusive block ends, its writes are durable. If it raises, or the
      program dies in it, nothing of it is written. If the connection to a database broke, the
      outermost block raises `StoreInterrupted` at its end: repeat it.
    - **One reward per ticket.** The store refuses a second reward for a ticket.
    - **Checksums.** A store that outlives the program verifies the checksums of a log when it reads
      it (`shortlist.stores.checksums`); a changed or lost entry is a `StoreDamaged` that names it.
    - **Threads may share a store.** Processes may not: each opens its own.
    - **One clock.** `now` is as nearly as possible the same for all programs that share the store:
      one of them hands out a lease, another finds that it ended.
    - **Ownership.** Who opens a store closes it; an experiment closes only what it opened."""

    def names(self) -> list[str]:
        """Return the names of all experiments but archived ones, in the order of their creation."""

    def listed(self) -> list[Listed]:
        """Return all experiments, archived ones included, without reading their logs."""

    def settings(self, name: str) -> str:
        """Return the settings of the experiment of this name."""

    def origin(self, name: str) -> str:
        """Return the name that the experiment was created with."""

    def create(self, name: str, settings: str, author: str = "") -> None:
        """Add an experiment with an empty log; raise `StoreExists` if the name is or was taken."""

    def change(self, name: str, kind: Kind, new_name: str = "", author: str = "") -> None:
        """Rename, archive, restore or delete an experiment."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Return a block that excludes other writers of the logs it reads or writes.

        Its writes are durable when it ends; if it raises, nothing is written."""

    def read(
        self, name: str, after: int = 0, until: int | None = None, *, hints: bool = False
    ) -> News:
        """Return the entries of a log after this position, up to the position `until` if given.

        With `hints`, a store may use checkpoints: copies of entries in compact form."""

    def append(
        self,
        name: str,
        told: Iterable[RewardRow] = (),
        events: Iterable[Event] = (),
        state: str | None = None,
    ) -> None:
        """Add rewards and events to a log; allowed only inside `exclusive`.

        `state` is shown in lists from then on."""

    def now(self) -> float:
        """Return seconds since 1970, by the clock that all programs with this store share."""

    def close(self) -> None:
        """Close the store. It cannot be used afterwards."""


MOST_NAMES = 20  # in a message


def no_such_experiment(name: str, names: Sequence[str], where: str) -> str:
    """The error message for a missing experiment."""
    existing = ", ".join(map(repr, names[:MOST_NAMES])) or "none"
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return f"there is no experiment {name!r} in {where}; it holds {existing}{more}"


def name_taken(name: str, where: str) -> str:
    """The error message for a name that is or was used."""
    rule = "names stay taken: choose another"
    return f"there is an experiment {name!r} in {where} already, or there was one: {rule}"


def archived(name: str, where: str) -> str:
    """The error message for a write to an archived experiment."""
    return f"experiment {name!r} in {where} is archived and read-only: restore it first"


class Scope(StrEnum):
    """What a token allows; each scope includes those before it."""

    READ = "read"  # read experiments and results
    WORK = "work"  # ask for tickets and tell rewards
    ADMIN = "admin"  # create, retire, resume

    def covers(self, wanted: "Scope") -> bool:
        """Whether this scope includes `wanted`."""
        scopes = list(Scope)
        return scopes.index(self) >= scopes.index(wanted)


class Token(NamedTuple):
    """A token without its secret."""

    name: str  # of its holder; unique, also among revoked tokens
    scope: Scope
    digest: str  # SHA-256 of the secret, in hexadecimal
    created: float  # seconds since 1970
    revoked: float | None = None
    expires: float | None = None
    experiment: str | None = None  # the only one it is for; None for all


@runtime_checkable
class TokenStore(Protocol):
    """A store that also holds tokens. A method that fails raises a `StoreError`."""

    def tokens(self) -> Sequence[Token]:
        """Return all tokens in the order of their creation, including revoked ones."""

    def add_token(self, token: Token) -> None:
        """Add a token; raise `StoreExists` if the name is or was taken."""

    def revoke_token(self, name: str, now: float) -> None:
        """Revoke a token; revoking it again changes nothing."""


def token_exists(name: str, where: str) -> str:
    """The error message for a name that is taken."""
    return f"there is a token {name!r} in {where} already; names of revoked tokens stay taken"


def no_such_token(name: str, tokens: Sequence[Token], where: str) -> str:
    """The error message for a missing token."""
    existing = ", ".join(repr(token.name) for token in tokens) or "none"
    return f"there is no token {name!r} in {where}; it holds {existing}"


TRIES = 20  # a store waits for its server on its own; this is for servers that come and go
PAUSE = 0.05  # maximum seconds between two tries, so that they do not collide again
Own = TypeVar("Own")
Given = ParamSpec("Given")
Got = TypeVar("Got")


def retry(step: Callable[[], Got]) -> Got:
    """Repeat a transaction that a broken connection ended: none of it was written.

    A store raises `StoreInterrupted` only at the end of its outermost exclusive block. So work
    inside another block is not repeated on its own, but with all of that block."""
    for _ in range(TRIES - 1):
        try:
            return step()
        except StoreInterrupted:
            time.sleep(random.uniform(0, PAUSE))
    return step()


def retried(
    method: Callable[Concatenate[Own, Given], Got],
) -> Callable[Concatenate[Own, Given], Got]:
    """Decorate a method that is such a transaction."""

    @wraps(method)
    def retrying(own: Own, /, *given: Given.args, **named: Given.kwargs) -> Got:
        return retry(lambda: method(own, *given, **named))

    return retrying


LATEST = 2.0**39  # seconds since 1970, in 17,000 years: far before the end of an endless lease
EVERY = 30.0  # seconds until a server is asked again
JUMP = 2.0  # seconds of drift or correction that are not reported
logger = logging.getLogger("shortlist.stores")
Clock = Callable[[], float]


def steady() -> float:
    """Seconds that setting a clock does not change; where possible they count while the machine
    sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def checked_time(value: object) -> float:
    """The time of a clock, checked: it is stored for good, and leases end by it."""
    now = real(value)
    if not 0 <= now <= LATEST:  # NaN is not either
        raise InvalidInput(
            f"the clock says {shown(value)}, but must say seconds since 1970: a number from 0 to"
            f" {LATEST:g}"
        )
    return now


class MachineClock:
    """The clock of the machine. Setting it moves the end of every lease, so this is logged."""

    def __init__(self) -> None:
        self._offset: float | None = None  # to the steady seconds

    def __call__(self) -> float:
        """Seconds since 1970."""
        now = time.time()
        offset = now - steady()
        jump = 0.0 if self._offset is None else offset - self._offset
        if abs(jump) > JUMP:
            way = "forward" if jump > 0 else "back"
            end = "sooner" if jump > 0 else "later"
            logger.warning(
                "The clock of this machine was set %s by %.3g s: leases end that much %s.",
                *(way, abs(jump), end),
            )
        if self._offset is None or abs(jump) > JUMP:
            self._offset = offset
        return now


class ServerClock:
    """The clock of a server, read every 30 seconds; steady seconds are added in between.

    So the clocks of the machines that share the server do not matter."""

    def __init__(self, ask: Clock) -> None:
        self._ask = ask
        self._lock = Lock()
        self._asked = 0.0  # steady seconds when the server was asked last
        self._said: float | None = None  # its reply

    def __call__(self) -> float:
        """Seconds since 1970, as the server counts them."""
        with self._lock:
            elapsed = steady() - self._asked
            if self._said is None or not 0 <= elapsed < EVERY:
                self._said = checked_time(self._ask())
                self._asked, elapsed = steady(), 0.0
            return self._said + elapsed


this_machine = MachineClock()


WHERE = "memory"


class Appended(NamedTuple):
    """What one call of `append` added: first the rewards, then the events."""

    first: int  # entries before
    told: Told
    events: Sequence[Event]

    @property
    def end(self) -> int:
        """Entries up to its last."""
        return self.first + len(self.told) + len(self.events)

    def between(self, after: int, until: int) -> "Appended":
        """The part of it between these positions."""
        begin, end = max(0, after - self.first), max(0, until - self.first)
        size = len(self.told)
        events = self.events[max(0, begin - size) : max(0, end - size)]
        return Appended(self.first + begin, self.told.between(begin, end), events)


@dataclass(slots=True)
class Log:
    """One experiment: positions count from 1, and each holds a reward or an event."""

    settings: str
    origin: str = ""
    state: str = ""
    archived: bool = False
    parts: list[Appended] = field(default_factory=list)
    told: set[int] = field(default_factory=set)  # the tickets among them

    @property
    def end(self) -> int:
        """How many entries there are."""
        return self.parts[-1].end if self.parts else 0


class MemoryStore:
    """Experiments in a dictionary, which live as long as the program: for tests, and to try things
    out. Threads may share it; other processes cannot see it."""

    def __init__(self) -> None:
        self._logs: dict[str, Log] = {}
        self._taken: set[str] = set()  # names that are or were used
        self._tokens: dict[str, Token] = {}
        self._lock = RLock()
        # parts of all logs when the exclusive block began
        self._undo: dict[str, int] | None = None
        self._closed = False

    def names(self) -> list[str]:
        """The experiments there are, in the order in which they were made."""
        self._check_open()
        return [name for name, log in self._logs.items() if not log.archived]

    def listed(self) -> list[Listed]:
        """All experiments, archived ones included."""
        self._check_open()
        with self._lock:
            return [
                Listed(
                    name=name,
                    told=len(log.told),
                    state=log.state,
                    archived=log.archived,
                    **listed_settings(log.settings),
                )
                for name, log in self._logs.items()
            ]

    def settings(self, name: str) -> str:
        """What the experiment of that name was made with."""
        return self._log(name).settings

    def origin(self, name: str) -> str:
        """The name that it was made with."""
        return self._log(name).origin

    def create(self, name: str, settings: str, author: str = "") -> None:  # noqa: ARG002
        """Add an experiment with an empty log, unless there is or was one of that name."""
        with self.exclusive():
            if name in self._taken:
                raise StoreExists(name_taken(name, WHERE))
            self._logs[name] = Log(settings, name)
            self._taken.add(name)

    def change(self, name: str, kind: Kind, new_name: str = "", author: str = "") -> None:  # noqa: ARG002
        """Rename, archive, restore or delete an experiment."""
        with self.exclusive():
            log = self._log(name)
            if kind is Kind.RENAME:
                if new_name in self._taken:
                    raise StoreExists(name_taken(new_name, WHERE))
                renamed = {name: new_name}
                self._logs = {renamed.get(each, each): log for each, log in self._logs.items()}
                self._taken.add(new_name)
            elif kind is Kind.DELETE:
                del self._logs[name]
            else:
                log.archived = CHANGES[kind] is Kept.ARCHIVED

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Let no other thread write meanwhile; if the block raises, nothing of it was written."""
        self._check_open()
        with self._lock:
            if self._undo is not None:
                yield
                return
            self._undo = {name: len(log.parts) for name, log in self._logs.items()}
            before = dict(self._logs), set(self._taken)
            try:
                yield
            except BaseException:
                self._logs, self._taken = before
                self._roll_back(self._undo)
                raise
            finally:
                self._undo = None

    def _roll_back(self, lengths: dict[str, int]) -> None:
        for name, length in lengths.items():
            log = self._logs[name]
            for part in log.parts[length:]:
                log.told.difference_update(part.told.tickets.tolist())
            del log.parts[length:]

    def read(
        self,
        name: str,
        after: int = 0,
        until: int | None = None,
        *,
        hints: bool = False,  # noqa: ARG002
    ) -> News:
        """What was added to a log after that position, up to the position `until` if given."""
        with self._lock:
            log = self._log(name)
            end = log.end if until is None else min(until, log.end)
            if end <= after:
                return News(NOTHING, (), after)
            first = bisect_right(log.parts, after, key=lambda part: part.end)
            last = bisect_left(log.parts, end, key=lambda part: part.end)
            new = [part.between(after, end) for part in log.parts[first : last + 1]]
        told = Told.joined([part.told for part in new if len(part.told)])
        return News(told, [event for part in new for event in part.events], new[-1].end)

    def append(
        self,
        name: str,
        told: Iterable[RewardRow] = (),
        events: Iterable[Event] = (),
        state: str | None = None,
    ) -> None:
        """Add rewards and events to a log; only inside `exclusive`."""
        if self._undo is None:
            raise StoreError("append was called outside of exclusive(), but needs it")
        log = self._log(name)
        log.state = log.state if state is None else state
        part = Appended(log.end, told if isinstance(told, Told) else Told.of(told), list(events))
        tickets = part.told.tickets.tolist()
        if not log.told.isdisjoint(tickets) or len(set(tickets)) < len(tickets):
            raise StoreError("a ticket is given a second reward, but may have only one")
        if part.end > part.first:
            if log.archived:
                raise StoreReadOnly(archived(name, WHERE))
            log.parts.append(part)
            log.told.update(tickets)

    def tokens(self) -> list[Token]:
        """All that were ever made, in that order, revoked ones included."""
        self._check_open()
        return list(self._tokens.values())

    def add_token(self, token: Token) -> None:
        """Add one, unless there was ever one of that name."""
        with self._lock:
            if token.name in self._tokens:
                raise StoreExists(token_exists(token.name, WHERE))
            self._tokens[token.name] = token

    def revoke_token(self, name: str, now: float) -> None:
        """Let a token allow nothing any more; a second time changes nothing."""
        with self._lock:
            if name not in self._tokens:
                raise StoreMissing(no_such_token(name, self.tokens(), WHERE))
            token = self._tokens[name]
            if token.revoked is None:
                self._tokens[name] = token._replace(revoked=now)

    def now(self) -> float:
        """Seconds since 1970, by the clock of this machine."""
        return this_machine()

    def close(self) -> None:
        """Let go of what the store holds open. It cannot be used afterwards."""
        self._closed = True

    def _log(self, name: str) -> Log:
        self._check_open()
        if name not in self._logs:
            raise StoreMissing(no_such_experiment(name, list(self._logs), WHERE))
        return self._logs[name]

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store in memory is closed")
