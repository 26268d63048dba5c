"""The service as an ASGI application: `application` connects routes, pages and middleware."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from shortlist.service.auth import Network, Proxies
from shortlist.service.endpoints import list_experiments
from shortlist.service.experiments import Clock
from shortlist.service.pages import Site, error_page
from shortlist.service.replies import HEADERS, Limits, json_reply
from shortlist.service.routes import API, openapi
from shortlist.service.service import Endpoint, Handler, RawPaths, Service
from shortlist.stores import Store
from shortlist.stores.base import Scope

VERSION = version("shortlist")
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
Table = dict[str, dict[str, Handler]]  # handlers by path and method


def application(
    store: Store,
    *,
    limits: Limits | None = None,
    origins: Sequence[str] = (),
    place: str = "",
    clock: Clock | None = None,
    proxies: Sequence[Network] = (),
    prefix: str = "",
) -> Starlette:
    """Return the service for a store. It does not close the store.

    Args:
        store: Holds the experiments and the tokens.
        limits: Limits on requests, streams and memory.
        origins: Other sites whose pages may call the service from a browser.
        place: The address of the store in its error messages; callers read "the store" instead.
        clock: Returns seconds since 1970, for tests; by default the store's clock.
        proxies: Networks of proxies whose forwarded headers are believed.
        prefix: The path that all addresses begin with behind a proxy, such as /shortlist."""
    error = partial(error_page, prefix)
    known = Proxies(proxies)
    service = Service(store, limits or Limits(), tuple(origins), place, clock, error, known)
    table = {**_operations(service), **_api(service), **Site(service, prefix).handlers()}
    routes = [Route(path, Endpoint(service, path, handlers)) for path, handlers in table.items()]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=list(origins),
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type", "if-none-match"],
        expose_headers=["etag"],
    )
    middleware = [Middleware(RawPaths, prefix=prefix), *([cors] if origins else [])]
    app = Starlette(routes=routes, middleware=middleware, lifespan=_lifespan)
    app.router.redirect_slashes = False
    app.router.default = Endpoint(service, "elsewhere", {})
    app.state.service = service
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    """Wait for the threads at the end."""
    yield
    app.state.service.lanes.close()


def _operations(service: Service) -> Table:
    """Liveness, readiness, metrics and the description of the API."""

    async def live(_request: Request) -> Response:
        return json_reply({"status": "ok", "version": VERSION})

    async def ready(_request: Request) -> Response:
        await service.check_ready()
        return json_reply({"status": "ok", "version": VERSION})

    async def metrics(request: Request) -> Response:
        readable = request.state.ready
        figures = await service.lanes.reads.run(service.figures) if readable else []
        text = service.metrics.text(VERSION, service.queues(), figures, readable)
        return PlainTextResponse(text, headers=HEADERS, media_type=PROMETHEUS)

    async def description(_request: Request) -> Response:
        return json_reply(openapi(VERSION))

    return {
        "/live": {"GET": Handler(None, live)},
        "/ready": {"GET": Handler(None, ready)},
        "/metrics": {"GET": Handler(Scope.READ, metrics, outage=True)},
        "/openapi.json": {"GET": Handler(Scope.READ, description, limited=True)},
    }


def _api(service: Service) -> Table:
    table: Table = {}
    for route in API:
        limited = route.answer is list_experiments
        handler = Handler(route.scope, partial(service.answer_api, route), limited)
        table.setdefault(route.path, {})[route.method] = handler
    return table
