"""Make the pulls of an experiment with a function, several at a time, until the experiment is
over."""

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from shortlist.errors import ConflictingReward, InvalidInput
from shortlist.experiment.experiment import Experiment
from shortlist.experiment.ticket import State, Ticket
from shortlist.validation import whole

PAUSE = 0.2  # seconds before asking again when others hold all that is wanted
# seconds of that before it is said: who works beside others often waits for a moment
PATIENCE = 2.0
# seconds; renewed as long as the crew lives, so this is how long its tickets are lost if it dies
LEASE = 60.0
Evaluate = Callable[[Ticket], float]
Note = Callable[[Ticket, str], None]
# for how many tickets of others, and when the last of their leases ends
Waiting = Callable[[int, float], None]


def work(
    experiment: Experiment,
    evaluate: Evaluate,
    *,
    worker: str,
    jobs: int = 1,
    note: Note = lambda ticket, reason: None,  # noqa: ARG005
    waiting: Waiting = lambda held, until: None,  # noqa: ARG005
    cancel: Callable[[], None] = lambda: None,
    show: Callable[[], None] = lambda: None,
) -> State:
    """Evaluate tickets in `jobs` threads until no more are handed out; return why.

    An `evaluate` that raises has failed, and `note` hears of it. `waiting` hears once if others,
    perhaps dead, hold all that is wanted. If this is interrupted, `cancel` is to end what is under
    way; what was evaluated by then is told, and the rest is given back. `show` is called after
    every step."""
    crew = Crew(experiment, evaluate, worker, whole("jobs", jobs, at_least=1), note, waiting)
    with ThreadPoolExecutor(jobs) as crew.pool:
        try:
            while (state := crew.step()) is None:
                show()
        except BaseException:
            cancel()
            crew.leave()
            raise
        return state


class Crew:
    """The tickets under way. Asking again renews their leases, so a lease only ends when the whole
    crew is gone."""

    pool: ThreadPoolExecutor

    def __init__(
        self,
        experiment: Experiment,
        evaluate: Evaluate,
        worker: str,
        jobs: int,
        note: Note,
        waiting: Waiting,
    ) -> None:
        self.experiment, self.evaluate, self.worker, self.jobs = experiment, evaluate, worker, jobs
        self.note, self.waiting = note, waiting
        # seconds of waiting for others, and whether that was said
        self.idle, self.said = 0.0, False
        self.tickets: dict[int, Ticket] = {}
        self.futures: dict[Future[float], int] = {}

    def step(self) -> State | None:
        """Ask, begin what is new, take in what is done; the state of the experiment once there is
        nothing to do."""
        handout = self.experiment.ask(self.jobs, self.worker, lease=LEASE)
        for ticket in handout:
            if ticket.id not in self.tickets:
                self.futures[self.pool.submit(self.evaluate, ticket)] = ticket.id
            self.tickets[ticket.id] = ticket
        if self.futures:
            done, _ = wait(self.futures, timeout=LEASE / 3, return_when=FIRST_COMPLETED)
            self.take_in(done)
            self.idle = 0.0
        elif handout.state is State.PENDING:
            self.wait()
        else:
            return handout.state
        return None

    def wait(self) -> None:
        """Give others time, and say so, once, if that is not over at once."""
        self.idle += PAUSE
        if self.idle >= PATIENCE and not self.said:
            self.said = True
            self.waiting(*self.experiment.held())
        time.sleep(PAUSE)

    def take_in(self, done: set[Future[float]]) -> None:
        """Tell the rewards, and of the failures their reasons."""
        results = []
        for future in done:
            ticket = self.tickets.pop(self.futures.pop(future))
            error = future.exception()
            if error is None:
                results.append((ticket, future.result()))
            else:
                notes = getattr(error, "__notes__", ())
                self.fail(ticket, str(error) or type(error).__name__, *notes)
        try:
            self.experiment.tell_many(results)
        except InvalidInput:  # one of them: none was told
            for ticket, reward in results:
                self.tell(ticket, reward)

    def tell(self, ticket: Ticket, reward: float) -> None:
        """Tell a reward; one that came too late is noted, one that cannot be is a failure."""
        try:
            self.experiment.tell(ticket, reward)
        except ConflictingReward as error:
            self.note(ticket, str(error))
        except InvalidInput as error:
            self.fail(ticket, str(error))

    def fail(self, ticket: Ticket, reason: str, *more: str) -> None:
        """Say that a pull failed; `more` is for those who are there, and not kept."""
        self.experiment.fail(ticket, reason)
        self.note(ticket, "\n".join([reason, *more]))

    def leave(self) -> None:
        """Tell what is done, and give back the rest."""
        self.pool.shutdown(cancel_futures=True)
        self.take_in(
            {future for future in self.futures if not future.cancelled() and not future.exception()}
        )
        self.experiment.release(self.worker)
