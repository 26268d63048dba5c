"""Server-sent events: one look at an experiment serves everybody who watches it."""

import asyncio
import json
import time

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from shortlist.errors import LimitExceeded, ShortlistError
from shortlist.service.experiment_cache import Opened
from shortlist.service.pages.render import parts
from shortlist.service.pages.view import Course, begun_course, look
from shortlist.service.replies import HEADERS
from shortlist.service.service import FAILED, Service, logger

PAUSE = 1.0  # seconds between two looks at least,
SHARE = 0.05  # of the time may be spent on looking
HEARTBEAT = 15.0  # seconds after which a stream says that it is still there
RETRY = "retry: 2000\n\n"  # milliseconds after which a browser comes back


class Watch:
    """One experiment, looked at as long as somebody watches. It belongs to the event loop."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self._name = name
        self._version = ""
        self._course: Course | None = None
        self._task: asyncio.Task[None] | None = None
        self.readers = 0
        self.message = b""  # the last one: whoever comes later begins with it
        self.number = 0  # of the last message
        self.changed = asyncio.Event()

    def begin(self) -> None:
        """Look, from now on, as somebody came."""
        self.readers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_on())

    async def _look_on(self) -> None:
        while self.readers and not self._service.closing.is_set():
            begun = time.perf_counter()
            try:
                message = await self._service.in_thread(self._look)
            except ShortlistError as error:
                message = _message("trouble", {"message": str(error)})
            except Exception:
                logger.exception("a look at an experiment failed: %s", self._name)
                message = _message("trouble", {"message": FAILED})
            if message is not None:
                self.message = message
                self.number += 1
                self.changed.set()
                self.changed = asyncio.Event()
            spent = time.perf_counter() - begun
            await _pause(self._service.closing, max(PAUSE, spent / SHARE))

    def _look(self) -> bytes | None:
        """The parts of the page, if anything changed."""
        opened: Opened = self._service.opened
        version = opened.experiment(self._name).version()
        if version == self._version:
            return None
        if self._course is None:
            self._course = begun_course(opened, self._name)
        rendered = parts(look(opened, self._name, self._course))
        self._version = version
        return _message("parts", rendered)


def _message(kind: str, data: dict[str, str]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


async def _pause(closing: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(closing.wait(), seconds)
    except TimeoutError:
        return


class Watches:
    """All experiments that somebody watches."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._watches: dict[str, Watch] = {}

    def stream(self, name: str) -> "Stream":
        """A stream of what happens to that experiment, unless too many are open."""
        most = self._service.limits.readers
        if self._service.metrics.readers >= most:
            raise LimitExceeded(f"{most:,} live pages are open already, the most that are served")
        watch = self._watches.setdefault(name, Watch(self._service, name))
        return Stream(self._service, watch, self)

    def leave(self, watch: Watch) -> None:
        """Forget an experiment that nobody watches any more."""
        watch.readers -= 1
        if not watch.readers:
            others = {name: each for name, each in self._watches.items() if each is not watch}
            self._watches = others


class Stream(Response):
    """The response to one reader. Who is slow gets the last message, not all of them."""

    def __init__(self, service: Service, watch: Watch, watches: Watches) -> None:
        super().__init__(headers=HEADERS, media_type="text/event-stream")
        del self.headers["content-length"]
        self._service = service
        self._watch = watch
        self._watches = watches

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send messages until the reader is gone or the service ends."""
        self._service.metrics.readers += 1
        self._watch.begin()
        gone = asyncio.create_task(_gone(receive))
        try:
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            await self._send_all(send, gone)
        except (TimeoutError, OSError):
            return  # a reader who takes nothing any more
        finally:
            gone.cancel()
            self._watches.leave(self._watch)
            self._service.metrics.readers -= 1

    async def _send_all(self, send: Send, gone: asyncio.Task[None]) -> None:
        sent = 0
        await self._send(send, RETRY.encode())
        while not gone.done() and not self._service.closing.is_set():
            changed = self._watch.changed
            if self._watch.number != sent:
                sent = self._watch.number
                await self._send(send, self._watch.message)
            elif not await self._wait(changed, gone):
                await self._send(send, b": still here\n\n")
        await send({"type": "http.response.body", "body": b""})

    async def _wait(self, changed: asyncio.Event, gone: asyncio.Task[None]) -> bool:
        """Wait for a change, the end of the reader or of the service; False if nothing came."""
        events = (changed, self._service.closing)
        waits = {asyncio.create_task(event.wait()) for event in events}
        done, _ = await asyncio.wait(
            {*waits, gone}, timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED
        )
        for each in waits:
            each.cancel()
        return bool(done)

    async def _send(self, send: Send, body: bytes) -> None:
        message = {"type": "http.response.body", "body": body, "more_body": True}
        await asyncio.wait_for(send(message), self._service.limits.send_seconds)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
