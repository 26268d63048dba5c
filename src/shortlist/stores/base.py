"""Where experiments are kept: one protocol, append-only.

A store holds experiments by name. Each has its settings, written once, and a log in which nothing
is ever changed or removed: rewards, which are results for good, and events, which say what else
happened. Whoever reads the log from its beginning knows all there is to know, so two programs that
read the same log agree.

The tokens of a service as a store keeps them: who may do what, and never the secret itself.

A token is made once and may be revoked; nothing else about it changes, and it is never removed:
a store that ever had a token is never open to those without one."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from shortlist.arrays import FloatArray, IntArray

TOLD = np.dtype(
    [("ticket", np.int64), ("arm", np.int64), ("reward", np.float64), ("time", np.float64)]
)
RewardRow: TypeAlias = tuple[int, int, float, float]


class Kind(StrEnum):
    """What an event says of the tickets from `ticket` on, `span` of them."""

    # the search asked for them; `text` is the digest of its request, or of its answer
    STEP = "step"
    LEASE = "lease"  # the worker `text` holds them until `time`
    FAIL = "fail"  # the evaluation failed at `time`, for the reason `text`
    RESUME = "resume"  # at `time` somebody let the experiment go on despite its failures
    RETIRE = "retire"  # the arm number `span` left at `time`, for the reason `text`
    COST = "cost"  # the pull did cost `text`, a number, and not what was declared
    LATE = "late"  # their lease was over at `time`: the experiment's `on_late` is their reward
    # the pull was made and told at `time`, after its arm left; it cost `text`, a number
    UNUSED = "unused"
    SPENT = "spent"  # at `time` what was left of the budget did not pay for the present request


class Event(NamedTuple):
    """Anything but a reward that happened to an experiment."""

    kind: Kind
    ticket: int
    span: int
    text: str
    time: float


@dataclass(frozen=True, slots=True)
class Told:
    """Rewards in the order in which they were told: one column a figure, for they may be
    millions."""

    tickets: IntArray
    arms: IntArray
    rewards: FloatArray
    times: FloatArray  # when they were told

    @classmethod
    def of(cls, rows: Iterable[RewardRow]) -> "Told":
        """The same from rows of ticket, arm, reward and time."""
        table = np.fromiter(rows, dtype=TOLD)
        return cls(table["ticket"], table["arm"], table["reward"], table["time"])

    def rows(self) -> Iterable[RewardRow]:
        """Ticket, arm, reward and time of one after the other."""
        columns = (self.tickets, self.arms, self.rewards, self.times)
        return zip(*(column.tolist() for column in columns), strict=True)


NOTHING = Told.of(())


@dataclass(frozen=True, slots=True)
class News:
    """A stretch of a log, up to position `last`. An event never changes what a reward means, nor
    the other way round, so each kind is in its own order."""

    told: Told
    events: Sequence[Event]
    last: int


@runtime_checkable
class Store(Protocol):
    """A place for experiments. A method that cannot do what it says raises a `StoreError`.

    What every store owes, which tests/contracts/test_stores.py asks of each:

    - **Append-only.** Settings are written once; entries of a log are added, never changed or
      removed, and never reordered: whoever read up to a position need not read that far again.
    - **One writer.** `exclusive` holds off all other writers of the logs that it reads or writes,
      in this program or any other, and may be nested. Whoever reads meanwhile never sees half of
      what one block wrote.
    - **All or nothing.** When an exclusive block ends, what it wrote is durable; if it raises, or
      the program dies in it, nothing of it was written. If the way to a database broke, that is a
      `StoreInterrupted`, raised where the outermost block ends: begin it again.
    - **One reward a ticket.** A second one for the same ticket is refused by the store itself, so
      that no mistake above it can count a pull twice.
    - **Nothing else than was written.** A store that outlives the program reads a log along its
      chain (`shortlist.stores.checksums`): an entry that was changed or lost is a `StoreDamaged`
      that names it.
    - **Threads may share a store**, processes may not: each opens its own.
    - **One clock.** `now` is the same for all programs that share the store, as nearly as can be:
      leases are handed out by one of them and end by another.
    - **Ownership.** Whoever opened a store closes it; an experiment closes only what it opened."""

    def names(self) -> list[str]:
        """The experiments there are, in the order in which they were made."""

    def settings(self, name: str) -> str:
        """What the experiment of that name was made with."""

    def create(self, name: str, settings: str) -> None:
        """Add an experiment with an empty log, unless there is one of that name."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Let nobody else write meanwhile to what is read or written inside.

        What is written inside is durable when the block ends; if it raises, nothing of it was
        written."""

    def read(self, name: str, after: int = 0) -> News:
        """What was added to a log after that position."""

    def append(
        self, name: str, told: Iterable[RewardRow] = (), events: Iterable[Event] = ()
    ) -> None:
        """Add rewards and events to a log; only inside `exclusive`."""

    def now(self) -> float:
        """Seconds since 1970 by the clock that all programs share which use this store."""

    def close(self) -> None:
        """Let go of what the store holds open. It cannot be used afterwards."""


def no_such_experiment(name: str, names: Sequence[str], where: str) -> str:
    """The words for a name that is not there."""
    there = ", ".join(map(repr, names)) or "none"
    return f"there is no experiment {name!r} in {where}; it holds {there}"


class Scope(StrEnum):
    """What a token allows; each allows what those before it do."""

    READ = "read"  # look at experiments and take their results
    WORK = "work"  # be handed tickets and tell them
    ADMIN = "admin"  # make experiments and let stopped ones go on

    def covers(self, wanted: "Scope") -> bool:
        """Whether this allows all that `wanted` does."""
        scopes = list(Scope)
        return scopes.index(self) >= scopes.index(wanted)


class Token(NamedTuple):
    """A token without its secret."""

    name: str  # of its holder; no two have the same, revoked ones included
    scope: Scope
    digest: str  # SHA-256 of the secret, in hexadecimal
    created: float  # seconds since 1970
    revoked: float | None = None


@runtime_checkable
class TokenStore(Protocol):
    """A store that keeps tokens beside its experiments. It raises `StoreError` as any store."""

    def tokens(self) -> Sequence[Token]:
        """All that were ever made, in that order, revoked ones included."""

    def add_token(self, token: Token) -> None:
        """Add one, unless there was ever one of that name."""

    def revoke_token(self, name: str, now: float) -> None:
        """Let a token allow nothing any more; a second time changes nothing."""


def token_exists(name: str, where: str) -> str:
    """The words for a name that is taken."""
    return f"there is a token {name!r} in {where} already, and a revoked one keeps its name"


def no_such_token(name: str, tokens: Sequence[Token], where: str) -> str:
    """The words for a name that is not there."""
    there = ", ".join(repr(token.name) for token in tokens) or "none"
    return f"there is no token {name!r} in {where}; it holds {there}"
