"""The table of the API: every path and method, who may call it, what it takes and gives."""

from collections.abc import Callable
from dataclasses import dataclass

from shortlist.service import endpoints, schemas
from shortlist.service.endpoints import Inquiry, Reply
from shortlist.service.group_commit import Act, Results
from shortlist.service.schemas import Schema
from shortlist.spec import Json
from shortlist.stores.base import Scope

ONE = "/v1/experiments/{name}"


Answer = Callable[[Inquiry], Reply]


@dataclass(frozen=True, slots=True)
class Write:
    """What is done in turn with all others who write; results are told with those of others."""

    wanted: Callable[[Json], Act | Results]


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """One path and method of the API."""

    method: str
    path: str
    scope: Scope
    answer: Answer | Write
    summary: str
    gives: Schema | None  # None: lines of JSON
    takes: Schema | None = None  # None: no body
    status: int = 200
    conditional: bool = False  # whether it has an ETag


API = (
    ApiRoute(
        "GET",
        "/v1/experiments",
        Scope.READ,
        endpoints.list_experiments,
        "List the experiments, a hundred at a time from `offset` on",
        schemas.LIST,
    ),
    ApiRoute(
        "POST",
        "/v1/experiments",
        Scope.ADMIN,
        endpoints.create,
        "Make an experiment; with `exist_ok` an equal one that is there is as good",
        schemas.DESCRIBED,
        schemas.CREATE,
        201,
    ),
    ApiRoute(
        "GET", ONE, Scope.READ, endpoints.describe, "What it was made with", schemas.DESCRIBED
    ),
    ApiRoute(
        "POST",
        f"{ONE}/ask",
        Scope.WORK,
        Write(endpoints.ask),
        "Be handed tickets; a worker with a name gets its own open ones first",
        schemas.HANDOUT,
        schemas.ASK,
    ),
    ApiRoute(
        "POST",
        f"{ONE}/tell",
        Scope.WORK,
        Write(endpoints.tell),
        "Tell rewards, all or none; to tell the same again changes nothing",
        schemas.TOLD,
        schemas.TELL,
    ),
    ApiRoute(
        "POST",
        f"{ONE}/fail",
        Scope.WORK,
        Write(endpoints.fail),
        "Say that a pull could not be made",
        schemas.NOTHING,
        schemas.FAIL,
    ),
    ApiRoute(
        "POST",
        f"{ONE}/release",
        Scope.WORK,
        Write(endpoints.release),
        "Give back tickets: of a worker, by number, or overdue by so many seconds",
        schemas.RELEASED,
        schemas.RELEASE,
    ),
    ApiRoute(
        "POST",
        f"{ONE}/retire",
        Scope.ADMIN,
        Write(endpoints.retire),
        "Let an arm leave that cannot be pulled any more",
        schemas.NOTHING,
        schemas.RETIRE,
    ),
    ApiRoute(
        "POST",
        f"{ONE}/resume",
        Scope.ADMIN,
        Write(endpoints.resume),
        "Let an experiment that stopped go on",
        schemas.NOTHING,
        schemas.NOTHING,
    ),
    ApiRoute(
        "GET",
        f"{ONE}/status",
        Scope.READ,
        endpoints.status,
        "Where it stands, arm by arm",
        schemas.STATUS,
        conditional=True,
    ),
    ApiRoute(
        "GET",
        f"{ONE}/standing",
        Scope.READ,
        endpoints.standing,
        "How many pulls were told and are under way, without the arms",
        schemas.STANDING,
    ),
    ApiRoute("GET", f"{ONE}/result", Scope.READ, endpoints.result, "The answer", schemas.RESULT),
    ApiRoute(
        "GET",
        f"{ONE}/export",
        Scope.READ,
        endpoints.export,
        "All of it as lines of JSON, for `shortlist import`",
        None,
    ),
)
