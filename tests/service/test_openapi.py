"""The description of the API says what the API does.

Schemathesis derives requests from it, valid and invalid; thousands of them by

    SHORTLIST_ATTACK_SCALE=20 pytest tests/service/test_openapi.py"""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attack_scale import AGAIN, SCALE, SEED
from services import MAKE, Call, caller, serving

from shortlist.service.auth import make_token
from shortlist.service.replies import Limits
from shortlist.service.routes import API, openapi
from shortlist.stores.base import MemoryStore, Scope
from shortlist.stores.sqlite import SQLiteStore

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


# A request may be valid and still name an arm or a ticket that does not exist, so not every valid
# one is accepted. An invalid one may be refused with 413 (too large), besides 400 and its like.
CONFIGURATION = """
[parameters]
{parameters}
[checks.positive_data_acceptance]
enabled = false
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 429]
"""
KINDS: dict[str, dict[str, Any]] = {
    "any": MAKE,  # requests name any experiment, and may archive, rename and delete it
    "plain": {"arms": ["a", "b", "c"], "k": 1, "budget": 100_000},
    "items": {"arms": ["a", "b", "c"], "k": 1, "epsilon": 0.1, "items": 30},
    "live": {"arms": ["a", "b", "c"], "k": 1, "epsilon": 0.1, "drift": True},
}


def attack_by_schemathesis(url: str, secret: str, folder: Path, kind: str) -> str:
    """What `schemathesis run` prints if it finds a failure; empty if it finds none."""
    named = "" if kind == "any" else 'name = "experiment"'
    (folder / "schemathesis.toml").write_text(CONFIGURATION.format(parameters=named))
    call = caller(url)
    described = call("GET", "/openapi.json", authorization=f"Bearer {secret}").data
    (folder / "openapi.json").write_text(json.dumps(described))
    command = [sys.executable, "-m", "schemathesis.cli", "run", "openapi.json", "--url", url]
    command += ["--header", f"Authorization: Bearer {secret}", "--seed", str(SEED + 1)]
    command += ["--max-examples", str(3 * SCALE), "--continue-on-failure", "--no-color"]
    if kind != "any":
        command += ["--exclude-path-regex", "/(archive|rename|delete)$"]
    if SCALE == 1:
        command += ["--phases", "coverage" if kind == "plain" else "fuzzing"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.attack
@pytest.mark.parametrize("kind", KINDS if SCALE > 1 else ["any", "plain"])
def test_schemathesis_finds_no_error_and_no_reply_that_is_not_as_described(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("schemathesis")
    caplog.set_level(logging.ERROR)
    store = SQLiteStore(tmp_path / "store.db", "rwc")
    secret = make_token(store, "me", Scope.ADMIN, 0.0)
    with serving(store, limits=Limits(rate=1e6, arms=200)) as url:
        made = caller(url)
        reply = made("POST", "/v1/experiments", KINDS[kind], authorization=f"Bearer {secret}")
        assert reply.status == 201, reply.raw
        found = attack_by_schemathesis(url, secret, tmp_path, kind)
    store.close()
    assert not found, f"{AGAIN}\n{found}"
    assert [each.getMessage() for each in caplog.records] == []
