"""What goes back: JSON, or an error in its one shape, with headers that let a browser do little."""

import json
import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.responses import Response

from shortlist import errors
from shortlist.errors import ShortlistError
from shortlist.wire import error_to_json

# the first class that fits says the status
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (errors.UnknownTicket, 404),
    (errors.ConflictingReward, 409),
    (errors.InvalidInput, 400),
    (errors.StoreMissing, 404),
    (errors.StoreExists, 409),
    (errors.Unfinished, 409),
    (errors.CannotReplay, 409),
    (errors.LimitExceeded, 429),
    (errors.NotAllowed, 403),
    (errors.StoreError, 503),
)
TOO_MUCH = 413  # at once, and another time as well: no client tries that again
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Refusal(ShortlistError):
    """What only HTTP has a word for, with its status and headers."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def json_reply(data: object, status: int = 200, headers: Mapping[str, str] = HEADERS) -> Response:
    """One line of JSON."""
    write = partial(json.dumps, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    try:
        text = write(data)
    except ValueError:  # null for infinities and NaN, for which JSON has no word
        text = write(_finite(data))
    return Response(text.encode(), status, headers, "application/json")


def error_reply(error: Exception, place: str = "") -> Response:
    """An error in its one shape; where the store is kept is nobody's business."""
    if isinstance(error, Refusal):
        said = {"error": {"kind": _kind(error.status), "message": str(error)}}
        return json_reply(said, error.status, {**HEADERS, **error.headers})
    shape = error_to_json(error)
    if place:
        shape["error"]["message"] = shape["error"]["message"].replace(place, "the store")
    status = next(code for kind, code in STATUSES if isinstance(error, kind))
    again = {"retry-after": "1"} if status in (429, 503) else {}
    return json_reply(shape, status, {**HEADERS, **again})


def _kind(status: int) -> str:
    """The class by which a client knows a refusal again."""
    if status in (401, 403):
        return "NotAllowed"
    if status in (408, TOO_MUCH, 429):
        return "LimitExceeded"
    return "InvalidInput" if status < 500 else "StoreError"


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
