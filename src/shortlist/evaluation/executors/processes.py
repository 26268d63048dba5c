"""A pool of processes that outlives its members."""

import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from shortlist.validation import check_sendable

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
