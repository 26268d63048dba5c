"""How long a ticket is reserved, what happens when that is over, and how long pulls take.

The end of a lease is a fact about how long an evaluation takes, and so perhaps about its reward.
docs/late.md proves what may follow from it without changing the distribution of the rewards that
count."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.formatting import given_text
from shortlist.spec import OnLate
from shortlist.validation import number, shown, text

WAIT: Literal["wait"] = "wait"  # for the result, however long it takes
AGAIN: Literal["again"] = "again"  # hand the ticket out again; the first result counts

FREE = 0.0  # the end of a lease that nobody holds any more
# A ticket that is waited for is held so many seconds beyond its due time, for 35,000 years. A power
# of 2, so that the due time comes back from the log as it is on the ticket.
FOREVER = 2.0**40


@dataclass(slots=True)
class Lease:
    """Who was asked last to make a pull, and until when nobody else is."""

    worker: str  # "" for somebody without a name
    end: float

    @property
    def due(self) -> float:
        """When the result is expected; what is waited for has no other end."""
        return self.end - FOREVER if self.endless else self.end

    @property
    def endless(self) -> bool:
        """Whether the result is waited for, however long it takes."""
        return self.end >= FOREVER


def due_of(ends: FloatArray) -> FloatArray:
    """When results are expected whose leases end then; see `Lease.due`."""
    return np.where(ends >= FOREVER, ends - FOREVER, ends)


HOUR = 3600.0  # of a lease, while nothing is known about how long pulls take
MARGIN = 4.0  # times the longest pull so far: a lease that pulls of the same kind do not outlast
NEAR = 0.5  # of its lease: a pull that takes longer is worth a warning
REMEMBERED = 100_000  # tickets under way whose beginning is known; beyond, the oldest is forgotten
NOBODY = Lease("", FREE)
logger = logging.getLogger("shortlist.engine")


class Durations:
    """Seconds from `ask` to `tell`, as far as this program knows them."""

    def __init__(self, lease: float | None, on_late: OnLate) -> None:
        self._lease = lease  # that the user chose
        self._on_late = on_late
        self._begun: dict[int, float] = {}  # by ticket, of those that were handed out here
        self.longest = 0.0
        self._warned = False

    def lease(self, wanted: float | None) -> float:
        """The seconds that are wanted, or were chosen, or that are enough by all that is known."""
        if wanted is not None and isinstance(self._on_late, float):
            raise InvalidInput(
                f"`lease` is {shown(wanted)}, but where what is late counts as {self._on_late!r}"
                " all tickets must have the same"
            )
        if wanted is not None:
            return number("lease", wanted, above=0)
        return max(HOUR, MARGIN * self.longest) if self._lease is None else self._lease

    def begin(self, tickets: list[int], renewed: IntArray, now: float) -> None:
        """Note that tickets are handed out; the evaluation of those renewed goes on."""
        again = set(renewed.tolist()) & self._begun.keys() if renewed.size else ()
        new = [each for each in tickets if each not in again] if again else tickets
        self._begun.update(dict.fromkeys(new, now))
        for ticket in list(islice(self._begun, max(0, len(self._begun) - REMEMBERED))):
            del self._begun[ticket]

    def end(self, tickets: list[int], lease_of: Callable[[int], Lease | None], now: float) -> None:
        """Note that tickets are told, and say so if that came near the end of their lease."""
        for ticket in tickets:
            begun = self._begun.pop(ticket, None)
            if begun is None or now - begun > self.longest:
                self._take(lease_of(ticket) or NOBODY, begun, now)

    def _take(self, lease: Lease, begun: float | None, now: float) -> None:
        """Note one that took longer than all before, or may have."""
        taken = now - (self._guess(lease, now) if begun is None else begun)
        self.longest = max(self.longest, taken)
        if lease.endless or self._on_late != WAIT:  # others are kept alive, however long it takes
            self._warn(taken)

    def _guess(self, lease: Lease, now: float) -> float:
        """When a pull began that another program handed out, most often with the same lease."""
        return now if self._lease is None or lease.end == FREE else lease.due - self._lease

    def _warn(self, taken: float) -> None:
        """Say, once, that a pull came near the end of the lease that the user chose."""
        if self._lease is not None and taken > NEAR * self._lease and not self._warned:
            self._warned = True
            what = "A pull took %.3g s of its lease of %.3g s; a pull that takes longer %s."
            logger.warning(what, taken, self._lease, _consequence(self._on_late))


def _consequence(on_late: OnLate) -> str:
    if on_late == WAIT:
        return "is called overdue, and waited for"
    if on_late == AGAIN:
        return "is made again, which is fair only if slow says nothing about the reward"
    return f"counts as {given_text(on_late)}"


def checked_worker(worker: object) -> str:
    """The name of a worker; None and an empty one are nobody's."""
    return "" if worker is None else text("worker", worker)
