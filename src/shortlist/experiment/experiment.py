"""Ask for pulls, tell what they gave, stop at any moment and go on: a search over a store."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from threading import RLock
from types import TracebackType
from typing import Any

from shortlist.algorithms import AlgorithmLike
from shortlist.arms import Arms
from shortlist.display import display, plural
from shortlist.errors import InvalidInput, ShortlistError, Unfinished
from shortlist.evaluation.calls import asynchronous
from shortlist.evaluation.loop import CONCURRENT, refuse_executor, run_here
from shortlist.experiment.durations import Durations
from shortlist.experiment.handing import (
    checked_alive,
    checked_overdue,
    given_back,
    handed_out,
    is_current,
    new_lease,
)
from shortlist.experiment.lease import AGAIN, WAIT, Late
from shortlist.experiment.place import Place, checked_name, checked_worker, opened, the_only
from shortlist.experiment.replay import Replay
from shortlist.experiment.replica import Replica
from shortlist.experiment.settings import Settings
from shortlist.experiment.status import Status
from shortlist.experiment.telling import known_id, new_tellings
from shortlist.experiment.ticket import Handout, State, Ticket
from shortlist.experiment.worker import Job, work, work_async
from shortlist.question import question
from shortlist.result import Result
from shortlist.reward_models import RewardsDeclared
from shortlist.search import Progress
from shortlist.storage import Event, Kind, Store
from shortlist.storage.memory import MemoryStore
from shortlist.validation import MOST_TOLD, collected, flag, shown, whole

Clock = Callable[[], float]


class Experiment:
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
        self, store: Store, name: str, settings: Settings, clock: Clock, owned: bool
    ) -> None:
        """Use `create` or `open`. `owned`: whether `close` closes the store."""
        self.name = name
        self.settings = settings
        self._store = store
        self._clock = clock
        self._owned = owned
        self._lock = RLock()
        self._known = Replica(name, settings)
        self._durations = Durations(settings.lease, settings.late)

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
        budget: int | None = None,
        rewards: RewardsDeclared = (0, 1),
        minimize: bool = False,
        algorithm: AlgorithmLike = "auto",
        options: Mapping[str, object] | None = None,
        rounds: int | None = None,
        least: int | None = None,
        seed: int = 0,
        lease: float | None = None,
        late: Late = WAIT,
        retries: int = 2,
        exist_ok: bool = False,
        clock: Clock = time.time,
    ) -> "Experiment":
        """Make an experiment in `store`, a file or a store; a file is made if there is none.

        Without a store it is kept in memory, as long as the program lives. What is asked for is
        said as in `select`. A ticket is due `lease` seconds after it was handed out (an hour, or
        longer if pulls take longer). One that is `late` is waited for, or handed out "again", which
        is fair only if slow says nothing about the reward, or counts as the reward that `late` is.
        A pull that failed is tried `retries` times more; after that the experiment stops. With
        `exist_ok`, an experiment of that name made with the same settings is opened instead."""
        name = checked_name(name)
        flag("exist_ok", exist_ok)
        asked = question(
            arms, k, epsilon, delta, budget, rewards, minimize, algorithm, options, rounds, least
        )
        settings = Settings.of(asked, seed, lease, retries, late)
        Replay(settings)  # refuses what cannot be begun, before there is a file
        with opened(MemoryStore() if store is None else store, "rwc", keep=True) as place:
            with place.exclusive():
                if exist_ok and name in place.names():
                    made = Settings.from_json(place.settings(name), f"experiment {name!r}")
                    settings.check_same(made, name)
                    settings = made  # of the version of the algorithm that it was made with
                else:
                    place.create(name, settings.to_json())
            experiment = cls(place, name, settings, clock, place is not store)
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
        with opened(store, "ro" if flag("readonly", readonly) else "rw", keep=True) as place:
            name = the_only(place.names()) if name is None else checked_name(name)
            settings = Settings.from_json(place.settings(name), f"experiment {name!r}")
            experiment = cls(place, name, settings, clock, place is not store)
            experiment._catch_up()
        return experiment

    @property
    def store(self) -> Store:
        """Where it is kept.

        `export_lines` reads it, even if its file was deleted under the open experiment."""
        return self._store

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
        whole("limit", limit, at_least=1)
        holder = checked_worker(worker)
        alive = checked_alive(alive, holder)
        seconds = self._durations.lease(lease)
        with self._writing() as now:
            state = self._known.state(now)
            going = state in (State.READY, State.PENDING)
            ids = list(islice(self._known.available(holder, now), limit)) if going else []
            terms = new_lease(holder, self.settings.late, now, seconds, alive)
            leases, due = handed_out(self._known, ids, terms)
            self._store.append(self.name, events=[*self._known.new_steps(now), *leases])
            tickets = self._known.tickets(ids, due)
            self._durations.begin(ids, self._known.ledger.held_by(holder), now)
        if len(tickets) == limit:
            return Handout(tickets, State.READY)
        if going:
            return Handout(tickets, State.PENDING, self._known.best_so_far())
        return Handout(tickets, state)

    def tell(self, ticket: Ticket | int, reward: float) -> None:
        """Record the reward of a ticket, for good: it is in the store when this returns.

        Telling the same again changes nothing; another reward for the same ticket is an error, and
        the first stays. A late reward counts if it is the first, unless `late` is a reward."""
        self.tell_many([(ticket, reward)])

    def tell_many(self, results: Iterable[tuple[Ticket | int, float]]) -> None:
        """Record the rewards of many tickets at once: all of them, or after an error none."""
        if not isinstance(results, Iterable):
            raise InvalidInput(
                f"{shown(results)} is told, but must be pairs of a ticket and its reward"
            )
        pairs = collected("results", results, at_most=MOST_TOLD)
        with self._writing() as now:
            tellings = new_tellings(pairs, self._known, now)
            self._store.append(self.name, told=[(*telling, now) for telling in tellings])
            self._durations.end([each.ticket for each in tellings], self._known.ledger, now)

    def fail(self, ticket: Ticket | int, reason: str) -> None:
        """Say that a pull could not be made.

        It is handed out again, up to the limit, and then the experiment stops. Of a ticket that is
        told, or is not its holder's any more, this changes nothing. A bad reward is no failure:
        results that are missing because of their value would void every guarantee."""
        said = str(reason).encode(errors="backslashreplace").decode()  # as every store can hold it
        with self._writing() as now:
            if is_current(ticket, self._known):
                event = Event(Kind.FAIL, known_id(ticket, self._known), 1, said, now)
                self._store.append(self.name, events=[event])

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
        with self._writing() as now:
            events, count = given_back(self._known, name, tickets, seconds, now)
            self._store.append(self.name, events=events)
        return count

    def resume(self) -> None:
        """Let an experiment that stopped go on: the failures so far are forgiven."""
        with self._writing() as now:
            event = Event(Kind.RESUME, 0, 0, "", now)
            self._store.append(self.name, events=[event])

    def run(
        self,
        pull: Callable[..., Any],
        *,
        jobs: int | None = None,
        retries: int = 0,
        executor: Any = None,
        worker: str | None = None,
        progress: bool = True,
    ) -> Result:
        """Make the pulls with a function until the experiment is over; return its result.

        `pull(arm)` returns a reward, and may take a `seed`, as in `select`; it may be async, or a
        `Command`. `jobs` calls are under way at a time (1, or 16 of an async function), in threads
        or on an `executor`. A call that raises has failed; this worker tries it `retries` times
        more before the experiment hears of it. An experiment that stops because a pull failed too
        often raises `Unfinished`.

        Ctrl-C ends it: what was evaluated by then is told, the rest is given back, and the same
        call goes on. Any number of programs may run the same experiment at once."""
        if not asynchronous(pull):
            with self._shown(progress) as show:
                job = Job.of(pull, 1 if jobs is None else jobs, retries, worker, show)
                return self._over(work(self, job, executor))
        refuse_executor(executor)
        how: dict[str, Any] = {"jobs": jobs, "retries": retries, "worker": worker}
        return run_here(self.run_async(pull, progress=progress, **how), "run")

    async def run_async(
        self,
        pull: Callable[..., Any],
        *,
        jobs: int | None = None,
        retries: int = 0,
        worker: str | None = None,
        progress: bool = True,
    ) -> Result:
        """`run` with an async function, in the event loop that is running."""
        if not asynchronous(pull):
            raise InvalidInput("the function is not async, but `run_async` needs one; use `run`")
        with self._shown(progress) as show:
            job = Job.of(pull, CONCURRENT if jobs is None else jobs, retries, worker, show)
            return self._over(await work_async(self, job))

    def status(self) -> Status:
        """Where the experiment stands."""
        with self._lock:
            self._catch_up()
            return self._known.status(self._clock())

    def standing(self) -> tuple[int, Progress]:
        """How many pulls were told, and how far the search is.

        It is cheap, and as of the last call of anything else."""
        return self._known.ledger.told, self._known.replay.numbering.pulls.progress

    def held(self) -> tuple[int, float]:
        """How many tickets somebody works on, and when the last of their leases ends.

        As cheap as `standing`."""
        now = self._clock()
        ends = [lease.end for lease in self._known.ledger.held(now)]
        return len(ends), max(ends, default=now)

    def result(self) -> Result:
        """The answer, once there is one.

        Its `seconds` are those from the first ticket to the last reward."""
        with self._lock:
            self._catch_up()
            if self._known.replay.outcome is None:
                raise Unfinished(self._known.trouble() or self._known.missing())
            return self._known.answer

    def close(self) -> None:
        """Let go of the file, if this opened one.

        Nothing needs saving: what was told is in the store."""
        if self._owned:
            self._store.close()

    def __repr__(self) -> str:
        with self._lock, suppress(ShortlistError):  # a store that is closed: as it was then
            self._catch_up()
        state = self._known.state(self._clock())
        told = plural(self._known.ledger.told, "pull")
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
    def _writing(self) -> Iterator[float]:
        """Be up to date, and be the only one who writes; the time at which that begins."""
        with self._lock:
            self._catch_up()  # the search may think for long, and should not while others wait
            self._tell_missed()
            with self._store.exclusive():
                self._catch_up()
                yield self._clock()

    def _tell_missed(self) -> None:
        """Count what is late as was agreed, for good, whatever becomes of what is written next."""
        if self.settings.late not in (WAIT, AGAIN) and self._known.missed(self._clock()):
            with self._store.exclusive():
                self._catch_up()
                self._store.append(self.name, told=self._known.late_rewards(self._clock()))
            self._catch_up()

    def _catch_up(self) -> None:
        """Take in what is new in the log."""
        self._known.read(self._store)

    @contextmanager
    def _shown(self, progress: bool) -> Iterator[Callable[[], None]]:
        """What a worker is to call after every step."""
        with display(progress, self.settings.problem.goal.budget) as show:
            yield lambda: show(*self.standing())

    def _over(self, state: State) -> Result:
        """The result, when there is nothing to do any more; or why there is none."""
        if state is State.STOPPED:
            raise Unfinished(self.status().trouble)
        return self.result()
