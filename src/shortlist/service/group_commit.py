"""Group commit: what comes in while others are written is written together, next.

One transaction, and so one wait for the disk, serves everybody who asked or told meanwhile. Nobody
is answered before that, so that what was acknowledged is in the store."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shortlist.engine import Experiment
from shortlist.engine.telling import Report
from shortlist.engine.tickets import Receipt, Ticket
from shortlist.errors import InvalidInput, ShortlistError, StoreError
from shortlist.stores.retry import insist

Results = Sequence[Report]
Act = Callable[[Experiment], Any]  # what is done to an experiment, and what that gives
MOST = 20_000  # rewards in one transaction,
TOGETHER = 100  # and callers, so that others get their turn


@dataclass(frozen=True, slots=True)
class Pending:
    """What one caller wants written: rewards, or anything else that an experiment does."""

    done: asyncio.Future[Any]
    results: Results = ()
    act: Act | None = None


class Writes:
    """What waits to be written of one experiment, in turn. It belongs to the event loop."""

    def __init__(self) -> None:
        self._waiting: list[Pending] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, commit: "Commit", act: Act | None, results: Results = ()) -> Any:
        """What the act gives, once that is in the store; without an act, the results are told."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(Pending(done, results, act))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(commit))
        return await asyncio.shield(done)

    async def _write(self, commit: "Commit") -> None:
        while self._waiting:
            batch = self._next()
            try:
                outcomes = await commit(batch)
            except Exception as error:
                outcomes = [error] * len(batch)
            for write, outcome in zip(batch, outcomes, strict=True):
                _settle(write.done, outcome)

    def _next(self) -> list[Pending]:
        """As many as go into one transaction, and at least one."""
        size = total = 0
        for write in self._waiting[:TOGETHER]:
            total += len(write.results)
            if size and total > MOST:
                break
            size += 1
        batch = self._waiting[:size]
        del self._waiting[:size]
        return batch


Commit = Callable[[Sequence[Pending]], Awaitable[list[Any]]]


def write_together(experiment: Experiment, batch: Sequence[Pending]) -> list[Any]:
    """Do all of it in one transaction, again if its connection broke."""
    return insist(lambda: _write_together(experiment, batch))


def _write_together(experiment: Experiment, batch: Sequence[Pending]) -> list[Any]:
    """Do all of it in one transaction: what each gives, or the error of each that is refused.

    If the transaction fails, this raises, and nothing was written. Rewards come last: the search
    may think for long when it has them, and does so when nobody is held up, before the next
    transaction."""
    outcomes: dict[int, Any] = {}
    with experiment.together():
        for place, write in enumerate(batch):
            if write.act is not None:
                outcomes[place] = _attempt(write.act, experiment)
        told = [place for place, write in enumerate(batch) if write.act is None]
        errors = tell_together(experiment, [batch[place].results for place in told])
        outcomes |= dict(zip(told, errors, strict=True))
    return [outcomes[place] for place in range(len(batch))]


def _attempt(act: Act, experiment: Experiment) -> Any:
    """What an act gives, or why it is refused; a store that fails ends the transaction."""
    try:
        return act(experiment)
    except StoreError:
        raise
    except ShortlistError as error:
        return error


def tell_together(
    experiment: Experiment, batch: Sequence[Results]
) -> list[ShortlistError | Receipt]:
    """Tell all results; if one may not be told, each caller's by themselves.

    The error of every caller, or the receipt of those whose rewards were written."""
    if not batch:
        return []
    try:
        receipt = experiment.tell_many([pair for results in batch for pair in results])
    except InvalidInput as error:
        if len(batch) == 1:
            return [error]
        return [tell_together(experiment, [results])[0] for results in batch]
    return [receipt.of(_number(ticket) for ticket, *_ in results) for results in batch]


def _number(ticket: Ticket | int) -> int:
    return ticket.id if isinstance(ticket, Ticket) else ticket


def _settle(done: asyncio.Future[Any], outcome: Any) -> None:
    if done.done():
        return
    if isinstance(outcome, BaseException):
        done.set_exception(outcome)
        done.exception()  # the caller may be gone: then nobody else asks for it
    else:
        done.set_result(outcome)
