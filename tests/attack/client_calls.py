"""Calls of `Client`, in front of a service that is really there."""

import random
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any

from call_targets import Arguments, Target, show
from select_calls import question
from services import serving

import shortlist
from shortlist.errors import ShortlistError, StoreError
from shortlist.stores.base import MemoryStore

BROKEN = "something went wrong in the service"
LEFT = ExitStack()  # the service, until somebody ends it


class Broken(Exception):
    """A service came to an end that it did not foresee."""


@cache
def address() -> str:
    """Where the service is, started when it is first called."""
    return LEFT.enter_context(serving(MemoryStore()))


def end() -> None:
    """Let the service end, if there is one."""
    LEFT.close()
    address.cache_clear()


class Watched:
    """Errors in words pass, unless they are a service's that has no words."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> bool:
        if isinstance(error, StoreError) and BROKEN in str(error):
            raise Broken(str(error))
        return isinstance(error, ShortlistError)


def _made_there(**arguments: Any) -> None:
    with shortlist.Client(address(), patience=0.5, timeout=4) as client, Watched():
        show(client.create(**arguments).status())


def _making(rng: random.Random) -> Arguments:
    asked = question(rng)
    asked["arms"] = rng.choice((4, ["a", "b", "c"]))
    more = {"lease": 9, "on_late": "wait", "retries": 1, "items": None, "scores": None}
    return {**asked, **more, "name": f"made {rng.randrange(50)}", "exist_ok": True}


def _lived_there(
    url: Any,
    token: Any,
    name: Any,
    timeout: Any,
    patience: Any,
    limit: Any,
    worker: Any,
    seconds: Any,
    ticket: Any,
    reward: Any,
    reason: Any,
    partial: Any,
) -> None:
    """A day in the life of an experiment, from afar."""
    place = address() if isinstance(url, str) and url == "there" else url
    with suppress(ShortlistError):
        shortlist.Client(address()).create(3, 1, budget=12, name="lived", exist_ok=True).close()
    client = shortlist.Client(place, token, name, timeout=timeout, patience=patience)
    for step in (
        lambda: client.ask(limit, worker, lease=seconds),
        lambda: client.ask(limit, worker, alive=seconds),
        lambda: client.tell(ticket, reward),
        lambda: client.tell_many([(ticket, reward), (1, 0.5)]),
        lambda: client.tell_many(reward),
        lambda: client.fail(ticket, reason),
        lambda: client.release(worker, overdue=seconds),
        lambda: client.release(tickets=reward),
        lambda: client.resume(),
        lambda: client.result(partial=partial),
        lambda: client.open(name),
    ):
        with Watched():
            step()
    with Watched():
        show(client.status())
    client.close()


def _living_there(rng: random.Random) -> Arguments:
    return {
        "url": "there",
        "token": None,
        "name": "lived",
        "timeout": 4.0,
        "patience": 0.0,
        "limit": 3,
        "worker": "ann",
        "seconds": 5,
        "ticket": 0,
        "reward": 1,
        "reason": "no network",
        "partial": True,
    }


TARGETS = (
    Target("Client.create", _made_there, _making, shortlist.Client.create),
    Target("Client", _lived_there, _living_there),
)
