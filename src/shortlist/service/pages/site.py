"""The pages and files that a browser asks for."""

import csv
import io
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from urllib.parse import parse_qs, quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from shortlist.service.auth import COOKIE
from shortlist.service.endpoints import Inquiry, list_experiments
from shortlist.service.pages.render import experiment_page, list_page, parts
from shortlist.service.pages.stream import Watches
from shortlist.service.pages.view import (
    begun_course,
    look,
)
from shortlist.service.replies import HEADERS, Refusal
from shortlist.service.service import Service, name_in
from shortlist.stores.base import Scope

STATIC = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
MONTH = 30 * 86400  # seconds that a browser stays signed in
FORM = 4096  # bytes of the form that signs in
ONE = "/experiments/{name}"


@dataclass(frozen=True, slots=True)
class Site:
    """What all pages share."""

    service: Service
    watches: Watches


@dataclass(frozen=True, slots=True)
class Page:
    """A path of the live page."""

    method: str
    path: str
    scope: Scope | None
    answer: Callable[[Site, Request], Awaitable[Response]]


async def listing(site: Site, request: Request) -> Response:
    """The experiments there are."""
    service = site.service
    inquiry = Inquiry(service.opened, service.limits, "", dict(request.query_params))
    reply = await service.in_thread(list_experiments, inquiry)
    data = reply.data or {}
    rows = [{**row, "path": quote(row["name"], safe="")} for row in data["experiments"]]
    return HTMLResponse(list_page(rows, data["next"], data["total"]), headers=HEADERS)


async def experiment(site: Site, request: Request) -> Response:
    """One experiment."""
    text = await site.service.in_thread(_experiment_page, site.service, name_in(request))
    return HTMLResponse(text, headers=HEADERS)


def _experiment_page(service: Service, name: str) -> str:
    view = look(service.opened, name, begun_course(service.opened, name))
    return experiment_page(view, parts(view))


async def stream(site: Site, request: Request) -> Response:
    """What happens to an experiment, as it happens."""
    name = name_in(request)
    await site.service.in_thread(site.service.opened.experiment, name)
    if request.method == "HEAD":
        return Response(headers=HEADERS, media_type="text/event-stream")
    return site.watches.stream(name)


async def arms_csv(site: Site, request: Request) -> Response:
    """Every arm of an experiment as a line of a table."""
    text = await site.service.in_thread(_csv, site.service, name_in(request))
    headers = {**HEADERS, "content-disposition": 'attachment; filename="arms.csv"'}
    return Response(text, headers=headers, media_type="text/csv")


def _csv(service: Service, name: str) -> str:
    rows = list(service.opened.experiment(name).status().arms.rows())
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows({**row, "arm": _inert(row["arm"])} for row in rows)
    return text.getvalue()


def _inert(label: object) -> object:
    """A label that no spreadsheet takes for a formula."""
    return f"'{label}" if isinstance(label, str) and label[:1] in "=+-@\t\r" and label else label


async def static(_site: Site, request: Request) -> Response:
    """The script and the styles of the page."""
    name = request.path_params["file"]
    if name not in STATIC:
        raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing at this address")
    headers = {**HEADERS, "cache-control": "no-cache"}
    return Response(_static(name), headers=headers, media_type=STATIC[name])


@cache
def _static(name: str) -> bytes:
    return files("shortlist.service.pages").joinpath("static", name).read_bytes()


async def sign_in(site: Site, request: Request) -> Response:
    """Keep a token in the browser: for pages only, out of reach of scripts, and only to look."""
    service = site.service
    text = await _token(request)
    if service.tokens.stale:
        await service.in_thread(service.tokens.read)
    service.gate.pace.take(request.client.host if request.client else "")
    if service.tokens.holder(text) is None:
        raise Refusal(HTTPStatus.UNAUTHORIZED, "that token allows nothing")
    response = RedirectResponse("/", HTTPStatus.SEE_OTHER, HEADERS)
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, text, MONTH, httponly=True, samesite="strict", secure=secure)
    return response


async def _token(request: Request) -> str:
    """What stands in the form."""
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > FORM:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too long", connection="close")
    fields = parse_qs(raw.decode(errors="replace"))
    return fields.get("token", [""])[0].strip()


async def sign_out(_site: Site, _request: Request) -> Response:
    """Forget the token."""
    response = RedirectResponse("/", HTTPStatus.SEE_OTHER, HEADERS)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


PAGES = (
    Page("GET", "/", Scope.READ, listing),
    Page("GET", ONE, Scope.READ, experiment),
    Page("GET", f"{ONE}/stream", Scope.READ, stream),
    Page("GET", f"{ONE}/arms.csv", Scope.READ, arms_csv),
    Page("GET", "/static/{file}", None, static),
    Page("POST", "/sign-in", None, sign_in),
    Page("POST", "/sign-out", None, sign_out),
)
