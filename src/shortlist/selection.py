"""The front door: give a function that evaluates an arm, get the k best arms and a bound on what
the choice loses."""

from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from shortlist.algorithms import AlgorithmLike
from shortlist.arms import Arms, OwnLabel
from shortlist.errors import InvalidInput
from shortlist.evaluation.attempts import Attempts
from shortlist.evaluation.calls import Evaluation, asynchronous
from shortlist.evaluation.cells import ItemsGiven
from shortlist.evaluation.loop import CONCURRENT, refuse_executor, run_here
from shortlist.experiment.place import Place
from shortlist.items import ScoresGiven
from shortlist.keeping import Keeping
from shortlist.pulling import Selection
from shortlist.question import Question, cells_given, question
from shortlist.result import Result
from shortlist.reward_models import RewardsDeclared
from shortlist.validation import shown


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
    order: str = "shared",
    algorithm: AlgorithmLike = "auto",
    options: Mapping[str, object] | None = None,
    rounds: int | None = None,
    least: int | None = None,
    certificate: str = "auto",
    control: OwnLabel | None = None,
    seed: int = 0,
    pull_many: Callable[..., Any] | None = None,
    batch: int | None = None,
    executor: Executor | Any = None,
    workers: int | None = None,
    progress: bool = True,
    store: Place | None = None,
    name: str = "experiment",
    retries: int = 0,
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

    A search asks for pulls, waits for all their rewards, and asks for more: at most `rounds` times,
    with at least `least` pulls at a time. Not every algorithm can be told so. What proves the bound
    is a `certificate`: "pairs", "plans", "split" or "items", or the one that suits what is asked.

    With a `control`, one of the arms, the result also compares all others with it: `Result.lift`.

    A function with a parameter `seed` gets a seed of its own for every call, made from (`seed`,
    arm, number of the pull). Then `seed` settles the result, whatever the `executor` ("threads",
    "processes", "ray", an executor of concurrent.futures, a Dask client) and its number of
    `workers`. Async functions run `workers` at a time.

    A call that raises, or takes more than `timeout` seconds, is made again `retries` times; then
    its error ends the selection. With a `store`, every reward is kept in that file under `name`,
    and the same call goes on where this one ended, by Ctrl-C, an error or a crash. The error itself
    has the result so far, `partial`."""
    cells = cells_given(items, seed, scores, order)
    asked = question(
        *(arms, k, epsilon, delta, budget, rewards, minimize),
        *(algorithm, options, cells, rounds, least, certificate, control),
    )
    attempts = Attempts.of(retries, timeout)
    evaluation = Evaluation.of(pull, pull_many, attempts, on_items=cells is not None)
    selection = _selection(asked, evaluation, seed, batch, workers, store, name)
    if not asynchronous(selection.evaluation.function):
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
    order: str = "shared",
    algorithm: AlgorithmLike = "auto",
    options: Mapping[str, object] | None = None,
    rounds: int | None = None,
    least: int | None = None,
    certificate: str = "auto",
    control: OwnLabel | None = None,
    seed: int = 0,
    pull_many: Callable[..., Awaitable[Any]] | None = None,
    batch: int | None = None,
    workers: int = CONCURRENT,
    progress: bool = True,
    store: Place | None = None,
    name: str = "experiment",
    retries: int = 0,
    timeout: float | None = None,
) -> Result:
    """`select` with an async function, in the event loop that is running, such as a notebook's.

    At most `workers` evaluations are under way at a time. Everything else is as in `select`."""
    cells = cells_given(items, seed, scores, order)
    asked = question(
        *(arms, k, epsilon, delta, budget, rewards, minimize),
        *(algorithm, options, cells, rounds, least, certificate, control),
    )
    attempts = Attempts.of(retries, timeout)
    evaluation = Evaluation.of(pull, pull_many, attempts, on_items=cells is not None)
    selection = _selection(asked, evaluation, seed, batch, workers, store, name)
    if not asynchronous(selection.evaluation.function):
        raise InvalidInput("the function is not async, but `select_async` needs one; use `select`")
    return await selection.run_async(progress)


def _selection(
    asked: Question,
    evaluation: Evaluation,
    seed: int,
    batch: int | None,
    workers: int | None,
    store: Place | None,
    name: str,
) -> "Selection | Keeping":
    """What makes the pulls: kept in a store, or not."""
    if store is None:
        return Selection(asked, evaluation, seed, batch, workers)
    if batch is not None:
        raise InvalidInput(
            f"`batch` is {shown(batch)}, but with a `store` pulls are made one by one"
        )
    return Keeping(asked, evaluation, seed, store, name, workers)
