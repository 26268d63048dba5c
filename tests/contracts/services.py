"""A service in a thread of this process, on a port of its own, and plain HTTP to call it with."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from waiting import PATIENCE, until

pytest.importorskip("starlette", reason="pip install 'shortlist[serve]'")
pytest.importorskip("uvicorn")
from shortlist.service.app import application
from shortlist.service.replies import Limits
from shortlist.service.server import Server, server
from shortlist.stores import Store

GENEROUS = Limits(rate=1e6)
MAKE = {"arms": ["a", "b", "c"], "k": 1, "budget": 60, "algorithm": "uniform"}
JSON = "application/json"


@contextmanager
def serving(
    store: Store,
    clock: Callable[[], float] = time.time,
    limits: Limits = GENEROUS,
    origins: tuple[str, ...] = (),
    port: int = 0,
) -> Iterator[str]:
    """The address of a service in front of that store."""
    app = application(store, limits=limits, clock=clock, origins=origins)
    listening = server(app, "127.0.0.1", port, limits)
    thread = threading.Thread(target=listening.run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port_of(listening)}"
    finally:
        listening.end()
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the service did not end"


def port_of(listening: Server) -> int:
    """The port that it was given, once it listens."""
    until(lambda: listening.started, "the service did not start")
    return listening.port


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    raw: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.raw)

    @property
    def error(self) -> tuple[str, str]:
        said = self.data["error"]
        assert set(said) == {"kind", "message"}
        assert set(self.data) == {"error"}
        return said["kind"], said["message"]


Call = Callable[..., Reply]


def caller(url: str) -> Call:
    """Calls a service at that address, each time on a new connection."""
    address = urlsplit(url)

    def call(method: str, path: str, body: Any = None, **headers: str) -> Reply:
        connection = http.client.HTTPConnection(
            str(address.hostname), address.port, timeout=PATIENCE
        )
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if raw is not None:
            sent.setdefault("content-type", JSON)
        connection.request(method, path, raw, sent)
        response = connection.getresponse()
        reply = Reply(response.status, response.headers, response.read())
        connection.close()
        return reply

    return call
