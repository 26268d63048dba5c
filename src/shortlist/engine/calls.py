"""One call of the user's function: its arguments, how long it may take, how often it is retried.

A call that takes too long has failed, and one that failed is made again. That is fair only if
neither says anything about the reward: docs/late.md."""

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import Parameter, iscoroutinefunction, signature
from threading import Event, Thread
from typing import Any, NamedTuple, TypeVar

from shortlist import telemetry
from shortlist.arms import OwnLabel, shown_label
from shortlist.cells import named_item
from shortlist.engine.rate import Pace, RateGiven
from shortlist.engine.tickets import Score, with_cost
from shortlist.errors import EvaluationFailed, InvalidInput
from shortlist.validation import MOST_RETRIES, real, seconds, shown, whole

logger = logging.getLogger("shortlist.engine")
FIRST_PAUSE = 0.5  # seconds before the first retry; each further one waits twice as long,
LONGEST_PAUSE = 60.0  # up to this
LONGEST_WAIT = 3600.0  # seconds that an error may ask to wait
# not from the seed of a run, nor from the shared generator of `random`, which may be the function's
JITTER = random.Random()


@dataclass(frozen=True, slots=True)
class Attempts:
    """One, and `retries` more if it fails, each of `timeout` seconds at most."""

    retries: int = 0
    timeout: float | None = None

    @classmethod
    def of(cls, retries: object, timeout: object) -> "Attempts":
        """Take what a user said, if it makes sense."""
        most = None if timeout is None else seconds("timeout", timeout)
        return cls(whole("retries", retries, at_least=0, at_most=MOST_RETRIES), most)

    def make(
        self,
        evaluate: Callable[[], Any],
        stop: "Stop",
        name: str = "A call",
        pace: Pace | None = None,
    ) -> Any:
        """What the first attempt that does not fail returns; what the last one raises.

        `name` says in the log which call it is."""
        for retry in range(1, self.retries + 1):
            try:
                return self._once(evaluate)
            except Exception as error:
                if stop.is_set or stop.wait(self._pause(retry, error, name)):
                    raise
                if not stop.wait_for_turn(pace):
                    raise
        try:
            return self._once(evaluate)
        except Exception as error:
            self._note(error)
            raise

    async def make_async(
        self,
        evaluate: Callable[[], Awaitable[Any]],
        name: str = "A call",
        pace: Pace | None = None,
    ) -> Any:
        """`make` with what is to be awaited."""
        for retry in range(1, self.retries + 1):
            try:
                return await self._once_async(evaluate)
            except Exception as error:
                pause = self._pause(retry, error, name)
            await asyncio.sleep(pause)
            await _turn(pace)
        try:
            return await self._once_async(evaluate)
        except Exception as error:
            self._note(error)
            raise

    def _pause(self, retry: int, error: Exception, name: str) -> float:
        """Log an error, and return how long to wait before this retry: at least as long as the
        error asks for."""
        pause = max(back_off(retry), retry_after(error))
        reason = str(error) or type(error).__name__
        told = "%s failed in attempt %d of %d and is made again in %.1f s: %s"
        logger.warning(told, name, retry, self.retries + 1, pause, reason)
        return pause

    def _note(self, error: Exception) -> None:
        if self.retries:
            error.add_note(f"this was attempt {self.retries + 1} of {self.retries + 1}")

    def _once(self, evaluate: Callable[[], Any]) -> Any:
        """One attempt, in a thread of its own if its time is limited.

        Nothing can end a thread: one that is late is left to itself."""
        if self.timeout is None:
            return evaluate()
        future: Future[Any] = Future()
        Thread(target=_fulfil, args=(future, evaluate), daemon=True).start()
        try:
            return future.result(self.timeout)
        except TimeoutError:
            if future.done():  # the evaluation itself raised it
                raise
            raise self._late() from None

    async def _once_async(self, evaluate: Callable[[], Awaitable[Any]]) -> Any:
        try:
            async with asyncio.timeout(self.timeout) as limit:
                return await evaluate()
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._late() from None

    def _late(self) -> EvaluationFailed:
        return EvaluationFailed(f"it took longer than {self.timeout:g} s")


def _fulfil(future: "Future[Any]", evaluate: Callable[[], Any]) -> None:
    try:
        future.set_result(evaluate())
    except BaseException as error:
        future.set_exception(error)


def retry_after(error: BaseException) -> float:
    """Seconds after which an error says that a call may be made again; 0 if it says nothing.

    It is `error.retry_after`, or the header Retry-After of `error.response`, if in seconds."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    asked = getattr(error, "retry_after", None)
    if asked is None and isinstance(headers, Mapping):
        asked = headers.get("retry-after", headers.get("Retry-After"))
    try:
        wait = float(asked)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(wait, LONGEST_WAIT) if wait > 0 else 0.0


def back_off(retry: int) -> float:
    """Seconds before this retry, from 1: exponential back-off with jitter.

    The jitter must not change what a run draws."""
    doublings = min(retry - 1, 30)
    return min(FIRST_PAUSE * 2.0**doublings, LONGEST_PAUSE) * JITTER.uniform(0.5, 1.5)


async def _turn(pace: Pace | None) -> None:
    """Wait until a call may be made again."""
    while pace is not None and (wait := pace.repeat()):
        await pace.clock.pause(wait)


class Stop:
    """Ends the pauses before retries: a call that waits for one is not made any more.

    One that was sent to another process is on its own."""

    def __init__(self) -> None:
        self._event = Event()

    def set(self) -> None:
        """End all pauses, now and in the future."""
        self._event.set()

    @property
    def is_set(self) -> bool:
        """Whether pauses end at once."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Pause; whether it was ended."""
        return self._event.wait(seconds)

    def wait_for_turn(self, pace: Pace | None) -> bool:
        """Pause until a call may be made again; whether it may."""
        while pace is not None and (wait := pace.repeat()):
            if self.wait(wait):
                return False
        return True

    def __reduce__(self) -> tuple[type["Stop"], tuple[()]]:
        return Stop, ()


ONCE = Attempts()
BY_NAME = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Call(NamedTuple):
    """Pull arm `label` `times` times.

    No two calls of a run share their `ticket`, so a call that is made twice, because a worker was
    lost, is known to be the same."""

    ticket: int
    label: OwnLabel
    draw: int  # the first pull that it makes, counted per arm from 0
    times: int
    seed: int | None  # None if the function does not want one
    item: Any = None  # of a test set, or a list of `times` of them
    first: bool = False  # of a run: an error of it is no accident, and it is not made again
    pause: float = 0.0  # seconds to wait before it, as it failed before

    @property
    def name(self) -> str:
        """The call as the log names it: its arm, its pull, and its item if there is one."""
        which = f"pull {self.draw}" if self.item is None else f"item {self.item_name}"
        return f"Arm {shown(self.label)}, {which},"

    @property
    def cell(self) -> str:
        """The call as errors name it: its arm, and its item if there is one."""
        return f"arm {self.label!r}" + ("" if self.item is None else f" on item {self.item_name}")

    @property
    def item_names(self) -> list[Any] | None:
        """The labels of a list of items; None if there is none."""
        return list(map(named_item, self.item)) if isinstance(self.item, list) else None

    @property
    def item_name(self) -> str:
        """The item, or the first of several."""
        first = self.item[0] if isinstance(self.item, list) and self.item else self.item
        more = f" and {self.times - 1} more" if self.times > 1 else ""
        return shown(named_item(first)) + more


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The user's function, to be called with a `Call` here or on any worker."""

    function: Callable[..., Any]
    many: bool  # takes the number of pulls, and returns that many rewards
    wanted: tuple[str, ...]  # of seed, draw and ticket, given by name
    on_items: bool = False  # takes the item, or a list of items, after the arm
    attempts: Attempts = ONCE
    is_async: bool = False
    stop: Stop = field(default_factory=Stop, compare=False)
    pace: Pace | None = None

    @classmethod
    def of(
        cls,
        pull: Callable[..., Any] | None,
        pull_many: Callable[..., Any] | None = None,
        attempts: Attempts = ONCE,
        *,
        on_items: bool = False,
        shared: bool = False,
    ) -> "Evaluation":
        """Take the one function that is given; on `shared` seeds it takes a seed."""
        for name, function in (("pull", pull), ("pull_many", pull_many)):
            if function is not None and not callable(function):
                raise InvalidInput(f"`{name}` is {shown(function)}, but must be a function")
            if shared and function is not None and "seed" not in wanted_by(function):
                raise InvalidInput(
                    f"`{name}` is {shown(function)}, which takes no `seed`, but `seeds` is"
                    " 'shared': arms are compared on seeds that the function must use"
                )
        if pull is not None and pull_many is None:
            _check_places(pull, "an arm and an item" if on_items else "an arm", 1 + on_items)
            kind = asynchronous(pull)
            return cls(pull, False, wanted_by(pull), on_items, attempts, kind)
        if pull_many is not None and pull is None:
            second = "a list of items" if on_items else "a number of pulls"
            _check_places(pull_many, f"an arm and {second}", 2)
            kind = asynchronous(pull_many)
            return cls(pull_many, True, wanted_by(pull_many), on_items, attempts, kind)
        both = "`pull` and `pull_many`"
        given = f"neither of {both} is" if pull is None else f"both {both} are"
        raise InvalidInput(f"{given} given, but it must be one of them")

    def paced(self, rate: RateGiven | None) -> "Evaluation":
        """The same at a limited rate."""
        return self if rate is None else replace(self, pace=Pace.of(rate, self.function))

    @property
    def seeded(self) -> bool:
        """Whether it takes a seed: computing one for every call takes longer than a short call."""
        return "seed" in self.wanted

    def __call__(self, call: Call) -> Any:
        """Evaluate an arm; whatever the user's function returns or raises."""
        if not (self.on_items and telemetry.listening()):
            return self._made(call)
        return _traced_async(self._made, call) if self.is_async else _traced(self._made, call)

    def _made(self, call: Call) -> Any:
        arguments: tuple[Any, ...] = (call.label,)
        if self.on_items:
            arguments = (call.label, call.item)
        elif self.many:
            arguments = (call.label, call.times)
        named = {name: getattr(call, name) for name in self.wanted} if self.wanted else {}
        attempts = replace(self.attempts, retries=0) if call.first else self.attempts
        if self.is_async:
            evaluate = partial(self.function, *arguments, **named)
            make = partial(attempts.make_async, evaluate, call.name, self.pace)
            return _after(call.pause, make, self.pace)
        if call.pause and (self.stop.wait(call.pause) or not self.stop.wait_for_turn(self.pace)):
            raise EvaluationFailed("it was stopped before it was made again")
        evaluate = partial(self.function, *arguments, **named)
        return attempts.make(evaluate, self.stop, call.name, self.pace)


def _traced(make: Callable[[Call], Any], call: Call) -> Any:
    """Make a call in a span that has its scores."""
    with telemetry.span("evaluate", **_facts(call)):
        try:
            value = make(call)
        except Exception as error:
            telemetry.failed(error, **_facts(call))
            raise
        _report(call, value)
        return value


async def _traced_async(make: Callable[[Call], Awaitable[Any]], call: Call) -> Any:
    """`_traced` with what is to be awaited."""
    with telemetry.span("evaluate", **_facts(call)):
        try:
            value = await make(call)
        except Exception as error:
            telemetry.failed(error, **_facts(call))
            raise
        _report(call, value)
        return value


def _facts(call: Call) -> dict[str, telemetry.Value]:
    """What a span says of a call."""
    return {"arm": shown_label(call.label), "item": call.item_name, "pull": call.draw}


def _report(call: Call, value: Any) -> None:
    """Record the scores of a call; what is none is refused later."""
    many = isinstance(call.item, list)
    plain, _ = with_cost(value, many=many)
    scores = plain if many and isinstance(plain, Iterable) else [plain]
    items = call.item if many else [call.item]
    for item, each in zip(items, scores, strict=False):
        score = each if isinstance(each, Score) else Score(each)
        if math.isfinite(real(score.value)):
            facts = _facts(call) | {"item": shown(named_item(item))}
            telemetry.evaluated(real(score.value), score.info, **facts)


async def _after(seconds: float, make: Callable[[], Awaitable[Any]], pace: Pace | None) -> Any:
    """Make a call after a pause, in which others may have used its turn."""
    if seconds:
        await asyncio.sleep(seconds)
        await _turn(pace)
    return await make()


def asynchronous(function: object) -> bool:
    """Whether what a function returns is to be awaited."""
    return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)


def wanted_by(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the keyword arguments to pass to a function.

    `seed` is passed if it has such a parameter, `draw` and `ticket` only if they are required."""
    named = {each.name: each for each in _parameters(function) if each.kind in BY_NAME}
    needed = [name for name in ("draw", "ticket") if _required(named.get(name))]
    return ("seed", *needed) if "seed" in named else tuple(needed)


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    try:
        return list(signature(function).parameters.values())
    except (TypeError, ValueError):  # some built-in functions have no signature
        return []


def _check_places(function: Callable[..., Any], first: str, places: int) -> None:
    """Refuse a function with too few parameters, or whose first ones are given by name."""
    try:
        signature(function).bind_partial(*range(places))
    except TypeError:
        raise InvalidInput(f"{shown(function)} is called with {first}, but takes less") from None
    except ValueError:  # some built-in functions have no signature
        return
    taken = [each.name for each in _parameters(function)[:places] if each.kind in BY_NAME]
    for name in taken:
        if name in wanted_by(function):
            raise InvalidInput(
                f"the function takes ({', '.join(taken)}, …), but it is called with {first} first"
            )


def _required(parameter: Parameter | None) -> bool:
    return parameter is not None and parameter.default is Parameter.empty


CONCURRENT = 16  # evaluations of an async function under way at a time, unless told
T = TypeVar("T")


def refuse_executor(executor: object) -> None:
    """An async function runs in the event loop, and nowhere else."""
    if executor is not None:
        raise InvalidInput(
            f"`executor` is {shown(executor)}, but an async function runs in the event loop"
        )


def run_here(coroutine: Coroutine[Any, Any, T], name: str) -> T:
    """The result of a coroutine, in a loop of its own; `name` is the call that needs none."""
    if not _in_event_loop():
        return _run(coroutine)  # not where the error below is handled: it would be shown
    coroutine.close()
    raise InvalidInput(
        f"an event loop is running here, as in a notebook, so `{name}` cannot wait for async"
        f" functions: write `await {name}_async(…)` with the same arguments"
    )


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine; an interrupt has what the error within has, such as `partial`.

    `asyncio.run` cancels the coroutine, and then raises an interrupt of its own."""
    carried: dict[str, Any] = {}

    async def watched() -> T:
        try:
            return await coroutine
        except asyncio.CancelledError as error:
            carried.update(vars(error))
            raise

    try:
        return asyncio.run(watched())
    except KeyboardInterrupt as interrupt:
        vars(interrupt).update(carried)
        raise


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
