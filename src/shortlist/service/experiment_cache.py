"""Experiments that are open: each once, shared by all who ask, the longest unused let go."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from shortlist.engine import Experiment
from shortlist.service.group_commit import Pending, Writes, write_together
from shortlist.stores import Store

Clock = Callable[[], float]


class Opened:
    """The experiments of a store by name. Threads may share it.

    To open one is to replay it, which may take long: others are not held up meanwhile, and two
    who want the same wait for one replay."""

    def __init__(self, store: Store, most: int, clock: Clock | None = None) -> None:
        self.store = store
        self._most = most
        self._clock = clock
        self._lock = Lock()
        self._slots: OrderedDict[str, _Slot] = OrderedDict()

    def experiment(self, name: str) -> Experiment:
        """The experiment of that name."""
        slot = self._slot(name)
        with slot.lock:
            if slot.experiment is None:
                try:
                    slot.experiment = Experiment.open(self.store, name, clock=self._clock)
                except BaseException:
                    self._drop(name)
                    raise
        return slot.experiment

    def writes(self, name: str) -> Writes:
        """Where what is to be written of that experiment waits its turn."""
        return self._slot(name).writes

    def write(self, name: str, batch: Sequence[Pending]) -> list[Any]:
        """Write all of it in one transaction, or nothing."""
        return write_together(self.experiment(name), batch)

    def create(self, **settings: object) -> Experiment:
        """Make an experiment, or open the one there is, as `Experiment.create` does."""
        made = Experiment.create(store=self.store, clock=self._clock, **settings)  # type: ignore[arg-type]
        slot = self._slot(made.name)
        with slot.lock:
            if slot.experiment is None:
                slot.experiment = made
        return slot.experiment

    def names(self) -> list[str]:
        """Those that are open."""
        with self._lock:
            return [name for name, slot in self._slots.items() if slot.experiment is not None]

    def _slot(self, name: str) -> "_Slot":
        with self._lock:
            slot = self._slots.pop(name, None) or _Slot()
            self._slots[name] = slot  # used last
            while len(self._slots) > self._most:
                self._slots.popitem(last=False)
            return slot

    def _drop(self, name: str) -> None:
        with self._lock:
            self._slots.pop(name, None)


class _Slot:
    """Room for one experiment."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.experiment: Experiment | None = None
        self.writes = Writes()
