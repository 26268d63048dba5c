"""Retry a transaction that a broken connection ended: none of it was written.

A store raises `StoreInterrupted` only at the end of its outermost exclusive block. So work inside
another block is not retried on its own, but with all of that block."""

import random
import time
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from shortlist.errors import StoreInterrupted

TRIES = 20  # a store waits for its server on its own; this is for servers that come and go
PAUSE = 0.05  # maximum seconds between two tries, so that they do not collide again
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
