"""Run the service with uvicorn: listen, announce the address, end streams on shutdown.

Logs are lines of text or of JSON on stderr."""

import asyncio
import ipaddress
import json
import logging
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Connection

from shortlist.errors import NotAllowed
from shortlist.service.auth import Tokens
from shortlist.service.replies import Limits
from shortlist.service.service import Service

LOG_LINE = "%(asctime)s %(name)s %(levelname)s %(message)s"
BACKLOG = 2048  # connections waiting to be accepted
GRACE = 2  # seconds that requests may take to finish on shutdown
HEAD = 64 * 2**10  # bytes of a request's head
SWITCH = 0.0005  # seconds that a thread may compute while others wait, instead of 5 ms
OTHER_FILES = 100  # open files that are not connections of callers


def check_host(host: str, store: object) -> None:
    """Refuse to listen on other addresses than loopback while the store has no tokens."""
    tokens = Tokens(store)
    tokens.read()
    if not tokens.required and not _is_loopback(host):
        raise NotAllowed(
            f"`host` is {host!r}, but without tokens must be a loopback address such as 127.0.0.1:"
            " make a token with `shortlist tokens create`"
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_files() -> int:
    """How many files this process may have open: connections beyond that would fail."""
    if sys.platform == "win32":
        return 8192
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = Limits().connections + OTHER_FILES
    if soft < wanted and (hard == resource.RLIM_INFINITY or hard > soft):
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(soft, OTHER_FILES + 10)


def server(app: Starlette, host: str, port: int, limits: Limits) -> "Server":
    """Return a server for the application; its `run` listens at host and port."""
    config = uvicorn.Config(
        SendTimeout(app, limits.send_seconds),
        host=host,
        port=port,
        http="h11",
        ws="none",
        log_config=None,
        log_level="error",  # malformed requests must not fill the log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=min(limits.connections, allowed_files() - OTHER_FILES),
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=HEAD,
    )
    return Server(config, app.state.service)


@dataclass(frozen=True, slots=True)
class SendTimeout:
    """Cut off callers who do not take in what they are sent."""

    app: ASGIApp
    seconds: float

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        """Answer a request; each part of the reply must be taken in within the time limit."""
        cycle = getattr(send, "__self__", None)  # of uvicorn, which has the connection

        async def send_in_time(message: Message) -> None:
            try:
                await asyncio.wait_for(send(message), self.seconds)
            except TimeoutError:
                transport = getattr(cycle, "transport", None)
                if transport is not None:
                    transport.abort()  # `close` would wait until all is sent
                raise ClientDisconnect from None

        try:
            await self.app(connection, receive, send_in_time)
        except ClientDisconnect:
            await asyncio.sleep(0)  # until the server knows that the connection is gone


class Server(uvicorn.Server):
    """A server that ends its event streams on shutdown: they have no end of their own."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._loop: asyncio.AbstractEventLoop | None = None
        self.announce: Callable[[str], None] = lambda _address: None  # called when it listens

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen until a signal or `end`; raise OSError if the address is taken."""
        sys.setswitchinterval(SWITCH)
        with _listening(self.config.host, self.config.port) as own:
            super().run([own] if sockets is None else sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen and announce the address."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            host = self.config.host
            self.announce(f"http://{f'[{host}]' if ':' in host else host}:{self.port}")

    @property
    def port(self) -> int:
        """The port that it listens on."""
        port: int = self.servers[0].sockets[0].getsockname()[1]
        return port

    def end(self) -> None:
        """Shut down as after Ctrl-C. Any thread may call this."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._service.closing.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down; the signal is not raised again, so the exit status is 0."""
        del sig, frame
        self.end()


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    The protocol is named because asyncio sets TCP_NODELAY only then; without it, the body of a
    reply waits 40 ms for the acknowledgement of its head."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    own = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind((host, port))
        own.listen(BACKLOG)
    except BaseException:
        own.close()
        raise
    return own


class JsonLines(logging.Formatter):
    """One JSON object per record; what belongs to a request has fields of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "request", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def start_logs(level: str, style: str) -> None:
    """Log to stderr from this level on, as "text" or "json"."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if style == "json" else logging.Formatter(LOG_LINE))
    logging.basicConfig(handlers=[handler], level=level.upper())
