"""Spans where OpenTelemetry is, nothing where it is not."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from shortlist.service import logs as traces


@pytest.fixture(autouse=True)
def _look_again() -> Iterator[None]:
    traces._tracer.cache_clear()
    yield
    traces._tracer.cache_clear()


def test_without_opentelemetry_a_span_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with traces.span("request", route="/"):
        pass
    with pytest.raises(ZeroDivisionError), traces.span("request"):
        raise ZeroDivisionError


def test_with_opentelemetry_a_span_has_its_name_and_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[str, dict[str, Any]]] = []

    class Tracer:
        @contextmanager
        def start_as_current_span(self, name: str, attributes: dict[str, Any]) -> Iterator[None]:
            begun.append((name, attributes))
            yield

    trace = ModuleType("opentelemetry.trace")
    trace.get_tracer = lambda name: Tracer()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "opentelemetry", ModuleType("opentelemetry"))
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", trace)
    with traces.span("request", route="/", status=200):
        pass
    assert begun == [("shortlist.request", {"shortlist.route": "/", "shortlist.status": 200})]
