"""Whether a store is as it was written, all of it."""

from dataclasses import dataclass

from shortlist.errors import CannotReplay, StoreError
from shortlist.experiment.place import Place, opened
from shortlist.experiment.replica import Replica
from shortlist.experiment.settings import Settings
from shortlist.storage import Store
from shortlist.storage.sql import SQLStore


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of an experiment."""

    name: str  #: of the experiment
    rows: int | None  #: of its log, rewards and events; None if they cannot be read
    damage: str  #: in words; empty if there is none
    replay: str  #: why this version of the package cannot continue it; empty if it can


def verify(store: Place) -> list[Verdict]:
    """Read every experiment of a store along its chain, and replay it; nothing is written.

    A store whose list of experiments cannot be trusted raises `StoreDamaged`."""
    with opened(store, "ro") as source:
        if isinstance(source, SQLStore):
            source.verify()
        return [_verdict(source, name) for name in source.names()]


def _verdict(store: Store, name: str) -> Verdict:
    rows = None
    try:
        rows = store.read(name).last
        Replica(name, Settings.from_json(store.settings(name), f"experiment {name!r}")).read(store)
    except StoreError as error:
        return Verdict(name, rows, str(error), "")
    except CannotReplay as error:
        return Verdict(name, rows, "", str(error))
    return Verdict(name, rows, "", "")
