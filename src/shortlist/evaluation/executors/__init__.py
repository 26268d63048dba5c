"""Where evaluations run: in this thread, on threads, processes, a Dask cluster or Ray."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext

from shortlist.errors import InvalidInput
from shortlist.evaluation.executors.processes import Processes
from shortlist.evaluation.executors.ray import RayExecutor
from shortlist.evaluation.flight import Evaluate, Flight, Here, OnExecutor
from shortlist.validation import shown

IN_FLIGHT = 1000  # calls handed at a time to an executor whose size is unknown
KINDS = (
    "'threads', 'processes', 'ray', an executor of concurrent.futures or a client of"
    " dask.distributed"
)


@contextmanager
def opened(executor: object, workers: int | None, evaluate: Evaluate) -> Iterator[Flight]:
    """A flight of calls of `evaluate` on what the user named; what is started here is ended here.

    `workers` alone means threads; for an executor of the user's it bounds the calls under way."""
    if executor is None and workers in (None, 1):
        yield Here(evaluate)
        return
    context, capacity = _chosen(executor, workers)
    with context as pool:
        yield OnExecutor(pool, capacity, evaluate)


def _chosen(executor: object, workers: int | None) -> tuple[AbstractContextManager[Executor], int]:
    """The executor, and how many calls it holds at a time.

    They are two a worker where we know how many workers there are, so that none waits for us."""
    size = workers or os.cpu_count() or 1
    kind = executor if isinstance(executor, str) else ""
    if executor is None or kind == "threads":
        return ThreadPoolExecutor(size), 2 * size
    if kind == "processes":
        return Processes(size), 2 * size
    if kind == "ray":
        return RayExecutor(), workers or IN_FLIGHT
    if isinstance(executor, Executor):
        return nullcontext(executor), workers or IN_FLIGHT
    return nullcontext(_dask(executor)), workers or IN_FLIGHT


def _dask(client: object) -> Executor:
    """A Dask client as an executor. Tasks are impure: a pure one is run once and remembered,
    whatever its arm does."""
    distributed = sys.modules.get("distributed")  # whoever has a client has imported it
    if distributed is None or not isinstance(client, distributed.Client):
        raise InvalidInput(f"`executor` is {shown(client)}, but must be {KINDS}")
    if client.asynchronous:
        raise InvalidInput(
            f"`executor` is {shown(client)}, but must be a client made without asynchronous=True"
        )
    executor: Executor = client.get_executor(pure=False)
    return executor
