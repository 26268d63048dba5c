"""The time that leases are counted in: one clock for all programs that share a store.

Where a server keeps the store, its clock counts. Elsewhere it is the clock of the machine, which
all programs on it share; one that is set while a program runs is reported."""

import logging
import time
from collections.abc import Callable
from threading import Lock

from shortlist.errors import InvalidInput
from shortlist.validation import real, shown

LATEST = 2.0**39  # seconds since 1970, in 17,000 years: far below the end of a lease without end
EVERY = 30.0  # seconds after which a server is asked again
JUMP = 2.0  # seconds by which a clock may drift, or be corrected, unnoticed
logger = logging.getLogger("shortlist.stores")
Clock = Callable[[], float]


def steady() -> float:
    """Seconds that no setting of a clock changes; where possible they go on while the machine
    sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def checked_time(value: object) -> float:
    """What a clock says, if it can be the time: it is kept for good, and leases end by it."""
    now = real(value)
    if not 0 <= now <= LATEST:  # NaN is not either
        raise InvalidInput(
            f"the clock says {shown(value)}, but must say seconds since 1970: a number from 0 to"
            f" {LATEST:g}"
        )
    return now


class MachineClock:
    """The clock of the machine. Setting it moves the end of every lease, so that is reported."""

    def __init__(self) -> None:
        self._apart: float | None = None  # what it was ahead of the steady seconds

    def __call__(self) -> float:
        """Seconds since 1970."""
        now = time.time()
        apart = now - steady()
        jump = 0.0 if self._apart is None else apart - self._apart
        if abs(jump) > JUMP:
            way = "forward" if jump > 0 else "back"
            end = "sooner" if jump > 0 else "later"
            logger.warning(
                "The clock of this machine was set %s by %.3g s: leases end that much %s.",
                *(way, abs(jump), end),
            )
        if self._apart is None or abs(jump) > JUMP:
            self._apart = apart
        return now


class ServerClock:
    """The clock of a server, which is asked every half minute; between, steady seconds are added.

    So the clocks of the programs that share the server do not matter, right or wrong."""

    def __init__(self, ask: Clock) -> None:
        self._ask = ask
        self._lock = Lock()
        self._asked = 0.0  # steady seconds when the server was asked last,
        self._said: float | None = None  # and what it said

    def __call__(self) -> float:
        """Seconds since 1970, as the server counts them."""
        with self._lock:
            elapsed = steady() - self._asked
            if self._said is None or not 0 <= elapsed < EVERY:
                self._said = checked_time(self._ask())
                self._asked, elapsed = steady(), 0.0
            return self._said + elapsed


this_machine = MachineClock()
