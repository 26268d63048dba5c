"""Independent pieces of work in several processes, their results in order."""

import os
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children
from threading import Thread
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Tell = Callable[[int], None]  # called with the number of items done

CHUNKS = 8  # portions of items per process: fewer messages, and yet an even load
PATROL = 0.2  # seconds between two looks for the parent


def parallel_map(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int, tell: Tell | None = None
) -> list[Result]:
    """The results of `work` on all items, in order, from `workers` processes."""
    if workers == 1 or len(items) == 1:
        return _collect(map(work, items), tell)
    chunk = max(1, len(items) // (CHUNKS * workers))
    with _processes(min(workers, len(items))) as pool:
        return _collect(pool.map(work, items, chunksize=chunk), tell)


def parallel_stream(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> Generator[Result, None, None]:
    """The same results one by one, each as soon as it and all before it are finished."""
    if workers == 1 or len(items) <= 1:
        yield from map(work, items)
        return
    with _processes(min(workers, len(items))) as pool:
        yield from pool.map(work, items)


def _collect(results: Iterable[Result], tell: Tell | None) -> list[Result]:
    collected = []
    for result in results:
        collected.append(result)
        if tell is not None:
            tell(len(collected))
    return collected


@contextmanager
def _processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool that ends at once, with work left to do, when the caller is interrupted or fails."""
    others = set(active_children())
    pool = ProcessPoolExecutor(workers, initializer=_begin)
    try:
        yield pool
    except BaseException:
        for process in set(active_children()) - others:
            process.kill()  # not SIGTERM: a library may have left a handler, which forks inherit
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """In a new process: leave Ctrl-C to the parent, and end without one.

    Ctrl-C reaches every process of a terminal, but only the parent ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    """Watch who the parent is: a pipe to it would be held open by the other processes."""
    while os.getppid() == parent:
        time.sleep(PATROL)
    os._exit(1)
