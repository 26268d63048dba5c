"""The front door: give a function that evaluates an arm, get the k best arms and a bound on the
regret of that choice."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from shortlist.algorithms import AlgorithmLike
from shortlist.arms import Arms, OwnLabel
from shortlist.cells import ItemsGiven, items_by_id
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
from shortlist.engine.rate import RateGiven
from shortlist.engine.runnable import show_progress
from shortlist.engine.tickets import State
from shortlist.engine.workers import Job, quietly, this_program, work, work_async
from shortlist.errors import InvalidInput, Unfinished
from shortlist.features import FeaturesGiven
from shortlist.problem import ScoresGiven
from shortlist.quotas import ConstraintGiven, QuotasGiven
from shortlist.result import Result
from shortlist.result.result import carrying
from shortlist.reward_models import RewardsDeclared
from shortlist.settings import Settings, arguments
from shortlist.spec import (
    FIELDS,
    Certificate,
    OnFailure,
    Order,
    Population,
    Seeds,
    UnitName,
    documented,
)
from shortlist.validation import (
    MOST_WORKERS,
    RngGiven,
    flag,
    library_of,
    shown,
    takes_rng,
    whole,
)


@dataclass(frozen=True, slots=True)
class Selection:
    """One call of `select`: an experiment, in memory or in a store, and the worker that runs it.

    An error of the user's function ends the call, unless `on_failure` says otherwise; an experiment
    in a store can be continued."""

    settings: Settings
    evaluation: Evaluation
    batch: int | None
    workers: int | None
    store: Place | None
    name: str
    items: Mapping[Any, Any] | None = None  # by id, where they are mappings
    frames: str | None = None  # library of the data frames that were given

    @classmethod
    def of(cls, given: dict[str, Any]) -> "Selection":
        """The call of a door. Pass `locals()`."""
        items, by_id = (None, None) if given["items"] is None else items_by_id(given["items"])
        store = given["store"]
        asked = arguments({**given, "items": items}, "select")
        settings = _settings(asked, stored=store is not None)
        frames = library_of(given["arms"], given["scores"], given["features"])
        attempts = Attempts.of(given["retries"], given["timeout"])
        evaluation = _evaluation(given["pull"], given["pull_many"], attempts, settings)
        pace = _pace(given["batch"], given["workers"], evaluation)
        paced = evaluation.paced(given["rate"])
        return cls(settings, paced, *pace, store, given["name"], by_id, frames)

    def run(self, executor: object, progress: bool) -> Result:
        """Make the pulls on `executor`."""
        with self._opened(progress) as (experiment, show):
            return self._over(experiment, work(experiment, self._job(show), executor))

    async def run_async(self, progress: bool) -> Result:
        """Make the pulls in the running event loop."""
        with self._opened(progress) as (experiment, show):
            return self._over(experiment, await work_async(experiment, self._job(show)))

    def _over(self, experiment: Experiment, state: State) -> Result:
        if state is State.STOPPED:  # errors that end the search were raised
            raise Unfinished(experiment.status().trouble)
        return self._result(experiment)

    def _job(self, show: Callable[[], None]) -> Job:
        here = self.store is None
        batch = self.batch if self.evaluation.many else 1
        how: dict[str, Any] = {"batch": batch, "here": here, "lasting": not here}
        how["items"] = self.items
        return Job(self.evaluation, self.workers, this_program(), show, raising=True, **how)

    @contextmanager
    def _opened(self, progress: bool) -> Iterator[tuple[Experiment, Callable[[], None]]]:
        """The experiment, and what to call after every step."""
        visible = flag("progress", progress)
        with (
            self._experiment() as experiment,
            show_progress(experiment, True) if visible else quietly() as show,
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
        result = replace(
            experiment.result(partial=partial),
            control=self.settings.control,
            unit=self.settings.unit,
            frames=self.frames,
        )
        if result.cells is not None:
            len(result.cells)  # read them before the store is closed
            result.cells.frames = self.frames
        return result


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
    """The settings of a selection. Retries are up to a call: the next may have others.

    So a failure that is recorded is one after the last retry."""
    kept = FIELDS["retries"].default if given["on_failure"] == "stop" else 0
    return Settings.of({**given, "retries": kept}, stored=stored)


def _evaluation(
    pull: Callable[..., Any] | None,
    pull_many: Callable[..., Any] | None,
    attempts: Attempts,
    settings: Settings,
) -> Evaluation:
    shared = settings.problem.shared_seeds
    if pull_many is not None and settings.on_failure != "stop":
        rule = "`pull_many` makes many pulls at once, and one cannot fail alone; give `pull`"
        raise InvalidInput(f"`on_failure` is {settings.on_failure!r}, but {rule}")
    return Evaluation.of(pull, pull_many, attempts, on_items=settings.on_items, shared=shared)


@takes_rng
def select(
    pull: Callable[..., Any] | None = None,
    *,
    arms: Arms,
    k: int,
    epsilon: float | str | None = None,
    delta: float = 0.05,
    budget: float | None = None,
    rewards: RewardsDeclared | None = None,
    minimize: bool = False,
    items: ItemsGiven | None = None,
    scores: ScoresGiven | None = None,
    order: Order = "shared",
    repeats: int = 1,
    clusters: Sequence[str | int] | None = None,
    population: Population = "these",
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
    unit: UnitName | None = None,
    seed: int = 0,
    rng: RngGiven | None = None,
    seeds: Seeds = "own",
    pull_many: Callable[..., Any] | None = None,
    batch: int | None = None,
    executor: Executor | Any = None,
    workers: int | None = None,
    rate: RateGiven | None = None,
    progress: bool = True,
    store: Place | None = None,
    name: str = "experiment",
    retries: int = 2,
    on_failure: OnFailure = "stop",
    timeout: float | None = None,
) -> Result:
    """Find the `k` best of `arms` by pulling them, with as few pulls as possible.

    Give a function that evaluates an arm, and `epsilon`, `budget` or both. With `epsilon`, the
    regret is at most epsilon with probability at least 1 - `delta`, unless a `budget` ends the
    search first, which the result reports. A `budget` alone makes the regret as small as possible,
    without a guarantee. Rewards of an arm must be independent draws from one distribution.

    Args:
        pull: `pull(arm)` returns a reward, or `(reward, cost)` with the actual cost. `arm` is one
            of `arms`: a key if they are a mapping, a number from 0 if they are a number. On a test
            set the function is `pull(arm, item)`. A parameter `seed` gets a seed of its own for
            every call, made of `seed`, the arm and the number of the pull; then the result depends
            on `seed` alone, and not on the executor. It may be async.
        arms: Number of arms, their labels, or `Arm` objects with costs and limits; also a mapping
            or a data frame.
        k: Number of arms to choose.
        epsilon: Largest regret allowed, in the unit of the rewards; "0.2%" is 0.002.
        delta: Largest probability that the regret exceeds epsilon.
        budget: Number of pulls to spend; if arms have costs, their total cost. With `epsilon`, the
            maximum.
        rewards: Range `(low, high)` of the rewards, "binary", or a reward model. Default: 0 to 1 if
            `epsilon` is given, else any numbers.
        minimize: Whether the best arms are those with the smallest mean rewards.
        items: Test set: number of items, or their labels, or mappings with an "id", which is then
            the label. A pull evaluates one arm on one item, no item twice, and the mean of an arm
            is that over these items.
        scores: Scores on the test set that are known: a row per arm and a column per item, NaN
            where unknown; also a CSV or Parquet file or a data frame.
        order: Random order of the items: "shared" by all arms, or "independent" for each.
        repeats: Scores per item, for evaluations that are random themselves: the mean of an arm is
            that over all of them. The function is called once for each, with another seed.
        clusters: Cluster of every item, such as its document. A cluster is drawn whole.
        population: What the promise is about: the mean over "these" items, or "like these", over
            the distribution that they are a sample of.
        algorithm: Name of the algorithm, a search function, or "package.module:function". "auto":
            `certified` if `epsilon` is given, else `expected-loss`.
        options: Options of the algorithm, by name.
        max_rounds: Maximum number of batches. Only some algorithms support this.
        min_batch: Minimum number of pulls per batch. Only some algorithms support this.
        window: Batches are planned ahead while at most this many pulls are under way; only pairs
            and test sets support this. Default on a test set: three times `workers`, and
            `min_batch` is then half of `workers`; elsewhere every batch waits for the last.
        certificate: Certificate that proves the regret bound: "pairs", "plans", "split",
            "items", "linear" or "differences". "auto": chosen by the problem.
        features: Known numbers of every arm, a row per arm, or names of columns of a data frame of
            arms. They guide the pulls, and no guarantee rests on them.
        linear: True declares that means are linear in the features, a number that they are at most
            that far from linear. Then the bound may rest on it, and far fewer pulls are needed.
        quotas: Least and most chosen arms per group, such as {"meta": (1, 3)}; `Arm(label,
            group="meta")` names the group. Groups that are not named are free. Regret is then that
            against the best set that is allowed.
        constraint: Any other family of sets: `Quotas`, `Laminar`, `Matching`, `Matroid`, or an
            object with a method `best(weights)`.
        control: An arm to compare all other arms with: `Result.lift`.
        unit: "%" shows means in percent and differences in percentage points, in tables; all data
            stay in the unit of the rewards.
        seed: Random seed. Runs with the same seed are identical.
        rng: Instead of `seed`: a seed, a sequence of seeds, or a `numpy.random.Generator`,
            `BitGenerator` or `SeedSequence`. A generator moves on, so that a second call differs.
        seeds: "own" seeds for every arm, or "shared": all arms run on the same seeds, and their
            differences count. Fewer pulls are needed where rewards on one seed are correlated.
        pull_many: Instead of `pull`: `pull_many(arm, times)` returns a list of exactly `times`
            rewards, or a tuple of that and their total cost; on a test set `pull_many(arm, items)`.
        batch: Maximum number of pulls per call of `pull_many`. Default: no maximum.
        executor: Where calls are made: "threads", "processes", "ray", an executor of
            concurrent.futures, or a Dask client. Default: this thread, or threads if `workers` is
            given.
        workers: Number of calls at a time. Default: what suits the executor; 16 for an async
            function.
        rate: Maximum number of calls per minute; or limits per minute by name, such as
            `{"requests": 600, "tokens": 90_000}`: calls, the "cost", or a number in the info of a
            `Score`. Default: no limit.
        progress: Whether to show progress on stderr.
        store: File or store that keeps every reward: the same call then continues where this one
            ended, by Ctrl-C, an error or a crash. Default: memory.
        name: Name of the experiment in the store.
        retries: How often to retry a failed call, after growing pauses.
        on_failure: After the last retry: "stop" raises the error, and that of the very first call
            without a retry; "retire" lets the arm leave the search; "void", on shared seeds, drops
            the seed for all arms. Both take `pull`, not `pull_many`.
        timeout: Seconds after which a call has failed. Default: no limit.

    Returns:
        The chosen arms, the regret bound with its confidence, and the results of all arms.

    Raises:
        InvalidInput: An argument is not valid, or arguments do not go together.
        InvalidReward: The function returned a reward that does not keep to `rewards`.
        Unfinished: Calls failed, and `on_failure` could not help any more.
        StoreExists: The store has an experiment of that name with other settings.

    An error carries the result so far as `partial`.

    Example:
        >>> import random, shortlist
        >>> rates = {"grey": 0.1, "red": 0.9, "blue": 0.2}
        >>> def click(page, seed): return random.Random(seed).random() < rates[page]
        >>> shortlist.select(click, arms=rates, k=1, epsilon=0.3, rewards="binary").top
        ('red',)"""
    selection = Selection.of(locals())
    if not selection.evaluation.is_async:
        return selection.run(executor, progress)
    refuse_executor(executor)
    return run_here(selection.run_async(progress), "select")


@takes_rng
@documented("select")
async def select_async(  # noqa: D417  # `documented` adds the settings
    pull: Callable[..., Awaitable[Any]] | None = None,
    *,
    arms: Arms,
    k: int,
    epsilon: float | str | None = None,
    delta: float = 0.05,
    budget: float | None = None,
    rewards: RewardsDeclared | None = None,
    minimize: bool = False,
    items: ItemsGiven | None = None,
    scores: ScoresGiven | None = None,
    order: Order = "shared",
    repeats: int = 1,
    clusters: Sequence[str | int] | None = None,
    population: Population = "these",
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
    unit: UnitName | None = None,
    seed: int = 0,
    rng: RngGiven | None = None,
    seeds: Seeds = "own",
    pull_many: Callable[..., Awaitable[Any]] | None = None,
    batch: int | None = None,
    workers: int = CONCURRENT,
    rate: RateGiven | None = None,
    progress: bool = True,
    store: Place | None = None,
    name: str = "experiment",
    retries: int = 2,
    on_failure: OnFailure = "stop",
    timeout: float | None = None,
) -> Result:
    """`select` with an async function, in the event loop that is running, such as a notebook's.

    Args:
        pull: Async function, as in `select`.
        {settings}
        rng: Instead of `seed`: a seed, a sequence of seeds, or a `numpy.random.Generator`,
            `BitGenerator` or `SeedSequence`. A generator moves on, so that a second call differs.
        pull_many: Instead of `pull`: an async function, as in `select`.
        batch: Maximum number of pulls per call of `pull_many`. Default: no maximum.
        workers: Maximum number of calls under way at a time.
        rate: Maximum number of calls per minute, or limits by name, as in `select`.
        progress: Whether to show progress on stderr.
        store: File or store that keeps every reward, as in `select`. Default: memory.
        name: Name of the experiment in the store.
        timeout: Seconds after which a call has failed. Default: no limit.

    Returns:
        The result, as of `select`.

    Raises:
        InvalidInput: As `select`; and if the function is not async.

    Example:
        >>> import asyncio, shortlist
        >>> async def even(arm): return arm % 2
        >>> asyncio.run(shortlist.select_async(even, arms=4, k=2, budget=40)).top
        (1, 3)"""
    selection = Selection.of(locals())
    if not selection.evaluation.is_async:
        raise InvalidInput("the function is not async, but `select_async` needs one; use `select`")
    return await selection.run_async(progress)
