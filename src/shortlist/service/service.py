"""What every request goes through: access control, a time limit, its handler, errors, metrics."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from shortlist.engine.status import Vitals
from shortlist.engine.tickets import Receipt, State
from shortlist.errors import LimitExceeded, ShortlistError, StoreMissing
from shortlist.service.auth import SAFE, Auth, InFlight, Proxies, RateLimit, Tokens
from shortlist.service.bodies import Bodies, results
from shortlist.service.endpoints import Inquiry
from shortlist.service.experiments import Clock, OpenExperiments
from shortlist.service.prometheus import Metrics
from shortlist.service.replies import HEADERS, Limits, Refusal, Stream, error_reply, json_reply
from shortlist.service.routes import ApiRoute, Read, Write
from shortlist.service.work import Lanes, Shared
from shortlist.spec import Json
from shortlist.stores import Store
from shortlist.stores.base import Scope, Token
from shortlist.telemetry import span

METHODS = (*SAFE, "POST")
JSON_HEADERS = ("content-type", "content-length")  # which an error page does not keep
MEASURED = 1000  # experiments that have metrics
READY = 5.0  # seconds for the store to answer
FAILED = "something went wrong in the service; see its log"
logger = logging.getLogger("shortlist.service")
access = logging.getLogger("shortlist.access")  # a line per answered request, at level info


class Handler(NamedTuple):
    """What answers a method of a path, and the scope it takes (None: no token)."""

    scope: Scope | None
    answer: Callable[[Request], Awaitable[Response]]
    limited: bool = False  # whether tokens of single experiments are allowed where none is named
    outage: bool = False  # whether it answers while the store cannot be read


class Service:
    """What all requests share. It belongs to the event loop; blocking calls run in threads."""

    def __init__(
        self,
        store: Store,
        limits: Limits,
        origins: tuple[str, ...],
        place: str,
        clock: Clock | None,
        error_page: Callable[[int, str], str],
        proxies: Proxies,
    ) -> None:
        """`place` is the address of the store in its messages, which callers do not learn."""
        self._error_page = error_page
        self.limits = limits
        self.place = place
        self.lanes = Lanes()
        self.experiments = OpenExperiments(store, limits, clock, self.lanes)
        self._bodies = Bodies(limits, self.lanes.bodies)
        self._exports = 0  # under way
        self.tokens = Tokens(store)
        self._reading = Shared(lambda: self.lanes.tokens.run(self.tokens.read))
        self.auth = Auth(self.tokens, RateLimit(limits.rate), origins, proxies)
        self.in_flight = InFlight(limits.per_address)
        self.metrics = Metrics()
        self.closing = asyncio.Event()  # set when streams must end

    async def read_tokens(self) -> None:
        """Read the tokens of the store again, if it is time to."""
        if self.tokens.stale:
            await self._reading.result()

    async def check_ready(self) -> None:
        """Raise an error unless the store can be read; asked at most once per second."""
        try:
            async with asyncio.timeout(READY):
                await self.read_tokens()
        except TimeoutError:
            message = f"the store did not answer within {READY:g} s"
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, message, retry_after="1") from None

    async def is_ready(self) -> bool:
        """Whether the store can be read, while the tokens that were read last still count.

        Raises if none were read yet: then no caller may pass."""
        try:
            await self.check_ready()
        except ShortlistError:
            if not self.tokens.known:
                raise
            return False
        return True

    def refused(self, request: Request, error: ShortlistError) -> Response:
        """An error as JSON, or as a page for a browser."""
        if isinstance(error, StoreMissing) and only_of(request) is not None:
            error = StoreMissing(f"there is no experiment {name_in(request)!r}")  # no other names
        reply = error_reply(error, self.place)
        if "text/html" not in request.headers.get("accept", ""):
            return reply
        message = json.loads(bytes(reply.body))["error"]["message"]
        text = self._error_page(reply.status_code, message)
        kept = {name: value for name, value in reply.headers.items() if name not in JSON_HEADERS}
        return HTMLResponse(text, reply.status_code, kept)

    async def answer_api(self, route: ApiRoute, request: Request) -> Response:
        """Answer a route of the API."""
        name = name_in(request)
        reads = request.method in SAFE
        body = dict(request.query_params)
        if not reads:
            body = await self._bodies.read(request, route.values)
        if isinstance(route.answer, Write):
            author = author_of(request)
            return json_reply(await self._write(name, route.answer, body, author))
        etag = request.headers.get("if-none-match")
        only = only_of(request)
        author = author_of(request)
        inquiry = Inquiry(self.experiments, self.limits, name, body, etag, only, author)
        if route.gives is None:
            return await self._export(route.answer, inquiry)
        if name and reads:
            await self.experiments.open(name)
        lane = self.lanes.reads if reads else self.lanes.opening
        return await lane.run(_replied, route.answer, inquiry)

    async def _export(self, read: Read, inquiry: Inquiry) -> Response:
        """Send lines as the caller takes them in; only some exports may be under way."""
        if self._exports >= self.limits.exports:
            message = f"{self._exports} exports are under way: try again in a second"
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, message, retry_after="1")
        reply = await self.lanes.exports.run(read, inquiry)
        assert reply.lines is not None
        parts = self._parts(reply.lines)
        return Stream(parts, headers=HEADERS, media_type="application/x-ndjson")

    async def _parts(self, parts: Iterator[str]) -> AsyncIterator[str]:
        self._exports += 1
        try:
            while part := await self.lanes.exports.run(next, parts, ""):
                yield part
        finally:
            self._exports -= 1

    async def _write(self, name: str, write: Write, body: Json, author: str) -> Json:
        """Write to an experiment, together with other callers."""
        act = write.act
        if act is not None:
            made = await self.experiments.write(name, lambda each: act(each, body), author=author)
            data: Json = made or {}
            self.metrics.tickets += len(data.get("tickets", ()))
            return data
        told = results(body)
        receipt: Receipt = await self.experiments.write(name, results=told, author=author)
        counted = len(told) - len(receipt.late) - len(receipt.unused)
        self.metrics.rewards += counted
        return {"told": counted, "late": receipt.late, "unused": receipt.unused}

    def figures(self) -> list[tuple[str, Vitals]]:
        """State and counts of experiments that are not archived, newer of those open here."""
        figures = []
        active = [each for each in self.experiments.store.listed() if not each.archived]
        for listed in active[:MEASURED]:
            experiment = self.experiments.open_one(listed.name)
            vitals = None if experiment is None else experiment.vitals(fresh=True)
            if vitals is None:
                vitals = Vitals(State(listed.state or State.READY), listed.told)
            figures.append((listed.name, vitals))
        return figures

    def queues(self) -> dict[str, int]:
        """The lengths of queues by kind of work; commits are writes for the next transaction."""
        lanes = {lane.name: lane.waiting for lane in self.lanes.all()}
        return {**lanes, "commits": self.experiments.waiting()}


def name_in(request: Request) -> str:
    """The name of an experiment in a path, decoded."""
    return unquote(request.path_params.get("name", ""))


def token_of(request: Request) -> Token | None:
    """The token of a request that passed access control; None while there are no tokens."""
    token: Token | None = getattr(request.state, "token", None)
    return token


def only_of(request: Request) -> str | None:
    """The only experiment that the token of a request is for; None for all."""
    token = token_of(request)
    return None if token is None else token.experiment


def author_of(request: Request) -> str:
    """The name of the token of a request; empty while there are no tokens."""
    token = token_of(request)
    return "" if token is None else token.name


def _replied(read: Read, inquiry: Inquiry) -> Response:
    """The reply as a response; runs in a thread, since long JSON takes long to encode."""
    reply = read(inquiry)
    headers = HEADERS
    if reply.etag is not None:
        headers = {**HEADERS, "etag": reply.etag, "cache-control": "no-cache"}
    if reply.data is None:
        return Response(status_code=reply.status, headers=headers)
    return json_reply(reply.data, reply.status, headers)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path with a handler per method; other methods and unknown paths are refused."""

    service: Service
    path: str
    handlers: Mapping[str, Handler]

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        """Answer one request and count it."""
        request = Request(connection, receive)
        try:
            with self.service.in_flight.one(self.service.auth.proxies.address(request)):
                await self._reply(request, connection, receive, send)
        except LimitExceeded as error:
            await self.service.refused(request, error)(connection, receive, send)

    async def _reply(
        self, request: Request, connection: Connection, receive: Receive, send: Send
    ) -> None:
        begun = time.perf_counter()
        with span("request", method=request.method, route=self.path):
            response = await self._answer(request)
        method = request.method if request.method in METHODS else "other"  # bounds the labels
        seconds = time.perf_counter() - begun
        self.service.metrics.count(method, self.path, response.status_code, seconds)
        address = self.service.auth.proxies.address(request)
        answered = request.method[:20], self.path, response.status_code, seconds
        log_request(address, author_of(request), *answered)
        await response(connection, receive, send)

    async def _answer(self, request: Request) -> Response:
        """The response of the handler; any error is a response as well."""
        limit = self.service.limits.seconds
        try:
            async with asyncio.timeout(limit):
                return await self._handle(request)
        except TimeoutError:
            message = f"no answer within {limit:g} s: it is safe to repeat the request"
            late = Refusal(HTTPStatus.SERVICE_UNAVAILABLE, message, retry_after="1")
            return self.service.refused(request, late)
        except ClientDisconnect:
            return Response(status_code=HTTPStatus.BAD_REQUEST)  # not sent
        except ShortlistError as error:
            return self.service.refused(request, error)
        except Exception:
            logger.exception("a request failed: %s %s", request.method, request.url.path)
            failed = Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, FAILED)
            return self.service.refused(request, failed)

    async def _handle(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        handler = self.handlers.get(method) or Handler(Scope.READ, self._refuse, limited=True)
        if handler.outage:
            request.state.ready = await self.service.is_ready()
        elif handler.scope is not None:
            await self.service.read_tokens()
        if handler.scope is not None:
            name = None if handler.limited and "{name}" not in self.path else name_in(request)
            request.state.token = self.service.auth.check(request, handler.scope, name)
        return await handler.answer(request)

    async def _refuse(self, request: Request) -> Response:
        if not self.handlers:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing at this address")
        also = ["HEAD", "OPTIONS"] if "GET" in self.handlers else ["OPTIONS"]
        allowed = ", ".join(sorted([*self.handlers, *also]))
        if request.method == "OPTIONS":
            return Response(
                status_code=HTTPStatus.NO_CONTENT, headers={**HEADERS, "allow": allowed}
            )
        message = f"the method is {request.method[:20]!r}, but must be {allowed}"
        raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, message, allow=allowed)


@dataclass(frozen=True, slots=True)
class RawPaths:
    """Match paths before they are decoded: the name of an experiment may contain a slash."""

    app: ASGIApp
    prefix: str = ""  # of all paths, if a proxy does not remove it

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        """Replace the decoded path by the path as it was sent."""
        if connection["type"] == "http" and "raw_path" in connection:
            path = connection["raw_path"].decode("ascii", "replace")
            if self.prefix and path.startswith(f"{self.prefix}/"):
                path = path.removeprefix(self.prefix)
            connection = {**connection, "path": path}
        await self.app(connection, receive, send)


def log_request(
    address: str, token: str, method: str, path: str, status: int, seconds: float
) -> None:
    """Log an answered request. The path is that of its route: names may be private."""
    if access.isEnabledFor(logging.INFO):
        fields = {"address": address, "token": token, "method": method, "path": path}
        more = {**fields, "status": status, "seconds": round(seconds, 6)}
        text = f"{address} {token or '-'} {method} {path} {status} {1000 * seconds:.1f} ms"
        access.info("%s", text, extra={"request": more})
