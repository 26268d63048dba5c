"""Experiments from one store to another, as they are: all that are wanted, or none."""

from dataclasses import dataclass
from operator import eq

from shortlist.errors import InvalidInput, StoreDamaged, StoreExists, StoreMissing
from shortlist.experiment.place import Place, opened
from shortlist.storage import News, Store
from shortlist.storage.insist import insist
from shortlist.storage.store import no_such_experiment


@dataclass(frozen=True, slots=True)
class Copied:
    """An experiment that was copied."""

    name: str  #: of the experiment
    rows: int  #: of its log, rewards and events


def copy(source: Place, target: Place, name: str | None = None) -> list[Copied]:
    """Copy the experiment of that name, or all, to a store in which there is none of that name.

    What is read is checked against its chain, and what was written is read back and compared. After
    an error nothing was written. A log that this version cannot replay is copied as well; tokens
    are not."""
    with opened(source, "ro") as old:
        names = _wanted(old, name)
        for each in names:
            old.read(each)  # what is damaged is refused before there is a file
        with opened(target, "rwc") as new:
            copied = insist(lambda: _put_all(old, new, names))
        with opened(target, "ro") as written:
            for made in copied:
                _compare(old, written, made)
    return copied


def _wanted(store: Store, name: str | None) -> list[str]:
    names = store.names()
    if name is not None and name not in names:
        raise StoreMissing(no_such_experiment(name, names, "the source"))
    if not names:
        raise InvalidInput("there is no experiment in the source, but one is needed to copy")
    return names if name is None else [name]


def _put_all(old: Store, new: Store, names: list[str]) -> list[Copied]:
    with new.exclusive():
        there = set(new.names()).intersection(names)
        if there:
            listed = ", ".join(map(repr, sorted(there)))
            raise StoreExists(f"there is {listed} in the target already, and nothing was copied")
        return [_put(old, new, name) for name in names]


def _put(old: Store, new: Store, name: str) -> Copied:
    news = old.read(name)
    new.create(name, old.settings(name))
    new.append(name, news.told.rows(), news.events)
    return Copied(name, news.last)


def _compare(old: Store, new: Store, copied: Copied) -> None:
    """Refuse a copy that is not what was copied; the source may have grown meanwhile."""
    found, meant = new.read(copied.name), old.read(copied.name)
    same = new.settings(copied.name) == old.settings(copied.name)
    if not (same and found.last == copied.rows and _begins(meant, found)):
        raise StoreDamaged(f"the copy of experiment {copied.name!r} is not what was copied")


def _begins(whole: News, part: News) -> bool:
    """Whether the rewards and the events of `part` are the first of `whole`."""
    if part.told.tickets.size > whole.told.tickets.size:
        return False
    rewards = all(map(eq, whole.told.rows(), part.told.rows()))
    return rewards and list(whole.events[: len(part.events)]) == list(part.events)
