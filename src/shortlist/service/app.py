"""The OpenAPI description, made from the table of routes.

The service as an ASGI application: its routes, and around them what knows no request."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from shortlist.errors import ShortlistError
from shortlist.service import schemas
from shortlist.service.experiment_cache import Clock
from shortlist.service.limits import Limits
from shortlist.service.pages import PAGES, Site, Watches, error_page
from shortlist.service.replies import HEADERS, Refusal, json_reply
from shortlist.service.routes import API, ApiRoute
from shortlist.service.service import Service
from shortlist.stores import Store
from shortlist.stores.base import Scope

REFUSED = {
    "description": "Refused, or not possible: `kind` is the name of an error of the package",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
NAME = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "The experiment's name, percent-encoded",
    "schema": {"type": "string"},
}
OFFSET = {
    "name": "offset",
    "in": "query",
    "description": "How many experiments to leave out",
    "schema": {"type": "integer", "minimum": 0, "default": 0},
}


def description(version: str) -> dict[str, Any]:
    """All paths of the API, and health."""
    paths: dict[str, dict[str, Any]] = {"/health": {"get": _health()}}
    for route in API:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "shortlist", "version": version},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": {"Error": schemas.ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    kind = "application/x-ndjson" if route.gives is None else "application/json"
    shape = {"type": "string"} if route.gives is None else route.gives
    done = {"description": "Done", "content": {kind: {"schema": shape}}}
    responses: dict[str, Any] = {"200": done, "default": REFUSED}
    if route.status != 200:
        responses[str(route.status)] = done
    if route.conditional:
        responses["304"] = {"description": "As it was when `If-None-Match` was the ETag"}
    operation = {
        "summary": route.summary,
        "description": f"Needs a token that allows to {route.scope}.",
        "operationId": _identifier(route),
        "parameters": [NAME] if "{name}" in route.path else [OFFSET] if route.takes is None else [],
        "responses": responses,
    }
    if route.takes is not None:
        content = {"application/json": {"schema": route.takes}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _identifier(route: ApiRoute) -> str:
    last = route.path.rpartition("/")[2]
    if last == "experiments":
        return "list" if route.method == "GET" else "create"
    return "describe" if last == "{name}" else last


def _health() -> dict[str, Any]:
    content = {"application/json": {"schema": schemas.HEALTH}}
    return {
        "summary": "Whether the service and its store work; needs no token",
        "operationId": "health",
        "security": [],
        "responses": {"200": {"description": "They do", "content": content}, "default": REFUSED},
    }


VERSION = version("shortlist")
METRICS = "text/plain; version=0.0.4; charset=utf-8"
Answer = Callable[[Request], Awaitable[Response]]
Answers = dict[str, tuple[Scope | None, Answer]]  # by method: who may, and what is answered


def application(
    store: Store,
    *,
    limits: Limits | None = None,
    origins: Sequence[str] = (),
    place: str = "",
    clock: Clock | None = None,
) -> Starlette:
    """The service in front of a store, which whoever opened it closes.

    `origins` are other sites whose pages may call it from a browser. `place` is what errors of the
    store call it; callers read "the store" instead."""
    service = Service(store, limits or Limits(), tuple(origins), place, clock, error_page)
    tables = {**_own(service), **_api(service), **_pages(service)}
    routes = [Route(path, Endpoint(service, path, answers)) for path, answers in tables.items()]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=list(origins),
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type", "if-none-match"],
        expose_headers=["etag"],
    )
    around = [Middleware(Undecoded), *([cors] if origins else [])]
    app = Starlette(routes=routes, middleware=around, lifespan=_lifespan)
    app.router.redirect_slashes = False
    app.router.default = Endpoint(service, "elsewhere", {})
    app.state.service = service
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    yield
    app.state.service.close()


def _own(service: Service) -> Mapping[str, Answers]:
    """What the service says of itself."""

    async def health(_request: Request) -> Response:
        await service.in_thread(service.opened.store.names)
        return json_reply({"status": "ok", "version": VERSION})

    async def metrics(_request: Request) -> Response:
        figures = await service.in_thread(_figures, service)
        return PlainTextResponse(service.metrics.text(figures), headers=HEADERS, media_type=METRICS)

    async def openapi(_request: Request) -> Response:
        return json_reply(description(VERSION))

    return {
        "/health": {"GET": (None, health)},
        "/metrics": {"GET": (Scope.READ, metrics)},
        "/openapi.json": {"GET": (Scope.READ, openapi)},
    }


def _figures(service: Service) -> dict[str, tuple[int, int]]:
    """Of every open experiment the rewards told and the tickets held."""
    figures = {}
    for name in service.opened.names():
        with suppress(ShortlistError):  # of one that cannot be read, its own page says so
            experiment = service.opened.experiment(name)
            experiment.position()
            figures[name] = (experiment.standing()[0], experiment.held()[0])
    return figures


def _api(service: Service) -> Mapping[str, Answers]:
    tables: dict[str, Answers] = {}
    for route in API:
        answer = partial(service.answer_api, route)
        tables.setdefault(route.path, {})[route.method] = (route.scope, answer)
    return tables


def _pages(service: Service) -> Mapping[str, Answers]:
    site = Site(service, Watches(service))
    return {page.path: {page.method: (page.scope, partial(page.answer, site))} for page in PAGES}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path that answers every method: those there are, and the others with those there are."""

    service: Service
    path: str
    answers: Answers

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(connection, receive)
        method = "GET" if request.method == "HEAD" else request.method
        scope, answer = self.answers.get(method, (Scope.READ, self._refuse))
        response = await self.service.respond(request, self.path, scope, answer)
        await response(connection, receive, send)

    async def _refuse(self, request: Request) -> Response:
        if not self.answers:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing at this address")
        allowed = ", ".join(sorted(self.answers))
        message = f"the method is {request.method[:20]!r}, but must be {allowed}"
        raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, message, allow=allowed)


@dataclass(frozen=True, slots=True)
class Undecoded:
    """Match paths as they were sent: the name of an experiment may hold a slash."""

    app: ASGIApp

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        """Put the path as it came in the place of the decoded one."""
        if connection["type"] == "http" and "raw_path" in connection:
            path = connection["raw_path"].decode("ascii", "replace")
            connection = {**connection, "path": path}
        await self.app(connection, receive, send)
