"""Retries wait as long as an error asks for, and the log names arm, item and attempt."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

import shortlist
from shortlist.engine.calls import LONGEST_WAIT, Attempts, Call, Stop, retry_after


class TooMany(Exception):
    """An error as clients of services raise it."""

    def __init__(self, wait: Any = None, headers: Any = None) -> None:
        super().__init__("too many requests")
        self.retry_after = wait
        if headers is not None:
            self.response = SimpleNamespace(headers=headers)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (TooMany(2.5), 2.5),
        (TooMany("7"), 7.0),
        (TooMany(headers={"retry-after": "12"}), 12.0),
        (TooMany(headers={"Retry-After": "3"}), 3.0),
        (TooMany(10**9), LONGEST_WAIT),
        (TooMany(-1), 0.0),
        (TooMany(float("nan")), 0.0),
        (TooMany("Wed, 21 Oct 2026 07:28:00 GMT"), 0.0),
        (TooMany(headers=["x"]), 0.0),
        (ValueError("plain"), 0.0),
    ],
)
def test_an_error_may_say_how_long_to_wait(error: Exception, seconds: float) -> None:
    assert retry_after(error) == seconds


class Recorded(Stop):
    """Pauses that are noted and not made."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        return False


def test_pauses_are_at_least_as_long_as_errors_ask_for(caplog: pytest.LogCaptureFixture) -> None:
    errors = iter([TooMany(40), TooMany()])
    stop = Recorded()

    def evaluate() -> float:
        for error in errors:
            raise error
        return 1.0

    call = Call(3, "model", 4, 1, None, "q7")
    with caplog.at_level(logging.WARNING):
        assert Attempts(retries=2).make(evaluate, stop, call.name) == 1.0
    assert stop.pauses[0] == 40
    assert stop.pauses[1] < 2
    first, second = (record.getMessage() for record in caplog.records)
    assert first == (
        "Arm 'model', item 'q7', failed in attempt 1 of 3 and is made again in 40.0 s:"
        " too many requests"
    )
    assert "attempt 2 of 3" in second


def test_async_functions_wait_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    failed: set[tuple[int, int]] = set()

    async def pull(arm: int, item: int) -> float:
        if (arm, item) not in failed and failed:
            failed.add((arm, item))
            raise TooMany(33)
        failed.add((arm, item))
        return float(arm)

    asked: dict[str, Any] = {"arms": 2, "k": 1, "epsilon": 0.9, "items": 3, "progress": False}
    assert shortlist.select(pull, **asked).top == (1,)
    assert 33 in pauses


def test_calls_are_named_by_their_items() -> None:
    assert Call(0, "a", 5, 1, None).name == "Arm 'a', pull 5,"
    assert Call(0, "a", 5, 3, None, ["x", "y", "z"]).name == "Arm 'a', item 'x' and 2 more,"
