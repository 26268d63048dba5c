"""The way to a service: one connection a thread, requests made again until they are answered."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from numbers import Integral, Real
from threading import local
from typing import Any
from urllib.parse import SplitResult, urlsplit

import numpy as np

from shortlist.errors import InvalidInput, Unreachable
from shortlist.validation import real, shown, text
from shortlist.wire import Json, error_of

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds before a request is made again: doubled each time
BUSY = (429, 502, 503, 504)  # statuses that may be better the next time
UNCHANGED = 304
logger = logging.getLogger("shortlist.client")


class Connection:
    """Requests to one service. Threads may share it.

    A service that does not answer is asked again, more and more seldom, for `patience` seconds: it
    may be about to start again."""

    def __init__(self, url: str, token: str | None, timeout: float, patience: float) -> None:
        self._address = _address(url)
        self._token = None if token is None else _sendable(token)
        self._timeout = timeout
        self._patience = patience
        self._own = local()  # this thread's
        self._made: list[HTTPConnection] = []  # everybody's
        if token is not None and not _is_private(self._address):
            logger.warning("The token is sent to %s in plain text: use https.", url)

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._address.geturl()

    def call(
        self, method: str, path: str, body: Json | None = None, *, repeatable: bool = True
    ) -> Json:
        """What a service answers.

        What is not `repeatable` is sent again only if it cannot have arrived."""
        _, data = self.conditional(method, path, body, None, repeatable)
        assert data is not None
        return data

    def conditional(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        etag: str | None = None,
        repeatable: bool = True,
    ) -> tuple[str | None, Json | None]:
        """What a service answers and its ETag; no data if it still is that of `etag`."""
        headers = {} if etag is None else {"If-None-Match": etag}
        response, raw = self._insist(method, path, body, headers, repeatable)
        known = response.headers.get("ETag")
        return (known, None) if response.status == UNCHANGED else (known, _parsed(response, raw))

    def lines(self, path: str) -> Iterator[str]:
        """What a service answers, line by line as it comes in."""
        response = self._send("GET", path, None, {}, True)
        if response.status >= 400:
            raise error_of(_loaded(response.read()), response.status)
        for line in response:
            yield line.decode().rstrip("\n")

    def close(self) -> None:
        """Let go of all connections, of whatever thread."""
        while self._made:
            self._made.pop().close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # of an address that was refused
            self.close()

    def _drop(self) -> None:
        """Let go of this thread's connection."""
        connection = self._own.__dict__.pop("connection", None)
        if connection is not None:
            connection.close()
        if connection in self._made:
            self._made.remove(connection)

    def _insist(
        self, method: str, path: str, body: Json | None, headers: dict[str, str], repeatable: bool
    ) -> tuple[HTTPResponse, bytes]:
        deadline = time.monotonic() + self._patience
        pause = FIRST_PAUSE
        while True:
            late = time.monotonic() + pause > deadline
            try:
                response = self._send(method, path, body, headers, repeatable)
                raw = response.read()
                if response.status not in BUSY or late:
                    return response, raw
            except Unreachable:
                self._drop()
                if late:
                    raise
            except (OSError, HTTPException) as error:
                self._drop()
                if late or not repeatable:
                    raise Unreachable(f"{self.url} did not answer: {error!r}") from error
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _send(
        self, method: str, path: str, body: Json | None, headers: dict[str, str], repeatable: bool
    ) -> HTTPResponse:
        if not repeatable:  # a connection that was idle may be closed already: no way to know
            self._drop()
        connection = self._connected()
        sent = dict(headers)
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        raw = None if body is None else _written(body)
        connection.request(method, self._address.path.rstrip("/") + path, raw, sent)
        return connection.getresponse()

    def _connected(self) -> HTTPConnection:
        connection: HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is not None and connection.sock is not None:
            return connection
        secure = self._address.scheme == "https"
        made = HTTPSConnection if secure else HTTPConnection
        connection = made(self._address.netloc, timeout=self._timeout)
        try:
            connection.connect()
        except OSError as error:
            raise Unreachable(f"no service answers at {self.url}: {error}") from error
        self._own.connection = connection
        self._made.append(connection)
        return connection


def _address(url: str) -> SplitResult:
    url = text("url", url)
    with suppress(ValueError):
        address = urlsplit(url)
        if address.scheme in ("http", "https") and address.hostname and address.port != 0:
            return address
    raise InvalidInput(f"`url` is {url!r}, but must be the address of a service, as http://host:80")


def _sendable(token: str) -> str:
    """A token as the head of a request has it."""
    if not (text("token", token).isascii() and token.isprintable()):
        raise InvalidInput("`token` has characters that none has, but must be as it was made")
    return token


def _written(body: Json) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"a value is to be sent that JSON has no word for: {error}") from error


def _plain(value: Any) -> Any:
    """Numbers of other kinds as plain ones."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else real(value)
    raise InvalidInput(f"{shown(value)} is to be sent, but JSON has no word for it")


def _is_private(address: SplitResult) -> bool:
    """Whether what is sent there is nobody else's to read."""
    try:
        here = ip_address(address.hostname or "").is_loopback
    except ValueError:
        here = address.hostname == "localhost"
    return here or address.scheme == "https"


def _parsed(response: HTTPResponse, raw: bytes) -> Json:
    data = _loaded(raw)
    if response.status >= 400 or not isinstance(data, dict):
        raise error_of(data, response.status)
    return data


def _loaded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None
