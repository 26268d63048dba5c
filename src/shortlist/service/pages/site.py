"""The pages and files that a browser requests."""

import csv
import io
import time
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from urllib.parse import parse_qs, quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from shortlist.formatting import no_formula
from shortlist.service.auth import COOKIE
from shortlist.service.endpoints import Inquiry, list_experiments
from shortlist.service.pages.render import experiment_page, list_page, parts
from shortlist.service.pages.stream import Watches
from shortlist.service.pages.view import kept_history, view_experiment
from shortlist.service.replies import HEADERS, Refusal
from shortlist.service.service import Handler, Service, name_in, only_of, token_of
from shortlist.stores.base import Scope

STATIC = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
RENDERED = 2.0  # seconds for which a page without changes is not rendered again
FORM = 4096  # bytes of the sign-in form
ONE = "/experiments/{name}"


class Site:
    """The live page of a service."""

    def __init__(self, service: Service, prefix: str = "") -> None:
        self._service = service
        self._prefix = prefix
        self._watches = Watches(service)
        self._pages: dict[str, tuple[str, float, str]] = {}  # version, when, and text

    def handlers(self) -> dict[str, dict[str, Handler]]:
        """The handlers of all pages and files, by path and method."""
        return {
            "/": {"GET": Handler(Scope.READ, self._list, limited=True)},
            ONE: {"GET": Handler(Scope.READ, self._experiment)},
            f"{ONE}/stream": {"GET": Handler(Scope.READ, self._stream)},
            f"{ONE}/arms.csv": {"GET": Handler(Scope.READ, self._arms_csv)},
            "/static/{file}": {"GET": Handler(None, _static)},
            "/sign-in": {"POST": Handler(None, self._sign_in)},
            "/sign-out": {"POST": Handler(None, self._sign_out)},
        }

    async def _list(self, request: Request) -> Response:
        service = self._service
        query, only = dict(request.query_params), only_of(request)
        inquiry = Inquiry(service.experiments, service.limits, "", query, only=only)
        reply = await service.lanes.pages.run(list_experiments, inquiry)
        data = reply.data or {}
        rows = [{**row, "path": quote(row["name"], safe="")} for row in data["experiments"]]
        return HTMLResponse(list_page(rows, data["next"], data["total"]), headers=HEADERS)

    async def _experiment(self, request: Request) -> Response:
        name = name_in(request)
        await self._service.experiments.open(name)
        text = await self._service.lanes.pages.run(self._experiment_page, name)
        return HTMLResponse(text, headers=HEADERS)

    def _experiment_page(self, name: str) -> str:
        """The page, rendered again if anything changed, or after some seconds."""
        experiments = self._service.experiments
        version, now = experiments.get(name).change_token(), time.monotonic()
        known = self._pages.get(name)
        if known is not None and known[0] == version and now - known[1] < RENDERED:
            return known[2]
        text = self._rendered(name)
        if len(self._pages) >= self._service.limits.opened:
            self._pages.clear()
        self._pages[name] = (version, now, text)
        return text

    def _rendered(self, name: str) -> str:
        experiments = self._service.experiments
        view = view_experiment(experiments, name, kept_history(experiments, name))
        return experiment_page(view, parts(view))

    async def _stream(self, request: Request) -> Response:
        name = name_in(request)
        await self._service.experiments.open(name)  # raises if there is none
        if request.method == "HEAD":
            return Response(headers=HEADERS, media_type="text/event-stream")
        return self._watches.stream(name, token_of(request))

    async def _arms_csv(self, request: Request) -> Response:
        name = name_in(request)
        await self._service.experiments.open(name)
        text = await self._service.lanes.pages.run(self._csv, name)
        headers = {**HEADERS, "content-disposition": 'attachment; filename="arms.csv"'}
        return Response(text, headers=headers, media_type="text/csv")

    def _csv(self, name: str) -> str:
        rows = list(self._service.experiments.get(name).status().arms.rows())
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "arm": no_formula(row["arm"])} for row in rows)
        return text.getvalue()

    async def _sign_in(self, request: Request) -> Response:
        """Exchange a token for a login in a cookie: read access only, not readable by scripts."""
        secret = await _secret(request)
        await self._service.read_tokens()
        login, seconds = self._service.auth.sign_in(request, secret)
        response = RedirectResponse(f"{self._prefix}/", HTTPStatus.SEE_OTHER, HEADERS)
        response.set_cookie(
            COOKIE,
            login,
            seconds,
            path=f"{self._prefix}/",
            httponly=True,
            samesite="strict",
            secure=self._service.auth.proxies.is_secure(request),
        )
        return response

    async def _sign_out(self, request: Request) -> Response:
        self._service.auth.check_origin(request)
        response = RedirectResponse(f"{self._prefix}/", HTTPStatus.SEE_OTHER, HEADERS)
        response.delete_cookie(COOKIE, path=f"{self._prefix}/", httponly=True, samesite="strict")
        return response


async def _static(request: Request) -> Response:
    name = request.path_params["file"]
    if name not in STATIC:
        raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing at this address")
    headers = {**HEADERS, "cache-control": "no-cache"}
    return Response(_content(name), headers=headers, media_type=STATIC[name])


@cache
def _content(name: str) -> bytes:
    return files("shortlist.service.pages").joinpath("static", name).read_bytes()


async def _secret(request: Request) -> str:
    """The token in the sign-in form."""
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > FORM:
            raise Refusal(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the form is longer than {FORM:,} bytes",
                connection="close",
            )
    fields = parse_qs(raw.decode(errors="replace"))
    return fields.get("token", [""])[0].strip()
