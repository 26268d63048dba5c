"""An experiment as it is written: one writer at a time, who has read all that is there."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

from shortlist.experiment.handing import stretches
from shortlist.experiment.lease import AGAIN, WAIT
from shortlist.experiment.replica import Replica
from shortlist.experiment.settings import Settings
from shortlist.experiment.view import View
from shortlist.storage import Event, Kind, Store
from shortlist.storage.clock import JUMP

logger = logging.getLogger("shortlist.experiment")


class Writer(View):
    """Transactions on the log of an experiment."""

    _behind = False  # its clock was found to be behind that of another program

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let all that is done inside be one transaction: one wait for the disk, and after an error
        nothing of it was written."""
        with self._writing():
            yield

    @contextmanager
    def _writing(self) -> Iterator[float]:
        """Be up to date, and be the only one who writes; the time at which that begins."""
        with self._lock:
            self._catch_up()  # the search may think for long, and should not while others wait
            self._tell_missed()
            position: float = inf
            try:
                with self._store.exclusive():
                    self._catch_up()
                    position = self._known.ledger.position
                    now = self._now()
                    self._compare_clocks(now)
                    yield now
                    self._settle(now)
            except BaseException:
                if self._known.ledger.position > position:  # it read what is not in the log
                    self._known, self._arms = Replica(self.name, self.settings), None
                raise

    def _settle(self, now: float) -> None:
        """Add what follows from what was written, whoever reads it."""

    def _compare_clocks(self, now: float) -> None:
        """Warn, once, of a clock that is behind that of a program which told a reward before."""
        behind = self._known.ledger.ended - now
        if behind > JUMP and not self._behind:
            self._behind = True
            logger.warning(
                "The clock is %.3g s behind the last reward of experiment %r: it was set back, or"
                " another program has another clock. Leases end by the clock of whoever looks.",
                *(behind, self.name),
            )

    def _tell_missed(self) -> None:
        """Count what is late as was agreed, for good, whatever becomes of what is written next."""
        if self.settings.late not in (WAIT, AGAIN) and self._known.missed(self._now()):
            with self._store.exclusive():
                self._catch_up()
                now = self._now()
                told = self._known.late_rewards(now)
                late = [
                    Event(Kind.LATE, first, span, "", now)
                    for first, span in stretches([ticket for ticket, *_ in told])
                ]
                self._store.append(self.name, told=told, events=late)
            self._catch_up()


def made_in(store: Store, name: str, settings: Settings, exist_ok: bool) -> Settings:
    """The settings of an experiment that is made now, or of the one that is there."""
    with store.exclusive():
        if not (exist_ok and name in store.names()):
            store.create(name, settings.to_json())
            return settings
        made = Settings.from_json(store.settings(name), f"experiment {name!r}")
        settings.check_same(made, name)
        return made
