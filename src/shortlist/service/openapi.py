"""The OpenAPI description, made from the table of routes."""

from typing import Any

from shortlist.service import schemas
from shortlist.service.routes import API, ApiRoute

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
