"""Who is handed which tickets, until when, and who gives which of them back."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from shortlist.arrays import IntArray
from shortlist.engine.leases import AGAIN, FOREVER, FREE, Late, Lease, due_of
from shortlist.engine.locate import checked_worker
from shortlist.engine.state import Replica
from shortlist.engine.telling import known_id
from shortlist.engine.tickets import Ticket
from shortlist.errors import InvalidInput
from shortlist.stores import Event, Kind
from shortlist.validation import MOST_TOLD, collected, number, shown, whole

LONGEST = FOREVER / 2  # seconds of a lease that ends


class Asking(NamedTuple):
    """What `ask` is given, checked, here or at a service."""

    limit: int
    worker: str
    lease: float | None  # seconds
    alive: float | None  # seconds

    @classmethod
    def of(cls, limit: object, worker: object, lease: object, alive: object) -> "Asking":
        """What is given, if it makes sense."""
        most, name = whole("limit", limit, at_least=1), checked_worker(worker)
        promise = _checked_alive(alive, name)
        return cls(most, name, None if lease is None else number("lease", lease, above=0), promise)


def new_lease(worker: str, on_late: Late, now: float, lease: float, alive: float | None) -> Lease:
    """The terms of a ticket that is handed out now.

    Only of who promised to be `alive` can it be known without looking at durations that it is not,
    so the tickets of all others are waited for, unless the user said otherwise."""
    due = now + min(lease, LONGEST)
    if isinstance(on_late, float):
        return Lease(worker, due)
    if alive is not None:
        return Lease(worker, now + min(alive, LONGEST))
    return Lease(worker, due if on_late == AGAIN else FOREVER + due)


def _checked_alive(alive: object, worker: str) -> float | None:
    """The promise to ask again within so many seconds, which only somebody with a name can keep."""
    if alive is None:
        return None
    if not worker:
        raise InvalidInput(f"`alive` is {shown(alive)}, but needs a `worker`, who asks again")
    return number("alive", alive, above=0)


def checked_overdue(overdue: object) -> float | None:
    """Seconds since a ticket was due."""
    if overdue is None:
        return None
    seconds = number("overdue", overdue)
    if seconds < 0:
        raise InvalidInput(f"`overdue` is {shown(overdue)}, but must be at least 0 seconds")
    return seconds


def handed_out(known: Replica, ids: IntArray, lease: Lease) -> tuple[list[Event], list[float]]:
    """The leases for the log, and when each ticket is due.

    Where what is late counts as a reward, a ticket keeps its lease: one that could be prolonged
    would give the reward another law."""
    if not isinstance(known.settings.on_late, float):
        return _leases(np.sort(ids), lease), [lease.due] * ids.size
    due = due_of(known.ledger.ends(ids[ids < known.ledger.issued]))  # of those handed out before
    due = np.concatenate([due, np.full(ids.size - due.size, FREE)])
    kept = due != FREE
    return _leases(np.sort(ids[~kept]), lease), np.where(kept, due, lease.due).tolist()


def _leases(tickets: IntArray, lease: Lease) -> list[Event]:
    """One lease for all of these tickets, which are in order, as events."""
    spans = stretches(tickets)
    return [Event(Kind.LEASE, first, span, lease.worker, lease.end) for first, span in spans]


def named_tickets(tickets: Iterable[Ticket | int] | None) -> Sequence[Ticket | int] | None:
    """Tickets that are named one by one, if any are."""
    if tickets is None:
        return None
    return collected("tickets", tickets, at_most=MOST_TOLD, rule="a list of tickets")


def given_back(
    known: Replica,
    worker: str | None,
    tickets: Sequence[Ticket | int] | None,
    overdue: float | None,
    now: float,
) -> tuple[list[Event], int]:
    """What takes back the tickets that fit all that is said, and how many they are."""
    if worker is None and tickets is None and overdue is None:
        raise InvalidInput("no `worker`, `tickets` or `overdue` is given, but one is needed")
    ledger = known.ledger
    fit = ledger.open_tickets()
    if tickets is not None:
        fit = fit[
            np.isin(fit, [known_id(each, known) for each in tickets if is_current(each, known)])
        ]
    fit = fit[ledger.ends(fit) != FREE]
    if overdue is not None:
        fit = fit[due_of(ledger.ends(fit)) + overdue <= now]
    holders = np.array(ledger.holders(fit), dtype=object)
    theirs = sorted(set(holders.tolist())) if worker is None else [worker]
    events = [
        each for holder in theirs for each in _leases(fit[holders == holder], Lease(holder, FREE))
    ]
    return events, sum(event.span for event in events)


def is_current(ticket: Ticket | int, known: Replica) -> bool:
    """Whether somebody holds the ticket, and on the terms that it names."""
    due = known.ledger.due(known_id(ticket, known))
    return due != FREE and (not isinstance(ticket, Ticket) or ticket.expires == due)


def stretches(ids: IntArray) -> list[tuple[int, int]]:
    """Ascending numbers as stretches without a gap: the first of each and its length."""
    begins = np.flatnonzero(np.diff(ids, prepend=-2) != 1)  # no number is below 0
    sizes = np.diff(begins, append=ids.size)
    return list(zip(ids[begins].tolist(), sizes.tolist(), strict=True))
