"""Async functions where no event loop is running: one is begun for them."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from shortlist.errors import InvalidInput
from shortlist.validation import shown

CONCURRENT = 16  # evaluations of an async function under way at a time, unless told
T = TypeVar("T")


def refuse_executor(executor: object) -> None:
    """An async function runs in the event loop, and nowhere else."""
    if executor is not None:
        raise InvalidInput(
            f"`executor` is {shown(executor)}, but an async function runs in the event loop"
        )


def run_here(coroutine: Coroutine[Any, Any, T], name: str) -> T:
    """The result of a coroutine, in a loop of its own; `name` is the call that needs none."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    coroutine.close()
    raise InvalidInput(
        f"an event loop is running here, so `{name}` cannot wait for async functions; await"
        f" `{name}_async`"
    )
