"""What a service logs, as text and as JSON."""

import json
import logging
import sys

import pytest
from services import Call

from shortlist.service.server import JsonLines

pytest_plugins = ["service_fixtures"]


def test_every_request_is_a_line_of_the_access_log(
    made: Call, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "shortlist.access")
    made("GET", "/v1/experiments/experiment/status")
    made("GET", "/nowhere")
    texts = [record.getMessage() for record in caplog.records]
    assert texts[0].startswith("127.0.0.1 - GET /v1/experiments/{name}/status 200 ")
    assert texts[1].startswith("127.0.0.1 - GET elsewhere 404 ")
    line = json.loads(JsonLines().format(caplog.records[0]))
    assert (line["level"], line["logger"], line["status"]) == ("info", "shortlist.access", 200)
    assert (line["method"], line["path"]) == ("GET", "/v1/experiments/{name}/status")
    assert line["time"].endswith("Z")


def test_an_error_is_in_its_line_of_json() -> None:
    try:
        raise ZeroDivisionError("é")
    except ZeroDivisionError:
        record = logging.LogRecord(
            "shortlist.service", logging.ERROR, "", 0, "failed: %s", ("x",), sys.exc_info()
        )
    line = json.loads(JsonLines().format(record))
    assert line["message"] == "failed: x"
    assert "ZeroDivisionError: é" in line["error"]
