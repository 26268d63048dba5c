"""Make the calls of one request, here or on an executor, and hand over each result as it comes.

All workers are busy until fewer calls than workers are left of a request, however long some of them
take."""

from asyncio import Queue, Task, create_task, gather
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Executor, Future
from queue import SimpleQueue
from typing import Any

from shortlist.evaluation.calls import Call, Evaluation

Receive = Callable[[Call, object], None]
Spread = Callable[[Evaluation, Iterable[Call], Receive], None]
ATTEMPTS = 3  # a call that ends its worker every time must not go on for ever


class Naming:
    """Adds the arm to an error that is raised inside."""

    def __init__(self, call: Call) -> None:
        self.call = call

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            error.add_note(
                f"raised while evaluating arm {self.call.label!r}, pull {self.call.draw}"
            )


def spread_here(evaluation: Evaluation, calls: Iterable[Call], receive: Receive) -> None:
    """One call after the other, in this thread."""
    for call in calls:
        with Naming(call):
            result = evaluation(call)
        receive(call, result)


def spread_over(
    executor: Executor,
    in_flight: int,
    evaluation: Evaluation,
    calls: Iterable[Call],
    receive: Receive,
) -> None:
    """Keep up to `in_flight` calls submitted to `executor`; a call whose worker is lost is
    submitted again."""
    flight = Flight(executor, evaluation)
    try:
        for call in calls:
            flight.submit(call)
            if len(flight.under_way) >= in_flight:
                receive(*flight.next_result())
        while flight.under_way:
            receive(*flight.next_result())
    finally:
        for future in list(flight.under_way):
            future.cancel()


class Flight:
    """The calls under way on an executor."""

    def __init__(self, executor: Executor, evaluation: Evaluation) -> None:
        self.executor, self.evaluation = executor, evaluation
        self.under_way: dict[Future[Any], Call] = {}
        self.done: SimpleQueue[Future[Any]] = SimpleQueue()
        self.losses: Counter[Call] = Counter()

    def submit(self, call: Call) -> None:
        """Begin a call."""
        with Naming(call):
            future = self.executor.submit(self.evaluation, call)
        self.under_way[future] = call
        # unlike `wait`, no dearer with more calls under way
        future.add_done_callback(self.done.put)

    def next_result(self) -> tuple[Call, object]:
        """Wait for the first call to complete."""
        while True:
            future = self.done.get()
            call = self.under_way.pop(future)
            if not self._lost(future, call):
                with Naming(call):
                    return call, future.result()
            self.submit(call)

    def _lost(self, future: Future[Any], call: Call) -> bool:
        """Whether the worker is gone, and not too often yet."""
        lost = future.cancelled() or isinstance(future.exception(), BrokenExecutor)
        if lost:
            self.losses[call] += 1
        return lost and self.losses[call] < ATTEMPTS


async def spread_async(
    workers: int, evaluation: Evaluation, calls: Iterable[Call], receive: Receive
) -> None:
    """Keep up to `workers` calls of an async function under way in the running event loop."""
    under_way: dict[Task[Any], Call] = {}
    done: Queue[Task[Any]] = Queue()

    async def next_result() -> tuple[Call, object]:
        task = await done.get()
        call = under_way.pop(task)
        with Naming(call):
            return call, task.result()

    try:
        for call in calls:
            task = create_task(evaluation(call))
            under_way[task] = call
            task.add_done_callback(done.put_nowait)
            if len(under_way) >= workers:
                receive(*await next_result())
        while under_way:
            receive(*await next_result())
    finally:
        for task in under_way:
            task.cancel()
        await gather(*under_way, return_exceptions=True)
