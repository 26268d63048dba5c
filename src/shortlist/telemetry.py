"""OpenTelemetry spans; without OpenTelemetry they do nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

Value = str | int | float | bool


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
