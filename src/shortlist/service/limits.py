"""How much a service takes at once, how often, and for how long."""

import time
from collections import OrderedDict
from dataclasses import dataclass

from shortlist.errors import LimitExceeded

CALLERS = 10_000  # whose pace is remembered


@dataclass(frozen=True, slots=True)
class Limits:
    """What an operator may want to change."""

    body: int = 8 * 2**20  # bytes of a request
    rate: float = 1000.0  # requests a second of one token, or of one address without any
    body_seconds: float = 10.0  # for the body of a request to come in
    head_seconds: float = 10.0  # for its head
    seconds: float = 30.0  # for an answer
    send_seconds: float = 30.0  # for somebody who reads a stream to take a piece of it
    readers: int = 1000  # of streams
    connections: int = 2000
    arms: int = 100_000  # of an experiment that is made over HTTP
    opened: int = 64  # experiments kept in memory


class Pace:
    """A token bucket a caller: `rate` requests a second, and twice that at once."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # left, as of when

    def take(self, caller: str) -> None:
        """Count a request, or refuse it."""
        now = time.monotonic()
        full = 2 * self._rate
        left, then = self._buckets.pop(caller, (full, now))
        left = min(full, left + (now - then) * self._rate)
        self._buckets[caller] = (max(0.0, left - 1), now)
        if len(self._buckets) > CALLERS:
            self._buckets.popitem(last=False)
        if left < 1:
            raise LimitExceeded(f"more than {self._rate:g} requests a second: wait a second")
