"""The settings an algorithm takes beside the problem: the keyword arguments of its search."""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, signature
from types import UnionType
from typing import Any, Union, get_args, get_origin

from shortlist.errors import InvalidInput, UnknownName
from shortlist.search import Search

NAMED = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
UNCHECKED = (Parameter.empty, Any)


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
    if not options:
        return
    known = options_of(search)
    for name, value in options.items():
        if name in known:
            _check_type(name, value, known[name].annotation)
        elif not _takes_any(search):
            raise UnknownName(
                f"option {name!r} is unknown to {algorithm}; it takes {', '.join(known) or 'none'}"
            )


def check_takes_problem(algorithm: str, search: Callable[..., Search]) -> None:
    """Refuse a function that cannot be called as search(problem, rng)."""
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
    try:
        return signature(search, eval_str=True)
    except Exception:
        return signature(search)


def _takes_any(search: Callable[..., Search]) -> bool:
    kinds = [each.kind for each in _signature(search).parameters.values()]
    return Parameter.VAR_KEYWORD in kinds


def _check_type(name: str, value: object, annotation: object) -> None:
    kinds = _kinds(annotation)
    if kinds and not any(_fits(value, kind) for kind in kinds):
        allowed = " or ".join(kind.__name__ for kind in kinds)
        raise InvalidInput(f"option `{name}` is {value!r}, but must be of type {allowed}")


def _kinds(annotation: object) -> tuple[type, ...]:
    """The classes that are allowed; none where the annotation is more than a choice of classes."""
    union = isinstance(annotation, UnionType) or get_origin(annotation) is Union
    parts = get_args(annotation) if union else (annotation,)
    plain = all(isinstance(part, type) and part not in UNCHECKED for part in parts)
    return parts if plain else ()


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool):  # which Python counts as an int
        return kind in (bool, object)
    return isinstance(value, (int, float) if kind is float else kind)
