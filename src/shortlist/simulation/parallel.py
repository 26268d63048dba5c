"""Spread independent pieces of work over processes."""

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
Tell = Callable[[int], None]


def spread(
    work: Callable[[Item], Result], items: Sequence[Item], jobs: int, tell: Tell | None = None
) -> list[Result]:
    """The result of `work` on every item, in order, from `jobs` processes; `tell` hears how many
    are done."""
    if jobs == 1 or len(items) == 1:
        return _collect(map(work, items), tell)
    with _processes(min(jobs, len(items))) as pool:
        return _collect(pool.map(work, items, chunksize=max(1, len(items) // (8 * jobs))), tell)


def stream(
    work: Callable[[Item], Result], items: Sequence[Item], jobs: int
) -> Generator[Result, None, None]:
    """The result of `work` on every item, in order, each as soon as it is there and all before it
    are."""
    if jobs == 1 or len(items) <= 1:
        yield from map(work, items)
        return
    with _processes(min(jobs, len(items))) as pool:
        yield from pool.map(work, items)


def _collect(results: Iterable[Result], tell: Tell | None) -> list[Result]:
    collected = []
    for result in results:
        collected.append(result)
        if tell is not None:
            tell(len(collected))
    return collected


@contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool that ends at once when the caller is interrupted or fails, whatever its processes
    still have to do."""
    others = set(active_children())
    pool = ProcessPoolExecutor(jobs, initializer=_begin)
    try:
        yield pool
    except BaseException:
        for process in set(active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """In a new process: Ctrl-C reaches it too, but ending it is up to its parent; without that it
    ends by itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    """Watch who the parent is: a pipe to it would be held open by the other processes."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
