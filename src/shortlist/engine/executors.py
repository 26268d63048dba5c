"""Where evaluations run: in this thread, on threads, processes, a Dask cluster or Ray."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from shortlist.engine.worker_pool import Evaluate, ExecutorPool
from shortlist.errors import InvalidInput
from shortlist.validation import check_sendable, shown

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
