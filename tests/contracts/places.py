"""Where experiments may be kept: in memory, in a file, in PostgreSQL, or behind a service, all used
alike."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from postgres import shared_server

from shortlist import Client
from shortlist.engine import Experiment
from shortlist.stores import Store
from shortlist.stores.base import MemoryStore
from shortlist.stores.sqlite import SQLiteStore

STORES = ("memory", "sqlite", "postgres")
PLACES = (*STORES, "http")
Clock = Callable[[], float]


class Remote:
    """A service in front of a store in memory. It starts when the first experiment is made or
    opened, with the clock of that one."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self._stack = ExitStack()
        self._url: str | None = None

    def client(self, clock: Clock) -> Client:
        pytest.importorskip("starlette")
        from services import serving

        if self._url is None:
            self._url = self._stack.enter_context(serving(self.store, clock))
        return Client(self._url, patience=0)

    def close(self) -> None:
        self._stack.close()
        self.store.close()


def opening(kind: str, folder: Path) -> Callable[[], Store]:
    """Opens one and the same store, again and again, as other programs would."""
    if kind == "memory":
        memory = MemoryStore()
        return lambda: memory
    if kind == "sqlite":
        return lambda: SQLiteStore(folder / "store.db", "rwc")
    url = shared_server().new_url()
    from shortlist.stores.postgres import PostgresStore

    return lambda: PostgresStore(url, "rwc")


@contextmanager
def place(kind: str, folder: Path) -> Iterator[Any]:
    """A store, or something that stands for one."""
    store: Any = Remote() if kind == "http" else opening(kind, folder)()
    yield store
    store.close()


def create(*settings: Any, store: Any, clock: Clock = time.time, **more: Any) -> Any:
    """`Experiment.create`, wherever that is."""
    if isinstance(store, Remote):
        return store.client(clock).create(*settings, **more)
    return Experiment.create(*settings, store=store, clock=clock, **more)


def reopen(store: Any, name: str | None = None, *, clock: Clock = time.time) -> Any:
    """`Experiment.open`, wherever that is."""
    if isinstance(store, Remote):
        return store.client(clock).open(name)
    return Experiment.open(store, name, clock=clock)


def log_of(store: Any) -> Store:
    """The store itself, which nobody but a test looks into."""
    kept: Store = store.store if isinstance(store, Remote) else store
    return kept
