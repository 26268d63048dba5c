"""The body of a request: read within limits, and refused in words unless it is what is wanted."""

import asyncio
import json
from collections.abc import Collection
from typing import Any, NoReturn

from starlette.requests import Request

from shortlist.arms import Label
from shortlist.engine import Ticket
from shortlist.errors import InvalidInput
from shortlist.service.protocol import TOO_LARGE, Limits, Refusal
from shortlist.spec import Json
from shortlist.validation import number, shown, whole

LONGEST = 10_000  # characters of a text
NAMED = ("ticket", "arm", "experiment", "item")  # what a ticket may say of itself
ANYWHERE = 0.0  # what a ticket needs not to say of itself to be told


async def read_body(request: Request, limits: Limits) -> Json:
    """The JSON object that a request brings; an empty body is an empty one."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, f"the content type is {kind!r}, but must be 'application/json'")
    try:
        async with asyncio.timeout(limits.body_seconds):
            raw = await _all_of(request, limits.body)
    except TimeoutError:
        rule = f"took longer than {limits.body_seconds:g} s to come in"
        raise Refusal(408, f"the body {rule}", connection="close") from None
    return parsed(raw) if raw else {}


async def _all_of(request: Request, most: int) -> bytes:
    raw = bytearray()
    length = request.headers.get("content-length", "0")
    too_long = length.isdecimal() and int(length[:20]) > most
    async for chunk in request.stream():
        raw += chunk
        too_long = too_long or len(raw) > most
        if too_long:
            break
    if too_long:
        rule = f"longer than {most:,} bytes, the most that is taken"
        raise Refusal(TOO_LARGE, f"the body is {rule}", connection="close")
    return bytes(raw)


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
    """The ticket that is meant: its number, with as much about it as was said.

    Who names the arm, and with it the item, learns if the ticket is of another one."""
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


def results(body: Json) -> list[tuple[Ticket | int, float, float | None]]:
    """Tickets, their rewards, and what the pulls did cost."""
    check_fields(body, ("results",), ("results",))
    given = body["results"]
    if not isinstance(given, list):
        raise InvalidInput(f"`results` is {_short(given)}, but must be a list")
    return [_result(each) for each in given]


def _result(given: Any) -> tuple[Ticket | int, float, float | None]:
    if not isinstance(given, dict):
        rule = 'must be an object such as {"ticket": 0, "reward": 0.5}'
        raise InvalidInput(f"a result is {_short(given)}, but {rule}")
    check_fields(given, (*NAMED, "reward", "cost"), ("ticket", "reward"))
    return ticket(given), given["reward"], given.get("cost")


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
    """The ticket that is meant; who says when it is due means that lease and no later one."""
    return ticket(body) if "expires" in body else whole("ticket", body["ticket"], at_least=0)


def _short(value: object) -> str:
    words = value if isinstance(value, str) else shown(value)
    return words if len(words) <= 100 else f"{words[:100]}…"
