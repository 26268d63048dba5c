"""The description of the API says what the API does."""

from typing import Any

import pytest
from services import MAKE, Call

from shortlist.service.routes import API, openapi
from shortlist.stores.base import MemoryStore

pytest_plugins = ["service_fixtures"]

ONE = "/v1/experiments/experiment"
CALLS: list[tuple[str, str, Any]] = [
    ("POST", "/v1/experiments", MAKE),
    ("GET", "/v1/experiments", None),
    ("GET", ONE, None),
    ("POST", f"{ONE}/ask", {"limit": 60, "worker": "w", "lease": 9.5}),
    ("POST", f"{ONE}/fail", {"ticket": 59, "reason": "rain"}),
    ("POST", f"{ONE}/release", {"worker": "w"}),
    ("POST", f"{ONE}/resume", {}),
    ("GET", f"{ONE}/standing", None),
    ("GET", f"{ONE}/status", None),
    (
        "POST",
        f"{ONE}/tell",
        {"results": [{"ticket": each, "reward": 0.5} for each in range(60)]},
    ),
    ("GET", f"{ONE}/result", None),
    ("GET", f"{ONE}/status", None),
]


@pytest.fixture
def described(call: Call) -> Any:
    return call("GET", "/openapi.json").data


def test_the_description_has_every_route_of_the_application_and_no_other(described: Any) -> None:
    from shortlist.service.app import application

    served = {route.path for route in application(MemoryStore()).routes}  # type: ignore[attr-defined]
    ours = {path for path in served if path.startswith("/v1") or path in ("/live", "/ready")}
    assert set(described["paths"]) == ours
    methods = {
        (method.upper(), path) for path, each in described["paths"].items() for method in each
    }
    assert methods == {(route.method, route.path) for route in API} | {
        ("GET", "/live"),
        ("GET", "/ready"),
    }


def test_what_is_sent_and_answered_is_as_described(described: Any, call: Call) -> None:
    validate = pytest.importorskip("jsonschema").validate
    for method, path, body in CALLS:
        operation = described["paths"][
            path.replace("experiment/", "{name}/", 1)
            if path.startswith(ONE + "/")
            else "/v1/experiments/{name}"
            if path == ONE
            else path
        ][method.lower()]
        reply = call(method, path, body)
        assert reply.status in (200, 201), (path, reply.raw)
        content = operation["responses"][str(reply.status)]["content"]["application/json"]
        validate(reply.data, content["schema"])
        if body is not None:
            validate(body, operation["requestBody"]["content"]["application/json"]["schema"])


def test_an_error_is_as_described(described: Any, call: Call) -> None:
    validate = pytest.importorskip("jsonschema").validate
    for method, path in (
        ("GET", "/nowhere"),
        ("GET", f"{ONE}/status"),
        ("POST", "/v1/experiments"),
    ):
        reply = call(method, path)
        assert reply.status >= 400
        validate(reply.data, described["components"]["schemas"]["Error"])


def test_every_operation_has_a_name_of_its_own() -> None:
    paths = openapi("1").get("paths", {})
    names = [each["operationId"] for path in paths.values() for each in path.values()]
    assert len(set(names)) == len(names)
