"""Server-sent events: all readers of an experiment's page share one look at it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress

from shortlist.errors import LimitExceeded, ShortlistError
from shortlist.service.auth import FRESH
from shortlist.service.pages.render import parts
from shortlist.service.pages.view import kept_history, view_experiment
from shortlist.service.replies import HEADERS, Stream
from shortlist.service.service import FAILED, Service, logger
from shortlist.stores.base import Token

PAUSE = 1.0  # seconds between two looks, at least
SHARE = 0.05  # of the time that may be spent on looking
HEARTBEAT = 15.0  # seconds without a message after which a comment is sent
RETRY = b"retry: 2000\n\n"  # milliseconds after which a browser reconnects


class Watch:
    """Looks at one experiment while its page has readers. It belongs to the event loop."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self._name = name
        self._version = ""
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._message = b""  # the last one
        self._number = 0  # of the last message
        self.readers = 0

    async def messages(self, token: Token | None) -> AsyncIterator[bytes]:
        """Yield messages until the service or the validity of the token ends.

        A slow reader gets the last one only."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_repeatedly())
        yield RETRY
        sent = 0
        while not self._service.closing.is_set() and self._service.tokens.is_valid(token):
            if self._number != sent:
                sent = self._number
                yield self._message
            elif not await _happens(self._changed, HEARTBEAT):
                yield b": still here\n\n"

    async def _look_repeatedly(self) -> None:
        closing = self._service.closing
        while self.readers and not closing.is_set():
            begun = time.perf_counter()
            message = await self._look_safely()
            if message is not None:
                self._message = message
                self._number += 1
                self.wake()
            await _happens(closing, max(PAUSE, (time.perf_counter() - begun) / SHARE))
        self.wake()

    def wake(self) -> None:
        """Let every reader look whether there is a message, and whether it may still read."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _look_safely(self) -> bytes | None:
        try:
            return await self._service.lanes.pages.run(self._look)
        except ShortlistError as error:
            return _message("trouble", {"message": str(error)})
        except Exception:
            logger.exception("a look at an experiment failed: %s", self._name)
            return _message("trouble", {"message": FAILED})

    def _look(self) -> bytes | None:
        """The parts of the page, if anything changed."""
        experiments = self._service.experiments
        version = experiments.get(self._name).change_token()
        if version == self._version:
            return None
        history = kept_history(experiments, self._name)
        rendered = parts(view_experiment(experiments, self._name, history))
        self._version = version
        return _message("parts", rendered)


def _message(kind: str, data: dict[str, str]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event; False if it does not happen within this many seconds."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


class Watches:
    """The experiments whose pages have readers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._watches: dict[str, Watch] = {}
        self._guard: asyncio.Task[None] | None = None

    def stream(self, name: str, token: Token | None) -> Stream:
        """Return the event stream of an experiment, unless too many are open."""
        limit = self._service.limits.readers
        if self._service.metrics.readers >= limit:
            raise LimitExceeded(f"{limit:,} live pages are open, the most that a service allows")
        return Stream(self._messages(name, token), headers=HEADERS, media_type="text/event-stream")

    async def _messages(self, name: str, token: Token | None) -> AsyncIterator[bytes]:
        if self._guard is None or self._guard.done():
            self._guard = asyncio.create_task(self._guard_tokens())
        watch = self._watches.setdefault(name, Watch(self._service, name))
        watch.readers += 1
        self._service.metrics.readers += 1
        try:
            async for message in watch.messages(token):
                yield message
        finally:
            self._service.metrics.readers -= 1
            watch.readers -= 1
            if not watch.readers and self._watches.get(name) is watch:
                del self._watches[name]

    async def _guard_tokens(self) -> None:
        """While there are readers, read the tokens again and again; wake readers if any changed."""
        tokens, then = self._service.tokens, time.time()
        while self._watches and not self._service.closing.is_set():
            before, now = tokens.all, time.time()
            with suppress(ShortlistError):  # the store cannot be read: the next look reports it
                await self._service.read_tokens()
            expired = any(then < (token.expires or then) <= now for token in tokens.all)
            if tokens.all != before or expired:
                for watch in list(self._watches.values()):
                    watch.wake()
            then = now
            await _happens(self._service.closing, FRESH / 2)
