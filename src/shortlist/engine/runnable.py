"""The methods that make pulls, of an experiment here or at a service."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from shortlist.engine.calls import asynchronous, refuse_executor, run_here
from shortlist.engine.eta import SearchSnapshot
from shortlist.engine.log_entries import Report
from shortlist.engine.progress import display
from shortlist.engine.rate import RateGiven
from shortlist.engine.tickets import Handout, Receipt, State, TicketBlock
from shortlist.engine.workers import Job, Work, quietly, work, work_async
from shortlist.errors import InvalidInput, Unfinished
from shortlist.result import Result
from shortlist.search import Progress
from shortlist.settings import Settings
from shortlist.validation import flag


class RunWork(Work, Protocol):
    """What it takes to be run: an experiment here or at a service."""

    @property
    def in_memory(self) -> bool:
        """Whether no other program can have its tickets."""

    def standing(self) -> tuple[int, Progress]:
        """How many pulls were told, and how far the search is."""

    def spent(self) -> float | None:
        """What the pulls cost; None if that is not known here."""

    def underway(self) -> SearchSnapshot | None:
        """The search as it is now; None if that is not known here."""

    def result(self) -> Result:
        """The answer."""


@contextmanager
def show_progress(kept: RunWork, progress: bool) -> Iterator[Callable[[], None]]:
    """What a worker is to call after every step; without progress nothing is printed, the log
    included, unless the program set up one."""
    if not flag("progress", progress):
        with quietly() as nothing:
            yield nothing
        return
    with display(kept.settings.problem, kept.underway) as show:
        yield lambda: show(*kept.standing(), kept.spent())


class Runnable:
    """The methods that make pulls, of an experiment here or at a service."""

    @property
    def in_memory(self) -> bool:
        """Whether no other program can have its tickets."""
        return False

    def ask_block(
        self: "Asked",
        limit: int,
        worker: str,
        *,
        alive: float | None = None,
        holding: Sequence[int] = (),
        renew: bool = False,  # noqa: ARG002  # `ask` always does
        seeded: bool = True,  # noqa: ARG002
        batch: int | None = 1,  # noqa: ARG002
    ) -> TicketBlock:
        """`ask`, with the tickets as columns.

        Args:
            limit: The most tickets to hand out, beyond those that the worker is `holding`.
            worker: Name of the worker.
            alive: As in `ask`.
            holding: Tickets that the worker has already.
            renew: Not used here: `ask` always renews leases.
            seeded: Not used here.
            batch: Not used here.

        Returns:
            The tickets, as columns, and the state."""
        given = self.ask(limit + len(holding), worker, alive=alive)
        on_items = self.settings.on_items
        return TicketBlock(
            [each.id for each in given],
            [each.arm for each in given],
            [each.draw for each in given],
            [each.expires for each in given],
            given.state,
            [each.seed for each in given],
            [each.item for each in given] if on_items else None,
        )

    def tell_block(
        self: "Asked",
        tickets: list[int],
        rewards: list[float],
        costs: list[float | None] | None = None,
        infos: list[Any] | None = None,
    ) -> Receipt:
        """`tell_many`, with columns instead of tuples.

        Args:
            tickets: Numbers of tickets.
            rewards: Their rewards.
            costs: Actual costs of the pulls; default: the declared ones.
            infos: What is stored with the rewards; default: nothing.

        Returns:
            What became of the rewards."""
        paid = [None] * len(tickets) if costs is None else costs
        noted = [None] * len(tickets) if infos is None else infos
        return self.tell_many(list(zip(tickets, rewards, paid, noted, strict=True)))

    def spent(self) -> float | None:
        """What the pulls that were told cost, in the unit of the costs; None if not known here."""
        return None

    def underway(self) -> SearchSnapshot | None:
        """The search as it is now, to be simulated from here; None if it is not here."""
        return None

    def run(
        self: "RunWork",
        pull: Callable[..., Any],
        *,
        workers: int | None = None,
        retries: int | None = None,
        executor: Any = None,
        worker: str | None = None,
        rate: RateGiven | None = None,
        progress: bool = True,
    ) -> Result:
        """Make the pulls with a function until the experiment is over; return its result.

        Ctrl-C ends it: what was evaluated by then is told, the rest is given back, and the same
        call continues. Any number of programs may run the same experiment at once. An error of the
        very first call is raised at once, unless the experiment retires arms that fail.

        Args:
            pull: `pull(arm)`, or `pull(arm, item)` on a test set; it returns a reward, and may take
                a `seed`, as in `select`. It may be async, or a `Command`.
            workers: Calls under way at a time; default: 1, or 16 of an async function.
            retries: How often to retry a call that raised, with growing pauses; default: the
                `retries` of the experiment. Then the failed attempts are recorded. If they are more
                than the experiment allows it stops, otherwise it hands the pull out again.
            executor: Where calls are made, as in `select`; default: threads.
            worker: Name of this worker; default: made of the machine and the process.
            rate: Maximum number of calls per minute, or limits by name, as in `select`. It holds
                for this program.
            progress: Whether to show progress on stderr.

        Returns:
            The result.

        Raises:
            Unfinished: The experiment stopped because a pull failed too often."""
        if not asynchronous(pull):
            with show_progress(self, progress) as show:
                how = workers, retries, worker, show, self.settings
                job = Job.of(pull, *how, rate=rate, here=self.in_memory)
                return _over(self, work(self, job, executor))
        refuse_executor(executor)
        given: dict[str, Any] = {"workers": workers, "retries": retries, "worker": worker}
        given["rate"] = rate
        return run_here(Runnable.run_async(self, pull, progress=progress, **given), "run")

    async def run_async(
        self: "RunWork",
        pull: Callable[..., Any],
        *,
        workers: int | None = None,
        retries: int | None = None,
        worker: str | None = None,
        rate: RateGiven | None = None,
        progress: bool = True,
    ) -> Result:
        """`run` with an async function, in the event loop that is running.

        Args:
            pull: The async function.
            workers: Calls under way at a time; default: 16.
            retries: As in `run`.
            worker: As in `run`.
            rate: As in `run`.
            progress: Whether to show progress on stderr.

        Returns:
            The result.

        Raises:
            Unfinished: The experiment stopped because a pull failed too often."""
        if not asynchronous(pull):
            raise InvalidInput("the function is not async, but `run_async` needs one; use `run`")
        with show_progress(self, progress) as show:
            job = Job.of(pull, workers, retries, worker, show, self.settings, rate=rate)
            return _over(self, await work_async(self, job))


class Asked(Protocol):
    """What it takes to be asked in blocks."""

    @property
    def settings(self) -> Settings:
        """What it was made with."""

    def ask(self, limit: int, worker: str | None, *, alive: float | None) -> Handout:
        """Up to `limit` tickets, those that the worker holds first."""

    def tell_many(self, results: Iterable[Report]) -> Receipt:
        """Record the rewards of many tickets: all of them, or after an error none."""


def _over(kept: RunWork, state: State) -> Result:
    """The result, when there is nothing to do any more; or why there is none."""
    if state is State.STOPPED:
        raise Unfinished(kept.status().trouble)
    return kept.result()
