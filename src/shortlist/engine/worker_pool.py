"""Calls under way, on an executor or in an event loop: pools that hand back calls as they end."""

from asyncio import Queue, Task, create_task, gather, timeout
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from shortlist.engine.calls import Call

Evaluate = Callable[[Call], Any]
ATTEMPTS = 3  # a call that ends its worker process every time must not be made for ever
OWN = "_raised_by_evaluation"  # travels with an error from worker to us, as all its attributes do


@dataclass(frozen=True, slots=True)
class Done:
    """A call that has ended, with the value it returned or the error it raised."""

    call: Call
    value: Any = None
    error: BaseException | None = None


def named(error: BaseException, call: Call) -> BaseException:
    """The same error, with the arm in its notes."""
    item = "" if call.item is None else f", item {call.item!r}"
    error.add_note(f"raised while evaluating arm {call.label!r}{item}, pull {call.draw}")
    return error


@dataclass(frozen=True, slots=True)
class Marked:
    """An evaluation whose errors are marked, unlike those of the executor that it runs on."""

    evaluate: Evaluate

    def __call__(self, call: Call) -> Any:
        """Evaluate an arm; what is raised is marked."""
        try:
            return self.evaluate(call)
        except BaseException as error:
            vars(error)[OWN] = True  # some errors refuse to have an attribute set
            raise


class ExecutorPool:
    """Calls on an executor of `concurrent.futures`; one whose worker is lost is submitted again.

    A worker is lost where the future is cancelled, or fails with an error that the evaluation did
    not raise: whatever it is called, it is the executor's own."""

    def __init__(self, executor: Executor, capacity: int, evaluate: Evaluate) -> None:
        self.capacity = capacity
        self._executor = executor
        self._evaluate = Marked(evaluate)
        self._calls: dict[Future[Any], Call] = {}
        self._ended: SimpleQueue[Future[Any]] = SimpleQueue()
        self._losses: Counter[int] = Counter()  # by ticket

    @property
    def under_way(self) -> int:
        """How many calls were submitted and not collected."""
        return len(self._calls)

    def submit(self, call: Call) -> None:
        """Begin a call."""
        try:
            future = self._executor.submit(self._evaluate, call)
        except Exception as error:
            raise named(error, call) from None
        self._calls[future] = call
        future.add_done_callback(self._ended.put)  # unlike `wait`, no slower with more under way

    def collect(self, seconds: float | None = None) -> list[Done]:
        """Wait for the first call to end and return all that have; none after `seconds`."""
        done: list[Done] = []
        while not done:
            try:
                future = self._ended.get(timeout=seconds)
            except Empty:
                break
            done += self._landed(future)
            with suppress(Empty):
                while True:
                    done += self._landed(self._ended.get_nowait())
        return done

    def finish(self) -> list[Done]:
        """Wait for all calls that were submitted and not collected, after an interrupt as well.

        That may have come when a future was out of the queue and not landed: ask all of them."""
        return [done for future in list(self._calls) for done in self._landed(future)]

    def cancel(self) -> None:
        """Give up what has not begun."""
        for future in list(self._calls):
            if future.cancel():
                self._calls.pop(future, None)

    def _landed(self, future: Future[Any]) -> list[Done]:
        """The call of a future that has ended, unless it is given up or made again."""
        call = self._calls.pop(future, None)
        if call is None:
            return []
        if _lost(future):
            self._losses[call.ticket] += 1
            if self._losses[call.ticket] < ATTEMPTS:
                self.submit(call)
                return []
        try:
            return [Done(call, future.result())]
        except BaseException as error:
            return [Done(call, error=error)]


def _lost(future: Future[Any]) -> bool:
    """Whether a future ended without a word of the evaluation."""
    if future.cancelled():
        return True
    error = future.exception()
    return error is not None and not getattr(error, OWN, False)


class EventLoopPool:
    """Calls of an async function in the event loop that is running."""

    def __init__(self, capacity: int, evaluate: Evaluate) -> None:
        self.capacity = capacity
        self._evaluate = evaluate
        self._calls: dict[Task[Any], Call] = {}
        self._ended: Queue[Task[Any]] = Queue()

    @property
    def under_way(self) -> int:
        """How many calls were submitted and not collected."""
        return len(self._calls)

    def submit(self, call: Call) -> None:
        """Begin a call."""
        task = create_task(self._evaluate(call))
        self._calls[task] = call
        task.add_done_callback(self._ended.put_nowait)

    async def collect(self, seconds: float | None = None) -> list[Done]:
        """Wait for the first call to end and return all that have; none after `seconds`."""
        done: list[Done] = []
        with suppress(TimeoutError):
            async with timeout(seconds):
                done.append(self._landed(await self._ended.get()))
        while not self._ended.empty():
            done.append(self._landed(self._ended.get_nowait()))
        return done

    async def cancel(self) -> None:
        """Give up all that is under way."""
        for task in self._calls:
            task.cancel()
        await gather(*self._calls, return_exceptions=True)
        self._calls.clear()

    def _landed(self, task: Task[Any]) -> Done:
        call = self._calls.pop(task)
        try:
            return Done(call, task.result())
        except BaseException as error:
            return Done(call, error=error)
