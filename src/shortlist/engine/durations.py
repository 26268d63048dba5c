"""How long pulls take: for leases that fit, and a warning where one does not."""

import logging
from collections.abc import Collection, Iterable

from shortlist.engine.leases import AGAIN, FREE, WAIT, Lease
from shortlist.engine.ledger import Ledger
from shortlist.errors import InvalidInput
from shortlist.formatting import given_text
from shortlist.spec import OnLate
from shortlist.validation import number, shown

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

    def begin(self, tickets: Iterable[int], renewed: Collection[int], now: float) -> None:
        """Note that tickets are handed out; the evaluation of those renewed goes on."""
        for ticket in tickets:
            if ticket not in renewed or ticket not in self._begun:
                self._begun[ticket] = now
        while len(self._begun) > REMEMBERED:
            del self._begun[next(iter(self._begun))]

    def end(self, tickets: Iterable[int], ledger: Ledger, now: float) -> None:
        """Note that tickets are told, and say so if that came near the end of their lease."""
        for ticket in tickets:
            lease = ledger.leases.get(ticket, NOBODY)
            taken = now - self._begun.pop(ticket, self._guess(lease, now))
            self.longest = max(self.longest, taken)
            # others are kept alive, however long it takes
            if lease.endless or self._on_late != WAIT:
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
