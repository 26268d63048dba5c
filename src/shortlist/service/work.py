"""Threads for blocking work, in lanes that do not wait for each other.

A lane has some threads and a queue of bounded length. Work beyond that is refused at once with
status 503, so a caller knows it, and slow work of one kind does not delay the others. Work whose
caller is gone leaves the queue; work that has begun ends on its own."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from http import HTTPStatus
from typing import Generic, ParamSpec, TypeVar

from shortlist.service.replies import Refusal

Given = ParamSpec("Given")
Got = TypeVar("Got")


class Lane:
    """The threads and the queue of one kind of work. It belongs to the event loop."""

    def __init__(self, name: str, threads: int, waiting: int, *, writes: bool = False) -> None:
        self.name = name
        self._writes = writes
        self._most = threads + waiting
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, f"shortlist-{name}")
        self._count = 0  # of calls queued or under way

    @property
    def waiting(self) -> int:
        """How many calls wait for a thread."""
        return max(0, self._count - self._threads)

    async def run(
        self, function: Callable[Given, Got], *given: Given.args, **named: Given.kwargs
    ) -> Got:
        """Return what the function returns, called in a thread of this lane."""
        if self._count >= self._most:
            rule = "try again in a second"
            raise Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{self._count:,} requests are in the queue for {self.name}: {rule}",
                retry_after="1",
            )
        loop = asyncio.get_running_loop()
        self._count += 1
        call = partial(copy_context().run, function, *given, **named)  # spans are in the context
        future = self._pool.submit(call)
        future.add_done_callback(lambda each: self._end(loop, each))
        return await asyncio.wrap_future(future)  # if this is cancelled, so is queued work

    def _end(self, loop: asyncio.AbstractEventLoop, _future: "Future[Got]") -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._subtract)

    def _subtract(self) -> None:
        self._count -= 1

    def close(self) -> None:
        """Drop the queue; wait for the work under way if it writes."""
        self._pool.shutdown(wait=self._writes, cancel_futures=True)


class Lanes:
    """The lanes of a service."""

    def __init__(self) -> None:
        self.tokens = Lane("tokens", 1, 4)
        self.bodies = Lane("bodies", 1, 64)
        self.opening = Lane("opening", 2, 64, writes=True)
        self.writes = Lane("writes", 4, 1000, writes=True)  # one call per experiment at a time
        self.reads = Lane("reads", 4, 256)
        self.pages = Lane("pages", 1, 128)
        self.exports = Lane("exports", 1, 64)

    def all(self) -> list[Lane]:
        """All of them."""
        return list(vars(self).values())

    def close(self) -> None:
        """Close all of them."""
        for lane in self.all():
            lane.close()


class Shared(Generic[Got]):
    """A call that is made once for all callers who wait for it at the same time."""

    def __init__(self, call: Callable[[], Awaitable[Got]]) -> None:
        self._call = call
        self._task: asyncio.Task[Got] | None = None

    async def result(self) -> Got:
        """Return the result of the call under way, or of a new one."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._made())
            self._task.add_done_callback(_retrieve)
        return await asyncio.shield(self._task)

    async def _made(self) -> Got:
        return await self._call()


def _retrieve(task: "asyncio.Task[Got]") -> None:
    """Mark the error of a task as retrieved: its callers may be gone."""
    if not task.cancelled():
        task.exception()
