"""How often an evaluation is made, and how long it may take.

A call that takes too long has failed, and one that failed is made again. That is fair only if
neither says anything about the reward: docs/late.md."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread
from typing import Any

from shortlist.errors import EvaluationFailed
from shortlist.validation import MOST_RETRIES, seconds, whole

logger = logging.getLogger("shortlist.evaluation")


@dataclass(frozen=True, slots=True)
class Attempts:
    """One, and `retries` more if it fails, each of `timeout` seconds at most."""

    retries: int = 0
    timeout: float | None = None

    @classmethod
    def of(cls, retries: object, timeout: object) -> "Attempts":
        """Take what a user said, if it makes sense."""
        most = None if timeout is None else seconds("timeout", timeout)
        return cls(whole("retries", retries, at_least=0, at_most=MOST_RETRIES), most)

    def make(self, evaluate: Callable[[], Any]) -> Any:
        """What the first attempt that does not fail returns; what the last one raises."""
        for _ in range(self.retries):
            try:
                return self._once(evaluate)
            except Exception as error:
                _say(error)
        return self._once(evaluate)

    async def make_async(self, evaluate: Callable[[], Awaitable[Any]]) -> Any:
        """`make` with what is to be awaited."""
        for _ in range(self.retries):
            try:
                return await self._once_async(evaluate)
            except Exception as error:
                _say(error)
        return await self._once_async(evaluate)

    def _once(self, evaluate: Callable[[], Any]) -> Any:
        """One attempt, in a thread of its own if its time is limited.

        Nothing can end a thread: one that is late is left to itself."""
        if self.timeout is None:
            return evaluate()
        future: Future[Any] = Future()
        Thread(target=_fulfil, args=(future, evaluate), daemon=True).start()
        try:
            return future.result(self.timeout)
        except TimeoutError:
            if future.done():  # the evaluation itself raised it
                raise
            raise self._late() from None

    async def _once_async(self, evaluate: Callable[[], Awaitable[Any]]) -> Any:
        try:
            async with asyncio.timeout(self.timeout) as limit:
                return await evaluate()
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._late() from None

    def _late(self) -> EvaluationFailed:
        return EvaluationFailed(f"it took longer than {self.timeout:g} s")


def _fulfil(future: "Future[Any]", evaluate: Callable[[], Any]) -> None:
    try:
        future.set_result(evaluate())
    except BaseException as error:
        future.set_exception(error)


def _say(error: Exception) -> None:
    logger.warning("An evaluation failed and is made again: %s", str(error) or type(error).__name__)
