"""One call of the user's function: with which arm, which seed, and what else it wants to know."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, iscoroutinefunction, signature
from typing import Any, NamedTuple

import numpy as np

from shortlist.arms import Label
from shortlist.errors import InvalidInput
from shortlist.evaluation.attempts import Attempts
from shortlist.evaluation.cells import Cells
from shortlist.evaluation.numbering import Numbering
from shortlist.validation import shown

ONCE = Attempts()
AT_ONCE = 1024  # calls looked up together: more would only be held in memory
BY_NAME = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Call(NamedTuple):
    """Pull arm `label` `times` times.

    No two calls of a run share their `ticket`, so a call that is made twice, because a worker was
    lost, is known to be the same."""

    ticket: int
    label: Label
    draw: int  # the first pull that it makes, counted per arm from 0
    times: int
    seed: int | None  # None if the function does not want one
    item: Any = None  # of a test set, or a list of `times` of them


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The user's function, to be called with a `Call` here or on any worker."""

    function: Callable[..., Any]
    many: bool  # takes the number of pulls, and returns that many rewards
    wanted: tuple[str, ...]  # of seed, draw and ticket, given by name
    on_items: bool = False  # takes the item, or a list of items, beside the arm
    attempts: Attempts = ONCE

    @classmethod
    def of(
        cls,
        pull: Callable[..., Any] | None,
        pull_many: Callable[..., Any] | None = None,
        attempts: Attempts = ONCE,
        *,
        on_items: bool = False,
    ) -> "Evaluation":
        """Take the one function that is given."""
        for name, function in (("pull", pull), ("pull_many", pull_many)):
            if function is not None and not callable(function):
                raise InvalidInput(f"`{name}` is {shown(function)}, but must be a function")
        if pull is not None and pull_many is None:
            _check_places(pull, "an arm and an item" if on_items else "an arm", 1 + on_items)
            return cls(pull, False, wanted_by(pull), on_items, attempts)
        if pull_many is not None and pull is None:
            beside = "a list of items" if on_items else "a number of pulls"
            _check_places(pull_many, f"an arm and {beside}", 2)
            return cls(pull_many, True, wanted_by(pull_many), on_items, attempts)
        both = "`pull` and `pull_many`"
        given = f"neither of {both} is" if pull is None else f"both {both} are"
        raise InvalidInput(f"{given} given, but it must be one of them")

    @property
    def seeded(self) -> bool:
        """Whether it takes a seed: computing one for every call takes longer than a short call."""
        return "seed" in self.wanted

    def __call__(self, call: Call) -> Any:
        """Evaluate an arm; whatever the user's function returns or raises."""
        arguments: tuple[Any, ...] = (call.label,)
        if self.on_items:
            arguments = (call.label, call.item)
        elif self.many:
            arguments = (call.label, call.times)
        named = {name: getattr(call, name) for name in self.wanted}
        if self.attempts == ONCE:
            return self.function(*arguments, **named)
        evaluate = partial(self.function, *arguments, **named)
        if asynchronous(self.function):
            return self.attempts.make_async(evaluate)
        return self.attempts.make(evaluate)


def asynchronous(function: object) -> bool:
    """Whether what a function returns is to be awaited."""
    return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)


def wanted_by(function: Callable[..., Any]) -> tuple[str, ...]:
    """What a function is to be given by name.

    That is a `seed` if it has such a parameter, and `draw` and `ticket` if it cannot do without."""
    named = {each.name: each for each in _parameters(function) if each.kind in BY_NAME}
    needed = [name for name in ("draw", "ticket") if _required(named.get(name))]
    return ("seed", *needed) if "seed" in named else tuple(needed)


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    try:
        return list(signature(function).parameters.values())
    except (TypeError, ValueError):  # some built-in functions have no signature
        return []


def _check_places(function: Callable[..., Any], first: str, places: int) -> None:
    """Refuse a function whose first parameters have names that are given by name."""
    taken = [each.name for each in _parameters(function)[:places] if each.kind in BY_NAME]
    for name in taken:
        if name in wanted_by(function):
            raise InvalidInput(
                f"the function takes ({', '.join(taken)}, …), but it is called with {first} first"
            )


def _required(parameter: Parameter | None) -> bool:
    return parameter is not None and parameter.default is Parameter.empty


def draw_seed(seed: int, arm: int, draw: int) -> int:
    """The seed of one pull: 63 bits made of the run's seed, the arm's position and the draw."""
    state = np.random.SeedSequence(seed, spawn_key=(arm, draw)).generate_state(1, np.uint64)
    return int(state[0]) >> 1  # many generators and services take a signed 64-bit number


def calls_of(
    numbering: Numbering,
    labels: Sequence[Label],
    seed: int | None,
    cells: Cells | None = None,
    *,
    many: bool = False,
) -> Iterator[Call]:
    """The calls of a request, in the order of their tickets; `seed` is that of the run."""
    for first in range(numbering.first, numbering.end, AT_ONCE):
        tickets = np.arange(first, min(first + AT_ONCE, numbering.end))
        _, *columns = numbering.places(tickets)
        rows = zip(tickets.tolist(), *(column.tolist() for column in columns), strict=True)
        for ticket, arm, draw, times in rows:
            own = None if seed is None else draw_seed(seed, arm, draw)
            item = None if cells is None else _item(cells, arm, draw, times, many)
            yield Call(ticket, labels[arm], draw, times, own, item)


def _item(cells: Cells, arm: int, draw: int, times: int, many: bool) -> Any:
    if many:
        return [cells.label(arm, each) for each in range(draw, draw + times)]
    return cells.label(arm, draw)
