"""Spans and events where OpenTelemetry is, nothing where it is not."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

import shortlist
from shortlist import telemetry as traces


@pytest.fixture(autouse=True)
def _look_again() -> Iterator[None]:
    for each in (traces._tracer, traces._logger):
        each.cache_clear()
    yield
    for each in (traces._tracer, traces._logger):
        each.cache_clear()


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


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The spans and the events of this program, by the SDK's own exporters."""
    pytest.importorskip("opentelemetry.sdk", reason="pip install opentelemetry-sdk")
    from opentelemetry import _logs, trace
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import (
        InMemoryLogRecordExporter,
        SimpleLogRecordProcessor,
    )
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, events = InMemorySpanExporter(), InMemoryLogRecordExporter()
    tracing, logs = TracerProvider(), LoggerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    logs.add_log_record_processor(SimpleLogRecordProcessor(events))
    monkeypatch.setattr(trace, "get_tracer", tracing.get_tracer)
    monkeypatch.setattr(_logs, "get_logger", logs.get_logger)
    return spans, events


def answered(arm: str, item: str) -> shortlist.Score:
    info = {"response_id": f"{arm}-{item}", "label": "pass", "explanation": "it is right"}
    return shortlist.Score(float(arm == "b"), info=info)


async def answered_later(arm: str, item: str) -> shortlist.Score:
    return answered(arm, item)


def answered_many(arm: str, items: list[str]) -> list[shortlist.Score]:
    return [answered(arm, item) for item in items]


QUESTIONS = [f"q{number}" for number in range(12)]
WAYS: dict[str, dict[str, Any]] = {
    "here": {"pull": answered},
    "threads": {"pull": answered, "workers": 3},
    "async": {"pull": answered_later},
    "many": {"pull_many": answered_many, "batch": 4},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_score_on_an_item_is_an_event_of_its_span(
    way: str, exported: tuple[Any, Any]
) -> None:
    result = shortlist.select(
        arms=["a", "b"], k=1, items=QUESTIONS, budget=20, progress=False, **WAYS[way]
    )
    spans = {each.context.span_id: each for each in exported[0].get_finished_spans()}
    events = [each.log_record for each in exported[1].get_finished_logs()]
    assert {each.name for each in spans.values()} == {"shortlist.evaluate"}
    assert {each.event_name for each in events} == {"gen_ai.evaluation.result"}
    assert result.cells is not None
    assert len(events) == len(result.cells) == 20
    assert {(each.arm, repr(each.item), each.score) for each in result.cells} == {
        (
            each.attributes["shortlist.arm"],
            each.attributes["shortlist.item"],
            each.attributes["gen_ai.evaluation.score.value"],
        )
        for each in events
    }
    first = events[0].attributes
    assert spans[events[0].span_id].attributes["shortlist.arm"] == first["shortlist.arm"]
    assert first["gen_ai.evaluation.name"] == "score"
    assert first["gen_ai.evaluation.score.label"] == "pass"
    assert first["gen_ai.evaluation.explanation"] == "it is right"
    assert first["gen_ai.response.id"].startswith(first["shortlist.arm"])


@pytest.mark.parametrize("later", [False, True])
def test_an_evaluation_that_fails_is_an_event_with_its_error(
    later: bool, exported: tuple[Any, Any]
) -> None:
    def broken(arm: str, item: str) -> float:
        raise ConnectionError("down")

    async def broken_later(arm: str, item: str) -> float:
        raise ConnectionError("down")

    with pytest.raises(ConnectionError):
        shortlist.select(
            broken_later if later else broken,
            arms=2,
            k=1,
            items=9,
            budget=9,
            progress=False,
            workers=1,
        )
    (event,) = [each.log_record for each in exported[1].get_finished_logs()]
    assert event.attributes["error.type"] == "ConnectionError"
    assert "gen_ai.evaluation.score.value" not in event.attributes
    (span,) = exported[0].get_finished_spans()
    assert not span.status.is_ok


def test_pulls_without_items_are_no_evaluations_of_models(exported: tuple[Any, Any]) -> None:
    shortlist.select(float, arms=2, k=1, budget=9, progress=False)
    assert not exported[1].get_finished_logs()


def test_an_opentelemetry_without_events_is_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    older = ModuleType("opentelemetry._logs")
    older.Logger = type("Logger", (), {"emit": lambda self, record: None})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "opentelemetry._logs", older)
    traces.evaluated(1.0, None)
    monkeypatch.setitem(sys.modules, "opentelemetry._logs", None)
    traces._logger.cache_clear()
    traces.evaluated(1.0, None)
