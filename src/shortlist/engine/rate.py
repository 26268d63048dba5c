"""Pace the calls of a function: how many requests, tokens or costs per minute are allowed.

Each limit has a token bucket. One second's worth may start at once, so a limit on requests holds in
every minute: with r requests per minute, and b = max(1, r/60) of them at once, the bucket is filled
by r - b per minute (by r where b is 1, as requests are then 60/r seconds apart). Pacing decides
when a call starts, never which."""

import asyncio
import math
import time
from collections.abc import Mapping
from threading import Lock
from typing import Any

from shortlist.arms import OwnLabel
from shortlist.engine.program import Command
from shortlist.engine.tickets import Score
from shortlist.errors import InvalidInput
from shortlist.validation import number, real, shown

RateGiven = float | Mapping[str, float]
REQUESTS = "requests"  # calls of the function, retries among them
COST = "cost"  # actual costs, or declared ones where none is reported
MINUTE = 60.0  # seconds
LEAST_WAIT = 1e-6  # seconds: a clock resolves that much


class Clock:
    """Seconds that pass, whatever happens to the time of day."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)

    async def pause(self, seconds: float) -> None:
        """Let time pass in an event loop."""
        await asyncio.sleep(seconds)


CLOCK = Clock()


class Bucket:
    """A token bucket: what may be used now. It is below 0 if more was used than was expected."""

    def __init__(self, per_minute: float, counts: bool) -> None:
        """`counts` says that it counts requests: then one of them must fit in."""
        second = per_minute / MINUTE
        self.size = max(second, 1.0) if counts else second
        burst = second if self.size == second else 0.0  # without one, starts are spaced evenly
        self.flow = (per_minute - burst) / MINUTE  # per second
        self.level = self.size

    def fill(self, seconds: float) -> None:
        """Let time pass."""
        self.level = min(self.size, self.level + seconds * self.flow)

    def wait(self, amount: float) -> float:
        """Seconds until this much is there, or the bucket is full."""
        missing = min(amount, self.size) - self.level
        return max(missing / self.flow, LEAST_WAIT) if missing > 0 else 0.0


class Pace:
    """When calls may start. Threads that repeat a call ask for themselves.

    What a call uses besides a request is known when it ends. Until then, it counts as the mean of
    those that ended; before the first has ended, one call is under way at a time."""

    def __init__(self, limits: Mapping[str, float], clock: Clock | None = None) -> None:
        self.clock = CLOCK if clock is None else clock
        self.uses = tuple(name for name in limits if name != REQUESTS)
        self._buckets = {name: Bucket(each, name == REQUESTS) for name, each in limits.items()}
        self._lock = Lock()
        self._filled = self.clock.now()
        self._counted: dict[int, dict[str, float]] = {}  # what calls under way count as, by ticket
        self._total = dict.fromkeys(self.uses, 0.0)  # that calls have used
        self._ended = 0  # calls whose use is known

    @classmethod
    def of(cls, rate: RateGiven | None, function: object) -> "Pace | None":
        """Take what a user said, if it makes sense; None without a rate."""
        limits = checked_rate(rate)
        told = [name for name in limits if name not in (REQUESTS, COST)]
        if told and isinstance(function, Command):
            rule = "a program tells no more than its cost: limit 'requests' or 'cost'"
            raise InvalidInput(f"`rate` limits {told[0]!r}, but {rule}")
        return cls(limits) if limits else None

    def start(self, ticket: int) -> bool:
        """Whether the call of this ticket may start now; if so, it counts from now on."""
        with self._lock:
            if self._waits_for_the_first() or self._wait() > 0:
                return False
            counted = {name: self._mean(name) for name in self.uses}
            self._counted[ticket] = counted
            for name, bucket in self._buckets.items():
                bucket.level -= counted.get(name, 1.0)
            return True

    def repeat(self) -> float:
        """Count a call that is made again, if it may start now; else seconds until it may."""
        with self._lock:
            wait = self._wait()
            if wait == 0 and REQUESTS in self._buckets:
                self._buckets[REQUESTS].level -= 1
            return wait

    def wait(self) -> float:
        """Seconds until a call may start; infinite if another has to end before."""
        with self._lock:
            return math.inf if self._waits_for_the_first() else self._wait()

    def end(self, ticket: int, label: OwnLabel, value: Any, declared: float) -> None:
        """Count what a call used that returned `value`; `declared` is its cost, if not reported.

        Raises `InvalidInput` if it is the first and does not say what it used."""
        used = {name: use_of(value, name) for name in self.uses}
        if COST in used and used[COST] is None:
            used[COST] = declared
        with self._lock:
            counted = self._counted.pop(ticket, {})
            missing = [name for name, each in used.items() if each is None]
            if missing and not self._ended:
                raise InvalidInput(_unreported(missing[0], label))
            for name, each in used.items():
                actual = counted.get(name, 0.0) if each is None else each
                self._total[name] += actual
                self._buckets[name].level += counted.get(name, 0.0) - actual
            self._ended += 1

    def drop(self, ticket: int) -> None:
        """A call that failed counts as it did when it started."""
        with self._lock:
            self._counted.pop(ticket, None)

    def _waits_for_the_first(self) -> bool:
        return bool(self.uses and self._counted and not self._ended)

    def _wait(self) -> float:
        now = self.clock.now()
        for bucket in self._buckets.values():
            bucket.fill(now - self._filled)
        self._filled = now
        each = self._buckets.items()
        return max(bucket.wait(self._mean(name)) for name, bucket in each)

    def _mean(self, name: str) -> float:
        if name == REQUESTS:
            return 1.0
        return self._total[name] / self._ended if self._ended else 0.0

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """In another process there is no pace."""
        return type(None), ()


def checked_rate(rate: object) -> dict[str, float]:
    """Limits per minute, by name."""
    if rate is None:
        return {}
    given = rate if isinstance(rate, Mapping) else {REQUESTS: rate}
    if not given or not all(isinstance(name, str) and name for name in given):
        rule = 'a number of requests per minute, or like {"requests": 600, "tokens": 90_000}'
        raise InvalidInput(f"`rate` is {shown(rate)}, but must be {rule}")
    several = isinstance(rate, Mapping)
    return {
        name: number(f"rate[{name!r}]" if several else "rate", limit, above=0)
        for name, limit in given.items()
    }


def use_of(value: Any, name: str) -> float | None:
    """How much a call says that it used; None if it does not say."""
    if name == COST and isinstance(value, tuple) and len(value) == 2 and _real(value[1]):
        return real(value[1])
    parts = value if isinstance(value, list | tuple) else [value]
    told = [_told(part, name) for part in parts if isinstance(part, Score)]
    known = [each for each in told if each is not None]
    return math.fsum(known) if known else None


def _told(score: Score, name: str) -> float | None:
    if name == COST:
        return score.cost
    told = score.info.get(name) if isinstance(score.info, Mapping) else None
    return real(told) if _real(told) else None


def _real(value: object) -> bool:
    return not isinstance(value, bool) and 0 <= real(value) < math.inf


def _unreported(name: str, label: OwnLabel) -> str:
    cure = f"return shortlist.Score(value, info={{{name!r}: …}})"
    known = "'requests' and 'cost' need no info"
    return (
        f"`rate` limits {name!r}, but arm {shown(label)} does not tell its {name}: {cure}; {known}"
    )
