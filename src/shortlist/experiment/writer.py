"""An experiment as it is written: one writer at a time, who has read all that is there."""

from collections.abc import Iterator
from contextlib import contextmanager

from shortlist.experiment.lease import AGAIN, WAIT
from shortlist.experiment.replica import Replica
from shortlist.experiment.view import View


class Writer(View):
    """Transactions on the log of an experiment."""

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let all that is done inside be one transaction: one wait for the disk, and after an error
        nothing of it was written."""
        with self._lock:
            try:
                with self._writing():
                    yield
            except BaseException:
                self._known = Replica(self.name, self.settings)  # it read what is not in the log
                raise

    @contextmanager
    def _writing(self) -> Iterator[float]:
        """Be up to date, and be the only one who writes; the time at which that begins."""
        with self._lock:
            self._catch_up()  # the search may think for long, and should not while others wait
            self._tell_missed()
            with self._store.exclusive():
                self._catch_up()
                yield self._clock()

    def _tell_missed(self) -> None:
        """Count what is late as was agreed, for good, whatever becomes of what is written next."""
        if self.settings.late not in (WAIT, AGAIN) and self._known.missed(self._clock()):
            with self._store.exclusive():
                self._catch_up()
                self._store.append(self.name, told=self._known.late_rewards(self._clock()))
            self._catch_up()
