"""A selection that is kept in a store: the same call goes on after whatever ended it.

A selection that lives as long as its call: a search whose requests a user's function answers.

The front door: give a function that evaluates an arm, get the k best arms and a bound on what
the choice loses."""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np

from shortlist.algorithms import AlgorithmLike
from shortlist.arms import Arms, OwnLabel
from shortlist.cells import ItemsGiven
from shortlist.driver import (
    BudgetEnded,
    Outcome,
    Run,
    counted,
    finish,
    finish_async,
    present_outcome,
)
from shortlist.engine import Experiment
from shortlist.engine.account import Account
from shortlist.engine.calls import (
    CONCURRENT,
    Attempts,
    Call,
    Evaluation,
    asynchronous,
    calls_of,
    refuse_executor,
    run_here,
)
from shortlist.engine.checks import Checks, Sameness
from shortlist.engine.eta import MOST_REPLIES, Partly, Underway
from shortlist.engine.executors import opened
from shortlist.engine.locate import Place
from shortlist.engine.numbering import Numbering
from shortlist.engine.progress import Show, display
from shortlist.engine.rewards import (
    Received,
    checked_cost,
    checked_reward,
    checked_rewards,
    with_cost,
)
from shortlist.engine.tickets import State
from shortlist.engine.worker_pool import Done, InLoop, Receive, keep_busy, keep_busy_async
from shortlist.engine.workers import Job, this_program, work, work_async
from shortlist.errors import InvalidInput, caution
from shortlist.interim import Tally
from shortlist.problem import ScoresGiven
from shortlist.result import Result
from shortlist.result.result import carrying
from shortlist.reward_models import RewardsDeclared
from shortlist.search import NO_PROGRESS, Pulls, Rewards
from shortlist.settings import Settings, arguments
from shortlist.spec import Certificate, Order
from shortlist.validation import MOST_WORKERS, shown, whole


class Keeping:
    """One call of `select` with a store: an experiment that is made or gone on with.

    An error of the user's function ends the call, and not the experiment."""

    def __init__(
        self,
        asked: Settings,
        evaluation: Evaluation,
        store: Place,
        name: str,
        workers: int | None,
    ) -> None:
        if evaluation.many:
            raise InvalidInput(
                "`pull_many` is given with a `store`, but single pulls are kept; give `pull`"
            )
        if workers is not None:
            workers = whole("workers", workers, at_least=1, at_most=MOST_WORKERS)
        self.evaluation = evaluation
        self.workers = workers
        self._store, self._name = store, name
        self._control = asked.control
        self._settings = asked

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

    def _job(self, workers: int, show: Callable[[], None]) -> Job:
        return Job(self.evaluation, workers, 0, this_program(), show, raising=True)

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


class Selection:
    """One call of `select`: a search whose requests are answered by a user's function."""

    def __init__(
        self,
        asked: Settings,
        evaluation: Evaluation,
        batch: int | None,
        workers: int | None,
    ) -> None:
        if batch is not None:
            batch = whole("batch", batch, at_least=1)
        if workers is not None:
            workers = whole("workers", workers, at_least=1, at_most=MOST_WORKERS)
        if batch is not None and not evaluation.many:
            raise InvalidInput(
                f"`batch` is {shown(batch)}, but only `pull_many` takes more than one pull at once"
            )
        self.asked = asked
        self.evaluation = evaluation
        self.seed = asked.seed
        self.workers = workers
        self._search = self._begin()
        self._most = batch if evaluation.many else 1  # pulls in a call
        self._drawn = np.zeros(asked.problem.n_arms, dtype=np.int64)  # pulls of every arm so far
        self._issued = 0  # calls so far
        self._pulls = 0  # rewards so far
        self._sameness = Sameness(asked.problem.rewards)
        self._checks = Checks(asked.problem, asked.labels)
        self._warned = 0  # of what they found
        self._smallest = self._largest = nan  # reward so far
        self._tally = Tally(asked.problem.n_arms)  # of requests that were answered
        self._account = Account(asked.problem, asked.labels)
        self._progress = NO_PROGRESS
        self._received: Received | None = None  # of the present request
        self._replies: list[Rewards] = []  # to the requests before

    def _begin(self) -> Run:
        rng = np.random.default_rng(self.seed)
        return counted(self.asked.searched_by(), self.asked.problem, rng, **self.asked.options)

    def run(self, executor: object, progress: bool) -> Result:
        """Answer every request on `executor`."""
        started = time.perf_counter()
        with (
            opened(executor, self.workers, self.evaluation) as flight,
            display(progress, self.asked.problem, self._underway) as show,
            carrying(lambda: self._present(started)),
        ):

            def pull(request: Pulls) -> Rewards:
                numbering = self._numbered(request)
                received = self._begun(numbering)
                receive = self._receiver(received, request, show)
                keep_busy(flight, self._calls(numbering), receive, self._account.reserve)
                return self._reply(received)

            try:
                outcome = finish(self._search, pull)
            except BudgetEnded:
                outcome = self._outcome_so_far()
        return self._ended(outcome, started)

    async def run_async(self, progress: bool) -> Result:
        """Answer every request in the running event loop."""
        started = time.perf_counter()
        flight = InLoop(self.workers or CONCURRENT, self.evaluation)
        with (
            display(progress, self.asked.problem, self._underway) as show,
            carrying(lambda: self._present(started)),
        ):

            async def pull(request: Pulls) -> Rewards:
                numbering = self._numbered(request)
                received = self._begun(numbering)
                receive = self._receiver(received, request, show)
                calls = self._calls(numbering)
                await keep_busy_async(flight, calls, receive, self._account.reserve)
                return self._reply(received)

            try:
                outcome = await finish_async(self._search, pull)
            except BudgetEnded:
                outcome = self._outcome_so_far()
        return self._ended(outcome, started)

    def _reply(self, received: Received) -> Rewards:
        self._checks.take(*received.by_draw())
        self._caution()
        single = self.asked.cells is not None
        reply = received.rewards(self.asked.problem.prices, single=single)
        if len(self._replies) < MOST_REPLIES:
            self._replies.append(reply)
        return reply

    def _caution(self) -> None:
        """Say what tests of the rewards found since the last time."""
        news = self._checks.warnings[self._warned :]
        self._warned += len(news)
        for message in news:
            caution(message)

    def _ended(self, outcome: Outcome, started: float) -> Result:
        """The result of a search that is over."""
        self._checks.finish(outcome.answer.top)
        self._caution()
        return self._result(outcome, started)

    def _underway(self) -> Underway | None:
        """The search as it is now, to be simulated from here; None of a search that is not ours."""
        received = self._received
        if received is None or self.asked.searched_by().guarded:
            return None
        tally = self._tally.copy()
        _count(tally, received)
        partly = Partly(*received.by_entry())
        return Underway(self._begin, self.asked.problem, tuple(self._replies), partly, tally)

    def _numbered(self, request: Pulls) -> Numbering:
        """Go on numbering where the request before ended."""
        numbering = Numbering(request, self._issued, self._drawn, self._most)
        np.add.at(self._drawn, request.arms, request.times)
        self._issued = numbering.end
        return numbering

    def _begun(self, numbering: Numbering) -> Received:
        """Count what the request before gave, and begin to receive this one."""
        if self._received is not None:
            _count(self._tally, self._received)
        received = Received(numbering, self.asked.problem.n_arms)
        self._received, self._progress = received, numbering.pulls.progress
        return self._received

    def _present(self, started: float) -> Result:
        """The result if the search ended now."""
        return replace(self._result(self._outcome_so_far(), started), partial=True)

    def _outcome_so_far(self) -> Outcome:
        if self._received is not None:
            _count(self._tally, self._received)
            self._received = None
        return present_outcome(self.asked.problem, self._tally, self._progress, self.seed)

    def _calls(self, numbering: Numbering) -> Iterable[Call]:
        seed = self.seed if self.evaluation.seeded else None
        cells, many = self.asked.cells, self.evaluation.many
        return calls_of(numbering, self.asked.labels, seed, cells, many=many)

    def _receiver(self, received: Received, request: Pulls, show: Show) -> Receive:
        def receive(done: Done) -> None:
            self._take(received, done.call, done.result())
            self._pulls += done.call.times
            show(self._pulls, request.progress, self._account.spent)

        return receive

    def _take(self, received: Received, call: Call, result: Any) -> None:
        """Note the rewards of a call, or raise an error that names what is wrong with them."""
        model = self.asked.problem.rewards
        value, said = with_cost(result, many=self.evaluation.many)
        cost = checked_cost(said, f"the cost of a pull of arm {call.label!r}")
        if self.evaluation.many:
            rewards = checked_rewards(value, call.times, call.label, model)
            received.take_many(call.ticket, rewards)
            self._note(call.label, rewards, float(rewards.min()), float(rewards.max()))
        else:
            reward = checked_reward(value, f"a reward of arm {call.label!r}", model)
            received.take(call.ticket, reward)
            self._note(call.label, (reward,), reward, reward)
        received.pay(call.ticket, cost)
        self._account.settle(call, cost)

    def _note(self, label: object, rewards: Iterable[float], least: float, most: float) -> None:
        """See how far rewards go, and whether they differ."""
        if not self._smallest <= least:  # NaN before there is one
            self._smallest = least
        if not self._largest >= most:
            self._largest = most
        self._sameness.see(label, rewards)

    def _result(self, outcome: Outcome, started: float) -> Result:
        asked = self.asked
        seconds = time.perf_counter() - started
        name = asked.algorithm
        outcome = replace(outcome, spending=self._account.spending())
        problem = asked.problem.seen(self._smallest, self._largest)
        result = Result.of(outcome, asked.labels, problem, name, self.seed, seconds)
        result = result.doubted(self._checks.warnings, self._checks.notes)
        return replace(result, control=asked.control)


def _count(tally: Tally, received: Received) -> None:
    """Count what a request gave so far."""
    arms, times, rewards, waiting = received.so_far()
    tally.add(arms, times, rewards)
    tally.waiting += waiting


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
    certificate: Certificate = "auto",
    control: OwnLabel | None = None,
    seed: int = 0,
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
    times, with at least `min_batch` pulls at a time. Not every algorithm can be told so. What
    proves the bound is a `certificate`: "pairs", "plans", "split" or "items", or the one that suits
    what is asked.

    With a `control`, one of the arms, the result also compares all others with it: `Result.lift`.

    A function with a parameter `seed` gets a seed of its own for every call, made from (`seed`,
    arm, number of the pull). Then `seed` settles the result, whatever the `executor` ("threads",
    "processes", "ray", an executor of concurrent.futures, a Dask client) and its number of
    `workers`. Async functions run `workers` at a time.

    A call that raises, or takes more than `timeout` seconds, is made again `retries` times; then
    its error ends the selection. With a `store`, every reward is kept in that file under `name`,
    and the same call goes on where this one ended, by Ctrl-C, an error or a crash. The error itself
    has the result so far, `partial`."""
    asked = Settings.of(arguments(locals(), "select"), stored=store is not None)
    attempts = Attempts.of(retries, timeout)
    evaluation = Evaluation.of(pull, pull_many, attempts, on_items=asked.on_items)
    selection = _selection(asked, evaluation, batch, workers, store, name)
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
    order: Order = "shared",
    algorithm: AlgorithmLike = "auto",
    options: Mapping[str, object] | None = None,
    max_rounds: int | None = None,
    min_batch: int | None = None,
    certificate: Certificate = "auto",
    control: OwnLabel | None = None,
    seed: int = 0,
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
    asked = Settings.of(arguments(locals(), "select"), stored=store is not None)
    attempts = Attempts.of(retries, timeout)
    evaluation = Evaluation.of(pull, pull_many, attempts, on_items=asked.on_items)
    selection = _selection(asked, evaluation, batch, workers, store, name)
    if not asynchronous(selection.evaluation.function):
        raise InvalidInput("the function is not async, but `select_async` needs one; use `select`")
    return await selection.run_async(progress)


def _selection(
    asked: Settings,
    evaluation: Evaluation,
    batch: int | None,
    workers: int | None,
    store: Place | None,
    name: str,
) -> "Selection | Keeping":
    """What makes the pulls: kept in a store, or not."""
    if store is None:
        return Selection(asked, evaluation, batch, workers)
    if batch is not None:
        raise InvalidInput(
            f"`batch` is {shown(batch)}, but with a `store` pulls are made one by one"
        )
    return Keeping(asked, evaluation, store, name, workers)
