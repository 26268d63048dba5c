"""A selection that lives as long as its call: a search whose requests a user's function answers."""

import time
from collections.abc import Iterable
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np

from shortlist.ahead import MOST_REPLIES, Partly, Underway
from shortlist.caution import caution
from shortlist.display import Show, display
from shortlist.driver import (
    BudgetEnded,
    Outcome,
    Run,
    counted,
    finish,
    finish_async,
    present_outcome,
)
from shortlist.errors import InvalidInput
from shortlist.evaluation.account import Account
from shortlist.evaluation.calls import Call, Evaluation, calls_of
from shortlist.evaluation.checks import Checks
from shortlist.evaluation.executors import opened
from shortlist.evaluation.flight import Done, InLoop, Receive, keep_busy, keep_busy_async
from shortlist.evaluation.loop import CONCURRENT
from shortlist.evaluation.numbering import Numbering
from shortlist.evaluation.rewards import (
    Received,
    checked_cost,
    checked_reward,
    checked_rewards,
    with_cost,
)
from shortlist.evaluation.sameness import Sameness
from shortlist.present import Tally
from shortlist.question import Question
from shortlist.result import Result
from shortlist.result.carrying import carrying
from shortlist.search import NO_PROGRESS, Pulls, Rewards
from shortlist.validation import MOST_JOBS, seeded, shown, whole


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
        return counted(self.asked.algorithm, self.asked.problem, rng, **self.asked.options)

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
        if received is None or self.asked.algorithm.guarded:
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
        name = asked.algorithm.name
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
