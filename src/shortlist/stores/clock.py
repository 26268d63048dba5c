"""The clock of a store, which times leases for all programs that share the store.

A store on a server uses the clock of the server. Other stores use the clock of the machine; if that
is set while a program runs, a warning is logged."""

import logging
import time
from collections.abc import Callable
from threading import Lock

from shortlist.errors import InvalidInput
from shortlist.validation import real, shown

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
