"""A selection that is kept in a store: the same call goes on after whatever ended it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from shortlist.display import display
from shortlist.errors import InvalidInput
from shortlist.evaluation.calls import Evaluation
from shortlist.evaluation.loop import CONCURRENT
from shortlist.experiment import Experiment
from shortlist.experiment.lease import WAIT
from shortlist.experiment.place import Place
from shortlist.experiment.settings import Settings
from shortlist.experiment.ticket import State
from shortlist.experiment.worker import Job, this_program, work, work_async
from shortlist.question import Question
from shortlist.result import Result
from shortlist.result.carrying import carrying
from shortlist.validation import MOST_JOBS, whole

RETRIES = 2  # of pulls that somebody else makes; a selection raises what its own function raises


class Keeping:
    """One call of `select` with a store: an experiment that is made or gone on with.

    An error of the user's function ends the call, and not the experiment."""

    def __init__(
        self,
        asked: Question,
        evaluation: Evaluation,
        seed: int,
        store: Place,
        name: str,
        workers: int | None,
    ) -> None:
        if evaluation.many:
            raise InvalidInput(
                "`pull_many` is given with a `store`, but single pulls are kept; give `pull`"
            )
        if workers is not None:
            workers = whole("workers", workers, at_least=1, at_most=MOST_JOBS)
        self.evaluation = evaluation
        self.workers = workers
        self._store, self._name = store, name
        self._control = asked.control
        self._settings = Settings.of(asked, seed, None, RETRIES, WAIT)

    def run(self, executor: object, progress: bool) -> Result:
        """Make what is left of the pulls on `executor`."""
        with self._opened(progress) as (experiment, show):
            work(experiment, self._job(self.workers or 1, show), executor)
            return self._result(experiment)

    async def run_async(self, progress: bool) -> Result:
        """Make what is left of the pulls in the running event loop."""
        with self._opened(progress) as (experiment, show):
            await work_async(experiment, self._job(self.workers or CONCURRENT, show))
            return self._result(experiment)

    def _result(self, experiment: Experiment, *, partial: bool = False) -> Result:
        return replace(experiment.result(partial=partial), control=self._control)

    def _job(self, jobs: int, show: Callable[[], None]) -> Job:
        return Job(self.evaluation, jobs, 0, this_program(), show, raising=True)

    @contextmanager
    def _opened(self, progress: bool) -> Iterator[tuple[Experiment, Callable[[], None]]]:
        """The experiment, going on, and what to call after every step."""
        with (
            Experiment.of(self._settings, self._store, self._name, exist_ok=True) as experiment,
            display(progress, self._settings.problem, experiment.underway) as show,
            carrying(lambda: self._result(experiment, partial=True)),
        ):
            if experiment.status().state is State.STOPPED:
                experiment.resume()
            yield experiment, lambda: show(*experiment.standing(), experiment.spent())
