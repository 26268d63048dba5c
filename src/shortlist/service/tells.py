"""Group commit: rewards that come in while others are written are written together, next.

One wait for the disk serves everybody who told meanwhile. Nobody is answered before that, so that
what was acknowledged is in the store."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from shortlist.errors import InvalidInput, ShortlistError
from shortlist.experiment import Experiment, Ticket

Results = Sequence[tuple[Ticket | int, float]]
InThread = Callable[..., Awaitable[list[ShortlistError | None]]]
MOST = 20_000  # rewards in one transaction, so that others get their turn


class Tells:
    """What was told of one experiment and is not written yet. It belongs to the event loop."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Results, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def tell(self, results: Results, experiment: Experiment, in_thread: InThread) -> None:
        """Return when they are in the store; raise if they may not be told."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((results, future))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(experiment, in_thread))
        await asyncio.shield(future)

    async def _write(self, experiment: Experiment, in_thread: InThread) -> None:
        while self._waiting:
            batch = self._next()
            try:
                errors = await in_thread(tell_together, experiment, [each for each, _ in batch])
            except BaseException:
                for _, future in batch:
                    future.cancel()
                raise
            for (_, future), error in zip(batch, errors, strict=True):
                _settle(future, error)

    def _next(self) -> list[tuple[Results, asyncio.Future[None]]]:
        """As many as go into one transaction, and at least one."""
        size = total = 0
        for results, _ in self._waiting:
            total += len(results)
            if size and total > MOST:
                break
            size += 1
        batch = self._waiting[:size]
        del self._waiting[:size]
        return batch


def tell_together(experiment: Experiment, batch: Sequence[Results]) -> list[ShortlistError | None]:
    """Tell all results in one transaction; if one may not be told, each caller's in their own.

    The error of every caller, None for those whose rewards were written."""
    try:
        experiment.tell_many([pair for results in batch for pair in results])
    except InvalidInput as error:
        if len(batch) == 1:
            return [error]
        return [tell_together(experiment, [results])[0] for results in batch]
    except ShortlistError as error:
        return [error] * len(batch)
    return [None] * len(batch)


def _settle(future: asyncio.Future[None], error: ShortlistError | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
        future.exception()  # whoever told may be gone: then nobody else asks for it
