"""What the service accepts and sends: limits, JSON replies, errors, security headers."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from shortlist import errors
from shortlist.errors import ShortlistError
from shortlist.wire import error_to_json

# the first class that matches gives the status
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (errors.UnknownTicket, 404),
    (errors.ConflictingReward, 409),
    (errors.InvalidInput, 400),
    (errors.StoreMissing, 404),
    (errors.StoreExists, 409),
    (errors.Unfinished, 409),
    (errors.CannotReplay, 409),
    (errors.StoreReadOnly, 409),
    (errors.LimitExceeded, 429),
    (errors.NotAllowed, 403),
    (errors.StoreError, 503),
)
TOO_LARGE = 413  # permanent: a client does not retry it
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a service."""

    body: int = 8 * 2**20  # bytes of a request body
    rate: float = 1000.0  # requests per second of one token, or of one address without tokens
    body_seconds: float = 10.0  # to receive the body of a request
    bodies: int = 64 * 2**20  # bytes of all request bodies in memory
    seconds: float = 30.0  # to answer a request
    send_seconds: float = 10.0  # for a caller to take in a part of a reply
    readers: int = 1000  # open event streams
    exports: int = 16  # under way
    writes: int = 2000  # waiting per experiment
    connections: int = 2000
    per_address: int = 1000  # requests and live pages of one address at a time
    arms: int = 100_000  # of an experiment that is created over HTTP
    opened: int = 64  # experiments kept in memory


class Refusal(ShortlistError):
    """A refused request, with its HTTP status and headers."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Stream(StreamingResponse):
    """A reply in parts whose source is closed at the end, also if the caller was cut off."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the parts."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            close = getattr(self.body_iterator, "aclose", None)
            if close is not None:
                await close()


def json_reply(data: object, status: int = 200, headers: Mapping[str, str] = HEADERS) -> Response:
    """Return data as one line of JSON; NaN and infinities become null."""
    encode = partial(json.dumps, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    try:
        text = encode(data)
    except ValueError:
        text = encode(_finite(data))
    return Response(text.encode(), status, headers, "application/json")


def error_reply(error: Exception, place: str = "") -> Response:
    """Return an error as JSON; `place`, the address of the store, is not disclosed."""
    if isinstance(error, Refusal):
        data = {"error": {"kind": _kind(error.status), "message": str(error)}}
        return json_reply(data, error.status, {**HEADERS, **error.headers})
    data = error_to_json(error)
    if place:
        data["error"]["message"] = data["error"]["message"].replace(place, "the store")
    status = next(status for kind, status in STATUSES if isinstance(error, kind))
    retry = {"retry-after": "1"} if status in (429, 503) else {}
    return json_reply(data, status, {**HEADERS, **retry})


def _kind(status: int) -> str:
    """The error class that a client raises for this status."""
    if status in (401, 403):
        return "NotAllowed"
    if status in (408, TOO_LARGE, 429):
        return "LimitExceeded"
    return "InvalidInput" if status < 500 else "StoreError"


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
