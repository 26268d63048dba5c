"""The protocol of a store, and the records that it keeps.

A store holds experiments by name. Each has settings, written once, and an append-only log of
rewards and events. The log determines the state of the experiment, so two programs that read the
same log agree.

A store may also hold the tokens of a service, without their secrets. A token can be revoked, but
not removed: once a store has had a token, a service that uses it requires one."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import (
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
from shortlist.errors import StoreInterrupted

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
    RETIRE = "retire"  # the arm number `span` was retired at `time`, for the reason `text`
    COST = "cost"  # the actual cost of the pull is the number `text`, not the declared one
    LATE = "late"  # their lease had ended at `time`: their reward is `on_late`
    # the pull was told at `time`, after its arm was retired; it cost the number `text`
    UNUSED = "unused"
    SPENT = "spent"  # at `time` the rest of the budget did not cover the current batch


class Event(NamedTuple):
    """An entry of a log that is not a reward."""

    kind: Kind
    ticket: int
    span: int
    text: str
    time: float


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
        """Return the names of all experiments, in the order of their creation."""

    def settings(self, name: str) -> str:
        """Return the settings of the experiment of this name."""

    def create(self, name: str, settings: str) -> None:
        """Add an experiment with an empty log; raise `StoreExists` if the name is taken."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Return a block that excludes other writers of the logs it reads or writes.

        Its writes are durable when it ends; if it raises, nothing is written."""

    def read(self, name: str, after: int = 0, until: int | None = None) -> News:
        """Return the entries of a log after this position, up to the position `until` if given."""

    def append(
        self, name: str, told: Iterable[RewardRow] = (), events: Iterable[Event] = ()
    ) -> None:
        """Add rewards and events to a log; allowed only inside `exclusive`."""

    def now(self) -> float:
        """Return seconds since 1970, by the clock that all programs with this store share."""

    def close(self) -> None:
        """Close the store. It cannot be used afterwards."""


def no_such_experiment(name: str, names: Sequence[str], where: str) -> str:
    """The error message for a missing experiment."""
    existing = ", ".join(map(repr, names)) or "none"
    return f"there is no experiment {name!r} in {where}; it holds {existing}"


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
