"""What the log of an experiment says: which tickets are told, who holds the others, what failed.

A store sees that its entries are those that were written. That an experiment with these settings
could have written them is checked here: a file may come from anywhere."""

from collections import Counter, defaultdict
from math import inf, isfinite

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.budget import spending
from shortlist.confidence import counted_pulls
from shortlist.constraints import feasible_without
from shortlist.engine.tickets import FREE, Lease, Numbering, OpenBatches, noted_metrics
from shortlist.errors import StoreDamaged
from shortlist.interim import Tally
from shortlist.problem import MOST_COST, Problem
from shortlist.search import moments_by_entry
from shortlist.settings import Settings
from shortlist.stores import Event, Kind, News, Told

NONE: IntArray = np.empty(0, dtype=np.int64)


class PullMetrics:
    """Secondary metrics of pulls, by ticket. Every pull has the same."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self._told: dict[int, tuple[float, ...]] = {}  # in the order of the names

    def take(self, event: Event) -> None:
        """Read what was told with a reward."""
        try:
            told = noted_metrics(event.text)
            if told is None:
                return
            names = self.names or tuple(told)
            figures = tuple(float(told[name]) for name in names)
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise _no_metrics(event) from error
        if len(told) != len(names) or not all(0 <= each <= 1 for each in figures):
            raise _no_metrics(event)
        self.names = names
        self._told.setdefault(event.ticket, figures)

    def of(self, ticket: int) -> dict[str, float] | None:
        """The metrics of a ticket, if some were told."""
        told = self._told.get(ticket)
        return None if told is None else dict(zip(self.names, told, strict=True))

    def column(self, name: str, size: int) -> FloatArray:
        """A metric of the tickets below `size`, NaN where it was not told."""
        column = np.full(size, np.nan)
        for ticket, told in self._told.items() if name in self.names else ():
            if ticket < size:
                column[ticket] = told[self.names.index(name)]
        return column


def _no_metrics(event: Event) -> StoreDamaged:
    return StoreDamaged(f"the metrics of ticket {event.ticket} are none: {event.text[:100]}")


class Ledger:
    """The log, taken in stretch by stretch, as arrays by ticket."""

    def __init__(self, retries: int, declared_costs: FloatArray) -> None:
        """`declared_costs` are those of a pull of every arm."""
        self._retries = retries
        self._declared_costs = declared_costs
        self.declared = 0.0  # what the pulls told were to cost, and
        self.spent = 0.0  # what they did
        self.costs: dict[int, float] = {}  # reported actual costs, by ticket
        self.metrics = PullMetrics()
        self.unused: dict[int, float] = {}  # what pulls cost that were told after their arm left
        self.spent_at: float | None = None  # when the budget ended within a request
        self.retired: dict[int, str] = {}  # retired arms, and why,
        self._left_in: dict[int, int] = {}  # and the oldest batch that was open then, from 1
        self.left_at = np.full(declared_costs.size, inf)  # (n,) when every arm left
        self.position = 0  # in the log
        self.told = 0  # rewards that the search has, and of these
        self._worst = 0  # the worst ones, told in place of pulls of retired arms,
        self._unmade = 0  # those in place of pulls on void seeds that were not made, and
        self.late = 0  # those that count because a lease was over
        self.issued = 0  # tickets handed out so far are those below
        # by ticket, NaN where not told; may be longer than `issued`
        self.rewards: FloatArray = np.empty(0)
        self.arms: IntArray = np.empty(0, dtype=np.int64)
        self.drawn: BoolArray = np.empty(0, dtype=np.bool_)
        self._void_at: FloatArray = np.empty(0)  # when its seed became void; infinite if it is not
        self._missed: BoolArray = np.empty(0, dtype=np.bool_)  # where the reward is for lateness
        # of tickets issued and not told: when their lease ends, and the number of its holder
        self._ends: FloatArray = np.empty(0)
        self._holders: IntArray = np.empty(0, dtype=np.int64)
        self._workers: dict[str, int] = {"": 0}  # numbers of holders
        self._open = 0  # every ticket below is told
        self._earliest = inf  # no lease ends before
        self.failures: Counter[int] = Counter()  # by ticket, since the experiment was resumed
        self.stopped: Event | None = None  # the failure that was one too many
        self.steps: list[str] = []  # digests of what the search asked for
        # when the first step was taken and the last reward was told
        self.began, self.ended = inf, -inf

    def reward(self, ticket: int) -> float | None:
        """What was told of a ticket."""
        if ticket >= self.rewards.size or np.isnan(self.rewards[ticket]):
            return None
        return float(self.rewards[ticket])

    def cost(self, ticket: int, arm: int) -> float:
        """Cost of a pull that was told."""
        return self.costs.get(ticket, self.declared_cost(arm))

    def declared_cost(self, arm: int) -> float:
        """What a pull of an arm is declared to cost."""
        return float(self._declared_costs[arm])

    def is_complete(self, batch: Numbering) -> bool:
        """Whether all rewards of a batch are told."""
        if self.told < batch.end:
            return False
        return not np.isnan(self.rewards[batch.first : batch.end]).any()

    def retired_by(self, number: int, batch: Numbering) -> set[int]:
        """The arms that retired before all of this batch, the given one from 1, was told.

        The entry of an arm names the oldest batch that was open when it retired. If it names none,
        that is the last recorded batch; for open batches before it, rewards that were not drawn
        mark the arm as retired."""
        if not self.retired:
            return set()
        span = slice(batch.first, batch.end)
        undrawn = self.arms[span][~self.drawn[span]]
        left = {arm for arm, batches in self._left_in.items() if batches <= number}
        return left | set(undrawn[np.isin(undrawn, list(self.retired))].tolist())

    def costs_in(self, tickets: range) -> dict[int, float]:
        """Reported costs of these pulls, by ticket."""
        if not self.costs:
            return {}
        return {ticket: self.costs[ticket] for ticket in tickets if ticket in self.costs}

    def is_late(self, ticket: int) -> bool:
        """Whether the reward of a ticket counts because its lease was over."""
        return ticket < self._missed.size and bool(self._missed[ticket])

    def is_worst(self, ticket: int) -> bool:
        """Whether a ticket was told the worst reward because its arm left."""
        return self.reward(ticket) is not None and not self.drawn[ticket]

    @property
    def made(self) -> int:
        """Pulls that were made and whose reward counts."""
        return self.told - self._worst - self._unmade - self.late

    @property
    def void(self) -> BoolArray:
        """Which tickets are of void seeds; may be longer than `issued`."""
        return np.isfinite(self._void_at)

    @property
    def undrawn(self) -> int:
        """Pulls of retired arms and on void seeds that were not made, as far as is known."""
        return self._worst + self._unmade - len(self.unused)

    def counted(self, numbering: OpenBatches) -> BoolArray:
        """Which tickets are counted in what is shown: (issued,).

        Rewards of an arm are, up to its first ticket that is missing or was not drawn.
        `numbering` is that of the open batches, to which all tickets belong that are missing."""
        arms = self.arms[: self.issued].copy()
        missing = np.flatnonzero(np.isnan(self.rewards[: self.issued]))
        if missing.size:
            arms[missing] = numbering.arms(missing)
        valid = np.flatnonzero(~self.void[: self.issued])
        counted = np.zeros(self.issued, dtype=np.bool_)
        counted[valid] = counted_pulls(arms[valid], self.drawn[valid], self._declared_costs.size)
        return counted

    def tally(self, numbering: OpenBatches, until: float = inf) -> Tally:
        """What is counted of every arm, and what waits, of the tickets before `until`."""
        counted, tally = self.counted(numbering), Tally(self._declared_costs.size)
        before = np.arange(self.issued) < until
        tickets = np.flatnonzero(counted & before)
        rewards = self.rewards[tickets]
        arms = self.arms[tickets]
        tally.pulls += np.bincount(arms, minlength=tally.pulls.size)
        tally.sums, tally.squares = moments_by_entry(rewards, arms, tally.pulls.size)
        valid = self.drawn[: self.issued] & ~self.void[: self.issued]
        early = np.flatnonzero(valid & ~counted & before)
        tally.waiting += np.bincount(self.arms[early], minlength=self._declared_costs.size)
        return tally

    @property
    def paid(self) -> int:
        """Number of pulls that were made and told, needed or not."""
        return int((self.drawn[: self.issued] & ~self.void[: self.issued]).sum())

    def spending(self) -> FloatArray:
        """What the pulls of every arm that were made and told cost: (n,)."""
        pulls = np.bincount(self.arms[self.drawn], minlength=self._declared_costs.size)
        said: defaultdict[int, list[float]] = defaultdict(list)
        for ticket, cost in self.costs.items():
            said[int(self.arms[ticket])].append(cost)
            pulls[self.arms[ticket]] -= self.drawn[ticket]
        for ticket, cost in self.unused.items():
            said[int(self.arms[ticket])].append(cost)
        return spending(pulls, self._declared_costs, said)

    def due(self, ticket: int) -> float:
        """When the result of a ticket is expected; FREE if no worker holds it."""
        lease = self.lease(ticket)
        return FREE if lease is None else lease.due

    def lease(self, ticket: int) -> Lease | None:
        """Who holds a ticket that is not told, and until when; None of any other."""
        if not 0 <= ticket < self.issued or not np.isnan(self.rewards[ticket]):
            return None
        return Lease(self._names[self._holders[ticket]], float(self._ends[ticket]))

    def open_tickets(self) -> IntArray:
        """Tickets that were issued and are not told, in order."""
        missing = np.flatnonzero(np.isnan(self.rewards[self._open : self.issued]))
        tickets: IntArray = missing + self._open
        self._open = int(tickets[0]) if tickets.size else self.issued
        return tickets

    def held(self, now: float) -> IntArray:
        """Tickets that a worker holds now."""
        tickets = self.open_tickets()
        held: IntArray = tickets[self._ends[tickets] > now]
        return held

    def ends(self, tickets: IntArray) -> FloatArray:
        """When the leases of these open tickets end."""
        return self._ends[tickets]

    def holders(self, tickets: IntArray) -> list[str]:
        """The workers of these open tickets, one per ticket."""
        names = self._names
        return [names[number] for number in self._holders[tickets].tolist()]

    @property
    def _names(self) -> list[str]:
        return list(self._workers)

    def seen(self, problem: Problem) -> Problem:
        """The problem as it turned out by the rewards so far."""
        least = np.fmin.reduce(self.rewards, initial=np.nan)
        return problem.seen(float(least), float(np.fmax.reduce(self.rewards, initial=np.nan)))

    def available(self, worker: str, now: float) -> IntArray:
        """Issued tickets that this worker may be handed: its own first, then those let go of."""
        if now < self._earliest and worker not in self._workers:
            return NONE
        own, lapsed = self.handed_to(worker), self.lapsed(now)
        return np.concatenate([own, np.setdiff1d(lapsed, own, assume_unique=True)])

    def lapsed(self, now: float) -> IntArray:
        """Tickets whose lease is over; nothing to look for before the earliest end of one."""
        if now < self._earliest:
            return NONE
        tickets = self.open_tickets()
        ends = self._ends[tickets]
        self._earliest = float(ends.min(initial=inf))
        over: IntArray = tickets[ends <= now]
        return over

    def handed_to(self, worker: str) -> IntArray:
        """Tickets that this worker was handed last and that are not told; none without a name."""
        if not worker or worker not in self._workers:
            return NONE
        tickets = self.open_tickets()
        own: IntArray = tickets[self._holders[tickets] == self._workers[worker]]
        return own

    def held_by(self, worker: str) -> IntArray:
        """Those of them that were not given back."""
        tickets = self.handed_to(worker)
        own: IntArray = tickets[self._ends[tickets] != FREE]
        return own

    def take_in(self, news: News) -> None:
        """Add new entries of the log.

        Retirements and void seeds are applied first, since nothing more is drawn of these. Then
        come rewards, then the other events: one about a ticket that has its reward is ignored."""
        for event in news.events:
            if event.kind is Kind.VOID:
                self._make_room(event.ticket + event.span)
                self._void_at[event.ticket : event.ticket + event.span] = event.time
            if event.kind is Kind.RETIRE and event.span not in self.retired:
                self.retired[event.span] = event.text
                self.left_at[event.span] = event.time
        self._take_rewards(news.told)
        for event in news.events:
            if event.kind is Kind.LEASE:
                self._take_lease(event)
            else:
                self._take_event(event)
        self.position = news.last

    def _take_rewards(self, told: Told) -> None:
        if not told.tickets.size:
            return
        before, self.issued = self.issued, max(self.issued, int(told.tickets.max()) + 1)
        self._make_room(self.issued)
        self.rewards[told.tickets] = told.rewards
        self.arms[told.tickets] = told.arms
        self.told += told.tickets.size
        # times of an arm are in order: `retirement` and `worst_rewards` in retirement.py ensure it
        stays = told.times < self.left_at[told.arms]
        drawn = stays & (told.times < self._void_at[told.tickets])
        self.drawn[told.tickets] = drawn
        self._worst += int((~stays).sum())
        self._unmade += int((stays & ~drawn).sum())
        prices = self._declared_costs[told.arms]
        self.declared += float(prices.sum())
        self.spent += float(prices[drawn].sum())
        self.ended = max(self.ended, float(told.times.max()))
        # worst rewards are told before their turn: the tickets that they overtake are free
        if np.isnan(self.rewards[before : self.issued]).any():
            self._earliest = FREE

    def _take_lease(self, event: Event) -> None:
        end = event.ticket + event.span
        self.issued = max(self.issued, end)
        self._make_room(self.issued)
        self._ends[event.ticket : end] = event.time
        self._holders[event.ticket : end] = self._workers.setdefault(event.text, len(self._workers))
        self._earliest = min(self._earliest, event.time)

    def _take_event(self, event: Event) -> None:
        if event.kind is Kind.STEP:
            self.steps.append(event.text)
            self.began = min(self.began, event.time)
        elif event.kind is Kind.RESUME:
            self.failures.clear()
            self.stopped = None
        elif event.kind is Kind.RETIRE:
            last = len(self.steps)
            self._left_in.setdefault(event.span, min(event.ticket or last, last))
        elif event.kind is Kind.INFO:
            self.metrics.take(event)
        elif event.kind is Kind.COST:
            if event.ticket not in self.costs:
                self.costs[event.ticket] = float(event.text)
                price = float(self._declared_costs[self.arms[event.ticket]])
                paid = price if self.drawn[event.ticket] else 0.0
                self.spent += self.costs[event.ticket] - paid
        elif event.kind is Kind.LATE:
            span = slice(event.ticket, event.ticket + event.span)
            self.late += int((~self._missed[span]).sum())
            self._missed[span] = True
        elif event.kind is Kind.UNUSED:
            if event.ticket not in self.unused:
                self.unused[event.ticket] = float(event.text)
                self.spent += self.unused[event.ticket]
        elif event.kind is Kind.SPENT:
            self.spent_at = event.time
        elif event.kind is Kind.FAIL:
            self.failures[event.ticket] += 1
            if self.lease(event.ticket) is not None:
                self._ends[event.ticket] = self._earliest = FREE
            if self.failures[event.ticket] > self._retries and self.stopped is None:
                self.stopped = event

    def _make_room(self, size: int) -> None:
        """Let the arrays hold that many tickets; doubled, so that growing costs little however
        often."""
        if size > self.rewards.size:
            more = max(size, 2 * self.rewards.size) - self.rewards.size
            self.rewards = np.concatenate([self.rewards, np.full(more, np.nan)])
            zeros = np.zeros(more, dtype=np.int64)
            self.arms = np.concatenate([self.arms, zeros])
            self._holders = np.concatenate([self._holders, zeros])
            self._ends = np.concatenate([self._ends, np.full(more, FREE)])
            none = np.zeros(more, dtype=np.bool_)
            self.drawn = np.concatenate([self.drawn, none])
            self._missed = np.concatenate([self._missed, none])
            self._void_at = np.concatenate([self._void_at, np.full(more, inf)])


ABOUT_REWARDS = {Kind.COST: "the cost", Kind.UNUSED: "the cost", Kind.LATE: "the lateness"}
ABOUT_REWARDS |= {Kind.INFO: "the info", Kind.VOID: "the void seed"}
MOST_UNDER_WAY = 1_000_000  # tickets handed out and not told: each takes memory


def check_news(news: News, ledger: Ledger, settings: Settings, where: str) -> None:
    """Refuse entries that no experiment with these settings could have written."""
    if news.last == ledger.position:
        return
    _check_rewards(news.told, settings, where)
    for event in news.events:
        _check_event(event, settings.problem.n_arms, where)
    _check_enough_stay(news, ledger, settings, where)
    _check_paid(news, ledger, where)
    leases = [event.ticket + event.span for event in news.events if event.kind is Kind.LEASE]
    handed_out = max([*leases, _largest(news.told.tickets) + 1])
    told = ledger.told + news.told.tickets.size
    if handed_out > told + MOST_UNDER_WAY:
        raise StoreDamaged(
            f"{where} has handed out ticket {handed_out - 1} when {told} were told, but at most"
            f" {MOST_UNDER_WAY:,} are under way at a time"
        )


def _check_rewards(told: Told, settings: Settings, where: str) -> None:
    model, n_arms = settings.problem.rewards, settings.problem.n_arms
    admitted = np.asarray(model.admits(told.rewards) & np.isfinite(told.times))  # (rewards,)
    if admitted.all() and _largest(told.arms) < n_arms:
        return
    wrong = np.flatnonzero(~admitted | ((told.arms < 0) | (told.arms >= n_arms)))[0]
    raise StoreDamaged(
        f"the reward of ticket {told.tickets[wrong]} in {where} is {told.rewards[wrong]} of arm"
        f" {told.arms[wrong]} at {told.times[wrong]}, but must be {model.rule}, of an arm below"
        f" {n_arms}"
    )


def _check_enough_stay(news: News, ledger: Ledger, settings: Settings, where: str) -> None:
    """Refuse a log in which too few arms stay to choose from."""
    left = {event.span for event in news.events if event.kind is Kind.RETIRE}
    if left and settings.problem.n_arms - len(left | ledger.retired.keys()) <= settings.problem.k:
        raise StoreDamaged(
            f"{len(left | ledger.retired.keys())} of {settings.problem.n_arms} arms retire in"
            f" {where}, but more than {settings.problem.k} must stay"
        )
    problem, gone = settings.problem, left | ledger.retired.keys()
    family = problem.constraint
    if family is None or not left:
        return
    if not feasible_without(family, problem.n_arms, problem.k, gone):
        raise StoreDamaged(
            f"{len(gone)} arms retire in {where}, but no set of the others keeps to the constraint"
        )


def _check_paid(news: News, ledger: Ledger, where: str) -> None:
    """Refuse an entry about the reward of a ticket that has none."""
    about = [event for event in news.events if event.kind in ABOUT_REWARDS]
    told = set(news.told.tickets.tolist()) if about else set()
    for event in about:
        for ticket in range(event.ticket, event.ticket + event.span):
            if ticket not in told and ledger.reward(ticket) is None:
                said = ABOUT_REWARDS[event.kind]
                raise StoreDamaged(f"{said} of ticket {ticket} is in {where}, but not its reward")


def is_cost(text: str) -> bool:
    """Whether this may be the cost of a pull."""
    try:
        return 0 <= float(text) <= MOST_COST
    except ValueError:
        return False


def _largest(numbers: IntArray) -> int:
    """The largest of numbers from 0; one below 0 counts as larger than all."""
    return int(numbers.view(np.uint64).max()) if numbers.size else -1


def _check_event(event: Event, n_arms: int, where: str) -> None:
    wrong = event.kind is Kind.RETIRE and event.span >= n_arms
    wrong |= event.kind in (Kind.COST, Kind.UNUSED) and not is_cost(event.text)
    if event.ticket < 0 or event.span < 0 or wrong or not isfinite(event.time):
        raise StoreDamaged(
            f"{event.kind} of {event.span} tickets from {event.ticket} at {event.time} is in"
            f" {where}, but no such event can be"
        )
