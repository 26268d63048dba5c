"""The front door: give a function that evaluates an arm, get the k best arms and a bound on the
regret of that choice."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from shortlist.algorithms import AlgorithmLike
from shortlist.arms import Arms, OwnLabel
from shortlist.cells import ItemsGiven
from shortlist.engine import Experiment
from shortlist.engine.calls import (
    CONCURRENT,
    Attempts,
    Evaluation,
    refuse_executor,
    run_here,
)
from shortlist.engine.experiment import unsaved
from shortlist.engine.locate import Place
from shortlist.engine.tickets import State
from shortlist.engine.workers import Job, show_progress, this_program, work, work_async
from shortlist.errors import InvalidInput
from shortlist.features import FeaturesGiven
from shortlist.problem import ScoresGiven
from shortlist.quotas import ConstraintGiven, QuotasGiven
from shortlist.result import Result
from shortlist.result.result import carrying
from shortlist.reward_models import RewardsDeclared
from shortlist.settings import Settings, arguments
from shortlist.spec import FIELDS, Certificate, Order, Seeds
from shortlist.validation import MOST_WORKERS, shown, whole


@dataclass(frozen=True, slots=True)
class Selection:
    """One call of `select`: an experiment, in memory or in a store, and the worker that runs it.

    An error of the user's function ends the call; an experiment in a store can be continued."""

    settings: Settings
    evaluation: Evaluation
    batch: int | None
    workers: int | None
    store: Place | None
    name: str

    def run(self, executor: object, progress: bool) -> Result:
        """Make the pulls on `executor`."""
        with self._opened(progress) as (experiment, show):
            work(experiment, self._job(show), executor)
            return self._result(experiment)

    async def run_async(self, progress: bool) -> Result:
        """Make the pulls in the running event loop."""
        with self._opened(progress) as (experiment, show):
            await work_async(experiment, self._job(show))
            return self._result(experiment)

    def _job(self, show: Callable[[], None]) -> Job:
        here = self.store is None
        batch = self.batch if self.evaluation.many else 1
        how: dict[str, Any] = {"batch": batch, "here": here, "lasting": not here}
        return Job(self.evaluation, self.workers, this_program(), show, raising=True, **how)

    @contextmanager
    def _opened(self, progress: bool) -> Iterator[tuple[Experiment, Callable[[], None]]]:
        """The experiment, and what to call after every step."""
        with (
            self._experiment() as experiment,
            show_progress(experiment, progress) as show,
            carrying(lambda: self._result(experiment, partial=True)),
        ):
            if experiment.state() is State.STOPPED:
                experiment.resume()
            yield experiment, show

    def _experiment(self) -> Experiment:
        if self.store is None:
            return unsaved(self.settings.with_width(self.workers, self.batch))
        wide = self.settings.with_width(self.workers, self.batch)
        return Experiment.of(self.settings, self.store, self.name, exist_ok=True, new=wide)

    def _result(self, experiment: Experiment, *, partial: bool = False) -> Result:
        return replace(experiment.result(partial=partial), control=self.settings.control)


def _pace(
    batch: int | None, workers: int | None, evaluation: Evaluation
) -> tuple[int | None, int | None]:
    """Pulls per call and calls at a time, if they make sense."""
    if batch is not None:
        batch = whole("batch", batch, at_least=1)
    if workers is not None:
        workers = whole("workers", workers, at_least=1, at_most=MOST_WORKERS)
    if batch is not None and not evaluation.many:
        rule = "only `pull_many` takes more than one pull at once"
        raise InvalidInput(f"`batch` is {shown(batch)}, but {rule}")
    return batch, workers


def _settings(given: dict[str, Any], *, stored: bool) -> Settings:
    """The settings of a selection. Retries are up to a call: the next may have others."""
    return Settings.of({**given, "retries": FIELDS["retries"].default}, stored=stored)


def select(
    pull: Callable[..., Any] | None = None,
    *,
    arms: Arms,
    k: int,
    epsilon: float | None = None,
    delta: float = 0.05,
    budget: float | None = None,
    rewards: RewardsDeclared | None = None,
    minimize: bool = False,
    items: ItemsGiven | None = None,
    scores: ScoresGiven | None = None,
    order: Order = "shared",
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
    control: OwnLabel | None = None,
    seed: int = 0,
    seeds: Seeds = "own",
    pull_many: Callable[..., Any] | None = None,
    batch: int | None = None,
    executor: Executor | Any = None,
    workers: int | None = None,
    progress: bool = True,
    store: Place | None = None,
    name: str = "experiment",
    retries: int = 2,
    timeout: float | None = None,
) -> Result:
    """Find the `k` best of `arms` by pulling them, with as few pulls as possible.

    `pull(arm)` returns a reward; `pull_many(arm, times)` instead returns a list of exactly `times`
    rewards, and is never asked for more than `batch` at once. Either may return a tuple of that and
    what it did cost. `arm` is one of `arms`, a key if they
    are a mapping, or a number from 0 if they are only a number. Rewards of an arm must be
    independent and keep to `rewards`: a range, "binary", or a reward model; if nothing is said, to
    [0, 1], or where there is a budget alone to nothing. The best arms are those of the largest
    means, or with `minimize` of the smallest.

    With `epsilon`, the choice loses at most epsilon with probability at least 1 - `delta`, unless a
    `budget` ends it first, which the result says. With a `budget` alone it loses as little as
    possible and promises nothing. A budget counts pulls; where arms have costs, it is in their
    unit, and so is what is saved.

    With `items`, a number or a list, the function is `pull(arm, item)`, or `pull_many(arm, items)`
    with a list of items, and what counts is an arm's mean over these items. No item is asked twice
    of an arm. All arms go through the items in one random order that comes from the seed, unless
    `order` is "independent". `scores` are cells that are known already, a row an arm and a column
    an item, NaN where there is none; or a CSV or Parquet file or a data frame of them.

    A search asks for pulls, waits for all their rewards, and asks for more: at most `max_rounds`
    times, with at least `min_batch` pulls at a time. Only some algorithms support these. On items
    it asks ahead while at most `window` cells are under way; by default `min_batch` is half of
    `workers` there, and `window` three times as many. What proves the bound is a `certificate`:
    "pairs", "plans", "split", "items", "linear" or "differences", or the one that suits the
    problem.

    `features` are known numbers of every arm, a row per arm, or names of columns of a data frame of
    arms. They guide the pulls, and no guarantee rests on them. With `linear=True` you declare that
    means are linear in them, or with a number that they are at most that far from linear: then the
    bound may rest on it, and far fewer pulls are needed.

    With `quotas`, such as {"meta": (1, 3)}, a choice has at least 1 and at most 3 arms of group
    "meta", `Arm(label, group="meta")`. Groups that are not named are free. A `constraint` is any
    other family of sets: `Quotas`, `Laminar`, `Matching`, `Matroid`, or any object with a method
    `best(weights)`. What is lost is then measured against the best set that is allowed.

    With a `control`, one of the arms, the result also compares all others with it: `Result.lift`.

    A function with a parameter `seed` gets a seed of its own for every call, made from (`seed`,
    arm, number of the pull). Then `seed` settles the result, whatever the `executor` ("threads",
    "processes", "ray", an executor of concurrent.futures, a Dask client) and its number of
    `workers`. Async functions run `workers` at a time. With `seeds="shared"`, all arms run on the
    same seeds, and their differences count: fewer pulls are needed where outputs on one seed are
    correlated. Normal outputs of unknown variances are `rewards="normal"`.

    A call that raises, or takes more than `timeout` seconds, is made again `retries` times, after
    growing pauses; then its error ends the selection. An error of the very first call ends it at
    once. With a `store`, every reward is kept in that file under `name`, and the same call
    continues where this one ended, by Ctrl-C, an error or a crash. The error itself has the result
    so far, `partial`."""
    settings = _settings(arguments(locals(), "select"), stored=store is not None)
    attempts = Attempts.of(retries, timeout)
    evaluation = Evaluation.of(pull, pull_many, attempts, on_items=settings.on_items)
    selection = Selection(settings, evaluation, *_pace(batch, workers, evaluation), store, name)
    if not evaluation.is_async:
        return selection.run(executor, progress)
    refuse_executor(executor)
    return run_here(selection.run_async(progress), "select")


async def select_async(
    pull: Callable[..., Awaitable[Any]] | None = None,
    *,
    arms: Arms,
    k: int,
    epsilon: float | None = None,
    delta: float = 0.05,
    budget: float | None = None,
    rewards: RewardsDeclared | None = None,
    minimize: bool = False,
    items: ItemsGiven | None = None,
    scores: ScoresGiven | None = None,
    order: Order = "shared",
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
    control: OwnLabel | None = None,
    seed: int = 0,
    seeds: Seeds = "own",
    pull_many: Callable[..., Awaitable[Any]] | None = None,
    batch: int | None = None,
    workers: int = CONCURRENT,
    progress: bool = True,
    store: Place | None = None,
    name: str = "experiment",
    retries: int = 2,
    timeout: float | None = None,
) -> Result:
    """`select` with an async function, in the event loop that is running, such as a notebook's.

    At most `workers` evaluations are under way at a time. Everything else is as in `select`."""
    settings = _settings(arguments(locals(), "select"), stored=store is not None)
    attempts = Attempts.of(retries, timeout)
    evaluation = Evaluation.of(pull, pull_many, attempts, on_items=settings.on_items)
    selection = Selection(settings, evaluation, *_pace(batch, workers, evaluation), store, name)
    if not evaluation.is_async:
        raise InvalidInput("the function is not async, but `select_async` needs one; use `select`")
    return await selection.run_async(progress)
