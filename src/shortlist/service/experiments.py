"""The experiments that a service has open, and group commit of what is written to them.

Writes that arrive while a transaction is under way are made together in the next one. So one
transaction, and one wait for the disk, serves many callers. No caller is answered before the
commit: what was acknowledged is in the store."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from threading import Lock
from typing import Any, TypeVar

from shortlist.engine import Experiment
from shortlist.engine.log_entries import Report, written_by
from shortlist.engine.tickets import Receipt, Ticket
from shortlist.errors import InvalidInput, ShortlistError, StoreError
from shortlist.service.replies import Limits, Refusal
from shortlist.service.work import Lane, Lanes, Shared
from shortlist.stores import Store
from shortlist.stores.base import retry

Results = Sequence[Report]
Act = Callable[[Experiment], Any]  # what to do with an experiment
Clock = Callable[[], float]
Kept = TypeVar("Kept")
MAX_REWARDS = 20_000  # in one transaction
MAX_CALLERS = 100  # in one transaction


@dataclass(frozen=True, slots=True, eq=False)
class QueuedWrite:
    """What one caller writes: results, or any other act."""

    done: asyncio.Future[Any]
    results: Results
    act: Act | None
    author: str = ""


class GroupCommit:
    """The writes to one experiment, in order of arrival. It belongs to the event loop."""

    def __init__(self, opened: Callable[[], Experiment], lane: Lane, most: int) -> None:
        self._opened = opened
        self._lane = lane
        self._most = most  # writes that may wait
        self._waiting: list[QueuedWrite] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many writes wait for the next transaction."""
        return len(self._waiting)

    async def write(self, act: Act | None, results: Results, author: str) -> Any:
        """Return what the act returned, or the receipt of the results, after the commit.

        A write whose caller is gone before its transaction begins is not made."""
        if len(self._waiting) >= self._most:
            message = f"{len(self._waiting):,} writes wait: try again in a second"
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, message, retry_after="1")
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        write = QueuedWrite(done, results, act, author)
        self._waiting.append(write)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_all())
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            with suppress(ValueError):  # it has begun
                self._waiting.remove(write)
            raise

    async def _write_all(self) -> None:
        while self._waiting:
            batch = self._next()
            try:
                outcomes = await self._lane.run(self._commit, batch)
            except Exception as error:
                outcomes = [error] * len(batch)
            for write, outcome in zip(batch, outcomes, strict=True):
                _resolve(write.done, outcome)

    def _next(self) -> list[QueuedWrite]:
        """As many as fit into one transaction, and at least one."""
        size = total = 0
        for write in self._waiting[:MAX_CALLERS]:
            total += len(write.results)
            if size and total > MAX_REWARDS:
                break
            size += 1
        batch = self._waiting[:size]
        del self._waiting[:size]
        return batch

    def _commit(self, batch: Sequence[QueuedWrite]) -> list[Any]:
        experiment = self._opened()
        return retry(lambda: commit(experiment, batch))


def commit(experiment: Experiment, batch: Sequence[QueuedWrite]) -> list[Any]:
    """Make all writes in one transaction: what each returns, or its error if it is refused.

    If the transaction fails, this raises, and nothing is written. Results come last: the search
    may compute for long when it has them, and does so after the commit."""
    outcomes: dict[int, Any] = {}
    with experiment.transaction():
        for index, write in enumerate(batch):
            if write.act is not None:
                with written_by(write.author):
                    outcomes[index] = _attempt(write.act, experiment)
        for author in dict.fromkeys(write.author for write in batch):
            told = [
                index
                for index, write in enumerate(batch)
                if write.act is None and write.author == author
            ]
            with written_by(author):
                receipts = _tell(experiment, [batch[index].results for index in told])
            outcomes |= dict(zip(told, receipts, strict=True))
    return [outcomes[index] for index in range(len(batch))]


def _attempt(act: Act, experiment: Experiment) -> Any:
    """What an act returns, or why it is refused; an error of the store ends the transaction."""
    try:
        return act(experiment)
    except StoreError:
        raise
    except ShortlistError as error:
        return error


def _tell(experiment: Experiment, batch: Sequence[Results]) -> list[ShortlistError | Receipt]:
    """Tell the results of all callers at once; if one is refused, each caller's separately."""
    if not batch:
        return []
    try:
        receipt = experiment.tell_many([report for results in batch for report in results])
    except InvalidInput as error:
        if len(batch) == 1:
            return [error]
        return [_tell(experiment, [results])[0] for results in batch]
    return [receipt.of(_id(ticket) for ticket, *_ in results) for results in batch]


def _id(ticket: Ticket | int) -> int:
    return ticket.id if isinstance(ticket, Ticket) else ticket


def _resolve(done: asyncio.Future[Any], outcome: Any) -> None:
    if done.done():
        return
    if isinstance(outcome, BaseException):
        done.set_exception(outcome)
        done.exception()  # mark it as retrieved: the caller may have disconnected
    else:
        done.set_result(outcome)


class OpenExperiments:
    """The open experiments of a store; the least recently used are dropped. Thread-safe.

    Opening one replays its log, which may take long. Other experiments do not wait for that, and
    two callers of the same one share the replay."""

    def __init__(
        self,
        store: Store,
        limits: Limits | None = None,
        clock: Clock | None = None,
        lanes: Lanes | None = None,
    ) -> None:
        self.store = store
        self._limits = Limits() if limits is None else limits
        self._clock = clock
        self._lanes = Lanes() if lanes is None else lanes
        self._lock = Lock()
        self._slots: OrderedDict[str, _Slot] = OrderedDict()

    async def open(self, name: str) -> None:
        """Open the experiment of this name, if it is not; callers who wait for it share that."""
        slot = self._slot(name)
        if slot.experiment is None:
            await slot.opening.result()

    def get(self, name: str) -> Experiment:
        """Return the experiment of this name; open it if it is not."""
        slot = self._slot(name)
        with slot.lock:
            if slot.experiment is None:
                try:
                    slot.experiment = Experiment.open(self.store, name, clock=self._clock)
                except BaseException:
                    self._drop(name)
                    raise
        return slot.experiment

    async def write(
        self, name: str, act: Act | None = None, results: Results = (), author: str = ""
    ) -> Any:
        """Write to the experiment of this name, together with other callers."""
        await self.open(name)  # raises if it does not exist
        return await self._slot(name).writes.write(act, results, author)

    def create(self, **settings: Any) -> tuple[Experiment, bool]:
        """Create an experiment, or open an equal one, as `Experiment.create` does; whether it is
        new."""
        name = settings.get("name", "experiment")
        existed = bool(settings.get("exist_ok")) and name in self.store.names()
        created = Experiment.create(store=self.store, clock=self._clock, **settings)
        slot = self._slot(created.name)
        with slot.lock:
            if slot.experiment is None:
                slot.experiment = created
        return slot.experiment, not existed

    def open_one(self, name: str) -> Experiment | None:
        """The experiment of this name if it is open; this does not count as use."""
        with self._lock:
            slot = self._slots.get(name)
            return None if slot is None else slot.experiment

    def kept(self, name: str, make: Callable[[], Kept]) -> Kept:
        """What was made for this experiment before, as long as it is open; made if nothing was."""
        slot = self._slot(name)
        with slot.keeping:
            if slot.kept is None:
                slot.kept = make()
            kept: Kept = slot.kept
            return kept

    def drop(self, name: str) -> None:
        """Forget an experiment: it is opened again when it is needed."""
        self._drop(name)

    def names(self) -> list[str]:
        """The names of the open experiments."""
        with self._lock:
            return [name for name, slot in self._slots.items() if slot.experiment is not None]

    def waiting(self) -> int:
        """How many writes wait for the next transaction of their experiment."""
        with self._lock:
            return sum(slot.writes.waiting for slot in self._slots.values())

    def _slot(self, name: str) -> "_Slot":
        with self._lock:
            slot = self._slots.pop(name, None)
            if slot is None:
                slot = self._new_slot(partial(self.get, name))
            self._slots[name] = slot  # most recently used
            while len(self._slots) > self._limits.opened:
                self._slots.popitem(last=False)
            return slot

    def _new_slot(self, get: Callable[[], Experiment]) -> "_Slot":
        opening = Shared(lambda: self._lanes.opening.run(get))
        return _Slot(opening, GroupCommit(get, self._lanes.writes, self._limits.writes))

    def _drop(self, name: str) -> None:
        with self._lock:
            self._slots.pop(name, None)


class _Slot:
    """An experiment that is open or about to be opened."""

    def __init__(self, opening: Shared[Experiment], writes: GroupCommit) -> None:
        self.lock = Lock()
        self.experiment: Experiment | None = None
        self.opening = opening
        self.kept: Any = None  # what pages remember of it
        self.keeping = Lock()
        self.writes = writes
