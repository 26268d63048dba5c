"""A store that lives as long as the program: for tests, and to try things out."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock
from typing import NamedTuple

from shortlist.errors import StoreError, StoreExists, StoreMissing
from shortlist.stores.base import (
    NOTHING,
    Event,
    News,
    RewardRow,
    Token,
    Told,
    no_such_experiment,
    no_such_token,
    token_exists,
)
from shortlist.stores.clock import this_machine

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
    parts: list[Appended] = field(default_factory=list)
    told: set[int] = field(default_factory=set)  # the tickets among them

    @property
    def end(self) -> int:
        """How many entries there are."""
        return self.parts[-1].end if self.parts else 0


class MemoryStore:
    """Experiments in a dictionary. Threads may share it; other processes cannot see it."""

    def __init__(self) -> None:
        self._logs: dict[str, Log] = {}
        self._tokens: dict[str, Token] = {}
        self._lock = RLock()
        # parts of all logs when the exclusive block began
        self._undo: dict[str, int] | None = None
        self._closed = False

    def names(self) -> list[str]:
        """The experiments there are, in the order in which they were made."""
        self._check_open()
        return list(self._logs)

    def settings(self, name: str) -> str:
        """What the experiment of that name was made with."""
        return self._log(name).settings

    def create(self, name: str, settings: str) -> None:
        """Add an experiment with an empty log, unless there is one of that name."""
        with self.exclusive():
            if name in self._logs:
                raise StoreExists(f"there is an experiment {name!r} in {WHERE} already")
            self._logs[name] = Log(settings)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Let no other thread write meanwhile; if the block raises, nothing of it was written."""
        self._check_open()
        with self._lock:
            if self._undo is not None:
                yield
                return
            self._undo = {name: len(log.parts) for name, log in self._logs.items()}
            try:
                yield
            except BaseException:
                self._roll_back(self._undo)
                raise
            finally:
                self._undo = None

    def _roll_back(self, lengths: dict[str, int]) -> None:
        self._logs = {name: log for name, log in self._logs.items() if name in lengths}
        for name, length in lengths.items():
            log = self._logs[name]
            for part in log.parts[length:]:
                log.told.difference_update(part.told.tickets.tolist())
            del log.parts[length:]

    def read(self, name: str, after: int = 0, until: int | None = None) -> News:
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
        self, name: str, told: Iterable[RewardRow] = (), events: Iterable[Event] = ()
    ) -> None:
        """Add rewards and events to a log; only inside `exclusive`."""
        if self._undo is None:
            raise StoreError("append was called outside of exclusive(), but needs it")
        log = self._log(name)
        part = Appended(log.end, told if isinstance(told, Told) else Told.of(told), list(events))
        tickets = part.told.tickets.tolist()
        if not log.told.isdisjoint(tickets) or len(set(tickets)) < len(tickets):
            raise StoreError("a ticket is given a second reward, but may have only one")
        if part.end > part.first:
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
