"""Where evaluations run: in this thread, on threads, processes, a Dask cluster or Ray.

Pools keep calls under way, on an executor or in an event loop, and hand them back as they end."""

import logging
import os
import signal
import sys
from asyncio import Queue, Task, create_task, gather, timeout
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from shortlist.engine.calls import Call
from shortlist.errors import InvalidInput
from shortlist.validation import check_sendable, shown

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
    item = "" if call.item is None else f", item {call.item_name}"
    error.add_note(f"raised while evaluating arm {call.label!r}{item}, pull {call.draw}")
    if call.first:
        error.add_note("this was the very first call, attempt 1: such an error is raised at once")
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


P = ParamSpec("P")
T = TypeVar("T")


class Processes(Executor):
    """Processes that are replaced when one of them dies, and ended at once when the caller fails.

    The standard pool is of no use any more after one of its processes is killed."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.sent = False
        self.pool = self._fresh()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function in a process, of a new pool if the present one is broken."""
        if not self.sent:
            check_sendable("the function", fn)
            self.sent = True
        try:
            return self.pool.submit(fn, *args, **kwargs)
        except BrokenProcessPool:
            self.pool.shutdown()
            self.pool = self._fresh()
            return self.pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes when they have finished."""
        self.pool.shutdown(wait, cancel_futures=cancel_futures)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            members: dict[int, Any] = getattr(self.pool, "_processes", None) or {}
            for process in list(members.values()):
                process.terminate()
        self.shutdown(cancel_futures=error is not None)

    def _fresh(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.workers, initializer=_begin)


def _begin() -> None:
    """In a new process: Ctrl-C reaches it too, but ending it, by SIGTERM, is up to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a library may have left a handler to inherit


def _apply(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


class RayExecutor(Executor):
    """Runs functions as Ray tasks, on the cluster that is connected, or else on a local one that
    ends with it.

    `options` are those of a Ray task, such as `num_cpus=0.5`. Ray runs a task again if its worker
    is lost."""

    def __init__(self, **options: Any) -> None:
        try:
            import ray
        except ImportError as error:
            raise InvalidInput(
                "`executor` is 'ray', but Ray is not installed: pip install 'shortlist[ray]'"
            ) from error
        self.started = not ray.is_initialized()
        if self.started:
            ray.init(include_dashboard=False, logging_level=logging.ERROR)
        self.ray = ray
        self.apply = ray.remote(_apply).options(**options)
        self.stored: tuple[Callable[..., Any], Any] | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function as a Ray task; its code, and what it holds, travel once."""
        if self.stored is None or self.stored[0] is not fn:
            self.stored = fn, self.ray.put(fn)
        reference = self.apply.remote(self.stored[1], *args, **kwargs)
        future: Future[Any] = reference.future()
        future.add_done_callback(
            lambda done: self.ray.cancel(reference) if done.cancelled() else None
        )
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """End the local cluster, if there is one."""
        if self.started:
            self.ray.shutdown()


IN_FLIGHT = 1000  # calls handed at a time to an executor whose size is unknown
KINDS = (
    "'threads', 'processes', 'ray', an executor of concurrent.futures or a client of"
    " dask.distributed"
)


@contextmanager
def pool_on(executor: object, workers: int | None, evaluate: Evaluate) -> Iterator[ExecutorPool]:
    """A pool for calls of `evaluate` on the executor that the user named; an executor that is
    started here is ended here.

    `workers` alone means threads; for an executor of the user's it bounds the calls under way."""
    context, capacity = _chosen(executor, workers)
    with context as chosen:
        yield ExecutorPool(chosen, capacity, evaluate)


def _chosen(executor: object, workers: int | None) -> tuple[AbstractContextManager[Executor], int]:
    """The executor, and how many calls it holds at a time."""
    size = workers or os.cpu_count() or 1
    kind = executor if isinstance(executor, str) else ""
    if kind == "threads":
        return ThreadPoolExecutor(size), size
    if kind == "processes":
        return Processes(size), size
    if kind == "ray":
        return RayExecutor(), workers or IN_FLIGHT
    if isinstance(executor, Executor):
        return nullcontext(executor), workers or IN_FLIGHT
    return nullcontext(_dask(executor)), workers or IN_FLIGHT


def _dask(client: object) -> Executor:
    """A Dask client as an executor. Tasks are impure: a pure one is run once and remembered,
    whatever its arm does."""
    distributed = sys.modules.get("distributed")  # imported by any program with a client
    if distributed is None or not isinstance(client, distributed.Client):
        raise InvalidInput(f"`executor` is {shown(client)}, but must be {KINDS}")
    if client.asynchronous:
        raise InvalidInput(
            f"`executor` is {shown(client)}, but must be a client made without asynchronous=True"
        )
    executor: Executor = client.get_executor(pure=False)
    return executor
