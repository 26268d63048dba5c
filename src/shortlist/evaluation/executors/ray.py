"""Ray as one of the executors of `concurrent.futures`."""

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from shortlist.errors import InvalidInput


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
