"""The front door: give a function that evaluates an arm, get the k best arms and a bound on what
the choice loses."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np

from shortlist.algorithms import AlgorithmLike
from shortlist.arms import Arms
from shortlist.arrays import FloatArray
from shortlist.display import Show, display
from shortlist.driver import Outcome, counted, finish, finish_async, present_outcome
from shortlist.errors import InvalidInput
from shortlist.evaluation.attempts import Attempts
from shortlist.evaluation.calls import Call, Evaluation, asynchronous, calls_of
from shortlist.evaluation.cells import ItemsGiven
from shortlist.evaluation.executors import opened
from shortlist.evaluation.flight import Done, InLoop, Receive, keep_busy, keep_busy_async
from shortlist.evaluation.loop import CONCURRENT, refuse_executor, run_here
from shortlist.evaluation.numbering import Numbering
from shortlist.evaluation.rewards import Received, checked_reward, checked_rewards
from shortlist.evaluation.sameness import Sameness
from shortlist.experiment.place import Place
from shortlist.items import ScoresGiven
from shortlist.keeping import Keeping
from shortlist.present import Tally
from shortlist.question import Question, cells_given, question
from shortlist.result import Result
from shortlist.result.carrying import carrying
from shortlist.reward_models import RewardsDeclared
from shortlist.search import NO_PROGRESS, Pulls, Rewards
from shortlist.validation import MOST_JOBS, seeded, shown, whole


def select(
    pull: Callable[..., Any] | None = None,
    *,
    arms: Arms,
    k: int,
    epsilon: float | None = None,
    delta: float = 0.05,
    budget: int | None = None,
    rewards: RewardsDeclared | None = None,
    minimize: bool = False,
    items: ItemsGiven | None = None,
    scores: ScoresGiven | None = None,
    order: str = "shared",
    algorithm: AlgorithmLike = "auto",
    options: Mapping[str, object] | None = None,
    rounds: int | None = None,
    least: int | None = None,
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
    rewards, and is never asked for more than `batch` at once. `arm` is one of `arms`, a key if they
    are a mapping, or a number from 0 if they are only a number. Rewards of an arm must be
    independent and keep to `rewards`: a range, "binary", or a reward model; if nothing is said, to
    [0, 1], or where there is a budget alone to nothing. The best arms are those of the largest
    means, or with `minimize` of the smallest.

    With `epsilon`, the choice loses at most epsilon with probability at least 1 - `delta`, unless a
    `budget` ends it first, which the result says. With a `budget` alone it loses as little as
    possible and promises nothing.

    With `items`, a number or a list, the function is `pull(arm, item)`, or `pull_many(arm, items)`
    with a list of items, and what counts is an arm's mean over these items. No item is asked twice
    of an arm. All arms go through the items in one random order that comes from the seed, unless
    `order` is "independent". `scores` are cells that are known already, a row an arm and a column
    an item, NaN where there is none; or a CSV or Parquet file or a data frame of them.

    A search asks for pulls, waits for all their rewards, and asks for more: at most `rounds` times,
    with at least `least` pulls at a time. Not every algorithm can be told so.

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
        *(algorithm, options, cells, rounds, least),
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
    budget: int | None = None,
    rewards: RewardsDeclared | None = None,
    minimize: bool = False,
    items: ItemsGiven | None = None,
    scores: ScoresGiven | None = None,
    order: str = "shared",
    algorithm: AlgorithmLike = "auto",
    options: Mapping[str, object] | None = None,
    rounds: int | None = None,
    least: int | None = None,
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
        *(algorithm, options, cells, rounds, least),
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


class Selection:
    """One call of `select`: a search whose requests are answered by a user's function."""

    def __init__(
        self,
        asked: Question,
        evaluation: Evaluation,
        seed: int,
        batch: int | None,
        workers: int | None,
    ) -> None:
        if batch is not None:
            batch = whole("batch", batch, at_least=1)
        if workers is not None:
            workers = whole("workers", workers, at_least=1, at_most=MOST_JOBS)
        if batch is not None and not evaluation.many:
            raise InvalidInput(
                f"`batch` is {shown(batch)}, but only `pull_many` takes more than one pull at once"
            )
        self.asked = asked
        self.evaluation = evaluation
        self.seed = seeded(seed)
        self.workers = workers
        rng = np.random.default_rng(self.seed)
        self._search = counted(asked.algorithm, asked.problem, rng, **asked.options)
        self._most = batch if evaluation.many else 1  # pulls in a call
        self._drawn = np.zeros(asked.problem.n_arms, dtype=np.int64)  # pulls of every arm so far
        self._issued = 0  # calls so far
        self._pulls = 0  # rewards so far
        self._sameness = Sameness(asked.problem.rewards)
        self._smallest = self._largest = nan  # reward so far
        self._tally = Tally(asked.problem.n_arms)  # of requests that were answered
        self._progress = NO_PROGRESS
        self._received: Received | None = None  # of the present request

    def run(self, executor: object, progress: bool) -> Result:
        """Answer every request on `executor`."""
        started = time.perf_counter()
        with (
            opened(executor, self.workers, self.evaluation) as flight,
            display(progress, self.asked.problem.goal.budget) as show,
            carrying(lambda: self._present(started)),
        ):

            def pull(request: Pulls) -> Rewards:
                numbering = self._numbered(request)
                received = self._begun(numbering)
                keep_busy(flight, self._calls(numbering), self._receiver(received, request, show))
                return received.rewards(single=self.asked.cells is not None)

            outcome = finish(self._search, pull)
        return self._result(outcome, started)

    async def run_async(self, progress: bool) -> Result:
        """Answer every request in the running event loop."""
        started = time.perf_counter()
        flight = InLoop(self.workers or CONCURRENT, self.evaluation)
        with (
            display(progress, self.asked.problem.goal.budget) as show,
            carrying(lambda: self._present(started)),
        ):

            async def pull(request: Pulls) -> Rewards:
                numbering = self._numbered(request)
                received = self._begun(numbering)
                receive = self._receiver(received, request, show)
                await keep_busy_async(flight, self._calls(numbering), receive)
                return received.rewards(single=self.asked.cells is not None)

            outcome = await finish_async(self._search, pull)
        return self._result(outcome, started)

    def _numbered(self, request: Pulls) -> Numbering:
        """Go on numbering where the request before ended."""
        numbering = Numbering(request, self._issued, self._drawn, self._most)
        np.add.at(self._drawn, request.arms, request.times)
        self._issued = numbering.end
        return numbering

    def _begun(self, numbering: Numbering) -> Received:
        """Count what the request before gave, and begin to receive this one."""
        if self._received is not None:
            self._tally.add(*self._received.so_far())
        self._received, self._progress = Received(numbering), numbering.pulls.progress
        return self._received

    def _present(self, started: float) -> Result:
        """The result if the search ended now."""
        if self._received is not None:
            self._tally.add(*self._received.so_far())
            self._received = None
        outcome = present_outcome(self.asked.problem, self._tally, self._progress, self.seed)
        return replace(self._result(outcome, started), partial=True)

    def _calls(self, numbering: Numbering) -> Iterable[Call]:
        seed = self.seed if self.evaluation.seeded else None
        cells, many = self.asked.cells, self.evaluation.many
        return calls_of(numbering, self.asked.labels, seed, cells, many=many)

    def _receiver(self, received: Received, request: Pulls, show: Show) -> Receive:
        def receive(done: Done) -> None:
            self._take(received, done.call, done.result())
            self._pulls += done.call.times
            show(self._pulls, request.progress)

        return receive

    def _take(self, received: Received, call: Call, result: Any) -> None:
        """Note the rewards of a call, or raise an error that names what is wrong with them."""
        model = self.asked.problem.rewards
        if self.evaluation.many:
            rewards = checked_rewards(result, call.times, call.label, model)
            received.take_many(call.ticket, rewards)
            self._note(call.label, rewards)
        else:
            reward = checked_reward(result, f"a reward of arm {call.label!r}", model)
            received.take(call.ticket, reward)
            self._note(call.label, np.array([reward]))

    def _note(self, label: object, rewards: FloatArray) -> None:
        """See how far rewards go, and whether they differ."""
        self._smallest = float(np.fmin(self._smallest, rewards.min()))
        self._largest = float(np.fmax(self._largest, rewards.max()))
        self._sameness.see(label, rewards)

    def _result(self, outcome: Outcome, started: float) -> Result:
        asked = self.asked
        seconds = time.perf_counter() - started
        name = asked.algorithm.name
        problem = asked.problem.seen(self._smallest, self._largest)
        return Result.of(outcome, asked.labels, problem, name, self.seed, seconds)
