"""One service: its store, what it has open, and what happens to every request before and after."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from http import HTTPStatus
from typing import Any, ParamSpec, TypeVar
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from shortlist.engine.tickets import Receipt
from shortlist.errors import ShortlistError
from shortlist.service.auth import SAFE, Gate, Tokens
from shortlist.service.bodies import read_body
from shortlist.service.endpoints import Inquiry
from shortlist.service.experiment_cache import Clock, Opened
from shortlist.service.group_commit import Act, Pending, Results
from shortlist.service.limits import Limits, Pace
from shortlist.service.prometheus import Metrics
from shortlist.service.replies import HEADERS, Refusal, error_reply, json_reply
from shortlist.service.routes import Answer, ApiRoute, Write
from shortlist.stores import Store
from shortlist.stores.base import Scope
from shortlist.telemetry import span

METHODS = (*SAFE, "POST")
THREADS = 16  # that wait for the store
OF_JSON = ("content-type", "content-length")  # headers that a page has of its own
FAILED = "something went wrong in the service; its log says what"
logger = logging.getLogger("shortlist.service")
Given = ParamSpec("Given")
Got = TypeVar("Got")


class Service:
    """What all requests share. It belongs to the event loop; what blocks is done in threads."""

    def __init__(
        self,
        store: Store,
        limits: Limits,
        origins: tuple[str, ...],
        place: str,
        clock: Clock | None,
        error_page: Callable[[int, str], str],
    ) -> None:
        """`place`: what messages of the store call it, which callers do not learn."""
        self._error_page = error_page
        self.limits = limits
        self.place = place
        self.opened = Opened(store, limits.opened, clock)
        self.tokens = Tokens(store)
        self.gate = Gate(self.tokens, Pace(limits.rate), origins)
        self.metrics = Metrics()
        self.closing = asyncio.Event()  # set when streams are to end
        self._threads = ThreadPoolExecutor(THREADS, "shortlist-service")

    def close(self) -> None:
        """Wait for what is being written."""
        self._threads.shutdown()

    async def in_thread(
        self, function: Callable[Given, Got], *given: Given.args, **named: Given.kwargs
    ) -> Got:
        """What a function returns that would hold up everybody here."""
        call = partial(copy_context().run, function, *given, **named)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def respond(
        self,
        request: Request,
        route: str,
        scope: Scope | None,
        answer: Callable[[Request], Awaitable[Response]],
    ) -> Response:
        """Let a request in, answer it in time, and count it; whatever goes wrong has a reply."""
        begun = time.perf_counter()
        with span("request", method=request.method, route=route):
            response = await self._answered(request, scope, answer)
        seconds = time.perf_counter() - begun
        method = request.method if request.method in METHODS else "other"  # there may be any number
        self.metrics.answered(method, route, response.status_code, seconds)
        logger.debug("%s %s %d", request.method, route, response.status_code)
        return response

    async def _answered(
        self,
        request: Request,
        scope: Scope | None,
        answer: Callable[[Request], Awaitable[Response]],
    ) -> Response:
        try:
            return await self._in_time(request, scope, answer)
        except ClientDisconnect:
            return Response(status_code=HTTPStatus.BAD_REQUEST)  # which nobody reads
        except ShortlistError as error:
            return self._refused(request, error)
        except Exception:
            logger.exception("a request failed: %s %s", request.method, request.url.path)
            return self._refused(request, Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, FAILED))

    async def _in_time(
        self,
        request: Request,
        scope: Scope | None,
        answer: Callable[[Request], Awaitable[Response]],
    ) -> Response:
        try:
            async with asyncio.timeout(self.limits.seconds):
                if scope is not None:
                    await self._admit(request, scope)
                return await answer(request)
        except TimeoutError:
            seconds = f"{self.limits.seconds:g} s"
            message = f"no answer within {seconds}: it is safe to ask the same again"
            code = HTTPStatus.SERVICE_UNAVAILABLE
            raise Refusal(code, message, retry_after="1") from None

    def _refused(self, request: Request, error: ShortlistError) -> Response:
        """An error as JSON, or as a page for somebody who looks with a browser."""
        reply = error_reply(error, self.place)
        if "text/html" not in request.headers.get("accept", ""):
            return reply
        message = json.loads(bytes(reply.body))["error"]["message"]
        text = self._error_page(reply.status_code, message)
        kept = {name: value for name, value in reply.headers.items() if name not in OF_JSON}
        return HTMLResponse(text, reply.status_code, kept)

    async def _admit(self, request: Request, scope: Scope) -> None:
        if self.tokens.stale:
            await self.in_thread(self.tokens.read)
        self.gate.admit(request, scope)

    async def answer_api(self, route: ApiRoute, request: Request) -> Response:
        """What a route of the API gives."""
        reads = request.method in SAFE
        body = dict(request.query_params) if reads else await read_body(request, self.limits)
        known = request.headers.get("if-none-match")
        inquiry = Inquiry(self.opened, self.limits, name_in(request), body, known)
        if isinstance(route.answer, Write):
            return await self._write(inquiry, route.answer.wanted(body))
        return await self.in_thread(_replied, route.answer, inquiry)

    async def _write(self, inquiry: Inquiry, wanted: Act | Results) -> Response:
        """Do what is wanted when it is its turn."""
        name = inquiry.name
        await self.in_thread(self.opened.experiment, name)  # or say that there is none

        async def commit(batch: Sequence[Pending]) -> list[Any]:
            return await self.in_thread(self.opened.write, name, batch)

        if callable(wanted):
            data = await self.opened.writes(name).write(commit, wanted) or {}
            self.metrics.tickets += len(data.get("tickets", ()))
            return json_reply(data)
        receipt: Receipt = await self.opened.writes(name).write(commit, None, wanted)
        told = len(wanted) - len(receipt.late) - len(receipt.unused)
        self.metrics.rewards += told
        return json_reply({"told": told, "late": receipt.late, "unused": receipt.unused})


def name_in(request: Request) -> str:
    """The name of an experiment in a path, which is matched before it is decoded: a name may hold
    a slash."""
    return unquote(request.path_params.get("name", ""))


def _replied(answer: Answer, inquiry: Inquiry) -> Response:
    """The reply as a response; JSON is written in the thread, too, for it may be long."""
    reply = answer(inquiry)
    if reply.lines is not None:
        return StreamingResponse(reply.lines, headers=HEADERS, media_type="application/x-ndjson")
    headers = HEADERS
    if reply.etag is not None:
        headers = {**HEADERS, "etag": reply.etag, "cache-control": "no-cache"}
    if reply.data is None:
        return Response(status_code=reply.status, headers=headers)
    return json_reply(reply.data, reply.status, headers)
