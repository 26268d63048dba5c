"""OpenTelemetry spans and events; without OpenTelemetry they do nothing.

Names of events are those of the semantic conventions for generative AI."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Any

Value = str | int | float | bool
RESULT = "gen_ai.evaluation.result"
NAME = "score"  # of what is evaluated, required by the conventions
FROM_INFO = {  # keys of an info that have a place in the conventions
    "response_id": "gen_ai.response.id",
    "explanation": "gen_ai.evaluation.explanation",
    "label": "gen_ai.evaluation.score.label",
}


def listening() -> bool:
    """Whether this program uses OpenTelemetry."""
    return "opentelemetry" in sys.modules


@contextmanager
def span(name: str, **attributes: Value) -> Iterator[None]:
    """Record a block as the span `shortlist.<name>`, with its error if it raises."""
    tracer = _tracer()
    if tracer is None:
        yield
        return
    with tracer.start_as_current_span(f"shortlist.{name}", attributes=_own(attributes)):
        yield


def evaluated(score: float, info: object, **attributes: Value) -> None:
    """Record the score of an arm on an item as an event of the current span.

    `response_id`, `explanation` and `label` of its info are named as the conventions do."""
    told = info if isinstance(info, Mapping) else {}
    known = {name: told[key] for key, name in FROM_INFO.items() if isinstance(told.get(key), str)}
    _emit({"gen_ai.evaluation.score.value": score, **known, **_own(attributes)})


def failed(error: BaseException, **attributes: Value) -> None:
    """Record an evaluation that ended with an error as an event of the current span."""
    _emit({"error.type": type(error).__qualname__, **_own(attributes)})


def _emit(attributes: dict[str, Value]) -> None:
    logger = _logger()
    if logger is not None:
        named = {"gen_ai.evaluation.name": NAME, **attributes}
        logger.emit(event_name=RESULT, attributes=named)


def _own(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return {f"shortlist.{key}": value for key, value in attributes.items()}


@cache
def _tracer() -> Any:
    """The tracer of this package; None without OpenTelemetry."""
    try:
        trace = import_module("opentelemetry.trace")
    except ImportError:
        return None
    return trace.get_tracer("shortlist")


@cache
def _logger() -> Any:
    """The logger of events; None without OpenTelemetry, or with one that is older than events."""
    try:
        logs = import_module("opentelemetry._logs")
    except ImportError:
        return None
    known = "event_name" in signature(logs.Logger.emit).parameters
    return logs.get_logger("shortlist") if known else None
