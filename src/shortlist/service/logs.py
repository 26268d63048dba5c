"""Logs and traces of a service.

Logs are lines of text or of JSON on stderr. Every answered request is one line at level info, by
the logger `shortlist.access`. Traces are spans of OpenTelemetry; without it they do nothing."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

TEXT = "%(asctime)s %(name)s %(levelname)s %(message)s"
access = logging.getLogger("shortlist.access")
Value = str | int | float | bool


class JsonLines(logging.Formatter):
    """One JSON object per record; what belongs to a request has fields of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "request", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def start_logs(level: str, style: str) -> None:
    """Log to stderr from this level on, as "text" or "json"."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if style == "json" else logging.Formatter(TEXT))
    logging.basicConfig(handlers=[handler], level=level.upper())


def log_request(
    address: str, token: str, method: str, path: str, status: int, seconds: float
) -> None:
    """Log an answered request. The path is that of its route: names may be private."""
    if access.isEnabledFor(logging.INFO):
        fields = {"address": address, "token": token, "method": method, "path": path}
        more = {**fields, "status": status, "seconds": round(seconds, 6)}
        text = f"{address} {token or '-'} {method} {path} {status} {1000 * seconds:.1f} ms"
        access.info("%s", text, extra={"request": more})


@contextmanager
def span(name: str, **attributes: Value) -> Iterator[None]:
    """Record a block as the span `shortlist.<name>`, with its error if it raises."""
    tracer = _tracer()
    if tracer is None:
        yield
        return
    named = {f"shortlist.{key}": value for key, value in attributes.items()}
    with tracer.start_as_current_span(f"shortlist.{name}", attributes=named):
        yield


@cache
def _tracer() -> Any:
    """The tracer of this package; None without OpenTelemetry."""
    try:
        trace = import_module("opentelemetry.trace")
    except ImportError:
        return None
    return trace.get_tracer("shortlist")
