"""The front door: give a function that evaluates an arm, get the k best arms and a bound on what
the choice loses."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np

from shortlist.arms import Arms
from shortlist.display import Show, display
from shortlist.driver import Outcome, counted, finish, finish_async
from shortlist.errors import InvalidInput
from shortlist.evaluation.calls import Batch, Call, Evaluation, Evaluator
from shortlist.evaluation.executors import opened
from shortlist.evaluation.flight import Receive, spread_async
from shortlist.question import Question, question
from shortlist.result import Result
from shortlist.reward_models import RewardsDeclared
from shortlist.search import Pulls, Rewards
from shortlist.validation import whole

CONCURRENT = 16  # evaluations of an async function under way at a time, unless told


def select(
    pull: Callable[..., Any] | None = None,
    *,
    arms: Arms,
    k: int,
    epsilon: float | None = None,
    delta: float = 0.05,
    budget: int | None = None,
    rewards: RewardsDeclared = (0, 1),
    algorithm: str = "auto",
    options: Mapping[str, object] | None = None,
    seed: int = 0,
    pull_many: Callable[..., Any] | None = None,
    batch: int | None = None,
    executor: Executor | Any = None,
    workers: int | None = None,
    progress: bool = True,
) -> Result:
    """Find the `k` best of `arms` by pulling them, with as few pulls as possible.

    `pull(arm)` returns a reward; `pull_many(arm, times)` instead returns a list of exactly `times`
    rewards, and is never asked for more than `batch` at once. `arm` is a label, or a number from 0
    if `arms` is only their number. Rewards of an arm must be independent and keep to `rewards`: a
    range, "binary", or a reward model.

    With `epsilon`, the choice loses at most epsilon with probability at least 1 - `delta`, unless a
    `budget` ends it first, which the result says. With a `budget` alone it loses as little as
    possible and promises nothing.

    A function with a parameter `seed` gets a seed of its own for every call, made from (`seed`,
    arm, number of the pull). Then `seed` settles the result, whatever the `executor` ("threads",
    "processes", "ray", an executor of concurrent.futures, a Dask client) and its number of
    `workers`. Async functions run `workers` at a time."""
    asked = question(arms, k, epsilon, delta, budget, rewards, algorithm, options)
    selection = Selection(asked, Evaluation.of(pull, pull_many), seed, batch, workers)
    if not selection.evaluation.asynchronous:
        return selection.run(executor, progress)
    if executor is not None:
        raise InvalidInput(
            f"`executor` is {executor!r}, but an async function runs in the event loop"
        )
    _refuse_running_loop()
    return asyncio.run(selection.run_async(progress))


async def select_async(
    pull: Callable[..., Awaitable[Any]] | None = None,
    *,
    arms: Arms,
    k: int,
    epsilon: float | None = None,
    delta: float = 0.05,
    budget: int | None = None,
    rewards: RewardsDeclared = (0, 1),
    algorithm: str = "auto",
    options: Mapping[str, object] | None = None,
    seed: int = 0,
    pull_many: Callable[..., Awaitable[Any]] | None = None,
    batch: int | None = None,
    workers: int = CONCURRENT,
    progress: bool = True,
) -> Result:
    """`select` with an async function, in the event loop that is running, such as that of a
    notebook.

    At most `workers` evaluations are under way at a time. Everything else is as in `select`."""
    asked = question(arms, k, epsilon, delta, budget, rewards, algorithm, options)
    selection = Selection(asked, Evaluation.of(pull, pull_many), seed, batch, workers)
    if not selection.evaluation.asynchronous:
        raise InvalidInput("the function is not async, but `select_async` needs one; use `select`")
    return await selection.run_async(progress)


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
        whole("seed", seed, at_least=0)
        for name, value in (("batch", batch), ("workers", workers)):
            if value is not None:
                whole(name, value, at_least=1)
        if batch is not None and not evaluation.many:
            raise InvalidInput(
                f"`batch` is {batch}, but only `pull_many` takes more than one pull at once"
            )
        problem = asked.problem
        self.asked, self.evaluation, self.seed, self.workers = asked, evaluation, seed, workers
        self.evaluator = Evaluator(evaluation, asked.labels, problem.rewards, seed, batch)
        self.search = counted(
            asked.algorithm, problem, np.random.default_rng(seed), **asked.options
        )

    def run(self, executor: object, progress: bool) -> Result:
        """Answer every request on `executor`."""
        started = time.perf_counter()
        with (
            opened(executor, self.workers) as spread,
            display(progress, self.asked.problem.goal.budget) as show,
        ):

            def pull(request: Pulls) -> Rewards:
                batch = self.evaluator.begin(request)
                spread(self.evaluation, batch.calls(), self._receiver(batch, show))
                return batch.rewards()

            outcome = finish(self.search, pull)
        return self._result(outcome, started)

    async def run_async(self, progress: bool) -> Result:
        """Answer every request in the running event loop."""
        started = time.perf_counter()
        with display(progress, self.asked.problem.goal.budget) as show:

            async def pull(request: Pulls) -> Rewards:
                batch = self.evaluator.begin(request)
                receive = self._receiver(batch, show)
                await spread_async(
                    self.workers or CONCURRENT, self.evaluation, batch.calls(), receive
                )
                return batch.rewards()

            outcome = await finish_async(self.search, pull)
        return self._result(outcome, started)

    def _receiver(self, batch: Batch, show: Show) -> Receive:
        def receive(call: Call, result: object) -> None:
            batch.take(call, result)
            show(self.evaluator.pulls, batch.request.progress)

        return receive

    def _result(self, outcome: Outcome, started: float) -> Result:
        asked, seconds = self.asked, time.perf_counter() - started
        return Result.of(
            outcome, asked.labels, asked.problem.goal, asked.algorithm.name, self.seed, seconds
        )


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InvalidInput(
        "an event loop is running here, so `select` cannot wait for async functions; await"
        " `select_async`"
    )
