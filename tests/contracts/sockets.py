"""Plain sockets to a service: for callers that are slow, cut off, or read a stream."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

STREAM_OF = (
    b"GET /experiments/%b/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n\r\n"
)


@contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    address = urlsplit(url)
    with socket.create_connection((str(address.hostname), address.port), timeout=120) as each:
        yield each


def read_all(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def read_events(connection: socket.socket, kind: str, count: int = 1) -> list[Any]:
    """The next messages of that kind in a stream."""
    text = ""
    while text.count(f"event: {kind}\n") < count or not text.endswith("\n\r\n"):
        part = connection.recv(1 << 20).decode(errors="replace")
        assert part, text[:200]
        text += part
    lines = text.replace("\r\n", "").split("event: ")
    return [each for each in lines if each.startswith(kind)]
