"""What `ask`, `tell` and `release` append to the log.

Who is handed which tickets, until when, and who gives which of them back; which rewards may be
told, of which tickets and how often; and which tickets the budget pays for.

A search asks for what its budget pays for by declared costs. If pulls turn out more expensive, that
may be too much: a ticket is handed out only if its declared cost, the money spent, and the declared
cost of the pulls under way are within the budget."""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import Any, NamedTuple

import numpy as np

from shortlist.arms import Label
from shortlist.arrays import IntArray
from shortlist.budget import Budget
from shortlist.engine.ledger import Ledger
from shortlist.engine.replay import Replica
from shortlist.engine.tickets import (
    AGAIN,
    FOREVER,
    FREE,
    Lease,
    Noted,
    OpenBatches,
    Receipt,
    Score,
    Ticket,
    checked_cost,
    checked_info,
    checked_metrics,
    checked_reward,
    checked_worker,
    due_of,
    noted_metrics,
)
from shortlist.errors import ConflictingReward, InvalidInput, UnknownTicket
from shortlist.reward_models import RewardModel
from shortlist.settings import MOST_METRICS, Settings
from shortlist.spec import OnLate
from shortlist.stores import Event, Kind, RewardRow, Told
from shortlist.validation import MOST_TOLD, collected, number, shown, whole

LONGEST = FOREVER / 2  # seconds of a lease that ends


class Asking(NamedTuple):
    """What `ask` is given, checked, here or at a service."""

    limit: int
    worker: str
    lease: float | None  # seconds
    alive: float | None  # seconds

    @classmethod
    def of(
        cls, limit: object, worker: object, lease: object, alive: object, per_worker: object = None
    ) -> "Asking":
        """What is given, if it makes sense. The open tickets of a worker come first, so the limit
        is the most that it holds."""
        most, name = whole("limit", limit, at_least=1), checked_worker(worker)
        if per_worker is not None:
            if not name:
                rule = "needs a `worker`, whose open tickets are counted"
                raise InvalidInput(f"`per_worker` is {shown(per_worker)}, but {rule}")
            most = min(most, whole("per_worker", per_worker, at_least=1))
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
    """The promise to ask again within this many seconds, which needs the name of a worker."""
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
    would give the reward another distribution."""
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
    """The entries that take back the tickets which meet all conditions, and their number."""
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
    """Whether the ticket is held, on the terms that it names."""
    due = known.ledger.due(known_id(ticket, known))
    return due != FREE and (not isinstance(ticket, Ticket) or ticket.expires == due)


def stretches(ids: IntArray) -> list[tuple[int, int]]:
    """Ascending numbers as stretches without a gap: the first of each and its length."""
    begins = np.flatnonzero(np.diff(ids, prepend=-2) != 1)  # no number is below 0
    sizes = np.diff(begins, append=ids.size)
    return list(zip(ids[begins].tolist(), sizes.tolist(), strict=True))


_author: ContextVar[str] = ContextVar("author", default="")


@contextmanager
def written_by(author: str) -> Iterator[None]:
    """A block in which all entries of logs name this author."""
    token = _author.set(author)
    try:
        yield
    finally:
        _author.reset(token)


def present_author() -> str:
    """The author of the block; empty if there is none."""
    return _author.get()


def signed(told: Told | Sequence[RewardRow], events: Sequence[Event]) -> list[Event]:
    """The events, with their author. If there is one, an event for the rewards follows."""
    author = _author.get()
    if not author:
        return list(events)
    rewards = told if isinstance(told, Told) else Told.of(told)
    marks: list[Event] = []
    if len(rewards):
        now = float(rewards.times[0])
        spans = stretches(np.sort(rewards.tickets))
        marks = [Event(Kind.AUTHOR, first, span, "", now) for first, span in spans]
    return [event._replace(author=author) for event in (*events, *marks)]


logger = logging.getLogger("shortlist.engine")
Reward = float | Score
# a ticket and its reward, perhaps the actual cost of the pull, its info, and its metrics
Report = (
    tuple[Ticket | int, Reward]
    | tuple[Ticket | int, Reward, float | None]
    | tuple[Ticket | int, Reward, float | None, Any]
    | tuple[Ticket | int, Reward, float | None, Any, Mapping[str, float] | None]
)


class ToldResult(NamedTuple):
    """A report with all its parts."""

    ticket: Ticket | int
    reward: float
    cost: float | None = None
    info: Any = None
    metrics: Mapping[str, float] | None = None


class Telling(NamedTuple):
    """A reward that is new to the log."""

    ticket: int
    arm: int
    reward: float
    cost: float | None  # None if it is as declared
    info: str | None = None  # as JSON, with the metrics
    metrics: Mapping[str, float] | None = None

    def row(self, now: float) -> RewardRow:
        """The reward, for the log."""
        return self.ticket, self.arm, self.reward, now


def costs_of(tellings: Iterable[Telling], now: float) -> list[Event]:
    """Actual costs that differ from the declared ones, for the log."""
    return [
        Event(Kind.COST, each.ticket, 1, repr(each.cost), now)
        for each in tellings
        if each.cost is not None
    ]


def unused_costs(tellings: Iterable[Telling], now: float) -> list[Event]:
    """What pulls cost that were told after their arm left, for the log."""
    return [Event(Kind.UNUSED, each.ticket, 1, repr(each.cost), now) for each in tellings]


def infos_of(tellings: Iterable[Telling], now: float) -> list[Event]:
    """The infos that were told with rewards, for the log."""
    return [
        Event(Kind.INFO, each.ticket, 1, each.info, now)
        for each in tellings
        if each.info is not None
    ]


def told_results(results: object) -> Sequence[ToldResult]:
    """Results as a list, if they are pairs of a ticket and its reward, or have a cost and an info,
    too."""
    if not isinstance(results, Iterable):
        raise InvalidInput(
            f"{shown(results)} is told, but must be pairs of a ticket and its reward"
        )
    told = collected("results", results, at_most=MOST_TOLD)
    for each in told:
        if not (isinstance(each, tuple | list) and 2 <= len(each) <= len(ToldResult._fields)):
            raise InvalidInput(
                f"{shown(each)} is told, but must be a pair of a ticket and its reward"
            )
    return [_unpacked(ToldResult(*each)) for each in told]


def _unpacked(result: ToldResult) -> ToldResult:
    """The same with a number as its reward; a `Score` has its own cost, info and metrics."""
    score: object = result.reward
    if not isinstance(score, Score):
        return result
    cost = score.cost if result.cost is None else result.cost
    info = score.info if result.info is None else result.info
    metrics = score.metrics if result.metrics is None else result.metrics
    return ToldResult(result.ticket, score.value, cost, info, metrics)


def new_tellings(
    results: Sequence[ToldResult], known: Replica, now: float
) -> tuple[Sequence[Telling], Sequence[Telling], Receipt]:
    """What is new in these results, what is new and only costs, and which rewards are discarded; or
    an error, if one of them may not be told."""
    ledger, settings = known.ledger, known.settings
    ids = [known_id(each.ticket, known) for each in results]
    arms = _arms_of(ids, known.replay.numbering, ledger)
    missed = set(known.missed(now).tolist())
    new: dict[int, Telling] = {}
    paid: dict[int, Telling] = {}  # they were made, so they cost, though their arms had left
    late: dict[int, None] = {}  # in the order of the results, each once
    unused: dict[int, None] = {}
    over = known.replay.outcome is not None
    wanted = known.metric_names()
    for (ticket, value, said, more, figures), id_, arm in zip(results, ids, arms, strict=True):
        label = settings.labels[arm]
        _check_arm(ticket, id_, label)
        _check_item(ticket, id_, arm, known)
        cost = checked_cost(said, f"the cost of ticket {id_} (arm {label!r})")
        reward = told_reward(value, id_, label, settings.problem.rewards)
        metrics = noted_metrics(more) if isinstance(more, Noted) else figures
        metrics = checked_metrics(metrics, f"the metrics of ticket {id_}")
        info = checked_info(more, f"the info of ticket {id_}", metrics=metrics)
        telling = Telling(id_, arm, reward, cost, info, metrics)
        before = ledger.reward(id_)
        if over and (before is None or ledger.is_worst(id_)):  # the answer stays as it is
            unused[id_] = None
            if before is not None or id_ < known.replay.taken:
                continue  # a pull that was asked for ahead is kept nevertheless: it was paid for
        if id_ in missed or ledger.is_late(id_):  # it came after its lease
            if before != reward:
                late[id_] = None
            continue
        if ledger.is_worst(id_):  # it came after its arm left
            unused[id_] = None
            if id_ in ledger.unused:
                _check_cost(telling, ledger.unused[id_])
            else:
                price = ledger.declared_cost(arm) if cost is None else cost
                paid.setdefault(id_, telling._replace(cost=price))
            continue
        _check_conflict(telling, before, new.get(id_))
        if before is not None:
            _check_cost(telling, ledger.cost(id_, arm))
            _check_metrics(telling, ledger.metrics.of(id_))
        elif id_ in new:
            _check_cost(telling, new[id_].cost)
            _check_metrics(telling, new[id_].metrics)
        else:
            wanted = _checked_names(telling, wanted, known.settings)
            new[id_] = telling
    receipt = Receipt(tuple(late), tuple(unused))
    return list(new.values()), list(paid.values()), receipt


def plain_tellings(ids: list[int], rewards: list[float], known: Replica, now: float) -> Told | None:
    """The same of many rewards at once, as nearly always: tickets of the present batch, each told
    once and in time. None if one of them has to be looked at on its own."""
    tickets, values = np.array(ids, dtype=np.int64), np.array(rewards)
    ledger, numbering = known.ledger, known.replay.numbering
    if (
        ledger.retired
        or ledger.metrics.names
        or known.settings.guardrails
        or known.replay.outcome is not None
        or isinstance(known.settings.on_late, float)
        or not np.all(known.settings.problem.rewards.admits(values))
        or not (numbering.first <= tickets.min() and tickets.max() < ledger.issued)
        or not np.isnan(ledger.rewards[tickets]).all()
        or np.unique(tickets).size < tickets.size
    ):
        return None
    return Told(tickets, numbering.arms(tickets), values, np.full(tickets.size, now))


def report(receipt: Receipt, late: object) -> None:
    """Log what was discarded, for those who do not look at what `tell` returns."""
    if receipt.late:
        logger.warning(
            "The reward of %s is discarded and %s counts instead: its lease was over when it was"
            " told.",
            *(_some(receipt.late), late),
        )
    if receipt.unused:
        logger.info("The reward of %s is not needed any more.", _some(receipt.unused))


def _some(tickets: Sequence[int]) -> str:
    more = f" and {len(tickets) - 1:,} more" if len(tickets) > 1 else ""
    return f"ticket {tickets[0]}{more}"


def known_id(ticket: Ticket | int, known: Replica) -> int:
    """The number of a ticket that was handed out some time, by this experiment."""
    number = ticket.id if isinstance(ticket, Ticket) else ticket
    id_ = whole("ticket", number, at_least=0, at_most=inf)
    if isinstance(ticket, Ticket) and ticket.experiment not in ("", known.identity):
        raise UnknownTicket(f"ticket {id_} is not from here, but from another experiment")
    issued = known.ledger.issued
    if id_ >= issued:
        last = f"the last one is {issued - 1}" if issued else "none was yet"
        raise UnknownTicket(f"ticket {shown(id_)} was never handed out; {last}")
    return id_


def told_reward(reward: object, ticket: int, label: Label, model: RewardModel) -> float:
    """The reward as a float, if it is a number that keeps to the declaration."""
    return checked_reward(reward, f"the reward of ticket {ticket} (arm {label!r})", model)


def _arms_of(ids: Sequence[int], numbering: OpenBatches, ledger: Ledger) -> list[int]:
    """The arm of every ticket: as it was told, or as it is in the present request."""
    if min(ids, default=-1) >= numbering.first:  # as nearly always
        arms = numbering.arms(ids)
    else:
        tickets = np.asarray(ids, dtype=np.int64)
        arms = ledger.arms[tickets]
        present = tickets >= numbering.first
        arms[present] = numbering.arms(tickets[present])
    return list(map(int, arms))


def _check_arm(ticket: Ticket | int, id_: int, label: Label) -> None:
    if isinstance(ticket, Ticket) and ticket.arm != label:
        raise UnknownTicket(
            f"ticket {id_} is for arm {ticket.arm!r}, but here it is for {shown(label)}: not from"
            " here"
        )


def _check_cost(telling: Telling, before: float | None) -> None:
    """Refuse a second cost of a pull, unless it is the same or none is given."""
    if telling.cost is not None and telling.cost != before:
        first = "none" if before is None else repr(before)
        raise ConflictingReward(
            f"ticket {telling.ticket} is told to cost {telling.cost!r}, but was told {first}"
            " before, which stays"
        )


def _check_metrics(telling: Telling, before: Mapping[str, float] | None) -> None:
    """Refuse other metrics of a pull; none given is no contradiction."""
    if telling.metrics is not None and telling.metrics != before:
        raise ConflictingReward(
            f"ticket {telling.ticket} is told the metrics {shown(telling.metrics)}, but was told"
            f" {shown(before)} before, which stays"
        )


def _checked_names(
    telling: Telling, wanted: Collection[str] | None, settings: Settings
) -> Collection[str]:
    """The metrics that every pull has: `wanted`, or if nothing was told before those of this one,
    which has all guardrails."""
    given = () if telling.metrics is None else tuple(telling.metrics)
    where = f"ticket {telling.ticket} is told"
    if given and (why := settings.without_metrics()):
        raise InvalidInput(f"{where} with the metric {given[0]!r}, but {why}")
    missing = [name for name in settings.guardrails if wanted is None and name not in given]
    missing += [name for name in wanted or () if name not in given]
    if missing:
        raise InvalidInput(
            f"{where} without the metric {missing[0]!r}, but every pull has the same metrics, those"
            " of `guardrails` included"
        )
    new = [name for name in given if wanted is not None and name not in wanted]
    if new:
        raise InvalidInput(
            f"{where} with the metric {new[0]!r}, but the first pull was told without it: a metric"
            " is told from the first pull on"
        )
    if len(given) > MOST_METRICS:
        rule = f"there may be at most {MOST_METRICS}"
        raise InvalidInput(f"{where} with {len(given)} metrics, but {rule}")
    return given


def _check_item(ticket: Ticket | int, id_: int, arm: int, known: Replica) -> None:
    """Refuse a score on another item, while it is not known yet."""
    numbering = known.replay.numbering
    if not isinstance(ticket, Ticket) or ticket.item is None or id_ < numbering.first:
        return
    draw = int(numbering.places(np.array([id_])).draws[0])
    item = known.settings.item(arm, draw)
    if ticket.item != item:
        there = "no item" if item is None else f"{item!r}"
        raise UnknownTicket(
            f"ticket {id_} is for item {ticket.item!r}, but here it is for {there}: not from here"
        )


def _check_conflict(telling: Telling, before: float | None, same_call: Telling | None) -> None:
    """Refuse a second reward for a ticket, unless it is the same."""
    id_, reward = telling.ticket, telling.reward
    if before is not None and before != reward:
        raise ConflictingReward(
            f"ticket {id_} is told {reward!r}, but was told {shown(before)} before, which stays"
        )
    if same_call is not None and same_call.reward != reward:
        raise ConflictingReward(
            f"ticket {id_} is told {same_call.reward!r} and {reward!r} in the same call, but has"
            " one; none was told"
        )


def affordable(known: Replica, ids: IntArray, now: float) -> IntArray:
    """The first of these tickets that the budget pays for; those that are held are paid for."""
    if not ids.size or not _is_short(known):
        return ids
    held = known.ledger.held(now)
    account = Budget(known.settings.problem, spent=known.ledger.spent)
    if held.size:
        arms = known.replay.numbering.arms(held)
        account.spent += account.price(arms, np.ones_like(arms)).sum().item()
    new = ~np.isin(ids, held)
    return ids[account.affords(known.replay.numbering.arms(ids), new.astype(np.int64))]


def ending(known: Replica, now: float) -> list[Event]:
    """The entry that ends an experiment whose budget does not pay for the next ticket, when no
    ticket is out that might turn out cheaper."""
    following = known.available("", now, 1)
    if not following.size or known.ledger.held(now).size or affordable(known, following, now).size:
        return []
    return [Event(Kind.SPENT, 0, 0, "", now)]


def _is_short(known: Replica) -> bool:
    """Whether the budget may not pay for all that the search asked for: its batches are within the
    budget by declared costs, so this takes an actual cost."""
    ledger, problem = known.ledger, known.settings.problem
    if not (ledger.costs or ledger.unused):
        return False
    asked = known.replay.asked @ problem.declared_costs - ledger.declared
    return not Budget(problem, spent=ledger.spent).covers(asked).all()
