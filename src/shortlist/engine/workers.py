"""Make the pulls of an experiment with a function, several at a time, until it is over.

There is one way, wherever the experiment is kept: a `Worker` asks for a block of tickets, makes
their calls, and tells the rewards as a block. A block is as large as can be evaluated in 50 ms, and
rewards of calls shorter than half a millisecond wait that long to be told together; all others are
told at once. So a store commits many short calls together, a program that dies loses little, and a
search in memory spends its time on the function."""

import logging
import os
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from shortlist.cells import named_item
from shortlist.engine.calls import (
    CONCURRENT,
    Attempts,
    Call,
    Evaluation,
    back_off,
)
from shortlist.engine.executors import Done, EventLoopPool, ExecutorPool, named, pool_on
from shortlist.engine.program import Command
from shortlist.engine.rate import CLOCK, RateGiven
from shortlist.engine.status import Status
from shortlist.engine.tickets import (
    FOREVER,
    Noted,
    Receipt,
    State,
    Ticket,
    TicketBlock,
    checked_cost,
    checked_reward,
    checked_rewards,
    checked_worker,
    with_cost,
    without_infos,
)
from shortlist.errors import ConflictingReward, InvalidInput
from shortlist.formatting import plural, printable
from shortlist.settings import Settings
from shortlist.validation import MOST_WORKERS, whole

PAUSE = 0.2  # seconds before asking again when others hold all that is wanted
LOOK = 0.5  # seconds of one wait: an interrupt just before a wait is noticed after it
PATIENCE = 2.0  # seconds of that before it is logged: a worker among others often waits
# seconds within which a worker that lives asks again, so its tickets are lost so long if it dies
LEASE = 60.0
STRETCH = 0.05  # seconds that a block takes, and that a reward waits to be told at most
# seconds of a call below which that costs less than telling each at once, even if the program dies
SHORT = 0.0005
MOST_TICKETS = 10_000  # in a block
WHOLE_BATCH = 1_000_000  # tickets in a block where one call makes many of them
OVER = (State.FINISHED, State.BUDGET, State.ENDED)  # states in which no call is needed any more
# what a reward nearly always is: anything else is looked at more closely
PLAIN = frozenset({float, int, bool, np.float64, np.int64, np.bool_})
logger = logging.getLogger("shortlist.engine")


class Work(Protocol):
    """What a worker needs of an experiment, here or at a service."""

    @property
    def settings(self) -> Settings:
        """What it was made with."""

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
        """Up to `limit` tickets beyond those that the worker is holding."""

    def tell_block(
        self,
        tickets: list[int],
        rewards: list[float],
        costs: list[float | None] | None = None,
        infos: list[Any] | None = None,
    ) -> Receipt:
        """Record the rewards of many tickets: all of them, or after an error none."""

    def tell(
        self, ticket: Ticket | int, reward: float, cost: float | None = None, info: Any = None
    ) -> Receipt:
        """Record the reward of a ticket."""

    def fail(self, ticket: Ticket | int, reason: str, attempts: int = 1) -> None:
        """Report that a pull failed."""

    def release(
        self, worker: str | None = None, *, tickets: Iterable[Ticket | int] | None = None
    ) -> int:
        """Take back the tickets of a worker, or some of them."""

    def held(self) -> tuple[int, float]:
        """How many tickets workers hold, and when the last of their leases ends."""

    def status(self) -> Status:
        """Where the experiment stands."""


@dataclass(frozen=True, slots=True)
class Job:
    """How the pulls of an experiment are made."""

    evaluation: Evaluation
    workers: int | None  # calls at a time; None for as many as suit the executor
    worker: str  # its name
    show: Callable[[], None]  # called after every step
    raising: bool = False  # whether a bad reward or a failure that ends the work is raised
    batch: int | None = 1  # the most pulls in a call; None for any number
    here: bool = False  # whether calls are made in this thread, as is possible where none can lapse
    lasting: bool = True  # whether rewards told after an error are of use
    items: Mapping[Any, Any] | None = None  # what the function is given, by id

    @classmethod
    def of(
        cls,
        pull: Callable[..., Any],
        workers: int | None,
        retries: int | None,
        worker: str | None,
        show: Callable[[], None],
        settings: Settings,
        *,
        rate: RateGiven | None = None,
        here: bool = False,
    ) -> "Job":
        """Take the arguments of `run`, if they make sense; a worker without a name gets one."""
        name = checked_worker(worker) or this_program()
        if workers is not None:
            workers = whole("workers", workers, at_least=1, at_most=MOST_WORKERS)
        if retries is None:
            retries = settings.retries
        attempts = Attempts.of(retries, None)
        evaluation = Evaluation.of(
            pull,
            attempts=attempts,
            on_items=settings.on_items,
            shared=settings.problem.shared_seeds,
        )
        return cls(evaluation.paced(rate), workers, name, show, here=here)


def work(experiment: Work, job: Job, executor: object) -> State:
    """Evaluate tickets until no more are handed out; return why.

    If this is interrupted, programs that are running are ended; what was evaluated by then is told,
    and the rest is given back."""
    if job.lasting:
        release_the_dead(experiment)
    is_program = isinstance(job.evaluation.function, Command)
    # not a program: an interrupt of this thread in the moment of its start would lose track of it
    if job.here and executor is None and job.workers in (None, 1) and not is_program:
        return _work_here(Worker(experiment, job, 1))
    where = "threads" if executor is None else executor
    workers = job.workers or (1 if executor is None else None)
    with pool_on(where, workers, job.evaluation) as pool:
        return _work_in(pool, Worker(experiment, job, pool.capacity, LEASE))


def _work_here(worker: "Worker") -> State:
    """Make the calls in this thread, one after the other."""
    try:
        while (state := worker.step()) is None:
            if worker.may_begin():
                worker.evaluate()
            else:
                worker.clock.sleep(worker.pause())
            worker.job.show()
    except BaseException:
        worker.give_back()
        raise
    return state


def _work_in(pool: ExecutorPool, worker: "Worker") -> State:
    """Make the calls on an executor, as many at a time as it has room for."""
    job = worker.job
    try:
        while (state := worker.step()) is None:
            while pool.under_way < pool.capacity and (call := worker.begin()):
                pool.submit(call)
            if pool.under_way:
                worker.take_in(pool.collect(worker.patience()))
            else:
                worker.clock.sleep(worker.pause())
            job.show()
    except BaseException:
        job.evaluation.stop.set()
        if isinstance(job.evaluation.function, Command):
            job.evaluation.function.stop()
        pool.cancel()
        while job.lasting and pool.under_way:
            with suppress(InvalidInput):
                worker.take_in_rewards(pool.finish())
        worker.give_back()
        raise
    return state


async def work_async(experiment: Work, job: Job) -> State:
    """`work` with an async function, in the event loop that is running."""
    if job.lasting:
        release_the_dead(experiment)
    pool = EventLoopPool(job.workers or CONCURRENT, job.evaluation)
    worker = Worker(experiment, job, pool.capacity, LEASE)
    try:
        while (state := worker.step()) is None:
            while pool.under_way < pool.capacity and (call := worker.begin()):
                pool.submit(call)
            if pool.under_way:
                worker.take_in(await pool.collect(worker.patience()))
            else:
                await worker.clock.pause(worker.pause())
            job.show()
    except BaseException:
        await pool.cancel()
        worker.give_back()
        raise
    return state


def this_program() -> str:
    """The name of a worker that was given none."""
    return f"{socket.gethostname()}:{os.getpid()}"


def release_the_dead(experiment: Work) -> None:
    """Take back the tickets of programs that ran on this machine and are gone, as after a crash."""
    for holder in experiment.status().workers:
        host, _, process = holder.rpartition(":")
        if host == socket.gethostname() and process.isdecimal() and not _is_alive(int(process)):
            experiment.release(holder)


def _is_alive(process: int) -> bool:
    """Whether there is such a process; where that cannot be asked, as if there were."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


class Worker:
    """The tickets of one run: queued, under way, and evaluated but not told.

    `holding` are all of them. Asking now and then renews their leases, so that a lease only ends
    when the whole program is gone."""

    def __init__(
        self, experiment: Work, job: Job, capacity: int, alive: float | None = None
    ) -> None:
        """`alive` are the seconds within which it promises to ask again."""
        self.experiment = experiment
        self.job = job
        self.capacity = capacity
        self.queue: deque[Call] = deque()
        self.under_way: dict[int, Call] = {}  # by ticket
        self._held: dict[int, float] = {}  # when tickets that were not told are due
        self._members: dict[int, list[int]] = {}  # tickets of a call, where they are several
        self._ids: list[int] = []  # of rewards that wait to be told, with
        self._rewards: list[float] = []
        self._costs: list[float | None] = []
        self._infos: dict[int, Noted] = {}  # by ticket
        self._paid = False  # whether one of them has a cost
        self._since = 0.0  # when the first of them came in
        self._model = experiment.settings.problem.rewards
        self._admits: Callable[[Any], Any] = self._model.admits
        self._budget = experiment.settings.problem.goal.budget
        self._careful = False  # whether calls cost other amounts than declared, within a budget
        self._size = capacity  # tickets in the next block
        self._hold = STRETCH if job.here else 0.0  # seconds that a reward may wait to be told
        self._begun = 0  # calls
        self._attempts: Counter[int] = Counter()  # that failed, by ticket
        # whether a failure ends the work; an error of the very first call is then raised at once
        self._stops = experiment.settings.on_failure == "stop"
        self._begun_at: dict[int, float] = {}  # when calls under way began, by ticket
        self._seconds: dict[int, float] = {}  # of the calls that ended last
        self._dry = False  # whether there were no more tickets the last time
        self._news = False  # whether a reward was told since the last time
        self._idle = 0.0  # seconds of waiting for others,
        self._logged = False  # and whether that was logged
        self._renewed = time.monotonic()
        self._resumed = 0.0  # when calls could begin after the last step
        self._alive = alive
        self._many = job.evaluation.many
        self._pace = job.evaluation.pace
        self.clock = CLOCK if self._pace is None else self._pace.clock
        # declared costs by label, where calls are paced
        self._declared_costs = {} if self._pace is None else _declared_costs(experiment.settings)
        # whether batches are asked for ahead: then the search may end while calls are queued
        self._ahead = bool(experiment.settings.options.get("window"))

    def step(self) -> State | None:
        """Tell rewards and ask for more tickets, where that is due; the state of the experiment
        once there is nothing left to do."""
        if self._ids and self._is_due():
            self.tell()
        return self._ask() if self._wants_more() else None

    def _is_due(self) -> bool:
        """Whether to tell now: when no call is left, or the first reward has waited for long."""
        idle = not self.under_way and not self.queue
        return idle or self._careful or time.monotonic() - self._since >= self._hold

    def _wants_more(self) -> bool:
        """Whether to ask now: when there is room for calls, or leases have to be renewed."""
        if not self.queue and not self.under_way:
            return True
        now = time.monotonic()
        if self._alive is not None and now - self._renewed > LEASE / 3:
            return True
        if self.queue:
            return self._ahead and self._news
        if (self._many and not self._ahead) or len(self.under_way) >= self.capacity:
            return False
        return not self._dry

    def _ask(self) -> State | None:
        """Ask for tickets; the state of the experiment if there are none and none is held."""
        if self._ids:
            self.tell()
        now = time.monotonic()
        renew = self._held and self._alive is not None and now - self._renewed > LEASE / 3
        if not self._held or renew:
            self._check_alive(now)
            self._renewed = now
        block = self.experiment.ask_block(
            self._limit(),
            self.job.worker,
            alive=self._alive,
            holding=list(self._held),
            renew=bool(renew),
            seeded=self.job.evaluation.seeded,
            batch=self.job.batch,
        )
        self._queue(block)
        if self.queue and block.state in OVER:
            self._release_queue()
        self._dry = block.state is not State.READY
        self._news = False
        self._resumed = time.monotonic()
        over = not self._held and not self.under_way and block.state is not State.PENDING
        return block.state if over else None

    def _limit(self) -> int:
        """How many tickets to ask for."""
        if self._many:
            busy = self.queue or (self.under_way and not self._ahead)
            return 0 if busy else WHOLE_BATCH
        free = self.capacity - len(self.under_way)
        if self.queue or not free:  # leases are renewed, and that is all
            return 0
        slow = self._ahead and self._size <= self.capacity  # calls, so that none is queued
        return free if self._careful or slow else max(free, self._size)

    def _queue(self, block: TicketBlock) -> None:
        """Queue the calls of the tickets that are new; the others were renewed."""
        new = [place for place, id_ in enumerate(block.ids) if id_ not in self._held]
        self._held.update(zip(block.ids, block.due, strict=True))
        if block.calls is None:
            self.queue.extend(self._call(block, [place]) for place in new)
            return
        calls: dict[int, list[int]] = {}  # in the order of the first ticket of each
        for place in new:
            calls.setdefault(block.calls[place], []).append(place)
        for places in calls.values():
            self._members[block.ids[places[0]]] = [block.ids[place] for place in places]
            self.queue.append(self._call(block, places))

    def _call(self, block: TicketBlock, places: list[int]) -> Call:
        first, self._begun = places[0], self._begun + 1
        seed = None if block.seeds is None else block.seeds[first]
        item = None
        if block.items is not None:
            several = [self._item(block.items[each]) for each in places]
            item = several if self._many else several[0]
        eager = self._stops and self._begun == 1
        failed = self._attempts[block.ids[first]] if self._attempts else 0
        pause = back_off(failed) if failed else 0.0
        label, draw = block.labels[first], block.draws[first]
        return Call(block.ids[first], label, draw, len(places), seed, item, eager, pause)

    def _item(self, label: Any) -> Any:
        """The item that the function is given."""
        return label if self.job.items is None else self.job.items[label]

    def _check_alive(self, now: float) -> None:
        """Log that the promise to ask again was not kept: others may have the same tickets now."""
        if self._held and now - self._renewed > LEASE:
            silent = "This program was kept from asking for %.3g s, more than the %g s after which"
            cure = "its pulls are made again; let evaluations run on executor='processes'."
            logger.warning(f"{silent} {cure}", now - self._renewed, LEASE)

    def patience(self) -> float:
        """How many seconds to wait for a call to end before the next step."""
        if self._ids:
            return min(LOOK, max(0.0, self._since + self._hold - time.monotonic()))
        room = self.queue and len(self.under_way) < self.capacity
        return min(LOOK, LEASE / 3, self._wait() if room else LOOK)

    def _wait(self) -> float:
        """Seconds until the rate allows the next call."""
        return 0.0 if self._pace is None else self._pace.wait()

    def pause(self) -> float:
        """How long to wait for the rate, or to give others time; logged, once, if that takes
        long."""
        if self.queue:
            return min(LOOK, self._wait())
        self._idle += PAUSE
        if self._idle >= PATIENCE and not self._logged:
            self._logged = True
            held, until = self.experiment.held()
            whose = "that another worker holds" if held == 1 else "that other workers hold"
            end = (
                "; `release` those of one who is gone"
                if until >= FOREVER
                else f" until {time.strftime('%H:%M:%S', time.localtime(until))}"
            )
            logger.warning("Waiting for %s %s%s.", plural(held, "pull"), whose, end)
        return PAUSE

    def may_begin(self) -> bool:
        """Whether a call is queued, and the rate allows it now."""
        return bool(self.queue) and self._wait() == 0

    def _next(self) -> Call | None:
        """The next call, if the rate allows it now."""
        allowed = self.queue and (self._pace is None or self._pace.start(self.queue[0].ticket))
        return self.queue.popleft() if allowed else None

    def begin(self) -> Call | None:
        """The next call, which is under way from now on; None if none may begin now."""
        call = self._next()
        if call is not None:
            self.under_way[call.ticket] = call
            self._begun_at[call.ticket] = time.monotonic()
        return call

    def evaluate(self) -> None:
        """Make queued calls in this thread, for as long as a block takes."""
        self._idle, evaluate, until = 0.0, self.job.evaluation, time.monotonic() + STRETCH
        while call := self._next():
            begun = time.monotonic()
            try:
                value = evaluate(call)
            except Exception as error:
                self._failed(call, error)
            else:
                self._accept(call, value, time.monotonic() - begun)
            if time.monotonic() >= until:
                break

    def take_in(self, done: Iterable[Done]) -> None:
        """Take the rewards; a call that failed ends the run, or its reason is told."""
        done = list(done)
        self._idle = 0.0
        self._time(done)
        self.take_in_rewards(done)
        for each in done:
            if each.error is not None:
                self._failed(self.under_way.pop(each.call.ticket), each.error)

    def _time(self, done: Sequence[Done]) -> None:
        """Let rewards wait to be told only if calls are short.

        A call that began before the last commit may have ended during it: its duration is not
        known."""
        now = time.monotonic()
        begun = [self._begun_at.pop(each.call.ticket, 0.0) for each in done]
        calls = zip(done, begun, strict=True)
        self._seconds = {each.call.ticket: now - start for each, start in calls if start}
        taken = [now - each for each in begun if each >= self._resumed]
        if taken and not self.job.here:
            self._hold = STRETCH if min(taken) < SHORT else 0.0

    def take_in_rewards(self, done: Iterable[Done]) -> None:
        """Take the rewards of the calls that did not fail."""
        wrong: InvalidInput | None = None
        for each in done:
            if each.error is None:
                try:
                    call = self.under_way.pop(each.call.ticket)
                    self._accept(call, each.value, self._seconds.get(call.ticket))
                except InvalidInput as error:
                    wrong = wrong or error
        if wrong is not None:
            raise wrong

    def _accept(self, call: Call, value: Any, seconds: float | None = None) -> None:
        """Keep a reward to be told, if it is one."""
        self._keep(call, value, seconds)
        if self._pace is not None:
            declared = self._declared_costs[call.label] * call.times
            self._pace.end(call.ticket, call.label, value, declared)

    def _keep(self, call: Call, value: Any, seconds: float | None) -> None:
        if not self._ids:
            self._since = time.monotonic()
        if type(value) in PLAIN and not self._many and self._admits(value):
            self._ids.append(call.ticket)
            self._rewards.append(float(value))
            self._costs.append(None)
            return
        try:
            value, infos = without_infos(value, seconds, f"the info of {call.cell}")
            rewards, cost = self._checked(call, value)
        except InvalidInput as error:
            if self.job.raising or call.first:
                raise
            self._fail(call, 1, str(error))
            _log(call, str(error))
            return
        tickets = self._members.pop(call.ticket, [call.ticket])
        self._ids += tickets
        self._rewards += rewards
        self._costs += _shares(cost, len(tickets))
        self._infos |= {id_: each for id_, each in zip(tickets, infos, strict=False) if each}
        if cost is not None:
            self._take_cost()

    def _checked(self, call: Call, value: Any) -> tuple[list[float], float | None]:
        """The rewards of a call, and its cost if it reported one."""
        value, said = with_cost(value, many=self._many)
        ticket = f"ticket {call.ticket} ({call.cell})"
        whose = f"a pull of {call.cell}" if self.job.raising else ticket
        cost = checked_cost(said, f"the cost of {whose}")
        if self._many:
            rewards = checked_rewards(value, call.times, call.label, self._model, call.item_names)
            return rewards.tolist(), cost
        name = f"a reward of {call.cell}" if self.job.raising else f"the reward of {ticket}"
        return [checked_reward(value, name, self._model)], cost

    def _take_cost(self) -> None:
        """Go back to a call at a time per worker where what calls cost may end the budget: calls
        that have not begun are paid for only if there is enough left by then."""
        self._paid = True
        if self._budget is None:
            return
        self._careful = True
        if self.queue:
            self._release_queue()

    def _release_queue(self) -> None:
        tickets = [id_ for call in self.queue for id_ in self._of(call)]
        self.queue.clear()
        self.experiment.release(tickets=tickets)
        for id_ in tickets:
            del self._held[id_]

    def _of(self, call: Call) -> list[int]:
        return self._members.pop(call.ticket, [call.ticket])

    def tell(self) -> None:
        """Tell the rewards that wait, all at once if possible."""
        self._grow()
        costs = self._costs if self._paid else None
        infos = [self._infos.get(id_) for id_ in self._ids] if self._infos else None
        try:
            self.experiment.tell_block(self._ids, self._rewards, costs, infos)
        except InvalidInput:  # one of them: none was told
            self._tell_one_by_one()
        for id_ in self._ids:
            self._held.pop(id_, None)
        self._ids, self._rewards, self._costs, self._infos = [], [], [], {}
        self._paid = self._dry = False
        self._news = True
        self._resumed = time.monotonic()

    def _tell_one_by_one(self) -> None:
        """A reward that came too late is logged, one that is refused is a failure."""
        for id_, reward, cost in zip(self._ids, self._rewards, self._costs, strict=True):
            try:
                self.experiment.tell(id_, reward, cost, self._infos.get(id_))
            except ConflictingReward as error:
                logger.warning("ticket %s failed: %s", id_, printable(str(error), keep="\n\t"))

    def _grow(self) -> None:
        """Fit the size of blocks to the pace at which calls are made."""
        seconds = max(time.monotonic() - self._resumed, 1e-9)
        fitting = int(len(self._ids) / seconds * STRETCH)
        self._size = max(self.capacity, min(fitting, 2 * self._size, MOST_TICKETS))

    def _failed(self, call: Call, error: BaseException) -> None:
        if self._pace is not None:
            self._pace.drop(call.ticket)
        if self.job.raising and self._stops:
            raise named(error, call)
        reason = str(error) or type(error).__name__
        if not call.first:
            self._fail(call, self.job.evaluation.attempts.retries + 1, reason)
        _log(call, "\n".join([reason, *getattr(error, "__notes__", ())]))
        if call.first:
            raise named(error, call)

    def _fail(self, call: Call, attempts: int, reason: str) -> None:
        """Report that a pull failed."""
        due = self._held.pop(call.ticket)
        label: Any = call.label
        ticket = Ticket(
            call.ticket, label, call.draw, call.seed or 0, due, item=named_item(call.item)
        )
        self.experiment.fail(ticket, reason, attempts)
        self._attempts[call.ticket] += attempts
        self._dry = False

    def give_back(self) -> None:
        """Tell the rewards that are there, and give back all other tickets."""
        with suppress(InvalidInput):
            if self._ids:
                self.tell()
        self.experiment.release(self.job.worker)


def _declared_costs(settings: Settings) -> dict[Any, float]:
    """The declared cost of a pull of every arm, by its label."""
    return dict(zip(settings.labels, settings.problem.declared_costs.tolist(), strict=True))


def _shares(cost: float | None, times: int) -> list[float | None]:
    """The cost of a call, spread over its pulls."""
    if cost is None or times == 1:
        return [cost] * times
    each = cost / times
    return [*[each] * (times - 1), cost - each * (times - 1)]


def _log(call: Call, reason: str) -> None:
    item = "" if call.item is None else f", item {call.item_name},"
    pull = f"Pull {call.draw} of {call.label!r}{item} (ticket {call.ticket})"
    logger.warning("%s failed: %s", pull, printable(reason, keep="\n\t"))


@contextmanager
def quietly() -> Iterator[Callable[[], None]]:
    """Show nothing after a step, and keep Python from printing warnings of a log that the program
    did not set up."""
    root, handler = logging.getLogger("shortlist"), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield _show_nothing
    finally:
        root.removeHandler(handler)


def _show_nothing() -> None:
    """Where progress is not wanted."""
