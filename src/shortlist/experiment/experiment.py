"""Ask for pulls, tell what they gave, stop at any moment and go on: a search over a store."""

from collections.abc import Iterable, Mapping, Sequence

from shortlist.algorithms import AlgorithmLike
from shortlist.arms import Arms, Label
from shortlist.caution import caution
from shortlist.evaluation.cells import ItemsGiven
from shortlist.evaluation.sameness import Sameness
from shortlist.experiment.dealer import Dealer
from shortlist.experiment.durations import Durations
from shortlist.experiment.handing import (
    Asking,
    checked_overdue,
    given_back,
    handed_out,
    is_current,
    named_tickets,
    new_lease,
)
from shortlist.experiment.lease import WAIT, Late
from shortlist.experiment.leaving import (
    arms_of,
    leaving_arm,
    may_leave,
    retirement,
)
from shortlist.experiment.place import Place, checked_name, checked_worker, opened, the_only
from shortlist.experiment.replay import Replay
from shortlist.experiment.runnable import Runnable
from shortlist.experiment.settings import OnFailure, Settings
from shortlist.experiment.telling import (
    Result,
    Telling,
    costs_of,
    known_id,
    new_tellings,
    report,
    triples,
    unused_costs,
)
from shortlist.experiment.ticket import Handout, Receipt, State, Ticket
from shortlist.experiment.writer import made_in
from shortlist.items import ScoresGiven
from shortlist.question import cells_given, question
from shortlist.reward_models import RewardsDeclared
from shortlist.storage import Event, Kind, RewardRow, Store
from shortlist.storage.clock import Clock
from shortlist.storage.insist import insist, insistent
from shortlist.storage.memory import MemoryStore
from shortlist.validation import flag, text, words


class Experiment(Dealer, Runnable):
    """A search whose pulls are made by others, whenever and wherever they like.

    Its state is its settings and the rewards that were told. They are in the store when `tell`
    returns; whoever opens the experiment runs the search again with them and stands where it stood.
    Any number of programs may have the same experiment open, and threads may share one object.

    Invariants, which every method keeps:

    - What is known changes only by reading the log (`Replica`): a method that changes anything
      reads the log, appends to it in one transaction, and learns of that at its next reading.
    - Nothing in the log is ever changed or removed; a ticket has at most one reward, the first.
    - A method that raises has appended nothing."""

    def __init__(
        self, store: Store, name: str, settings: Settings, clock: Clock | None, owned: bool
    ) -> None:
        """Use `create` or `open`. `owned`: whether `close` closes the store."""
        super().__init__(store, name, settings, clock, owned)
        self._durations = Durations(settings.lease, settings.late)
        self._sameness = Sameness(settings.problem.rewards)
        self._warned: set[str] = set()  # of what tests of the rewards found

    @classmethod
    def create(
        cls,
        arms: Arms,
        k: int,
        *,
        store: Place | None = None,
        name: str = "experiment",
        epsilon: float | None = None,
        delta: float = 0.05,
        budget: float | None = None,
        rewards: RewardsDeclared | None = None,
        minimize: bool = False,
        items: ItemsGiven | None = None,
        scores: ScoresGiven | None = None,
        order: str = "shared",
        algorithm: AlgorithmLike = "auto",
        options: Mapping[str, object] | None = None,
        rounds: int | None = None,
        least: int | None = None,
        certificate: str = "auto",
        seed: int = 0,
        lease: float | None = None,
        late: Late = WAIT,
        retries: int = 2,
        on_failure: OnFailure = "stop",
        exist_ok: bool = False,
        clock: Clock | None = None,
    ) -> "Experiment":
        """Make an experiment in `store`, a file or a store; a file is made if there is none.

        Without a store it is kept in memory, as long as the program lives. What is asked for is
        said as in `select`. A ticket is due `lease` seconds after it was handed out (an hour, or
        longer if pulls take longer). One that is `late` is waited for, or handed out "again", which
        is fair only if slow says nothing about the reward, or counts as the reward that `late` is.
        A pull that failed is tried `retries` times more; after that `on_failure` says whether the
        experiment stops or its arm leaves, as by `retire`. With
        `exist_ok`, an experiment of that name made with the same settings is opened instead."""
        flag("exist_ok", exist_ok)
        cells = cells_given(items, seed, scores, order)
        asked = question(
            *(arms, k, epsilon, delta, budget, rewards, minimize),
            *(algorithm, options, cells, rounds, least, certificate),
        )
        settings = Settings.of(asked, seed, lease, retries, late, on_failure)
        return cls.of(settings, store, name, exist_ok=exist_ok, clock=clock)

    @classmethod
    def of(
        cls,
        settings: Settings,
        store: Place | None,
        name: str,
        *,
        exist_ok: bool,
        clock: Clock | None = None,
    ) -> "Experiment":
        """`create` with settings that are checked already."""
        name = checked_name(name)
        Replay(settings)  # refuses what cannot be begun, before there is a file
        with opened(MemoryStore() if store is None else store, "rwc", keep=True) as place:
            made = insist(lambda: made_in(place, name, settings, exist_ok))
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
        """Go on with an experiment; the name may be left out where there is only one.

        With `readonly` a file is only looked at: `status` and `result` work, `ask` and `tell` are
        refused."""
        with opened(store, "ro" if flag("readonly", readonly) else "rw", keep=True) as place:
            name = the_only(place.names()) if name is None else checked_name(name)
            settings = Settings.from_json(place.settings(name), f"experiment {name!r}")
            experiment = cls(place, name, settings, clock, place is not store)
            experiment._catch_up()
        return experiment

    @insistent
    def ask(
        self,
        limit: int = 1,
        worker: str | None = None,
        *,
        lease: float | None = None,
        alive: float | None = None,
    ) -> Handout:
        """Up to `limit` tickets: pulls that the search wants next.

        A worker that gives a name gets its own open tickets first, as after a crash, and their
        leases anew. `lease` is in seconds, that of the experiment if it is not given. `alive` is a
        promise to ask again within so many seconds: who does not is gone, and its tickets are
        handed out again. If there are fewer tickets than asked for, the `state` of what is returned
        says why; if that is PENDING, `meanwhile` is the best arm so far, for who cannot wait."""
        limit, holder, _, alive = Asking.of(limit, worker, lease, alive)
        self._caution()
        seconds = self._durations.lease(lease)
        with self._writing() as now:
            state = self._known.state(now)
            going = state in (State.READY, State.PENDING)
            ids = self._next_tickets(holder, limit, now) if going else []
            if going and not ids:
                state = self._end_if_spent(now, state)
                going = state in (State.READY, State.PENDING)
            terms = new_lease(holder, self.settings.late, now, seconds, alive)
            leases, due = handed_out(self._known, ids, terms)
            self._store.append(self.name, events=[*self._known.new_steps(now), *leases])
            tickets = self._known.tickets(ids, due)
            meanwhile = self._known.best_so_far() if going and len(ids) < limit else None
            self._durations.begin(ids, self._known.ledger.held_by(holder), now)
        if len(tickets) == limit:
            return Handout(tickets, State.READY)
        if going:
            return Handout(tickets, State.PENDING, meanwhile)
        self._caution()
        return Handout(tickets, state)

    def _caution(self) -> None:
        """Say what tests of the rewards found, each once."""
        for message in self._known.replay.checks.warnings:
            if message not in self._warned:
                self._warned.add(message)
                caution(message)

    def tell(self, ticket: Ticket | int, reward: float, cost: float | None = None) -> Receipt:
        """Record the reward of a ticket, for good: it is in the store when this returns.

        `cost` is what the pull did cost, if that is not what was declared. Telling the same again
        changes nothing; another reward or cost for the same ticket is an error, and the first
        stays. A late reward counts if it is the first, unless `late` is a reward: then it is
        discarded, which the receipt and a warning in the log say."""
        return self.tell_many([(ticket, reward, cost)])

    def tell_many(self, results: Iterable[Result]) -> Receipt:
        """Record the rewards of many tickets at once: all of them, or after an error none.

        Each is a ticket and its reward, and perhaps what the pull did cost. The receipt names the
        tickets whose reward is discarded."""
        tellings, receipt = self._tell(triples(results))
        for each in tellings:
            self._sameness.see(self.settings.labels[each.arm], [each.reward])
        report(receipt, self.settings.late)
        return receipt

    @insistent
    def _tell(
        self, told: Sequence[tuple[Ticket | int, float, float | None]]
    ) -> tuple[Sequence[Telling], Receipt]:
        with self._writing() as now:
            tellings, paid, receipt = new_tellings(told, self._known, now)
            rows = [telling.row(now) for telling in tellings]
            events = [*costs_of(tellings, now), *unused_costs(paid, now)]
            self._store.append(self.name, told=rows, events=events)
            self._durations.end([each.ticket for each in tellings], self._known.ledger, now)
        return tellings, receipt

    @insistent
    def fail(self, ticket: Ticket | int, reason: str) -> None:
        """Say that a pull could not be made.

        It is handed out again, up to the limit, and then the experiment stops, or with `on_failure`
        "retire" the arm leaves. Of a ticket that is told, or is not its holder's any more, this
        changes nothing. A bad reward is no failure: results that are missing because of their value
        would void every guarantee."""
        said = words(reason)
        with self._writing() as now:
            if is_current(ticket, self._known):
                id_ = known_id(ticket, self._known)
                told, events = self._given_up(id_, said, now)
                failed = Event(Kind.FAIL, id_, 1, said, now)
                self._store.append(self.name, told=told, events=[failed, *events])
                if events:
                    self._catch_up()  # that an arm left

    def _given_up(
        self, ticket: int, reason: str, now: float
    ) -> tuple[list[RewardRow], list[Event]]:
        """What makes an arm leave whose pull failed too often, where that was agreed."""
        known = self._known
        often = known.ledger.failures[ticket] + 1 > self.settings.retries
        (arm,) = arms_of(known, [ticket])
        if self.settings.on_failure == "stop" or not often or not may_leave(known, arm):
            return [], []
        told, events = retirement(known, arm, reason, now)
        return told, [*events, Event(Kind.RESUME, 0, 0, "", now)]

    @insistent
    def retire(self, arm: Label, reason: str = "") -> None:
        """Let an arm leave that cannot be pulled any more; `reason` is for the log.

        It is not chosen, and its open tickets are told the worst reward. The guarantee of
        `certified` is then about the arms that stay: against their k best at most the bound is
        lost. Let no arm leave because of its rewards: docs/experiments.md says what is proved.
        Other algorithms promise nothing then, nor is anything promised if an arm that left would
        have been chosen: the best of the others takes its place."""
        said = text("reason", reason)
        with self._writing() as now:
            number = leaving_arm(self._known, arm)
            told, events = retirement(self._known, number, said, now)
            self._store.append(self.name, told=told, events=events)
            self._catch_up()  # that it left

    def release(
        self,
        worker: str | None = None,
        *,
        tickets: Iterable[Ticket | int] | None = None,
        overdue: float | None = None,
    ) -> int:
        """Take back tickets of which no result will come; they are handed out again at once.

        Those of a worker, some by number, those overdue by so many seconds, or what fits all that
        is said; returns how many. Only whoever knows that the holder is gone should say so: to give
        up what merely takes long leaves results out because of their value. A result that comes
        nevertheless counts if it is the first."""
        name = None if worker is None else checked_worker(worker)
        seconds = checked_overdue(overdue)
        return self._release(name, named_tickets(tickets), seconds)

    @insistent
    def _release(
        self, name: str | None, tickets: Sequence[Ticket | int] | None, seconds: float | None
    ) -> int:
        with self._writing() as now:
            events, count = given_back(self._known, name, tickets, seconds, now)
            self._store.append(self.name, events=events)
        return count

    @insistent
    def resume(self) -> None:
        """Let an experiment that stopped go on: the failures so far are forgiven."""
        with self._writing() as now:
            event = Event(Kind.RESUME, 0, 0, "", now)
            self._store.append(self.name, events=[event])
