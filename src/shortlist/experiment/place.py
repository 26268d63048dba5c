"""Where an experiment is kept: a store, or a file that is opened as one."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from shortlist.errors import InvalidInput
from shortlist.storage import Store
from shortlist.storage.sqlite import Mode, SQLiteStore

Place = Store | str | os.PathLike[str]


def store_at(place: Place, mode: Mode) -> tuple[Store, bool]:
    """The store, and whether it was opened here and is to be closed again."""
    if isinstance(place, str | os.PathLike):
        return SQLiteStore(place, mode), True
    return place, False


@contextmanager
def opened(place: Place, mode: Mode) -> Iterator[Store]:
    """The store, closed again if it was opened here."""
    store, ours = store_at(place, mode)
    try:
        yield store
    finally:
        if ours:
            store.close()


def the_only(names: Sequence[str]) -> str:
    """The name that need not be said."""
    if len(names) != 1:
        there = ", ".join(map(repr, names)) or "none"
        raise InvalidInput(f"`name` is not given, but the store holds not exactly one experiment: {there}")
    return names[0]
