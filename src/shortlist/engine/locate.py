"""Where an experiment is kept: a store, or a file or a database that is opened as one.

Experiments of a store are renamed, archived, restored and deleted here. An archived experiment is
read-only and left out of lists and metrics. The store keeps the names of a deleted experiment and
when it was created and deleted, and nothing else: neither settings nor labels, rewards or
events."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from shortlist.engine.log_entries import present_author
from shortlist.errors import InvalidInput
from shortlist.stores import Kind, Store
from shortlist.stores.address import is_postgres, shown_place
from shortlist.stores.sql import SQLStore
from shortlist.stores.sqlite import Mode, SQLiteStore
from shortlist.validation import shown, text

LONGEST_NAME = 200  # characters
SERVICES = ("http://", "https://")
Place = Store | str | os.PathLike[str]


@contextmanager
def opened(place: Place, mode: Mode, *, keep: bool = False) -> Iterator[Store]:
    """The store; if it is only named, closed again afterwards, or with `keep` only after an
    error."""
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
    store = open_store(place, mode)
    try:
        yield store
    except BaseException:
        store.close()
        raise
    if not keep:
        store.close()


def open_store(place: str | os.PathLike[str], mode: Mode) -> SQLStore:
    """The store in that file, or at that address."""
    if not (isinstance(place, str) and is_postgres(place)):
        return SQLiteStore(place, mode)
    try:
        from shortlist.stores.postgres import PostgresStore
    except ImportError as error:  # psycopg is there, but cannot load PostgreSQL's library
        raise InvalidInput(
            f"`store` is {shown_place(place)}, but psycopg is not installed: pip install"
            f" 'shortlist[postgres]' ({error})"
        ) from error
    return PostgresStore(place, mode)


def the_only(names: Sequence[str]) -> str:
    """The name of the only experiment."""
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
    if len(str(name)) > LONGEST_NAME:
        rule = f"but must have at most {LONGEST_NAME}: it is part of addresses"
        raise InvalidInput(f"`name` has {len(str(name)):,} characters, {rule}")
    return str(name)


def rename(store: Place, name: str, new_name: str) -> None:
    """Rename an experiment. Its tickets stay valid, and its old name stays taken.

    Args:
        store: A file, an address or a store.
        name: Name of the experiment.
        new_name: Its new name.

    Raises:
        StoreMissing: There is no such experiment.
        StoreExists: The new name is or was taken.

    Example:
        >>> from shortlist.engine import Experiment, rename
        >>> from shortlist.stores.base import MemoryStore
        >>> store = MemoryStore()
        >>> experiment = Experiment.create(3, 1, store=store, budget=30)
        >>> rename(store, "experiment", "colours")
        >>> store.names()
        ['colours']
    """
    with opened(store, "rw") as place:
        place.change(name, Kind.RENAME, checked_name(new_name), present_author())


def archive(store: Place, name: str, *, restore: bool = False) -> None:
    """Archive an experiment: it is read-only then, and left out of lists and metrics.

    Args:
        store: A file, an address or a store.
        name: Name of the experiment.
        restore: Make it active again instead.

    Raises:
        StoreMissing: There is no such experiment.

    Example:
        >>> from shortlist.engine import Experiment, archive
        >>> from shortlist.stores.base import MemoryStore
        >>> store = MemoryStore()
        >>> experiment = Experiment.create(3, 1, store=store, budget=30)
        >>> archive(store, "experiment")
        >>> store.names()
        []
    """
    kind = Kind.RESTORE if restore else Kind.ARCHIVE
    with opened(store, "rw") as place:
        place.change(name, kind, "", present_author())


def delete(store: Place, name: str) -> None:
    """Delete an experiment for good, with its settings, labels, rewards and events.

    The store keeps its names, and when and by whom it was created and deleted.

    Args:
        store: A file, an address or a store.
        name: Name of the experiment.

    Raises:
        StoreMissing: There is no such experiment.

    Example:
        >>> from shortlist.engine import Experiment, delete
        >>> from shortlist.stores.base import MemoryStore
        >>> store = MemoryStore()
        >>> experiment = Experiment.create(3, 1, store=store, budget=30)
        >>> delete(store, "experiment")
        >>> store.names()
        []
    """
    with opened(store, "rw") as place:
        place.change(name, Kind.DELETE, "", present_author())
