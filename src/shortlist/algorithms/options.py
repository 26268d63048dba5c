"""The settings an algorithm takes beside the problem: the keyword-only arguments of its search."""

from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter, signature
from typing import get_args

from shortlist.errors import InvalidInput, UnknownName
from shortlist.search import Search


@cache
def options_of(search: Callable[..., Search]) -> Mapping[str, Parameter]:
    """Every option by name, with its default and type."""
    parameters = signature(search, eval_str=True).parameters
    return {name: each for name, each in parameters.items() if each.kind is Parameter.KEYWORD_ONLY}


def check_options(
    algorithm: str, search: Callable[..., Search], options: Mapping[str, object]
) -> None:
    """Refuse an option that the search does not take, and a value that is not of its type."""
    known = options_of(search)
    for name, value in options.items():
        if name not in known:
            raise UnknownName(
                f"option {name!r} is unknown to {algorithm}; it takes {', '.join(known) or 'none'}"
            )
        allowed = get_args(known[name].annotation) or (known[name].annotation,)
        if not any(_fits(value, kind) for kind in allowed):
            kinds = " or ".join(kind.__name__ for kind in allowed)
            raise InvalidInput(f"option `{name}` is {value!r}, but must be of type {kinds}")


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool):  # which Python counts as an int
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)
