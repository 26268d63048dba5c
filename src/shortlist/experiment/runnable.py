"""Run an experiment with a function, wherever the experiment is kept."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from shortlist.ahead import Underway
from shortlist.display import display
from shortlist.errors import InvalidInput, Unfinished
from shortlist.evaluation.calls import asynchronous
from shortlist.evaluation.loop import CONCURRENT, refuse_executor, run_here
from shortlist.experiment.settings import Settings
from shortlist.experiment.ticket import State
from shortlist.experiment.worker import Job, Work, work, work_async
from shortlist.result import Result
from shortlist.search import Progress


class Kept(Work, Protocol):
    """What it takes to be run: an experiment here or at a service."""

    @property
    def settings(self) -> Settings:
        """What it was made with."""

    def standing(self) -> tuple[int, Progress]:
        """How many pulls were told, and how far the search is."""

    def spent(self) -> float | None:
        """What the pulls cost; None if that is not known here."""

    def underway(self) -> Underway | None:
        """The search as it is now; None if that is not known here."""

    def result(self) -> Result:
        """The answer."""


class Runnable:
    """The methods that make pulls, for whatever can be asked and told."""

    def spent(self) -> float | None:
        """What the pulls that were told cost, in the unit of the costs; None if not known here."""
        return None

    def underway(self) -> Underway | None:
        """The search as it is now, to be simulated from here; None if it is not here."""
        return None

    def run(
        self: Kept,
        pull: Callable[..., Any],
        *,
        jobs: int | None = None,
        retries: int = 0,
        executor: Any = None,
        worker: str | None = None,
        progress: bool = True,
    ) -> Result:
        """Make the pulls with a function until the experiment is over; return its result.

        `pull(arm)`, or `pull(arm, item)` on a test set, returns a reward, and may take a `seed`, as
        in `select`; it may be async, or a `Command`. `jobs` calls are under way at a time (1, or 16
        of an async function), in threads or on an `executor`. A call that raises has failed; this
        worker tries it `retries` times more before the experiment hears of it. An experiment that
        stops because a pull failed too often raises `Unfinished`.

        Ctrl-C ends it: what was evaluated by then is told, the rest is given back, and the same
        call goes on. Any number of programs may run the same experiment at once."""
        if not asynchronous(pull):
            with _shown(self, progress) as show:
                many = 1 if jobs is None else jobs
                job = Job.of(pull, many, retries, worker, show, on_items=self.settings.on_items)
                return _over(self, work(self, job, executor))
        refuse_executor(executor)
        how: dict[str, Any] = {"jobs": jobs, "retries": retries, "worker": worker}
        return run_here(Runnable.run_async(self, pull, progress=progress, **how), "run")

    async def run_async(
        self: Kept,
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
        with _shown(self, progress) as show:
            many = CONCURRENT if jobs is None else jobs
            job = Job.of(pull, many, retries, worker, show, on_items=self.settings.on_items)
            return _over(self, await work_async(self, job))


@contextmanager
def _shown(kept: Kept, progress: bool) -> Iterator[Callable[[], None]]:
    """What a worker is to call after every step."""
    with display(progress, kept.settings.problem, kept.underway) as show:
        yield lambda: show(*kept.standing(), kept.spent())


def _over(kept: Kept, state: State) -> Result:
    """The result, when there is nothing to do any more; or why there is none."""
    if state is State.STOPPED:
        raise Unfinished(kept.status().trouble)
    return kept.result()
