"""Ask for pulls, tell their rewards, stop at any moment and continue: a search over a store."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import inf
from threading import RLock
from typing import Any, Self

import numpy as np

from shortlist.algorithms import AlgorithmLike
from shortlist.arms import Arms, Label, OwnLabel
from shortlist.arrays import FloatArray, IntArray
from shortlist.cells import ItemsGiven
from shortlist.engine.block_replay import BlockReplica
from shortlist.engine.checks import Sameness
from shortlist.engine.eta import SearchSnapshot
from shortlist.engine.ledger import NONE
from shortlist.engine.live import Live
from shortlist.engine.locate import Place, checked_name, opened, the_only
from shortlist.engine.log_entries import (
    Asking,
    Report,
    Telling,
    ToldResult,
    affordable,
    checked_overdue,
    costs_of,
    ending,
    given_back,
    handed_out,
    infos_of,
    is_current,
    known_id,
    named_tickets,
    new_lease,
    new_tellings,
    plain_tellings,
    present_author,
    report,
    signed,
    stretches,
    told_results,
    unused_costs,
)
from shortlist.engine.replay import Replica
from shortlist.engine.retirement import (
    MOST_VOID,
    arms_of,
    leaving_arm,
    may_leave,
    only_void,
    retirement,
    voided,
    worst_rewards,
)
from shortlist.engine.runnable import Runnable
from shortlist.engine.status import ArmsTold, Status, Vitals, arms_told
from shortlist.engine.tickets import (
    AGAIN,
    WAIT,
    Durations,
    Handout,
    Receipt,
    Score,
    State,
    Ticket,
    TicketBlock,
    checked_worker,
    due_of,
)
from shortlist.errors import InvalidInput, ShortlistError, Unfinished, caution
from shortlist.features import FeaturesGiven
from shortlist.formatting import plural
from shortlist.problem import ScoresGiven
from shortlist.quotas import ConstraintGiven, QuotasGiven
from shortlist.result import Result
from shortlist.result.cells import EvaluatedCell, EvaluatedCells
from shortlist.reward_models import RewardsDeclared
from shortlist.search import Progress
from shortlist.settings import Settings, arguments
from shortlist.spec import (
    Certificate,
    OnFailure,
    OnLate,
    Order,
    Population,
    Seeds,
    UnitName,
    documented,
)
from shortlist.stores import Event, Kind, RewardRow, Store, Told
from shortlist.stores.base import JUMP, Clock, MemoryStore, checked_time, retried, retry
from shortlist.validation import MOST_RETRIES, MOST_WORKERS, flag, text, whole, words

logger = logging.getLogger("shortlist.engine")
WINDOW = 1000  # tickets looked through at a time for those of retired arms
GOING = (State.READY, State.PENDING)  # states in which there may be tickets


class Experiment(Live, Runnable):
    """A search whose pulls are made by others, whenever and wherever they like.

    Its state is its settings and the rewards that were told. They are in the store when `tell`
    returns; a program that opens the experiment runs the search again with them.
    Any number of programs may have the same experiment open, and threads may share one object.

    Invariants, which every method keeps:

    - What is known changes only by reading the log (`Replica`): a method that changes anything
      reads the log, appends to it in one transaction, and learns of that at its next reading.
    - Nothing in the log is ever changed or removed; a ticket has at most one reward, the first.
    - A method that raises has appended nothing.

    Example:
        >>> import shortlist
        >>> experiment = shortlist.Experiment.create(["red", "blue"], k=1, budget=20, seed=0)
        >>> while tickets := experiment.ask(5):
        ...     for ticket in tickets:
        ...         _ = experiment.tell(ticket, 1.0 if ticket.arm == "red" else 0.0)
        >>> experiment.status().told, experiment.result().top
        (20, ('red',))"""

    def __init__(
        self, store: Store, name: str, settings: Settings, clock: Clock | None, owned: bool
    ) -> None:
        """Use `create` or `open`. `clock` is instead of that of the store; `owned`: whether `close`
        closes the store."""
        self.name = name
        self.settings = settings
        self._store = store
        self._clock = store.now if clock is None else clock
        self._owned = owned
        self._lock = RLock()
        self._origin = store.origin(name)
        self._known = replica_of(name, settings, self._origin)
        self._arms: tuple[int, ArmsTold] | None = None  # as the log was at that position
        self._behind = False  # whether its clock was found to be behind that of another program
        self._durations = Durations(settings.lease, settings.on_late)
        self._sameness = Sameness(settings.problem.rewards)
        self._warned: set[str] = set()  # of what tests of the rewards found

    @classmethod
    @documented("create")
    def create(  # noqa: D417  # `documented` adds the settings
        cls,
        arms: Arms,
        k: int,
        *,
        store: Place | None = None,
        name: str = "experiment",
        epsilon: float | str | None = None,
        delta: float = 0.05,
        budget: float | None = None,
        rewards: RewardsDeclared | None = None,
        minimize: bool = False,
        items: ItemsGiven | None = None,
        scores: ScoresGiven | None = None,
        order: Order = "shared",
        repeats: int = 1,
        clusters: Sequence[str | int] | None = None,
        population: Population = "these",
        algorithm: AlgorithmLike = "auto",
        options: Mapping[str, object] | None = None,
        max_rounds: int | None = None,
        min_batch: int | None = None,
        window: int | None = None,
        certificate: Certificate = "auto",
        quotas: QuotasGiven | None = None,
        constraint: ConstraintGiven | None = None,
        features: FeaturesGiven | None = None,
        linear: bool | float = False,
        drift: bool | None = None,
        per_day: int | None = None,
        delay: int = 0,
        skip_blocks: int = 0,
        min_blocks: int | None = None,
        timezone: str | None = None,
        control: OwnLabel | None = None,
        guardrails: Mapping[str, float | str] | None = None,
        unit: UnitName | None = None,
        seed: int = 0,
        seeds: Seeds = "own",
        lease: float | None = None,
        on_late: OnLate = "wait",
        retries: int = 2,
        on_failure: OnFailure = "stop",
        workers: int | None = None,
        exist_ok: bool = False,
        clock: Clock | None = None,
    ) -> "Experiment":
        """Create an experiment.

        Args:
            {settings}
            store: File, address of a database, or store. A file is created if there is none.
                Default: memory, as long as the program lives.
            name: Name of the experiment in the store.
            workers: On a test set, the number of calls that will be under way at a time. It sets
                the defaults of `min_batch` and `window`, half of it and three times as many, and
                nothing else.
            exist_ok: Whether to open an experiment of that name with the same settings, if there
                is one.
            clock: Function that returns seconds since 1970. Default: the clock of the store.

        Returns:
            The experiment.

        Raises:
            InvalidInput: An argument is not valid, or arguments do not go together.
            StoreExists: There is an experiment of that name, and `exist_ok` is False or its
                settings differ.

        Example:
            >>> import shortlist
            >>> experiment = shortlist.Experiment.create(["grey", "red"], 1, budget=10)
            >>> while tickets := experiment.ask(5):
            ...     _ = experiment.tell_many((each, each.arm == "red") for each in tickets)
            >>> experiment.result().top
            ('red',)"""
        flag("exist_ok", exist_ok)
        if workers is not None:
            workers = whole("workers", workers, at_least=1, at_most=MOST_WORKERS)
        settings = Settings.of(arguments(locals(), "create"))
        wide = settings.with_width(workers)
        return cls.of(settings, store, name, exist_ok=exist_ok, clock=clock, new=wide)

    @classmethod
    def of(
        cls,
        settings: Settings,
        store: Place | None,
        name: str,
        *,
        exist_ok: bool,
        clock: Clock | None = None,
        new: Settings | None = None,
    ) -> "Experiment":
        """`create` with settings that are checked already.

        Args:
            settings: The settings.
            store: As in `create`.
            name: As in `create`.
            exist_ok: As in `create`.
            clock: As in `create`.
            new: Settings of one that is made now, with defaults for what is left open.

        Returns:
            The experiment."""
        name = checked_name(name)
        wide = settings if new is None else new
        replica_of(name, wide)  # refuses what cannot be begun, before there is a file
        with opened(MemoryStore() if store is None else store, "rwc", keep=True) as place:
            made = retry(lambda: made_in(place, name, settings, exist_ok, wide))
            experiment = cls(place, name, made, clock, place is not store)
            experiment._catch_up()
        return experiment

    @classmethod
    def open(
        cls,
        store: Place,
        name: str | None = None,
        *,
        readonly: bool = False,
        clock: Clock | None = None,
    ) -> "Experiment":
        """Open an experiment that exists, to continue it or to look at it.

        Args:
            store: A file, an address of a database, or a store.
            name: Name of the experiment; default: the only one of the store.
            readonly: Whether to look at a file without changing it: `status` and `result` work,
                `ask` and `tell` are refused.
            clock: Function that returns seconds since 1970; default: the clock of the store.

        Returns:
            The experiment.

        Raises:
            StoreMissing: There is no such file or experiment.
            CannotReplay: This version of the package has another search than the one that began
                the experiment."""
        with opened(store, "ro" if flag("readonly", readonly) else "rw", keep=True) as place:
            name = the_only(place.names()) if name is None else checked_name(name)
            settings = Settings.from_json(place.settings(name), f"experiment {name!r}")
            experiment = cls(place, name, settings, clock, place is not store)
            experiment._catch_up()
        return experiment

    @retried
    def ask(
        self,
        limit: int = 1,
        worker: str | None = None,
        *,
        lease: float | None = None,
        alive: float | None = None,
        per_worker: int | None = None,
    ) -> Handout:
        """Up to `limit` tickets: pulls that the search wants next.

        A worker that gives a name gets its own open tickets first, as after a crash, and their
        leases again from the start: one that asks twice gets the same tickets.

        Args:
            limit: The most tickets to hand out.
            worker: Name of the worker, for its lease; without one the tickets have no holder.
            lease: Seconds until the results are due; default: those of the experiment.
            alive: A promise to ask again within this many seconds. A worker that does not is gone,
                and its tickets are handed out again.
            per_worker: Most open tickets of the worker, those that it holds already included.
                Default: no other limit than `limit`.

        Returns:
            The tickets. If there are fewer than asked for, their `state` says why; if that is
            PENDING, `meanwhile` is the best arm so far, for callers who cannot wait."""
        asking = Asking.of(limit, worker, lease, alive, per_worker)._replace(lease=lease)
        with self._handing_out(asking) as (ids, due, state):
            tickets = self._known.tickets(ids, due)
            meanwhile = self._known.best_so_far() if state is State.PENDING else None
        self._caution()
        return Handout(tickets, state, meanwhile)

    @retried
    def ask_block(
        self,
        limit: int,
        worker: str,
        *,
        alive: float | None = None,
        holding: Sequence[int] = (),
        renew: bool = False,
        seeded: bool = True,
        batch: int | None = 1,
    ) -> TicketBlock:
        """`ask`, with the tickets as columns: for workers that make many short pulls.

        Args:
            limit: The most tickets to hand out, beyond those that the worker is `holding`.
            worker: Name of the worker.
            alive: As in `ask`.
            holding: Tickets that the worker has already, and is not handed again ...
            renew: ... unless their leases are to begin again.
            seeded: Whether the tickets need their seeds, which take longest to compute.
            batch: The most pulls of one call, for `TicketBlock.calls`; None for any number.

        Returns:
            The tickets, as columns, and the state."""
        asking = Asking(limit + len(holding), worker, None, alive)
        with self._handing_out(asking, () if renew else holding) as (ids, due, state):
            block = self._known.block(ids, due, state, seeded=seeded, batch=batch)
        self._caution()
        return block

    @contextmanager
    def _handing_out(
        self, asking: Asking, without: Sequence[int] = ()
    ) -> Iterator[tuple[IntArray, list[float], State]]:
        """The tickets of one `ask`, when each is due, and why there are no more."""
        self._known.need_tickets("ask")
        seconds = self._durations.lease(asking.lease)
        with self._writing() as now:
            state = self._known.state(now)
            ids = self._next_tickets(asking, without, now) if state in GOING else NONE
            if state in GOING and not ids.size:
                state = self._end_if_spent(now, state)
            terms = new_lease(asking.worker, self.settings.on_late, now, seconds, asking.alive)
            leases, due = handed_out(self._known, ids, terms)
            self._append(events=[*self._known.new_steps(now), *leases], state=state)
            held = self._known.ledger.held_by(asking.worker)
            self._durations.begin(ids.tolist(), held, now)
            if state in GOING:
                enough = ids.size + len(without) >= asking.limit
                state = State.READY if enough else State.PENDING
            yield ids, due, state

    def tell(
        self,
        ticket: Ticket | int,
        reward: float | Score,
        cost: float | None = None,
        info: Any = None,
        metrics: Mapping[str, float] | None = None,
    ) -> Receipt:
        """Record the reward of a ticket, for good: it is in the store when this returns.

        Telling the same again changes nothing. Another reward or cost for the same ticket is an
        error, and the first stays. A late reward counts if it is the first, unless `on_late` is a
        reward: then it is discarded, and the receipt and a warning in the log report that.

        Args:
            ticket: The ticket, or its number.
            reward: The reward, or a `Score` with its cost, info and metrics.
            cost: Actual cost of the pull; default: the declared one.
            info: Anything that JSON can hold, up to 64 KiB, such as the answer of a model. It is
                stored and exported with the reward (`cells`), and no search uses it; the first
                stays.
            metrics: Further figures of the same pull, each from 0 to 1, such as `{"bounce": 1}`.
                The result compares them with the `control`; no search uses them. Every pull has
                the same metrics, those of `guardrails` included.

        Returns:
            The tickets whose reward does not count, if there are any.

        Raises:
            InvalidReward: The reward does not keep to the declaration.
            ConflictingReward: The ticket has another reward or cost.
            UnknownTicket: The ticket was never handed out, or belongs to another experiment."""
        return self.tell_many([(ticket, reward, cost, info, metrics)])

    def tell_many(self, results: Iterable[Report]) -> Receipt:
        """Record the rewards of many tickets at once: all of them, or after an error none.

        Args:
            results: Pairs (ticket, reward), or (ticket, reward, actual cost[, info[, metrics]]).

        Returns:
            The tickets whose reward does not count, if there are any.

        Raises:
            InvalidReward: A reward does not keep to the declaration.
            ConflictingReward: A ticket has another reward or cost.
            UnknownTicket: A ticket was never handed out, or belongs to another experiment."""
        tellings, receipt = self._tell(told_results(results))
        for each in tellings:
            self._sameness.see(self.settings.labels[each.arm], [each.reward])
        report(receipt, self.settings.on_late)
        return receipt

    def tell_block(
        self,
        tickets: list[int],
        rewards: list[float],
        costs: list[float | None] | None = None,
        infos: list[Any] | None = None,
    ) -> Receipt:
        """`tell_many`, with columns instead of tuples: for workers that make many short pulls.

        Args:
            tickets: Numbers of tickets.
            rewards: Their rewards.
            costs: Actual costs of the pulls; default: the declared ones.
            infos: What is stored with the rewards; default: nothing.

        Returns:
            What became of the rewards."""
        more = costs is not None or infos is not None
        if more or not self._told_plainly(tickets, rewards):
            paid = [None] * len(tickets) if costs is None else costs
            noted = [None] * len(tickets) if infos is None else infos
            return self.tell_many(zip(tickets, rewards, paid, noted, strict=True))
        return Receipt()

    @retried
    def _told_plainly(self, tickets: list[int], rewards: list[float]) -> bool:
        """Tell rewards that need not be looked at one by one; False, and nothing told, if they
        do."""
        with self._writing() as now:
            told = plain_tellings(tickets, rewards, self._known, now)
            if told is None:
                return False
            self._durations.end(tickets, self._known.ledger.lease, now)
            self._append(told=told)
        if not self._sameness.settled:
            for arm, reward in zip(told.arms.tolist(), rewards, strict=True):
                self._sameness.see(self.settings.labels[arm], [reward])
        return True

    @retried
    def _tell(self, told: Sequence[ToldResult]) -> tuple[Sequence[Telling], Receipt]:
        self._known.need_tickets("tell")
        with self._writing() as now:
            tellings, paid, receipt = new_tellings(told, self._known, now)
            rows = [telling.row(now) for telling in tellings]
            events = [*costs_of(tellings, now), *infos_of(tellings, now), *unused_costs(paid, now)]
            self._append(told=rows, events=events)
            self._durations.end([each.ticket for each in tellings], self._known.ledger.lease, now)
        return tellings, receipt

    @retried
    def fail(self, ticket: Ticket | int, reason: str, attempts: int = 1) -> None:
        """Report that a pull failed.

        The ticket is handed out again until more than `retries` attempts failed. Then the
        experiment stops, or with `on_failure` "retire" the arm is retired, with "void" no pull on
        that seed counts. If the ticket was told, or its lease has ended, this changes nothing.
        A bad reward is no failure: results that are missing because of their value would void every
        guarantee.

        Args:
            ticket: The ticket, or its number.
            reason: Text for the log.
            attempts: How many attempts failed.

        Raises:
            UnknownTicket: The ticket was never handed out, or belongs to another experiment."""
        said = words(reason)
        self._known.need_tickets("fail")
        attempts = whole("attempts", attempts, at_least=1, at_most=MOST_RETRIES + 1)
        with self._writing() as now:
            if is_current(ticket, self._known):
                id_ = known_id(ticket, self._known)
                if self._only_void(id_):
                    said = f"{said} (all of the last {MOST_VOID} pulls of its arm are void)"
                told, events = self._given_up(id_, attempts, said, now)
                failed = [Event(Kind.FAIL, id_, 1, said, now)] * attempts
                self._append(told=told, events=[*failed, *events])
                self._catch_up()  # an arm may have left, or a seed be void
                if self._known.ledger.stopped is not None:
                    self._append(state=State.STOPPED)

    def _only_void(self, ticket: int) -> bool:
        """Whether the arm of a ticket has failed, or been void, too often to void more seeds."""
        (arm,) = arms_of(self._known, [ticket])
        return self.settings.on_failure == "void" and only_void(self._known, arm)

    def _given_up(
        self, ticket: int, attempts: int, reason: str, now: float
    ) -> tuple[list[RewardRow], list[Event]]:
        """The entries that retire an arm, or void a seed, whose pull failed too often, if the
        settings say so."""
        known = self._known
        often = known.ledger.failures[ticket] + attempts > self.settings.retries
        (arm,) = arms_of(known, [ticket])
        if self.settings.on_failure == "stop" or not often:
            return [], []
        if self.settings.on_failure == "void":
            if self._only_void(ticket):  # an arm that always fails would void seeds for ever
                return [], []
            told, events = voided(known, ticket, reason, now)
        elif not may_leave(known, arm):
            return [], []
        else:
            told, events = retirement(known, arm, reason, now)
        return told, [*events, Event(Kind.RESUME, 0, 0, "", now)]

    @retried
    def retire(self, arm: Label | Sequence[Label], reason: str = "") -> None:
        """Retire an arm, for example because it cannot be pulled any more, or several at once.

        It is not chosen, and its open tickets are told the worst reward. The guarantee of
        `certified` is then about the remaining arms: the regret against their k best is within the
        bound. Never retire an arm because of its rewards: docs/retired.md states what is
        proved. Other algorithms have no guarantee then, nor is there one if a retired arm would
        have been chosen: the best of the others takes its place.

        Args:
            arm: Label of the arm, or a list of labels: all of them retire, or none.
            reason: Text for the log.

        Raises:
            InvalidInput: There is no such arm, the search has finished, too few arms would remain,
                or rewards have no range."""
        said = text("reason", reason)
        with self._writing() as now:
            for each in arm if isinstance(arm, list | tuple) else [arm]:
                number = leaving_arm(self._known, each)
                told, events = retirement(self._known, number, said, now)
                self._append(told=told, events=events)
                self._catch_up()  # that it left

    def release(
        self,
        worker: str | None = None,
        *,
        tickets: Iterable[Ticket | int] | None = None,
        overdue: float | None = None,
    ) -> int:
        """Take back tickets of which no result will come; they are handed out again at once.

        Release tickets only if you know that their holder is gone: to give up pulls that merely
        take long leaves results out because of their value. A result that comes nevertheless counts
        if it is the first. Several conditions must all be met.

        Args:
            worker: Release the tickets of this worker.
            tickets: Release these, given as tickets or by number.
            overdue: Release tickets that have been due for at least this many seconds.

        Returns:
            The number of tickets that were released."""
        self._known.need_tickets("release")
        name = None if worker is None else checked_worker(worker)
        seconds = checked_overdue(overdue)
        return self._release(name, named_tickets(tickets), seconds)

    @retried
    def _release(
        self, name: str | None, tickets: Sequence[Ticket | int] | None, seconds: float | None
    ) -> int:
        with self._writing() as now:
            events, count = given_back(self._known, name, tickets, seconds, now)
            self._append(events=events)
        return count

    @retried
    def resume(self) -> None:
        """Continue an experiment that stopped after failed pulls; the failures no longer count."""
        with self._writing() as now:
            event = Event(Kind.RESUME, 0, 0, "", now)
            self._append(events=[event], state=State.READY)

    @property
    def in_memory(self) -> bool:
        """Whether no other program can have its tickets."""
        return isinstance(self._store, MemoryStore)

    @property
    def store(self) -> Store:
        """Where it is kept.

        `export_lines` reads it, even if its file was deleted under the open experiment."""
        return self._store

    def status(self) -> Status:
        """Where the experiment stands."""
        with self._lock:
            self._catch_up()
            status = self._known.status(self._now())
            last = self._arms
            same = last is not None and last[0] == self._known.ledger.position
            counted = None if same else self._known.counted()
        if counted is not None:  # others need not wait for this
            last = self._arms = counted.position, arms_told(counted, self.settings.labels)
        assert last is not None
        return status(arms=last[1])

    def standing(self) -> tuple[int, Progress]:
        """How many pulls were told, and how far the search is.

        It is cheap, and as of the last call of anything else."""
        return self._known.ledger.made, self._known.progress

    def spent(self) -> float:
        """What the pulls that were told cost, in the unit of the costs.

        As cheap as `standing`."""
        return self._known.ledger.spent

    def pace(self) -> float | None:
        """Pulls told a second, from the first ticket to the last reward; None if not known.

        As cheap as `standing`."""
        ledger = self._known.ledger
        seconds = ledger.ended - ledger.began
        return ledger.made / seconds if ledger.made and 0 < seconds < inf else None

    def underway(self) -> SearchSnapshot | None:
        """The search as it is now, to be simulated from here; None once there is an answer."""
        with self._lock:
            return self._known.underway()

    def position(self) -> int:
        """How many entries the log has: whatever happens to the experiment adds one.

        It is cheap, and brings what `standing`, `held` and `state` say up to date."""
        with self._lock:
            self._catch_up()
            return self._known.ledger.position

    def change_token(self) -> str:
        """What changes whenever `status` does: with the log, and as time goes by.

        As cheap as `position`."""
        with self._lock:
            self._catch_up()
            now = self._now()
            held = self._known.ledger.held(now)
            overdue = int((due_of(self._known.ledger.ends(held)) <= now).sum())
            return f"{self._known.ledger.position}-{held.size}-{overdue}"

    def state(self) -> State:
        """Whether there are tickets, an answer, or trouble.

        As cheap as `standing`."""
        with self._lock:
            return self._known.state(self._now())

    def vitals(self, fresh: bool = False) -> Vitals | None:
        """State and counts, as of the last call of anything else, or `fresh` ones if the log can
        be read; None if another thread is at work on this experiment: this never waits for it.

        Args:
            fresh: Whether to read the log first.

        Returns:
            State and counts, or None."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if fresh:
                with suppress(ShortlistError):
                    self._catch_up()
            now, known = self._now(), self._known
            held = known.ledger.held(now)
            bound = known.progress.bound
            return Vitals(
                state=known.state(now),
                told=known.ledger.made,
                held=held.size,
                overdue=int((due_of(known.ledger.ends(held)) <= now).sum()),
                failures=known.ledger.failures.total(),
                bound=None if bound is None else bound * self.settings.problem.rewards.scale,
            )
        finally:
            self._lock.release()

    def history(self) -> list[tuple[int, Progress]]:
        """Per batch, the pulls before it and the progress of the search.

        As cheap as `standing`."""
        with self._lock:
            return list(self._known.replay.history)

    def told_blocks(self) -> list[str]:
        """The blocks of a live test that were told, in order: one per entry of `history` but the
        first. Empty for other experiments."""
        with self._lock:
            return self._known.told_blocks()

    def opened_blocks(self) -> list[tuple[str, FloatArray]]:
        """The names and shares of the blocks of a live test, in the order of their opening; last,
        without a name, the final shares once there is an answer. Empty for other experiments."""
        with self._lock:
            return self._known.opened_blocks()

    def pulls_counted(self) -> tuple[IntArray, FloatArray]:
        """The arms, by their numbers, and the rewards of all pulls that are counted, in order.

        As of the last call of anything else."""
        with self._lock:
            return self._known.pulls_counted()

    def held(self) -> tuple[int, float]:
        """How many tickets are held, and when the last of their leases ends.

        As cheap as `standing`."""
        with self._lock:
            now = self._now()
            ledger = self._known.ledger
            ends = ledger.ends(ledger.held(now))
            return ends.size, float(ends.max()) if ends.size else now

    def result(self, *, partial: bool = False) -> Result:
        """Return the answer, once there is one; with `partial` also before, as it would be now.

        A partial result has a bound if the algorithm knows one at any time, and only intervals
        otherwise. Rewards of an arm are counted up to its first pull that is missing; `waiting`
        counts the rewards of later pulls, which are not used yet. `seconds` are those from the
        first ticket to the last reward.

        Args:
            partial: Whether to return a result before the search has finished.

        Returns:
            The result.

        Raises:
            Unfinished: The search has not finished, and `partial` is False."""
        flag("partial", partial)
        with self._lock:
            self._catch_up()
            if self._known.replay.outcome is not None:
                return self._with_cells(self._known.answer)
            if not partial:
                raise Unfinished(self._known.trouble() or self._known.missing())
            return self._with_cells(self._known.present())

    def _with_cells(self, result: Result) -> Result:
        if self.settings.cells is None:
            return result
        return replace(result, cells=EvaluatedCells(self._read_cells))

    def cells(self) -> EvaluatedCells:
        """Return all cells of a test set that were evaluated: arm, item, score, cost and info.

        Cells that were asked for ahead and not needed any more are among them. A file of them
        (`write`) can be given as `scores`: then none of them is evaluated again.

        Returns:
            The cells; they are read when they are first needed.

        Raises:
            InvalidInput: There is no test set.

        Example:
            >>> import shortlist
            >>> experiment = shortlist.Experiment.create(2, 1, epsilon=0.5, items=3)
            >>> receipt = experiment.tell(experiment.ask()[0], 1.0, info={"answer": "yes"})
            >>> experiment.cells()[0].info
            {'answer': 'yes'}
        """
        if self.settings.cells is None:
            raise InvalidInput("there are no items, but cells are of a test set: say `items`")
        return EvaluatedCells(self._read_cells)

    def _read_cells(self) -> list[EvaluatedCell]:
        with self._lock:
            self._catch_up()
            return self._known.cells(self._store)

    def close(self) -> None:
        """Let go of the file, if this opened one.

        Nothing needs saving: what was told is in the store."""
        if self._owned:
            self._store.close()

    def __repr__(self) -> str:
        now = 0.0  # a store that is closed, or cannot be reached: as it was then
        with self._lock, suppress(ShortlistError):
            self._catch_up()
            now = self._now()
        state = self._known.state(now)
        told = plural(self._known.ledger.made, "pull")
        return (
            f"<Experiment {self.name!r}: {state}, {told} told, {len(self.settings.labels):,} arms>"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Let all that is done inside be one transaction: one wait for the disk, and after an error
        nothing of it was written."""
        with self._writing():
            yield

    def _caution(self) -> None:
        """Say what tests of the rewards found, each once."""
        for message in self._known.replay.checks.warnings:
            if message not in self._warned:
                self._warned.add(message)
                caution(message)

    def _next_tickets(self, asking: Asking, without: Sequence[int], now: float) -> IntArray:
        """The tickets to hand out, after those of retired arms were told."""
        self._tell_worst(now, asking.worker, asking.limit)
        available = self._known.available(asking.worker, now, asking.limit)
        if without:
            available = available[~np.isin(available, without)]
        return affordable(self._known, available, now)

    @contextmanager
    def _writing(self) -> Iterator[float]:
        """Be up to date, and be the only one who writes; the time at which that begins."""
        with self._lock:
            self._catch_up()  # the search may think for long, and should not while others wait
            self._tell_missed()
            position: float = inf
            try:
                with self._store.exclusive():
                    self._catch_up()
                    position = self._known.ledger.position
                    now = self._now()
                    self._compare_clocks(now)
                    yield now
                    self._settle(now)
            except BaseException:
                if self._known.ledger.position > position:  # it read what is not in the log
                    self._known = replica_of(self.name, self.settings, self._origin)
                    self._arms = None
                raise

    def _settle(self, now: float) -> None:
        """Leave the log so that every reader knows whether there are tickets to hand out."""
        if self._known.ledger.retired:  # else the search continues when no one waits for it
            self._catch_up()
            if self._known.ledger.steps:  # before the first ticket the clock does not run
                self._tell_worst(now)

    def _tell_worst(self, now: float, holder: str = "", limit: int = 1) -> None:
        """Tell the worst reward of the next tickets that are of retired arms."""
        while self._known.ledger.retired and self._known.replay.outcome is None:
            window = self._known.available(holder, now, max(limit, WINDOW))
            told, unpaid = worst_rewards(self._known, window.tolist(), now)
            if not told:
                break
            events = [*self._known.new_steps(now), *unpaid]
            self._append(told=told, events=events)
            self._catch_up()

    def _end_if_spent(self, now: float, state: State) -> State:
        """End the experiment if its budget does not pay for what it asked for; its state then."""
        events = ending(self._known, now)
        if not events:
            return state
        self._append(events=events)
        self._catch_up()
        return self._known.state(now)

    def _compare_clocks(self, now: float) -> None:
        """Warn, once, of a clock that is behind that of a program which told a reward before."""
        behind = self._known.ledger.ended - now
        if behind > JUMP and not self._behind:
            self._behind = True
            logger.warning(
                "The clock is %.3g s behind the last reward of experiment %r: it was set back, or"
                " another program has another clock. Leases end by the clock of the program that"
                " looks.",
                *(behind, self.name),
            )

    def _tell_missed(self) -> None:
        """Record the agreed rewards of overdue tickets, in a transaction of their own: they stay
        even if the next write fails."""
        if self.settings.on_late not in (WAIT, AGAIN) and self._known.missed(self._now()).size:
            with self._store.exclusive():
                self._catch_up()
                now = self._now()
                told = self._known.late_rewards(now)
                late = [
                    Event(Kind.LATE, first, span, "", now)
                    for first, span in stretches(np.array([ticket for ticket, *_ in told]))
                ]
                self._append(told=told, events=late)
            self._catch_up()

    def _append(
        self,
        told: Told | Sequence[RewardRow] = (),
        events: Sequence[Event] = (),
        state: State | None = None,
    ) -> None:
        """Add entries to the log, with their author; `state` is shown in lists."""
        shown = None if state is None else state.value
        self._store.append(self.name, told, signed(told, events), shown)

    def _now(self) -> float:
        """The time; a clock that is out of order must not get into the log."""
        return checked_time(self._clock())

    def _catch_up(self) -> None:
        """Take in what is new in the log."""
        self._known.read(self._store)


def made_in(store: Store, name: str, settings: Settings, exist_ok: bool, new: Settings) -> Settings:
    """The settings of an experiment that is made now, which are `new`, or of the one that is
    there, if it was made with `settings`."""
    with store.exclusive():
        if not (exist_ok and name in store.names()):
            store.create(name, new.to_json(), present_author())
            return new
        made = Settings.from_json(store.settings(name), f"experiment {name!r}")
        settings.check_same(made, name)
        return made


def unsaved(settings: Settings) -> Experiment:
    """An experiment that is kept nowhere, not even in a form that could be: its labels may be any
    objects, and its search any function."""
    store = MemoryStore()
    store.create("experiment", "")
    return Experiment(store, "experiment", settings, None, True)


def replica_of(name: str, settings: Settings, origin: str | None = None) -> Replica:
    """What a program knows of an experiment, before it has read its log."""
    live = settings.problem.traffic is not None
    kind = BlockReplica if live else Replica
    return kind(name, settings, origin)
