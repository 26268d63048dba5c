"""The body of a request: read within limits, and refused with a reason unless it is valid."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from typing import Any, NoReturn

import msgspec
from starlette.requests import Request

from shortlist.arms import Label
from shortlist.engine import Ticket
from shortlist.engine.log_entries import ToldResult
from shortlist.errors import InvalidInput
from shortlist.service.replies import TOO_LARGE, Limits, Refusal
from shortlist.service.work import Lane
from shortlist.spec import Json
from shortlist.validation import number, shown, whole

LONGEST = 10_000  # characters of a text
SHORT = 64 * 2**10  # bytes of a body that is parsed at once, in about a millisecond
DISCARDED = 64 * 2**20  # bytes of a body that is too long that are received nevertheless,
DISCARD_SECONDS = 2.0  # and for how long
MOST_RESULTS = 20_000  # in one tell
NAMED = ("ticket", "arm", "experiment", "item")  # what a ticket may say of itself
ANYWHERE = 0.0  # what a ticket needs not to say of itself to be told


class Bodies:
    """Reads bodies of requests. All bodies in memory together are limited.

    Long bodies are parsed in a thread. A body with more values than its route can use is refused
    before it is parsed. It belongs to the event loop."""

    def __init__(self, limits: Limits, lane: Lane) -> None:
        self._limits = limits
        self._lane = lane
        self._held = 0  # bytes in memory

    async def read(self, request: Request, values: int) -> Json:
        """The JSON object in a request, with at most this many values; empty if it has no body."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal(415, f"the content type is {kind!r}, but must be 'application/json'")
        raw = bytearray()
        try:
            await self._receive(request, raw)
            if len(raw) <= SHORT:
                return parsed(bytes(raw)) if raw else {}
            return await self._lane.run(_parsed_quickly, raw, values)
        finally:
            self._held -= len(raw)

    async def _receive(self, request: Request, raw: bytearray) -> None:
        seconds = self._limits.body_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._receive_all(request, raw)
        except TimeoutError:
            rule = f"took longer than {seconds:g} s to come in"
            raise Refusal(408, f"the body {rule}", connection="close") from None

    async def _receive_all(self, request: Request, raw: bytearray) -> None:
        most = self._limits.body
        length = request.headers.get("content-length", "0")
        too_long = length.isdecimal() and int(length[:20]) > most
        chunks = request.stream()
        async for chunk in chunks:
            too_long = too_long or len(raw) + len(chunk) > most
            if too_long:
                break
            self._take(chunk, raw)
        if too_long:
            await _discard(chunks)
            rule = f"longer than {most:,} bytes, the maximum"
            raise Refusal(TOO_LARGE, f"the body is {rule}", connection="close")

    def _take(self, chunk: bytes, raw: bytearray) -> None:
        if self._held + len(chunk) > self._limits.bodies:
            raise Refusal(
                503, "too many bodies are being received: try again in a second", retry_after="1"
            )
        raw += chunk
        self._held += len(chunk)


async def _discard(chunks: AsyncIterator[bytes]) -> None:
    """Receive the rest of a body that is too long: a caller that is still sending would not read
    the refusal."""
    received = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            async for chunk in chunks:
                received += len(chunk)
                if received > DISCARDED:
                    return


def _parsed_quickly(raw: bytearray, values: int) -> Json:
    """A long body, parsed with a faster parser: nothing else in Python runs meanwhile."""
    _check_values(raw, values)
    with suppress(msgspec.DecodeError, RecursionError):
        data = msgspec.json.decode(raw)
        if isinstance(data, dict):
            return data
    return parsed(bytes(raw))  # which finds the words for what is wrong


def _check_values(raw: bytearray, most: int) -> None:
    """Refuse a body with too many values; a comma or a bracket stands before each."""
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > most:
        raise Refusal(TOO_LARGE, f"the body has more than {most:,} values, the maximum here")


def parsed(raw: bytes) -> Json:
    """A JSON object of which every text can be written down."""
    try:
        data = json.loads(raw.decode(), parse_constant=_no_number)
        if b"\\u" in raw:  # half of a character is no text, though JSON can spell it
            json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        reason = "too deep" if isinstance(error, RecursionError) else str(error)
        raise InvalidInput(f"the body must be a JSON object in UTF-8: {reason}") from None
    if not isinstance(data, dict):
        raise InvalidInput(f"the body is {_short(data)}, but must be a JSON object")
    return data


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def check_fields(body: Json, known: Collection[str], needed: Collection[str] = ()) -> None:
    """Refuse a field that means nothing here, and the lack of one that is needed."""
    for name in body:
        if name not in known:
            listed = ", ".join(f"`{each}`" for each in known) or "none"
            raise InvalidInput(f"`{_short(name)}` is given, but the fields there are: {listed}")
    for name in needed:
        if name not in body:
            raise InvalidInput(f"`{name}` is not given, but is needed")


def text(body: Json, name: str) -> str | None:
    """A text that may be left out."""
    value = body.get(name)
    if value is None or (isinstance(value, str) and len(value) <= LONGEST):
        return value
    raise InvalidInput(
        f"`{name}` is {_short(value)}, but must be a text of at most {LONGEST:,} characters"
    )


def ticket(body: Json) -> Ticket | int:
    """The ticket of a body: its number, with all that is given about it.

    If the body names the arm or the item, one that the ticket does not have is an error."""
    id_ = whole("ticket", body.get("ticket"), at_least=0)
    if "arm" not in body:
        return id_
    arm, identity = label(body["arm"]), text(body, "experiment") or ""
    item = None if body.get("item") is None else label(body["item"], "item")
    expires = number("expires", body.get("expires", ANYWHERE))
    return Ticket(id_, arm, draw=0, seed=0, expires=expires, experiment=identity, item=item)


def label(value: Any, of: str = "arm") -> Label:
    """The label of an arm, or of an item."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidInput(f"`{of}` is {_short(value)}, but must be a text or a whole number")
    return value


def results(body: Json) -> list[ToldResult]:
    """Tickets, their rewards, the actual costs of the pulls, infos and metrics."""
    check_fields(body, ("results",), ("results",))
    given = body["results"]
    if not isinstance(given, list):
        raise InvalidInput(f"`results` is {_short(given)}, but must be a list")
    if len(given) > MOST_RESULTS:
        rule = f"but a request may have at most {MOST_RESULTS:,}"
        raise Refusal(TOO_LARGE, f"{len(given):,} `results` are given, {rule}")
    return [_result(each) for each in given]


def _result(given: Any) -> ToldResult:
    if not isinstance(given, dict):
        rule = 'must be an object such as {"ticket": 0, "reward": 0.5}'
        raise InvalidInput(f"a result is {_short(given)}, but {rule}")
    check_fields(given, (*NAMED, *ToldResult._fields[1:]), ("ticket", "reward"))
    more = (given.get(name) for name in ToldResult._fields[2:])
    return ToldResult(ticket(given), given["reward"], *more)


def listed_tickets(given: object) -> list[Ticket | int]:
    """Tickets to be given back."""
    if not isinstance(given, list):
        raise InvalidInput(f"`tickets` is {_short(given)}, but must be a list")
    for each in given:
        if not isinstance(each, dict):
            rule = 'must be an object such as {"ticket": 0}'
            raise InvalidInput(f"a ticket is {_short(each)}, but {rule}")
        check_fields(each, (*NAMED, "expires"), ("ticket",))
    return [held_ticket(each) for each in given]


def held_ticket(body: Json) -> Ticket | int:
    """The ticket that is meant; with `expires`, only that lease is meant, no later one."""
    return ticket(body) if "expires" in body else whole("ticket", body["ticket"], at_least=0)


def _short(value: object) -> str:
    words = value if isinstance(value, str) else shown(value)
    return words if len(words) <= 100 else f"{words[:100]}…"
