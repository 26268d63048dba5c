"""Requests of all kinds, sensible and not: no error of the service itself, no traceback, and no
memory that is not given back.

A few hundred by default; twenty thousand by

    SHORTLIST_ATTACK_SCALE=50 pytest tests/service/test_fuzz.py"""

import gc
import json
import logging
import os
import random
import socket
import tracemalloc
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from services import MAKE, caller, serving

from shortlist.service import schemas
from shortlist.service.replies import Limits
from shortlist.service.routes import API
from shortlist.stores.base import MemoryStore

REQUESTS = 400 * int(os.environ.get("SHORTLIST_ATTACK_SCALE", "1"))
NAMES = ["experiment", "none", "a/b", "..", "%00", "x" * 300, "\u202e", "", "?", "é"]
TEXTS = ["", "w", "ann", "<b>", "\x00", "é" * 50, "x" * 20_000, "\ud83d\ude00", "null"]
NUMBERS = [0, 1, -1, 0.5, 1e308, -1e308, 1e-320, 2**63, 10**40, 3.7, True]
PATHS = [
    "/",
    "/ready",
    "/metrics",
    "/openapi.json",
    "/static/page.js",
    "/static/..%2fapp.py",
    "//",
]
RAW = [
    b"",
    b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/experiments/%zz/status HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://[/ HTTP/1.1\r\nHost: [\r\n\r\n",
    b"POST /v1/experiments HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/experiments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: " + b"a" * 100_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: shortlist_login=" + b"\xff" * 50 + b"\r\n\r\n",
    b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 7\r\n\r\ntoken=%",
]
Chance = random.Random


def garbage(chance: Chance, depth: int = 0) -> Any:
    """Any JSON at all."""
    kinds: list[Callable[[], Any]] = [
        lambda: None,
        lambda: chance.choice(NUMBERS),
        lambda: chance.choice(TEXTS),
        lambda: [garbage(chance, depth + 1) for _ in range(chance.randrange(4))],
        lambda: {chance.choice(TEXTS): garbage(chance, depth + 1) for _ in range(3)},
    ]
    return chance.choice(kinds[: 3 if depth > 3 else 5])()


def valid(schema: schemas.Schema, chance: Chance) -> Any:
    """Something of that shape."""
    if "const" in schema or "enum" in schema:
        return schema.get("const", chance.choice(schema.get("enum", [None])))
    if "anyOf" in schema:
        return valid(chance.choice(schema["anyOf"]), chance)
    if "type" not in schema:
        return garbage(chance)
    kinds = schema["type"]
    kind = chance.choice(kinds) if isinstance(kinds, list) else kinds
    if kind == "object":
        fields = schema.get("properties", {})
        needed = schema.get("required", [])
        chosen = [name for name in fields if name in needed or chance.random() < 0.5]
        return {name: valid(fields[name], chance) for name in chosen}
    if kind == "array":
        least = schema.get("minItems", 0)
        return [valid(schema["items"], chance) for _ in range(least + chance.randrange(4))]
    plain: dict[str, Callable[[], Any]] = {
        "string": lambda: chance.choice(TEXTS[1:6]),
        "integer": lambda: schema.get("minimum", 0) + chance.randrange(50),
        "number": lambda: chance.random() * chance.choice([0.9, 0.9, 1e3]) + 1e-6,
        "boolean": lambda: chance.random() < 0.5,
        "null": lambda: None,
    }
    return plain[kind]()


def body_of(route: Any, chance: Chance) -> bytes | None:
    if route.takes is None:
        return None
    whole = valid(route.takes, chance)
    if chance.random() < 0.3:
        name = chance.choice([*whole, "extra"])
        whole[name] = garbage(chance)
    raw = json.dumps(garbage(chance) if chance.random() < 0.1 else whole).encode()
    if chance.random() < 0.1:
        raw = raw[: chance.randrange(len(raw) + 1)]
    return raw + b" " * 30_000 if chance.random() < 0.02 else raw


def request(call: Any, chance: Chance) -> int:
    """One request, and its status."""
    if chance.random() < 0.1:
        return int(call(chance.choice(["GET", "POST", "HEAD"]), chance.choice(PATHS)).status)
    route = chance.choice(API)
    name = "experiment" if chance.random() < 0.6 else chance.choice(NAMES)
    path = route.path.replace("{name}", quote(name, safe=""))
    method = route.method if chance.random() < 0.95 else chance.choice(["PUT", "GET", "POST", "X"])
    accept = chance.choice(["*/*", "text/html"])
    return int(call(method, path, body_of(route, chance), accept=accept).status)


def raw_request(url: str, chance: Chance) -> bytes:
    """Bytes that are hardly a request, perhaps cut; what comes back."""
    sent = chance.choice(RAW)
    if chance.random() < 0.3:
        sent = sent[: chance.randrange(len(sent) + 1)]
    if chance.random() < 0.2:
        sent = bytes(chance.randrange(256) for _ in range(200))
    with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=10) as each:
        try:
            each.sendall(sent)
            each.shutdown(socket.SHUT_WR)
            return each.recv(1 << 16)
        except OSError:
            return b""


def test_whatever_is_sent_is_answered_or_refused(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    chance = random.Random(2)
    limits = Limits(rate=1e6, body=20_000, arms=200, opened=3)
    with serving(MemoryStore(), limits=limits) as url:
        call = caller(url)
        assert call("POST", "/v1/experiments", MAKE).status == 201
        statuses = [request(call, chance) for _ in range(REQUESTS)]
        replies = [raw_request(url, chance) for _ in range(REQUESTS // 4)]
        assert call("GET", "/ready").status == 200
    assert max(statuses) < 500
    assert {200, 400, 404, 405, 413} <= set(statuses)
    assert not [reply for reply in replies if b" 50" in reply[:15] or b"Traceback" in reply]
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


def test_memory_is_given_back() -> None:
    """Requests that leave nothing in the store leave nothing in the service."""
    chance = random.Random(3)
    reads = [route for route in API if route.method == "GET"]
    with serving(MemoryStore(), limits=Limits(rate=1e6, opened=3)) as url:
        call = caller(url)
        call("POST", "/v1/experiments", MAKE)

        def some(count: int) -> None:
            for _ in range(count):
                route = chance.choice(reads)
                name = chance.choice([f"none {chance.random()}", "experiment"])
                call(
                    "GET", route.path.replace("{name}", quote(name)), accept=f"x/{chance.random()}"
                )
                call("POST", f"/v1/experiments/{quote(name)}/ask", garbage(chance))
                raw_request(url, chance)

        some(REQUESTS // 8)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        some(REQUESTS // 4)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    assert grown < 1_000_000
