"""Begin a step again that a broken connection ended: nothing of it was written.

A store says `StoreInterrupted` only where its outermost exclusive block ends. So whatever is done
inside a block of somebody else is not done again by itself, but with all of that block."""

import random
import time
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from shortlist.errors import StoreInterrupted

TRIES = 20  # a store waits for its server by itself; this is about servers that come and go
PAUSE = 0.05  # seconds between two at most, so that who was in the way is not met again
Own = TypeVar("Own")
Given = ParamSpec("Given")
Got = TypeVar("Got")


def insist(step: Callable[[], Got]) -> Got:
    """What a step gives, which may be taken several times but is written once."""
    for _ in range(TRIES - 1):
        try:
            return step()
        except StoreInterrupted:
            time.sleep(random.uniform(0, PAUSE))
    return step()


def insistent(
    method: Callable[Concatenate[Own, Given], Got],
) -> Callable[Concatenate[Own, Given], Got]:
    """A method that is such a step."""

    @wraps(method)
    def insisting(own: Own, /, *given: Given.args, **named: Given.kwargs) -> Got:
        return insist(lambda: method(own, *given, **named))

    return insisting
