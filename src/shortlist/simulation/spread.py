"""Spread independent pieces of work over processes."""

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Tell = Callable[[int], None]


def spread(work: Callable[[Item], Result], items: Sequence[Item], jobs: int, tell: Tell | None = None) -> list[Result]:
    """The result of `work` on every item, in order, from `jobs` processes; `tell` hears how many are done."""
    if jobs == 1 or len(items) == 1:
        return _collect(map(work, items), tell)
    with _processes(min(jobs, len(items))) as pool:
        return _collect(pool.map(work, items, chunksize=max(1, len(items) // (8 * jobs))), tell)


def _collect(results: Iterable[Result], tell: Tell | None) -> list[Result]:
    collected = []
    for result in results:
        collected.append(result)
        if tell is not None:
            tell(len(collected))
    return collected


@contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool that ends at once when the caller is interrupted or fails, whatever its processes still have to do."""
    others = set(active_children())
    ignore_interrupts = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches them too, but ending them is up to us
    pool = ProcessPoolExecutor(jobs, initializer=signal.signal, initargs=ignore_interrupts)
    try:
        yield pool
    except BaseException:
        for process in set(active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
