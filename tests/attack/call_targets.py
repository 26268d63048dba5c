"""A public name that is called with none to all of its usual arguments replaced."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

from hostile_values import hostile

Arguments = dict[str, Any]
ENOUGH = 300  # evaluations, after which the user's function has had its say


class UsersOwn(Exception):
    """Raised by a function of the user, which is nobody's fault here."""


@dataclass(frozen=True)
class Target:
    """Something public that is called, and what it is usually called with."""

    name: str
    function: Callable[..., Any]
    usual: Callable[[random.Random], Arguments]
    public: Callable[..., Any] | None = None  # what it stands for, if it takes more than is usual

    def unusual(self, arguments: Arguments) -> list[str]:
        """What else could be given."""
        if self.public is None:
            return []
        return [
            name
            for name in signature(self.public).parameters
            if name not in {*arguments, "clock", "self"}
        ]


@dataclass(frozen=True)
class Trial:
    """One call, ready to be made."""

    target: Target
    arguments: Arguments
    replaced: tuple[str, ...]

    def __call__(self) -> Any:
        return self.target.function(**self.arguments)

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={short(value)}" for name, value in self.arguments.items())
        return f"{self.target.name}({shown}), replaced: {', '.join(self.replaced) or 'nothing'}"


def short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # a number of too many digits
        return "a huge number"
    return text if len(text) < 200 else f"{text[:200]}..."


def replaced(target: Target, rng: random.Random) -> Trial:
    """A call of it with none to all of its arguments replaced, dropped or added."""
    arguments = target.usual(rng)
    names = []
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        if not arguments:
            break
        name = rng.choice(list(arguments))
        arguments[name] = hostile(rng)
        names.append(name)
    others = target.unusual(arguments)
    if others and rng.random() < 0.3:
        names.append(rng.choice(others))
        arguments[names[-1]] = hostile(rng)
    if rng.random() < 0.02:
        arguments.pop(rng.choice(list(arguments)), None) if arguments else None
    if rng.random() < 0.01:
        arguments["unheard_of"] = hostile(rng)
    return Trial(target, arguments, tuple(names))


def record(**fields: Any) -> Callable[[random.Random], Arguments]:
    return lambda rng: dict(fields)


def show(outcome: Any) -> None:
    for shown in (str, repr, lambda each: each._repr_html_()):
        shown(outcome)
