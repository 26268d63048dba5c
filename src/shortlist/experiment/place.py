"""Where an experiment is kept: a store, or a file that is opened as one."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from shortlist.errors import InvalidInput
from shortlist.storage import Store
from shortlist.storage.connection import Mode
from shortlist.storage.sqlite import SQLiteStore
from shortlist.validation import shown, text

SERVICES = ("http://", "https://")
Place = Store | str | os.PathLike[str]


@contextmanager
def opened(place: Place, mode: Mode, *, keep: bool = False) -> Iterator[Store]:
    """The store; if it is a file, closed again afterwards, or with `keep` only after an error."""
    if not isinstance(place, str | os.PathLike):
        if not isinstance(place, Store):
            raise InvalidInput(
                f"`store` is {shown(place)}, but must be the name of a file, or a store"
            )
        yield place
        return
    if str(place).startswith(SERVICES):
        raise InvalidInput(
            f"`store` is {shown(place)}, a service, but must be a file or a store: a `Client` takes"
            " it"
        )
    store = SQLiteStore(place, mode)
    try:
        yield store
    except BaseException:
        store.close()
        raise
    if not keep:
        store.close()


def the_only(names: Sequence[str]) -> str:
    """The name that need not be said."""
    if not names:
        raise InvalidInput("`name` is not given, but the store holds no experiment")
    if len(names) > 1:
        there = ", ".join(map(repr, names))
        raise InvalidInput(f"`name` is not given, but the store holds several experiments: {there}")
    return names[0]


def checked_name(name: object) -> str:
    """A name that an experiment may have."""
    if not text("name", name):
        raise InvalidInput("`name` is '', but must be a text that is not empty")
    return str(name)


def checked_worker(worker: object) -> str:
    """The name of a worker; None and an empty one are nobody's."""
    return "" if worker is None else text("worker", worker)
