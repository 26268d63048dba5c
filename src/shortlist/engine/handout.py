"""Who is handed which tickets, until when, and who gives which of them back."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from shortlist.engine.leases import AGAIN, FOREVER, FREE, Lease
from shortlist.engine.locate import checked_worker
from shortlist.engine.state import Replica
from shortlist.engine.telling import known_id
from shortlist.engine.tickets import Ticket
from shortlist.errors import InvalidInput
from shortlist.spec import OnLate
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


def new_lease(worker: str, on_late: OnLate, now: float, lease: float, alive: float | None) -> Lease:
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


def handed_out(known: Replica, ids: Iterable[int], lease: Lease) -> tuple[list[Event], list[float]]:
    """The leases for the log, and when each ticket is due.

    Where what is late counts as a reward, a ticket keeps its lease: one that could be prolonged
    would give the reward another law."""
    held = known.ledger.leases
    counts = isinstance(known.settings.on_late, float)
    kept = {id_ for id_ in ids if counts and known.ledger.due(id_) != FREE}
    new = sorted(set(ids) - kept)
    events = [
        Event(Kind.LEASE, first, span, lease.worker, lease.end) for first, span in stretches(new)
    ]
    return events, [held[id_].due if id_ in kept else lease.due for id_ in ids]


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
    leases = known.ledger.leases
    fit = set(leases)
    if tickets is not None:
        fit = {known_id(each, known) for each in tickets if is_current(each, known)}
    holders: dict[str, list[int]] = defaultdict(list)
    for id_ in sorted(fit):
        lease = leases[id_]
        theirs = worker is None or lease.worker == worker
        if theirs and lease.end != FREE and (overdue is None or lease.due + overdue <= now):
            holders[lease.worker].append(id_)
    events = [
        Event(Kind.LEASE, first, span, holder, FREE)
        for holder, ids in holders.items()
        for first, span in stretches(ids)
    ]
    return events, sum(map(len, holders.values()))


def is_current(ticket: Ticket | int, known: Replica) -> bool:
    """Whether somebody holds the ticket, and on the terms that it names."""
    due = known.ledger.due(known_id(ticket, known))
    return due != FREE and (not isinstance(ticket, Ticket) or ticket.expires == due)


def stretches(ids: list[int]) -> Iterator[tuple[int, int]]:
    """Ascending numbers as stretches without a gap: the first of each and its length."""
    start = 0
    for position in range(1, len(ids) + 1):
        if position == len(ids) or ids[position] != ids[position - 1] + 1:
            yield ids[start], position - start
            start = position
