"""Spans of OpenTelemetry around what takes time, if it is installed; if not, nothing at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

Value = str | int | float | bool


@contextmanager
def span(name: str, **attributes: Value) -> Iterator[None]:
    """A span of that name around a block; an error that leaves the block is noted in it."""
    tracer = _tracer()
    if tracer is None:
        yield
        return
    named = {f"shortlist.{key}": value for key, value in attributes.items()}
    with tracer.start_as_current_span(f"shortlist.{name}", attributes=named):
        yield


@cache
def _tracer() -> Any:
    """The tracer of this package; None if there is no OpenTelemetry."""
    try:
        trace = import_module("opentelemetry.trace")
    except ImportError:
        return None
    return trace.get_tracer("shortlist")
