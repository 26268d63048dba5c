"""Make the pulls of an experiment with a function, several at a time, until it is over."""

import asyncio
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from shortlist.engine.calls import Call, Evaluation
from shortlist.engine.command import Command
from shortlist.engine.executors import opened
from shortlist.engine.leases import FOREVER
from shortlist.engine.locate import checked_worker
from shortlist.engine.rewards import with_cost
from shortlist.engine.status import Status
from shortlist.engine.telling import Report as Result
from shortlist.engine.tickets import Handout, Receipt, State, Ticket
from shortlist.engine.worker_pool import Done, InLoop, named
from shortlist.errors import ConflictingReward, InvalidInput
from shortlist.formatting import plural, printable
from shortlist.validation import MOST_RETRIES, MOST_WORKERS, whole

PAUSE = 0.2  # seconds before asking again when others hold all that is wanted
PATIENCE = 2.0  # seconds of that before it is said: who works beside others often waits
# seconds within which a crew that lives asks again, so its tickets are lost so long if it dies
LEASE = 60.0
logger = logging.getLogger("shortlist.engine")


class Work(Protocol):
    """What a crew needs of an experiment."""

    def ask(self, limit: int, worker: str | None, *, alive: float | None) -> Handout:
        """Up to `limit` tickets, those that the worker holds first."""

    def tell(self, ticket: Ticket | int, reward: float, cost: float | None = None) -> Receipt:
        """Record the reward of a ticket."""

    def tell_many(self, results: Iterable[Result]) -> Receipt:
        """Record the rewards of many tickets: all of them, or after an error none."""

    def fail(self, ticket: Ticket | int, reason: str) -> None:
        """Say that a pull could not be made."""

    def release(
        self, worker: str | None = None, *, tickets: Iterable[Ticket | int] | None = None
    ) -> int:
        """Take back the tickets of a worker, or some of them."""

    def held(self) -> tuple[int, float]:
        """How many tickets somebody works on, and when the last of their leases ends."""

    def status(self) -> Status:
        """Where the experiment stands."""


@dataclass(frozen=True, slots=True)
class Job:
    """How the pulls of an experiment are made."""

    evaluation: Evaluation
    workers: int  # at a time
    retries: int  # of a pull that failed, before the experiment hears of it
    worker: str
    show: Callable[[], None]  # called after every step
    raising: bool = False  # whether a pull that fails ends the work, instead of being told

    @classmethod
    def of(
        cls,
        pull: Callable[..., Any],
        workers: int,
        retries: int,
        worker: str | None,
        show: Callable[[], None],
        *,
        on_items: bool = False,
    ) -> "Job":
        """Take what a user said, if it makes sense; a worker without a name gets one."""
        name = checked_worker(worker) or this_program()
        workers = whole("workers", workers, at_least=1, at_most=MOST_WORKERS)
        retries = whole("retries", retries, at_least=0, at_most=MOST_RETRIES)
        return cls(Evaluation.of(pull, on_items=on_items), workers, retries, name, show)


def work(experiment: Work, job: Job, executor: object) -> State:
    """Evaluate tickets until no more are handed out; return why.

    If this is interrupted, programs that are running are ended; what was evaluated by then is told,
    and the rest is given back."""
    release_the_dead(experiment)
    where = "threads" if executor is None else executor
    with opened(where, job.workers, job.evaluation) as flight:
        crew = Crew(experiment, job, flight.submit)
        try:
            while (state := crew.ask()) is None:
                if crew.tickets:
                    crew.take_in(flight.collect(LEASE / 3))
                else:
                    time.sleep(crew.pause())
                job.show()
        except BaseException:
            if isinstance(job.evaluation.function, Command):
                job.evaluation.function.stop()
            flight.cancel()
            while flight.under_way:
                crew.take_in_rewards(flight.finish())
            experiment.release(job.worker)
            raise
    return state


async def work_async(experiment: Work, job: Job) -> State:
    """`work` with an async function, in the event loop that is running."""
    release_the_dead(experiment)
    flight = InLoop(job.workers, job.evaluation)
    crew = Crew(experiment, job, flight.submit)
    try:
        while (state := crew.ask()) is None:
            if crew.tickets:
                crew.take_in(await flight.collect(LEASE / 3))
            else:
                await asyncio.sleep(crew.pause())
            job.show()
    except BaseException:
        await flight.cancel()
        experiment.release(job.worker)
        raise
    return state


def this_program() -> str:
    """The name of a worker who was given none."""
    return f"{socket.gethostname()}:{os.getpid()}"


def release_the_dead(experiment: Work) -> None:
    """Take back what programs hold that ran on this machine and are gone, as after a crash."""
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


class Crew:
    """The tickets under way.

    Asking again renews their leases, so a lease only ends when the whole crew is gone."""

    def __init__(self, experiment: Work, job: Job, submit: Callable[[Call], None]) -> None:
        self.experiment = experiment
        self.job = job
        self.submit = submit
        self.tickets: dict[int, Ticket] = {}
        self.tries: Counter[int] = Counter()  # of a ticket that failed here, before this one
        self.idle = 0.0  # seconds of waiting for others,
        self.said = False  # and whether that was said
        self.asked = time.monotonic()  # the last time

    def ask(self) -> State | None:
        """Ask and begin what is new; the state of the experiment once there is nothing to do."""
        self._check_alive()
        handout = self.experiment.ask(self.job.workers, self.job.worker, alive=LEASE)
        new = [ticket for ticket in handout if ticket.id not in self.tickets]
        renewed = {ticket.id: ticket for ticket in handout if ticket.id in self.tickets}
        self.tickets |= renewed
        free = self.job.workers - len(self.tickets)
        for ticket in new[:free]:
            self.tickets[ticket.id] = ticket
            self.submit(_call(ticket))
        if new[free:]:  # late results are still under way, and these would be late by waiting
            self.experiment.release(tickets=new[free:])
        over = not self.tickets and handout.state is not State.PENDING
        return handout.state if over else None

    def _check_alive(self) -> None:
        """Say that the promise to ask again was not kept: what was under way is not ours alone."""
        before, self.asked = self.asked, time.monotonic()
        if self.tickets and self.asked - before > LEASE:
            silent = "This program was kept from asking for %.3g s, more than the %g s after which"
            cure = "its pulls are made again; let evaluations run on executor='processes'."
            logger.warning(f"{silent} {cure}", self.asked - before, LEASE)

    def pause(self) -> float:
        """How long to give others time; said, once, if that is not over at once."""
        self.idle += PAUSE
        if self.idle >= PATIENCE and not self.said:
            self.said = True
            held, until = self.experiment.held()
            whose = "that another worker holds" if held == 1 else "that other workers hold"
            end = (
                "; `release` those of one who is gone"
                if until >= FOREVER
                else f" until {time.strftime('%H:%M:%S', time.localtime(until))}"
            )
            logger.warning("Waiting for %s %s%s.", plural(held, "pull"), whose, end)
        return PAUSE

    def take_in(self, done: Iterable[Done]) -> None:
        """Tell the rewards; what failed is tried again, or its reason is told."""
        done = list(done)
        self.idle = 0.0
        self.take_in_rewards(done)
        for each in done:
            if each.error is not None:
                self._failed(each.call, each.error)

    def take_in_rewards(self, done: Iterable[Done]) -> None:
        """Tell what was evaluated."""
        results: list[tuple[Ticket | int, float, float | None]] = [
            (self.tickets.pop(each.call.ticket), *with_cost(each.value))
            for each in done
            if each.error is None
        ]
        try:
            self.experiment.tell_many(results)
        except InvalidInput:  # one of them: none was told
            for ticket, reward, cost in results:
                self._tell(ticket, reward, cost)

    def _tell(self, ticket: Ticket | int, reward: float, cost: float | None) -> None:
        """Tell a reward; one that came too late is noted, one that cannot be is a failure."""
        try:
            self.experiment.tell(ticket, reward, cost)
        except ConflictingReward as error:
            _note(ticket, str(error))
        except InvalidInput as error:
            if self.job.raising:
                raise
            self._fail(ticket, str(error))

    def _failed(self, call: Call, error: BaseException) -> None:
        self.tries[call.ticket] += 1
        reason = str(error) or type(error).__name__
        notes = getattr(error, "__notes__", ())
        if self.tries[call.ticket] <= self.job.retries:
            _note(self.tickets[call.ticket], "\n".join([reason, *notes]))
            self.submit(call)
        elif self.job.raising:
            raise named(error, call)
        else:
            self._fail(self.tickets.pop(call.ticket), reason, *notes)

    def _fail(self, ticket: Ticket | int, reason: str, *more: str) -> None:
        """Say that a pull failed; `more` is for those who are there, and not kept."""
        self.experiment.fail(ticket, reason)
        _note(ticket, "\n".join([reason, *more]))


def _call(ticket: Ticket) -> Call:
    return Call(ticket.id, ticket.arm, ticket.draw, 1, ticket.seed, ticket.item)


def _note(ticket: Ticket | int, reason: str) -> None:
    if isinstance(ticket, Ticket):
        pull = f"Pull {ticket.draw} of {ticket.arm!r} (ticket {ticket.id})"
        logger.warning("%s failed: %s", pull, printable(reason, keep="\n\t"))
