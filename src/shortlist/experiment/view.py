"""An experiment as it is read: what every program sees that has it open, whoever writes."""

from contextlib import suppress
from math import inf
from threading import RLock
from types import TracebackType
from typing import Self

from shortlist.ahead import Underway
from shortlist.arrays import FloatArray, IntArray
from shortlist.display import plural
from shortlist.errors import ShortlistError, Unfinished
from shortlist.experiment.replica import Replica
from shortlist.experiment.settings import Settings
from shortlist.experiment.status import ArmsTold, Status, arms_told
from shortlist.experiment.ticket import State
from shortlist.result import Result
from shortlist.search import Progress
from shortlist.storage import Store
from shortlist.storage.clock import Clock, checked_time
from shortlist.validation import flag


class View:
    """A replica of the log, and what can be said from it; nothing here writes."""

    def __init__(
        self, store: Store, name: str, settings: Settings, clock: Clock | None, owned: bool
    ) -> None:
        """`clock` is instead of that of the store; `owned`: whether `close` closes the store."""
        self.name = name
        self.settings = settings
        self._store = store
        self._clock = store.now if clock is None else clock
        self._owned = owned
        self._lock = RLock()
        self._known = Replica(name, settings)
        self._arms: tuple[int, ArmsTold] | None = None  # as the log was at that position

    @property
    def store(self) -> Store:
        """Where it is kept.

        `export_lines` reads it, even if its file was deleted under the open experiment."""
        return self._store

    def status(self) -> Status:
        """Where the experiment stands."""
        with self._lock:
            self._catch_up()
            status = self._known.status(self._now())
            last = self._arms
            same = last is not None and last[0] == self._known.ledger.position
            counted = None if same else self._known.counted()
        if counted is not None:  # nobody waits while this is worked out
            last = self._arms = counted.position, arms_told(counted, self.settings.labels)
        assert last is not None
        return status(arms=last[1])

    def standing(self) -> tuple[int, Progress]:
        """How many pulls were told, and how far the search is.

        It is cheap, and as of the last call of anything else."""
        return self._known.ledger.made, self._known.progress

    def spent(self) -> float:
        """What the pulls that were told cost, in the unit of the costs.

        As cheap as `standing`."""
        return self._known.ledger.spent

    def pace(self) -> float | None:
        """Pulls told a second, from the first ticket to the last reward; None if not known.

        As cheap as `standing`."""
        ledger = self._known.ledger
        seconds = ledger.ended - ledger.began
        return ledger.made / seconds if ledger.made and 0 < seconds < inf else None

    def underway(self) -> Underway | None:
        """The search as it is now, to be simulated from here; None once there is an answer."""
        with self._lock:
            return self._known.underway()

    def position(self) -> int:
        """How many entries the log has: whatever happens to the experiment adds one.

        It is cheap, and brings what `standing`, `held` and `state` say up to date."""
        with self._lock:
            self._catch_up()
            return self._known.ledger.position

    def version(self) -> str:
        """What changes whenever `status` does: with the log, and as time goes by.

        As cheap as `position`."""
        with self._lock:
            self._catch_up()
            now = self._now()
            held = self._known.ledger.held(now)
            overdue = sum(lease.due <= now for lease in held)
            return f"{self._known.ledger.position}-{len(held)}-{overdue}"

    def state(self) -> State:
        """Whether there are tickets, an answer, or trouble.

        As cheap as `standing`."""
        with self._lock:
            return self._known.state(self._now())

    def course(self) -> list[tuple[int, Progress]]:
        """How far the search was after so many pulls, whenever it asked for more.

        As cheap as `standing`."""
        with self._lock:
            return list(self._known.replay.course)

    def pulls_counted(self) -> tuple[IntArray, FloatArray]:
        """The arms, by their numbers, and the rewards of all pulls that are counted, in order.

        As of the last call of anything else."""
        with self._lock:
            return self._known.pulls_counted()

    def held(self) -> tuple[int, float]:
        """How many tickets somebody works on, and when the last of their leases ends.

        As cheap as `standing`."""
        with self._lock:
            now = self._now()
            ends = [lease.end for lease in self._known.ledger.held(now)]
            return len(ends), max(ends, default=now)

    def result(self, *, partial: bool = False) -> Result:
        """The answer, once there is one; with `partial` also before that, as it would be now.

        A partial result has the bound that the search has earned, if it knows one at any time, and
        says nothing but the intervals otherwise. Rewards of an arm are counted up to its first pull
        that is missing; `waiting` of every arm says how many came in before that one. `seconds` are
        those from the first ticket to the last reward."""
        flag("partial", partial)
        with self._lock:
            self._catch_up()
            if self._known.replay.outcome is not None:
                return self._known.answer
            if not partial:
                raise Unfinished(self._known.trouble() or self._known.missing())
            return self._known.present()

    def close(self) -> None:
        """Let go of the file, if this opened one.

        Nothing needs saving: what was told is in the store."""
        if self._owned:
            self._store.close()

    def __repr__(self) -> str:
        now = 0.0  # a store that is closed, or cannot be reached: as it was then
        with self._lock, suppress(ShortlistError):
            self._catch_up()
            now = self._now()
        state = self._known.state(now)
        told = plural(self._known.ledger.made, "pull")
        return (
            f"<Experiment {self.name!r}: {state}, {told} told, {len(self.settings.labels):,} arms>"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _now(self) -> float:
        """The time; a clock that is out of order must not get into the log."""
        return checked_time(self._clock())

    def _catch_up(self) -> None:
        """Take in what is new in the log."""
        self._known.read(self._store)
