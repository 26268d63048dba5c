"""Rename, archive, restore and delete experiments of a store.

An archived experiment is read-only and left out of lists and metrics. Of a deleted experiment the
store keeps its names and when it was created and deleted, and nothing else: neither settings nor
labels, rewards or events."""

from shortlist.engine.locate import Place, checked_name, opened
from shortlist.engine.log_entries import present_author
from shortlist.stores import Kind


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
