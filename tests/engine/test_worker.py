"""`Experiment.run`: in parallel, with failures, interrupted, next to others, sync and async."""

import asyncio
import logging
import pickle
import signal
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import pytest
from waiting import PATIENCE, until

from shortlist import Command
from shortlist.engine import Experiment, Ticket, calls
from shortlist.engine import workers as worker
from shortlist.errors import EvaluationFailed, InvalidInput, InvalidReward, Unfinished
from shortlist.stores.base import MemoryStore


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "FIRST_PAUSE", 0.001)


def new(store: MemoryStore | None = None, **settings: Any) -> Experiment:
    return Experiment.create(
        4, 1, store=store, **{"budget": 60, "algorithm": "uniform", **settings}
    )


def reward(arm: int, seed: int) -> float:
    return (seed % 100) / 100


async def async_reward(arm: int, seed: int) -> float:
    await asyncio.sleep(0)
    return reward(arm, seed)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("workers", [1, 3, 100])
def test_the_result_does_not_depend_on_the_number_of_jobs(workers: int) -> None:
    assert new().run(reward, workers=workers) == new().run(reward)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_pulls_are_made_on_any_executor(executor: str) -> None:
    assert new().run(reward, workers=2, executor=executor) == new().run(reward)


def test_that_many_jobs_run_at_once() -> None:
    meeting = threading.Barrier(3, timeout=120)  # nobody passes before three are there

    def meet(arm: int) -> float:
        meeting.wait()
        return 1.0

    assert new().run(meet, workers=3).pulls == 60


def test_an_async_function_is_run_in_an_event_loop() -> None:
    assert new().run(async_reward) == new().run(reward)
    assert asyncio.run(new().run_async(async_reward, workers=3)) == new().run(reward)


def test_async_calls_are_under_way_together() -> None:
    together: list[int] = []
    most = [0]

    async def meet(arm: int) -> float:
        together.append(arm)
        most[0] = max(most[0], len(together))
        await asyncio.sleep(0.001)
        together.remove(arm)
        return 1.0

    new().run(meet, workers=5)
    assert most[0] == 5


def test_a_function_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is not async, but `run_async` needs one"):
        asyncio.run(new().run_async(reward))
    with pytest.raises(InvalidInput, match="an async function runs in the event loop"):
        new().run(async_reward, executor="threads")
    with pytest.raises(InvalidInput, match="`pull` is 7, but must be a function"):
        new().run(7)  # type: ignore[arg-type]

    async def inside() -> None:
        new().run(async_reward)

    with pytest.raises(InvalidInput, match=r"loop is running here.*`await run_async"):
        asyncio.run(inside())


def flaky(times: int, every: int = 7) -> Callable[..., float]:
    """Fails this many times on every seventh ticket before it gives its reward; not on the first,
    whose error would be raised at once."""
    failed: dict[int, int] = {}

    def pull(arm: int, seed: int, ticket: int) -> float:
        if (ticket + 1) % every == 0 and failed.setdefault(ticket, 0) < times:
            failed[ticket] += 1
            raise EvaluationFailed("no network")
        return reward(arm, seed)

    return pull


def test_failures_are_noted_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    experiment = new()
    assert experiment.run(flaky(1), workers=2, retries=0) == new().run(reward)
    assert experiment.status().failures == 8
    failed = sorted(int(note.split("ticket ")[1].split(")")[0]) for note in told(caplog))
    assert failed == list(range(6, 60, 7))
    assert told(caplog)[0].endswith("failed: no network")


@pytest.mark.parametrize("workers", [1, 4])
def test_a_worker_may_try_again_by_itself_before_the_experiment_hears_of_it(workers: int) -> None:
    experiment = new(retries=0)
    assert experiment.run(flaky(2, every=40), workers=workers, retries=2) == new().run(reward)
    assert experiment.status().failures == 0
    with pytest.raises(Unfinished, match="ticket 39 failed 2 times, the last time: no network"):
        new(retries=0).run(flaky(2, every=40), retries=1)


def test_attempts_of_a_worker_count_as_retries_of_the_experiment() -> None:
    experiment = new()
    with pytest.raises(Unfinished, match="ticket 39 failed 3 times, the last time: no network"):
        experiment.run(flaky(9, every=40))
    assert experiment.status().failures == 3
    again = new(retries=4)
    assert again.run(flaky(4, every=40), retries=2) == new().run(reward)  # in 3 attempts and 2
    assert again.status().failures == 3


def test_a_pull_that_is_handed_out_again_waits_for_growing_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    def wait(_: calls.Stop, seconds: float) -> bool:
        pauses.append(seconds)
        return False

    monkeypatch.setattr(calls, "FIRST_PAUSE", 0.5)
    monkeypatch.setattr(calls.Stop, "wait", wait)
    assert new().run(flaky(2, every=40), retries=0) == new().run(reward)
    first, second = pauses
    assert 0.25 <= first <= 0.75  # seconds: 0.5, give or take a half, and twice that
    assert 0.5 <= second <= 1.5


def test_an_async_pull_that_is_handed_out_again_waits_too() -> None:
    pull = flaky(2, every=40)

    async def pull_async(arm: int, seed: int, ticket: int) -> float:
        return pull(arm, seed, ticket)

    assert new().run(pull_async, retries=0) == new().run(reward)


def test_a_pull_that_waits_to_be_made_again_is_not_made_after_an_interrupt() -> None:
    evaluation = calls.Evaluation.of(reward)
    evaluation.stop.set()
    with pytest.raises(EvaluationFailed, match="it was stopped before it was made again"):
        evaluation(calls.Call(0, 0, 0, 1, 7, pause=3600.0))
    copy = pickle.loads(pickle.dumps(evaluation))  # as for another process
    assert not copy.stop.is_set


@pytest.mark.parametrize("more", [{}, {"workers": 2}])
@pytest.mark.parametrize("wrong", [EvaluationFailed("no network"), None])
def test_an_error_of_the_very_first_call_is_raised_at_once(
    more: dict[str, Any], wrong: Exception | None
) -> None:
    def broken(arm: int, ticket: int) -> Any:
        if ticket == 0 and wrong is not None:
            raise wrong
        return None if ticket == 0 else 1.0

    async def broken_async(arm: int, ticket: int) -> Any:
        return broken(arm, ticket)

    for function in (broken, broken_async):
        experiment = new()
        with pytest.raises(EvaluationFailed if wrong else InvalidReward):
            experiment.run(function, **more)
        assert (experiment.status().failures, experiment.status().held) == (0, 0)
        assert experiment.run(reward).pulls == 60


def test_where_arms_that_fail_retire_no_error_is_raised() -> None:
    def broken(arm: int) -> float:
        if arm == 0:
            raise EvaluationFailed("no network")
        return 1.0

    experiment = new(on_failure="retire", rewards="binary")
    assert experiment.run(broken, retries=0).pulls < 60
    assert experiment.status().failures == 0


def test_an_interrupt_ends_the_pause_before_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "FIRST_PAUSE", 3600.0)
    monkeypatch.setattr(calls, "LONGEST_PAUSE", 3600.0)
    paused = threading.Event()

    back_off = calls.back_off

    def pause(retry: int) -> float:
        paused.set()
        return back_off(retry)

    monkeypatch.setattr(calls, "back_off", pause)

    def moody(arm: int, ticket: int) -> float:
        if ticket == 1:
            raise EvaluationFailed("no network")
        if ticket == 2:
            paused.wait(120)
            signal.raise_signal(signal.SIGINT)
        return 1.0

    experiment = new()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored here
    try:
        with pytest.raises(KeyboardInterrupt):
            experiment.run(moody, workers=2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert experiment.status().held == 0


@pytest.mark.parametrize("bad", [float("nan"), 7.0, None, "1"])
def test_a_reward_that_is_none_stops_the_experiment_in_the_end(bad: object) -> None:
    experiment = new(rewards=(0, 1))
    with pytest.raises(Unfinished, match="failed 3 times, the last time: the reward of ticket 5"):
        experiment.run(lambda arm, ticket: bad if ticket == 5 else 1.0, workers=4)
    assert experiment.status().told >= 5


def interrupting(monkeypatch: pytest.MonkeyPatch, when: Callable[[], bool]) -> None:
    """Ctrl-C as soon as something is the case, in the main thread and between two steps."""

    def pause(self: worker.Worker, done: Any) -> None:
        taken_in(self, done)
        if when():
            raise KeyboardInterrupt

    taken_in = worker.Worker.take_in
    monkeypatch.setattr(worker.Worker, "take_in", pause)


def test_an_interrupt_tells_what_is_done_and_gives_back_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    experiment = new(store)
    ended = threading.Event()
    done: list[int] = []

    class Slow(Command):
        def __init__(self) -> None:
            pass

        def __call__(
            self, arm: Any, item: Any = None, *, seed: int, draw: int, ticket: int
        ) -> float:
            if ticket >= 10:
                ended.wait(120)
                raise EvaluationFailed("it was ended")
            done.append(ticket)
            return reward(arm, seed)

        def stop(self) -> None:
            ended.set()

    with monkeypatch.context() as patch:
        interrupting(patch, lambda: len(done) == 10)
        with pytest.raises(KeyboardInterrupt):
            experiment.run(Slow(), workers=4, worker="w")
    status = Experiment.open(store).status()
    assert (status.told, status.held, status.failures) == (10, 0, 0)
    assert Experiment.open(store).run(reward, worker="another") == new().run(reward)


def test_what_ends_after_an_interrupt_is_told_and_not_paid_for_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment, paid = new(), [0]

    def slow(arm: int, seed: int) -> float:
        paid[0] += 1
        time.sleep(0.01)
        return reward(arm, seed)

    interrupting(monkeypatch, lambda: paid[0] >= 8)
    with pytest.raises(KeyboardInterrupt):
        experiment.run(slow, workers=4)
    assert experiment.status().told == paid[0]


class Interrupted(SimpleQueue[Any]):
    """Is interrupted as soon as the third call that ended is out of it."""

    taken = 0

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        assert self.taken < 3, "what is out of the queue is waited for"
        item = super().get(block, timeout)
        Interrupted.taken += 1
        if self.taken == 3:
            raise KeyboardInterrupt
        return item

    def get_nowait(self) -> Any:
        raise Empty


def test_an_interrupt_at_the_worst_moment_ends_the_run_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = new()
    monkeypatch.setattr("shortlist.engine.executors.SimpleQueue", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        experiment.run(reward, workers=2)
    assert experiment.status().held == 0
    assert experiment.status().told >= 3


def test_a_cancelled_async_run_gives_back_its_tickets() -> None:
    experiment = new()

    async def endless(arm: int) -> float:
        await asyncio.sleep(60)
        return 1.0

    async def cancelled() -> None:
        task = asyncio.create_task(experiment.run_async(endless, workers=3, worker="w"))
        await asyncio.sleep(0.01)
        assert experiment.status().workers == {"w": 3}
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert experiment.status().held == 0


def test_leases_are_renewed_while_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LEASE", 0.3)
    now = [100.0]
    experiment = new(budget=4, clock=lambda: now[0])
    others: list[Ticket] = []
    over = threading.Event()

    def slow(arm: int, ticket: int) -> float:
        if ticket:
            over.wait(PATIENCE)
            return 1.0
        for _ in range(10):  # more than three leases, however busy the machine is
            now[0] += 0.1
            until(lambda: experiment.held()[1] > now[0] + 0.25, "leases were not renewed")
            others.extend(experiment.ask(4, "other"))
        over.set()
        return 1.0

    experiment.run(slow, workers=4)
    assert others == []


def test_a_program_that_was_kept_from_renewing_its_leases_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker, "LEASE", 0.3)
    stalled: list[Any] = []

    def stall(self: worker.Worker, done: Any) -> None:
        taken_in(self, done)
        if not stalled:
            stalled.append(done)
            time.sleep(0.4)

    taken_in = worker.Worker.take_in
    monkeypatch.setattr(worker.Worker, "take_in", stall)

    def slow(arm: int) -> float:
        time.sleep(1.0)
        return 1.0

    new(budget=4).run(slow, workers=4)
    note = told(caplog)[0]  # a busy machine may keep it from asking again
    assert note.startswith("This program was kept from asking for ")
    assert note.endswith(
        "more than the 0.3 s after which its pulls are made again; let evaluations run on"
        " executor='processes'."
    )


def test_a_pull_that_is_late_keeps_its_place_so_that_no_other_is_late_by_waiting_for_it() -> None:
    now, begun = [0.0], list[int]()
    experiment = new(lease=10, on_late=0, clock=lambda: now[0])
    both = threading.Barrier(2, timeout=120)

    def slow(arm: int, ticket: int) -> float:
        begun.append(ticket)
        if ticket < 2:
            both.wait()
            now[0] = 11.0  # both are late
            experiment.release("nobody")  # any writer counts them so
            assert experiment.status().late == 2
            assert sorted(begun) == [0, 1]
            both.wait()
        return 1.0

    experiment.run(slow, workers=2, retries=0)
    assert experiment.status().late == 2
    assert experiment.status().told == 58


def test_it_waits_for_what_others_hold() -> None:
    experiment = new()
    theirs = experiment.ask(3, "other")

    def late() -> None:
        time.sleep(0.3)
        experiment.tell_many((ticket, reward(0, ticket.seed)) for ticket in theirs)

    thread = threading.Thread(target=late)
    thread.start()
    assert experiment.run(reward, workers=2) == new().run(reward)
    thread.join()


def test_it_says_once_for_what_it_waits_if_that_takes_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("shortlist.engine.workers.PAUSE", 0.001)
    monkeypatch.setattr("shortlist.engine.workers.PATIENCE", 0.01)
    now = [100.0]

    def clock() -> float:
        now[0] += 0.1
        return now[0]

    experiment = new(clock=clock)
    experiment.ask(2, "dead", alive=30)
    experiment.ask(1, "dead too", alive=20)
    experiment.run(reward)
    assert [note.split(" until")[0] for note in told(caplog)] == [
        "Waiting for 3 pulls that other workers hold"
    ]
    assert caplog.records[0].levelno == logging.WARNING


def test_a_failure_is_kept_in_a_line_and_noted_with_all_that_was_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(arm: int, ticket: int) -> float:
        if ticket != 1:
            return 1.0
        error = EvaluationFailed("it said: end")
        error.add_note("begin\n\x1b[31mend")
        raise error

    experiment = new(retries=0)
    with pytest.raises(Unfinished, match=r"the last time: it said: end$"):
        experiment.run(broken, retries=0)
    assert told(caplog) == [
        r"Pull 0 of 1 (ticket 1) failed: it said: end" "\nbegin\n" r"\x1b[31mend"
    ]


def test_a_reward_that_came_too_late_is_noted_and_the_first_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    experiment = new()

    def overtaken(arm: int, seed: int, ticket: int) -> float:
        if ticket == 4:
            experiment.tell(ticket, 1.0)
            return 0.0
        return reward(arm, seed)

    experiment.run(overtaken)
    (note,) = told(caplog)
    assert note.endswith("ticket 4 is told 0.0, but was told 1.0 before, which stays")


@pytest.mark.parametrize(("name", "value"), [("workers", 0), ("workers", 1.5), ("retries", -1)])
def test_jobs_and_retries_must_be_whole_numbers(name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"`{name}` is {value}, but must be"):
        new().run(reward, **{name: value})


def test_an_experiment_that_is_over_returns_its_result_at_once() -> None:
    experiment = new()
    result = experiment.run(reward)
    assert experiment.run(lambda arm: 1 / 0) == result
