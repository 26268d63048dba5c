"""Which tickets the budget pays for, where pulls did not cost what was declared.

A search asks for what its budget pays for by declared costs. If pulls turn out dearer, what it
asked for may be too much: a ticket is handed out only if its declared cost, what was spent, and
what is under way, also as declared, are within the budget."""

import numpy as np

from shortlist.experiment.replica import Replica
from shortlist.purse import ROUNDED
from shortlist.storage import Event, Kind


def affordable(known: Replica, ids: list[int], now: float) -> list[int]:
    """The first of these tickets that the budget pays for; those that are held are paid for."""
    if not _is_short(known):
        return ids
    room = _room(known, now)
    leases = known.ledger.leases
    paid = []
    for ticket, price in zip(ids, _prices(known, ids), strict=True):
        held = ticket in leases and leases[ticket].end > now
        room -= 0.0 if held else price
        if room < 0:
            break
        paid.append(ticket)
    return paid


def ending(known: Replica, now: float) -> list[Event]:
    """What ends an experiment whose budget does not pay for the next ticket, when nobody has one
    out that might turn out cheaper."""
    following = next(known.available("", now), None)
    if following is None or known.ledger.held(now) or affordable(known, [following], now):
        return []
    return [Event(Kind.SPENT, 0, 0, "", now)]


def _is_short(known: Replica) -> bool:
    """Whether the budget may not pay for all that the search asked for."""
    budget, ledger = known.settings.problem.goal.budget, known.ledger
    if budget is None or not (ledger.costs or ledger.unused):
        return False
    asked = float(known.replay.asked @ known.settings.problem.prices)
    return ledger.spent + asked - ledger.declared > budget * (1 + ROUNDED)


def _room(known: Replica, now: float) -> float:
    """What is left of the budget beyond what is under way."""
    budget = known.settings.problem.goal.budget
    assert budget is not None
    held = [ticket for ticket, lease in known.ledger.leases.items() if lease.end > now]
    under_way = float(np.sum(_prices(known, held)))
    return budget * (1 + ROUNDED) - known.ledger.spent - under_way


def _prices(known: Replica, tickets: list[int]) -> list[float]:
    """What these tickets, which are not told, are declared to cost."""
    if not tickets:
        return []
    arms = known.replay.numbering.arms(tickets)
    prices: list[float] = known.settings.problem.prices[arms].tolist()
    return prices
