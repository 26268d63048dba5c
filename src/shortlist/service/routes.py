"""The routes of the API, and their description as OpenAPI."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from shortlist.engine import Experiment
from shortlist.service import endpoints, schemas
from shortlist.service.endpoints import Inquiry, Reply
from shortlist.service.schemas import Schema
from shortlist.spec import Json
from shortlist.stores.base import Scope

ALL = "/v1/experiments"
ONE = f"{ALL}/{{name}}"
Read = Callable[[Inquiry], Reply]


class Write(NamedTuple):
    """A request that writes, in group commit; without `act`, its body holds results to tell."""

    act: Callable[[Experiment, Json], Json | None] | None = None


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """One path and method of the API."""

    method: str
    path: str
    scope: Scope
    answer: Read | Write
    summary: str
    gives: Schema | None  # None: lines of JSON
    takes: Schema | None = None  # None: no body
    status: int = 200
    conditional: bool = False  # whether it has an ETag
    values: int = 150_000  # that its body may have
    query: tuple[Schema, ...] = ()  # further parameters


def _get(path: str, answer: Read, summary: str, gives: Schema | None, **more: Any) -> ApiRoute:
    return ApiRoute("GET", path, Scope.READ, answer, summary, gives, **more)


def _post(
    path: str, scope: Scope, act: Any, summary: str, gives: Schema, takes: Schema
) -> ApiRoute:
    return ApiRoute("POST", f"{ONE}/{path}", scope, Write(act), summary, gives, takes)


def _admin(path: str, answer: Read, summary: str, takes: Schema) -> ApiRoute:
    given = (Scope.ADMIN, answer, summary, schemas.NOTHING, takes)
    return ApiRoute("POST", f"{ONE}/{path}", *given)


NOTHING = schemas.NOTHING
BLOCK: Schema = {
    "name": "block",
    "in": "query",
    "description": "Name of the block",
    "schema": {"type": "string", "minLength": 1},
}
API = (
    _get(
        ALL,
        endpoints.list_experiments,
        "List the experiments, 100 per page, from `offset` on",
        schemas.LIST,
    ),
    ApiRoute(
        "POST",
        ALL,
        Scope.ADMIN,
        endpoints.create,
        "Create an experiment; `exist_ok` accepts an existing one with equal settings",
        schemas.DESCRIBED,
        schemas.CREATE,
        201,
        values=1_000_000,
    ),
    _get(ONE, endpoints.describe, "Get the settings of an experiment", schemas.DESCRIBED),
    _post(
        "ask",
        Scope.WORK,
        endpoints.ask,
        "Get tickets; a named worker gets its own open tickets first",
        schemas.HANDOUT,
        schemas.ASK,
    ),
    _post(
        "tell",
        Scope.WORK,
        None,
        "Tell rewards, all or none; repeating a tell changes nothing",
        schemas.TOLD,
        schemas.TELL,
    ),
    _post("fail", Scope.WORK, endpoints.fail, "Report a failed pull", NOTHING, schemas.FAIL),
    _post(
        "release",
        Scope.WORK,
        endpoints.release,
        "Give tickets back: of a worker, by number, or overdue by a number of seconds",
        schemas.RELEASED,
        schemas.RELEASE,
    ),
    ApiRoute(
        "GET",
        f"{ONE}/shares",
        Scope.WORK,
        Write(endpoints.shares),
        "Open a block of a live test, or repeat its shares; by default the block of today, in UTC",
        schemas.SHARES,
        query=(BLOCK,),
    ),
    _post(
        "assign",
        Scope.WORK,
        endpoints.assign,
        "Assign a visitor of a live test to an arm; the first assignment is kept",
        schemas.ASSIGNED,
        schemas.ASSIGN,
    ),
    _post(
        "counts",
        Scope.WORK,
        endpoints.counts,
        "Tell a block of a live test, once and completely, or leave out one whose data are lost",
        schemas.COUNTED,
        schemas.COUNTS,
    ),
    _post("retire", Scope.ADMIN, endpoints.retire, "Retire arms", NOTHING, schemas.RETIRE),
    _post(
        "resume",
        Scope.ADMIN,
        endpoints.resume,
        "Continue an experiment that stopped after failed pulls",
        NOTHING,
        NOTHING,
    ),
    _admin("archive", endpoints.archive, "Archive: read-only, and not in lists", NOTHING),
    _admin("restore", endpoints.restore, "Make an archived experiment active again", NOTHING),
    _admin("rename", endpoints.rename, "Rename; the old name stays taken", schemas.RENAME),
    _admin("delete", endpoints.delete, "Delete for good; `confirm` is the name", schemas.DELETE),
    _get(
        f"{ONE}/status",
        endpoints.status,
        "Get the status, with every arm",
        schemas.STATUS,
        conditional=True,
    ),
    _get(
        f"{ONE}/standing",
        endpoints.standing,
        "Get the number of pulls told and under way, without the arms",
        schemas.STANDING,
    ),
    _get(f"{ONE}/result", endpoints.result, "Get the result", schemas.RESULT),
    _get(
        f"{ONE}/export",
        endpoints.export,
        "Export the experiment as lines of JSON, for `shortlist import`",
        None,
    ),
)
ERROR = {
    "description": "Refused or failed; `kind` is the name of an error class of the package",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
NAME = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "Name of the experiment, percent-encoded",
    "schema": {"type": "string"},
}
OFFSET = {
    "name": "offset",
    "in": "query",
    "description": "Number of experiments to skip",
    "schema": {"type": "integer", "minimum": 0, "default": 0},
}


def openapi(version: str) -> dict[str, Any]:
    """Return the OpenAPI description of the API, of /live and of /ready."""
    paths: dict[str, dict[str, Any]] = {
        "/live": {"get": _health("live", "Check that the process answers; needs no token")},
        "/ready": {"get": _health("ready", "Check that the store can be read; needs no token")},
    }
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
    schema = {"type": "string"} if route.gives is None else route.gives
    done = {"description": "Done", "content": {kind: {"schema": schema}}}
    responses: dict[str, Any] = {"200": done, "default": ERROR}
    if route.status != 200:
        responses[str(route.status)] = done
    if route.conditional:
        responses["304"] = {"description": "Unchanged since the ETag in `If-None-Match`"}
    operation = {
        "summary": route.summary,
        "description": f"Requires a token with scope {route.scope}.",
        "operationId": _identifier(route),
        "parameters": [*_parameters(route), *route.query],
        "responses": responses,
    }
    if route.takes is not None:
        content = {"application/json": {"schema": route.takes}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(route: ApiRoute) -> list[Schema]:
    if "{name}" in route.path:
        return [NAME]
    return [OFFSET] if route.takes is None else []


def _identifier(route: ApiRoute) -> str:
    last = route.path.rpartition("/")[2]
    if last == "experiments":
        return "list" if route.method == "GET" else "create"
    return "describe" if last == "{name}" else last


def _health(name: str, summary: str) -> dict[str, Any]:
    content = {"application/json": {"schema": schemas.HEALTH}}
    return {
        "summary": summary,
        "operationId": name,
        "security": [],
        "responses": {"200": {"description": "Yes", "content": content}, "default": ERROR},
    }
