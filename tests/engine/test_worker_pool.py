"""Calls on an executor: whose error it is that ends one."""

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass
from typing import Any

import pytest

import shortlist
from shortlist.engine.calls import Call
from shortlist.engine.executors import ATTEMPTS, OWN, Done, ExecutorPool

CALL = Call(ticket=0, label="a", draw=0, times=1, seed=None)


class Breaking(Executor):
    """Runs functions at once, and afterwards loses the first `losses` of their results."""

    def __init__(self, losses: int) -> None:
        self.losses = losses

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            value = fn(*args, **kwargs)
        except BaseException as error:
            future.set_exception(error)
            return future
        self.losses -= 1
        if self.losses >= 0:  # as dask.distributed does when a worker is lost as its future ends
            future.set_exception(TypeError("cannot unpack non-iterable float object"))
        else:
            future.set_result(value)
        return future


@dataclass
class Counted:
    """An evaluation that counts its calls, and raises what it is given."""

    error: BaseException | None = None
    calls: int = 0

    def __call__(self, call: Call) -> float:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return 0.5


def landed(evaluate: Counted, losses: int) -> Done:
    pool = ExecutorPool(Breaking(losses), 1, evaluate)
    pool.submit(CALL)
    (done,) = pool.collect(5)
    return done


def test_an_error_of_the_executor_itself_is_a_lost_worker() -> None:
    evaluate = Counted()
    assert landed(evaluate, losses=ATTEMPTS - 1).value == 0.5
    assert evaluate.calls == ATTEMPTS


def test_an_executor_that_always_fails_is_given_up_with_its_error() -> None:
    evaluate = Counted()
    error = landed(evaluate, losses=99).error
    assert isinstance(error, TypeError)
    assert "cannot unpack" in str(error)
    assert evaluate.calls == ATTEMPTS


class Frozen(Exception):
    """An error that takes no attributes."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)


@pytest.mark.parametrize(
    "error", [TypeError("mine"), BrokenExecutor("mine"), Frozen("mine"), SystemExit(3)]
)
def test_an_error_of_the_evaluation_is_never_taken_for_a_lost_worker(error: BaseException) -> None:
    evaluate = Counted(error)
    assert landed(evaluate, losses=0).error is error
    assert evaluate.calls == 1


def failing(arm: int) -> float:
    raise TypeError(f"no such page: {arm}")


def test_an_error_from_another_process_is_not_taken_for_a_lost_worker() -> None:
    with pytest.raises(TypeError, match="no such page") as caught:
        shortlist.select(failing, arms=2, k=1, budget=4, executor="processes", workers=1)
    assert vars(caught.value)[OWN]
