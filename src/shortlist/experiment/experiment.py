"""Ask for pulls, tell what they gave, stop at any moment and go on: a search over a store."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import islice
from threading import RLock
from types import TracebackType

from shortlist.arms import Arms
from shortlist.display import plural, printable
from shortlist.errors import CannotReplay, InvalidInput, ShortlistError, StoreExists, Unfinished
from shortlist.evaluation.calls import draw_seed
from shortlist.experiment.ledger import FREE, Ledger
from shortlist.experiment.place import Place, checked_name, opened, the_only
from shortlist.experiment.replay import Course
from shortlist.experiment.settings import Settings
from shortlist.experiment.status import Status, arms_told
from shortlist.experiment.telling import checked, known_number, lease_of
from shortlist.experiment.ticket import Handout, State, Ticket
from shortlist.question import question
from shortlist.result import Result
from shortlist.reward_models import RewardsDeclared
from shortlist.search import Progress
from shortlist.storage import Event, Kind, Store
from shortlist.validation import number, whole

Clock = Callable[[], float]
HOUR = 3600.0


class Experiment:
    """A search whose pulls are made by others, whenever and wherever they like.

    Its state is its settings and the rewards that were told. They are in the store when `tell`
    returns; whoever opens the experiment runs the search again with them and stands where it stood.
    Any number of programs may have the same experiment open, and threads may share one object."""

    def __init__(
        self, store: Store, name: str, settings: Settings, clock: Clock, owned: bool
    ) -> None:
        """Use `create` or `open`. `owned`: whether `close` closes the store."""
        self.name, self.settings = name, settings
        self._store, self._clock, self._owned = store, clock, owned
        self._lock = RLock()
        self._begin()

    def _begin(self) -> None:
        """Know nothing of the log yet."""
        self._course = Course(self.settings)
        self._ledger = Ledger(self.settings.retries)
        self._compared = 0  # steps of the course that are those of the ledger
        self._halfway = False  # in taking in the log

    @classmethod
    def create(
        cls,
        arms: Arms,
        k: int,
        *,
        store: Place,
        name: str = "experiment",
        epsilon: float | None = None,
        delta: float = 0.05,
        budget: int | None = None,
        rewards: RewardsDeclared = (0, 1),
        algorithm: str = "auto",
        options: Mapping[str, object] | None = None,
        seed: int = 0,
        lease: float = HOUR,
        retries: int = 2,
        exist_ok: bool = False,
        clock: Clock = time.time,
    ) -> "Experiment":
        """Make an experiment in `store`, a file or a store; a file is made if there is none.

        What is asked for is said as in `select`. A ticket that was not told `lease` seconds after
        it was handed out is handed out again. A pull that failed is tried `retries` times more;
        after that the experiment stops. With `exist_ok`, an experiment of that name made with the
        same settings is opened instead."""
        checked_name(name)
        asked = question(arms, k, epsilon, delta, budget, rewards, algorithm, options)
        settings = Settings.of(asked, seed, lease, retries)
        Course(settings)  # refuses what cannot be begun, before there is a file
        with opened(store, "rwc", keep=True) as place:
            experiment = cls(place, name, settings, clock, place is not store)
            with place.exclusive():
                if exist_ok and name in place.names():
                    check_same(
                        settings,
                        Settings.from_json(place.settings(name), f"experiment {name!r}"),
                        name,
                    )
                else:
                    place.create(name, settings.to_json())
            experiment._catch_up()
        return experiment

    @classmethod
    def open(
        cls,
        store: Place,
        name: str | None = None,
        *,
        readonly: bool = False,
        clock: Clock = time.time,
    ) -> "Experiment":
        """Go on with an experiment; the name may be left out where there is only one.

        With `readonly` a file is only looked at: `status` and `result` work, `ask` and `tell` are
        refused."""
        with opened(store, "ro" if readonly else "rw", keep=True) as place:
            name = the_only(place.names()) if name is None else name
            settings = Settings.from_json(place.settings(name), f"experiment {name!r}")
            experiment = cls(place, name, settings, clock, place is not store)
            experiment._catch_up()
        return experiment

    def ask(
        self, limit: int = 1, worker: str | None = None, *, lease: float | None = None
    ) -> Handout:
        """Up to `limit` tickets: pulls that the search wants next.

        A worker that gives a name gets its own open tickets first, as after a crash, and their
        leases anew. `lease` is in seconds, that of the experiment if it is not given. If there are
        fewer tickets than asked for, the `state` of what is returned says why."""
        whole("limit", limit, at_least=1)
        seconds = self.settings.lease if lease is None else number("lease", lease, above=0)
        with self._writing():
            now = self._clock()
            expires = now + seconds
            state = self._state(now)
            going = state in (State.READY, State.PENDING)
            available = self._ledger.available(worker or "", now, self._course.end) if going else ()
            chosen = list(islice(available, limit))
            leases = [
                Event(Kind.LEASE, first, span, worker or "", expires)
                for first, span in runs(sorted(chosen))
            ]
            self._store.append(self.name, events=[*self._new_steps(now), *leases])
            tickets = self._tickets(chosen, expires)
        if len(tickets) == limit:
            return Handout(tickets, State.READY)
        return Handout(tickets, State.PENDING if going else state)

    def tell(self, ticket: Ticket | int, reward: float) -> None:
        """Record the reward of a ticket, for good: it is in the store when this returns.

        Telling the same again changes nothing; another reward for the same ticket is an error, and
        the first stays. A reward that comes after its lease ended counts if it is the first."""
        self.tell_many([(ticket, reward)])

    def tell_many(self, results: Iterable[tuple[Ticket | int, float]]) -> None:
        """Record the rewards of many tickets at once: all of them, or after an error none."""
        if not isinstance(results, Iterable):
            raise InvalidInput(f"{results!r} is told, but must be pairs of a ticket and its reward")
        pairs = list(results)
        with self._writing():
            rows = checked(pairs, self.settings, self._course.deal, self._ledger)
            now = self._clock()
            self._store.append(self.name, told=[(*row, now) for row in rows])

    def fail(self, ticket: Ticket | int, reason: str) -> None:
        """Say that a pull could not be made: it is handed out again, up to the limit, and then the
        experiment stops.

        Of a ticket that is told, or is not its holder's any more, this changes nothing. A bad
        reward is no failure: results that are missing because of their value would void every
        guarantee."""
        with self._writing():
            id_ = known_number(ticket, self._ledger)
            expires = lease_of(id_, self._ledger)
            if expires != FREE and (not isinstance(ticket, Ticket) or ticket.expires == expires):
                event = Event(Kind.FAIL, id_, 1, str(reason), self._clock())
                self._store.append(self.name, events=[event])

    def release(self, worker: str) -> None:
        """Take back the tickets of a worker who will not tell them any more: they are handed out
        again at once."""
        with self._writing():
            given_back = runs(self._ledger.held_by(worker))
            events = [Event(Kind.LEASE, first, span, worker, FREE) for first, span in given_back]
            self._store.append(self.name, events=events)

    def resume(self) -> None:
        """Let an experiment that stopped go on: the failures so far are forgiven."""
        with self._writing():
            self._store.append(self.name, events=[Event(Kind.RESUME, 0, 0, "", self._clock())])

    def status(self) -> Status:
        """Where the experiment stands."""
        with self._lock:
            self._catch_up()
            ledger, now = self._ledger, self._clock()
            held = Counter(lease.worker for lease in ledger.leases.values() if lease.expires > now)
            return Status(
                self.name,
                self._state(now),
                self._trouble(),
                ledger.told,
                held.total(),
                self._course.end - ledger.told - held.total(),
                ledger.failures.total(),
                {worker: count for worker, count in held.items() if worker},
                self._course.deal.pulls.progress,
                arms_told(ledger, self.settings, self._course),
            )

    def standing(self) -> tuple[int, Progress]:
        """How many pulls were told, and how far the search is; cheap, and as of the last call of
        anything else."""
        return self._ledger.told, self._course.deal.pulls.progress

    def held(self) -> tuple[int, float]:
        """How many tickets somebody works on, and when the last of their leases ends; as cheap as
        `standing`."""
        now = self._clock()
        ends = [lease.expires for lease in self._ledger.leases.values() if lease.expires > now]
        return len(ends), max(ends, default=now)

    def result(self) -> Result:
        """The answer, once there is one; its `seconds` are those from the first ticket to the last
        reward."""
        with self._lock:
            self._catch_up()
            if self._course.outcome is None:
                raise Unfinished(self._trouble() or self._missing())
            return self._answer

    def close(self) -> None:
        """Let go of the file, if this opened one. Nothing needs saving: what was told is in the
        store."""
        if self._owned:
            self._store.close()

    def __repr__(self) -> str:
        with self._lock, suppress(ShortlistError):  # a store that is closed: as it was then
            self._catch_up()
        state, told = self._state(self._clock()), plural(self._ledger.told, "pull")
        return (
            f"<Experiment {self.name!r}: {state}, {told} told, {len(self.settings.labels):,} arms>"
        )

    def __enter__(self) -> "Experiment":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Be up to date, and be the only one who writes."""
        with self._lock:
            self._catch_up()  # the search may think for long, and should not while others wait
            with self._store.exclusive():
                self._catch_up()
                yield

    def _catch_up(self) -> None:
        """Take in what is new in the log, and let the search go on as far as it can."""
        if self._halfway:  # an interrupt broke this off the last time, perhaps inside the search
            self._begin()
        ledger, course = self._ledger, self._course
        news = self._store.read(self.name, ledger.position)
        self._halfway = True
        ledger.take_in(news)
        while course.outcome is None and ledger.told >= course.end:
            span = slice(course.deal.first, course.deal.end)
            course.reply(ledger.rewards[span], ledger.arms[span])
        self._compare_steps()
        self._halfway = False

    def _compare_steps(self) -> None:
        """Refuse to go on if the search asks for something else than it once did: an update may
        have changed it."""
        both = min(len(self._course.digests), len(self._ledger.steps))
        for step in range(self._compared, both):
            if self._course.digests[step] != self._ledger.steps[step]:
                raise CannotReplay(
                    f"experiment {self.name!r} asks for other pulls in step {step + 1} than it did"
                    " the first time: continue it with the shortlist and the numpy that made it,"
                    " or export its rewards"
                )
            self._compared = step + 1

    def _state(self, now: float) -> State:
        if self._course.outcome is not None:
            return State.FINISHED if self._answer.reached else State.BUDGET
        if self._ledger.stopped is not None:
            return State.STOPPED
        anything = next(self._ledger.available("", now, self._course.end), None)
        return State.PENDING if anything is None else State.READY

    @cached_property
    def _answer(self) -> Result:
        settings, ledger, outcome = self.settings, self._ledger, self._course.outcome
        assert outcome is not None
        seconds = max(0.0, ledger.ended - ledger.began)
        return Result.of(
            outcome,
            settings.labels,
            settings.problem.goal,
            settings.algorithm,
            settings.seed,
            seconds,
        )

    def _trouble(self) -> str:
        event = self._ledger.stopped
        if event is None:
            return ""
        reason = printable(event.text)
        return (
            f"ticket {event.ticket} failed {plural(self.settings.retries + 1, 'time')}, the last"
            f" time: {reason}"
        )

    def _missing(self) -> str:
        told, missing = self._ledger.told, self._course.end - self._ledger.told
        return (
            f"{plural(told, 'pull')} {'was' if told == 1 else 'were'} told, but the search waits"
            f" for {missing:,} more"
        )

    def _new_steps(self, now: float) -> list[Event]:
        """What the search asked for and nobody wrote down yet."""
        done = len(self._ledger.steps)
        steps = zip(self._course.digests[done:], self._course.starts[done:], strict=True)
        return [Event(Kind.STEP, first, span, digest, now) for digest, (first, span) in steps]

    def _tickets(self, numbers: list[int], expires: float) -> list[Ticket]:
        deal, seed, labels = self._course.deal, self.settings.seed, self.settings.labels
        places = zip(
            numbers, deal.arms(numbers).tolist(), deal.draws(numbers).tolist(), strict=True
        )
        return [
            Ticket(id_, labels[arm], draw, draw_seed(seed, arm, draw), expires)
            for id_, arm, draw in places
        ]


def check_same(asked: Settings, made: Settings, name: str) -> None:
    """Refuse to go on with an experiment that is not the one asked for."""
    difference = made.difference(asked)
    if difference is not None:
        raise StoreExists(
            f"there is an experiment {name!r} already, but it was made with {difference}"
        )


def runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Ascending numbers as stretches without a gap: the first of each and its length."""
    start = 0
    for position in range(1, len(numbers) + 1):
        if position == len(numbers) or numbers[position] != numbers[position - 1] + 1:
            yield numbers[start], position - start
            start = position
