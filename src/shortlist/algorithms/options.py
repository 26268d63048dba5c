"""The settings an algorithm takes beside the problem: the keyword arguments of its search.

Their types are checked, and so is a range where the type says one: `growth: Growth = 0.02`."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from math import inf
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from shortlist.digits import given_text
from shortlist.errors import InvalidInput, UnknownName
from shortlist.search import Search
from shortlist.validation import COUNTABLE, named, number, shown

NAMED = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
UNCHECKED = (Parameter.empty, Any)


@dataclass(frozen=True, slots=True)
class Within:
    """A range of numbers, with both ends or, `strictly`, without them."""

    low: float
    high: float
    strictly: bool = False

    def check(self, name: str, value: object) -> None:
        """Refuse a value outside."""
        low, high = (self.low, self.high) if self.strictly else (-inf, inf)
        result = number(name, value, above=low, below=high)
        if result < self.low:
            raise InvalidInput(
                f"`{name}` is {shown(value)}, but must be at least {given_text(self.low)}"
            )
        if result > self.high:
            raise InvalidInput(
                f"`{name}` is {shown(value)}, but must be at most {given_text(self.high)}"
            )


# a batch, as a share of all pulls so far
Growth = Annotated[float, Within(0, 100)]
# the probability of a failure
Delta = Annotated[float, Within(0, 1, strictly=True)]
# how many times as long, or as short
Scale = Annotated[float, Within(1e-9, 1e9)]
# how many
Count = Annotated[int, Within(1, COUNTABLE)]


def options_of(search: Callable[..., Search]) -> Mapping[str, Parameter]:
    """Every option by name, with its default and type: what can be named after (problem, rng)."""
    parameters = list(_signature(search).parameters.values())
    by_place = [each.name for each in parameters if each.kind is not Parameter.KEYWORD_ONLY]
    return {
        each.name: each
        for each in parameters
        if each.kind in NAMED and each.name not in by_place[:2]
    }


def check_options(
    algorithm: str, search: Callable[..., Search], options: Mapping[str, object]
) -> None:
    """Refuse an option that the search does not take, and a value that is not of its type."""
    given = named("options", options)
    known = options_of(search) if given else {}
    for name, value in given.items():
        if name in known:
            _check_value(name, value, known[name].annotation)
        elif not _takes_any(search):
            raise UnknownName(
                f"option {name!r} is unknown to {algorithm}; it takes {', '.join(known) or 'none'}"
            )


def check_takes_problem(algorithm: str, search: Callable[..., Search]) -> None:
    """Refuse a function that cannot be called as search(problem, rng)."""
    if not callable(search):
        raise InvalidInput(f"`search` is {shown(search)}, but must be a function")
    try:
        signature(search).bind("problem", "rng")
    except ValueError:  # some built-in functions have no signature
        return
    except TypeError as error:
        raise InvalidInput(
            f"{algorithm} takes {signature(search)}, but a search must take (problem, rng) and may"
            " take options by name"
        ) from error


def _signature(search: Callable[..., Search]) -> Signature:
    """With types where they can be known; annotations may name what is imported for them alone."""
    with suppress(Exception):
        return signature(search, eval_str=True)
    with suppress(TypeError, ValueError):  # some built-in functions have no signature
        return signature(search)
    return Signature()


def _takes_any(search: Callable[..., Search]) -> bool:
    kinds = [each.kind for each in _signature(search).parameters.values()]
    return Parameter.VAR_KEYWORD in kinds


def _check_value(name: str, value: object, annotation: object) -> None:
    """Check the type, and the range that comes with it."""
    choice = get_args(annotation) if _is_union(annotation) else (annotation,)
    ranges = [rule for kind in choice for rule in getattr(kind, "__metadata__", ())]
    _check_type(name, value, choice)
    for each in ranges:
        if isinstance(each, Within) and value is not None:
            each.check(name, value)


def _is_union(annotation: object) -> bool:
    return isinstance(annotation, UnionType) or get_origin(annotation) is Union


def _check_type(name: str, value: object, choice: tuple[object, ...]) -> None:
    kinds = _kinds(choice)
    if kinds and not any(_fits(value, kind) for kind in kinds):
        allowed = " or ".join(kind.__name__ for kind in kinds)
        raise InvalidInput(f"option `{name}` is {shown(value)}, but must be of type {allowed}")


def _kinds(choice: tuple[object, ...]) -> tuple[type, ...]:
    """The classes that are allowed; none where the annotation is more than a choice of classes."""
    parts: tuple[Any, ...] = tuple(map(_without_range, choice))
    plain = all(isinstance(part, type) and part not in UNCHECKED for part in parts)
    return parts if plain else ()


def _without_range(kind: Any) -> object:
    return kind.__origin__ if get_origin(kind) is Annotated else kind


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool):  # which Python counts as an int
        return kind in (bool, object)
    return isinstance(value, (int, float) if kind is float else kind)
