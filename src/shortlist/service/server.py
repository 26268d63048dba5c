"""Listen: uvicorn with limits on slow and many callers, and an end that loses nothing."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from shortlist.errors import NotAllowed
from shortlist.service.auth import Tokens
from shortlist.service.limits import Limits
from shortlist.service.service import Service

BACKLOG = 2048  # connections that wait to be accepted
GRACE = 10  # seconds for what is under way when the service is told to end
HEAD = 64 * 2**10  # bytes of a request's head
HERE = "localhost"


def check_host(host: str, store: object) -> None:
    """Without tokens only this machine is listened to."""
    tokens = Tokens(store)
    tokens.read()
    if not tokens.wanted and not _is_loopback(host):
        raise NotAllowed(
            f"`host` is {host!r}, but without tokens a service listens on 127.0.0.1 only:"
            " `shortlist tokens create` makes one"
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == HERE or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def server(app: Starlette, host: str, port: int, limits: Limits) -> "Server":
    """What listens there once it is run."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=PatientProtocol,
        ws="none",
        log_config=None,
        log_level="error",  # who sends garbage should not fill the log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.connections,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=HEAD,
    )
    return Server(config, app.state.service)


class Server(uvicorn.Server):
    """Ends its streams as soon as it is told to end, since they would never end by themselves."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self.announce: Callable[[str], None] = lambda _address: None  # called once it listens

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen until it is told to end; an address that is taken is an error."""
        with _listening(self.config.host, self.config.port) as own:
            super().run([own] if sockets is None else sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        if self.started:
            self.announce(f"http://{self._host()}:{self.port}")

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self.servers[0].sockets[0].getsockname()[1]
        return port

    def _host(self) -> str:
        host = self.config.host
        return f"[{host}]" if ":" in host else host

    async def on_tick(self, counter: int) -> bool:
        """Look ten times a second whether it is time to end."""
        over = await super().on_tick(counter)
        if over:
            self._service.closing.set()
        return over

    def end(self) -> None:
        """End as after Ctrl-C."""
        self.handle_exit(0, None)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note that it is time to end; a signal is not raised again: to end is what was wanted."""
        self.should_exit = True
        del sig, frame


def _listening(host: str, port: int) -> socket.socket:
    """A socket at that address.

    asyncio sends small packets at once (TCP_NODELAY) only where the protocol is named: without, a
    reply of a head and a body waits 40 ms for the other side to acknowledge the head."""
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


class PatientProtocol(H11Protocol):
    """Closes a connection whose next request takes too long to say what it wants."""

    patience = Limits().head_seconds
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Give the first request its time."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(self.patience, self._give_up)

    def handle_events(self) -> None:
        """Read on; a head that begins has its time, a whole one needs none any more."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._stop_waiting()
        elif self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._deadline = self.loop.call_later(self.patience, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()
