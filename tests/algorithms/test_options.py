"""Options of an algorithm: only those its search takes, only of the type it takes."""

from typing import Any, Literal

import numpy as np
import pytest

from shortlist.algorithms.algorithm import check_options, options_of
from shortlist.errors import InvalidInput, UnknownName
from shortlist.problem import Problem
from shortlist.search import Answer, Pulls, Search


def search(
    problem: Problem,
    rng: np.random.Generator,
    *,
    pooled: bool = False,
    rounds: int = 3,
    scale: float = 1.0,
    growth: "float | None" = None,
    rule: str = "best",
) -> Search:
    yield Pulls(np.array([0]), np.array([1]))
    return Answer(np.array([0]))


def test_options_are_the_keyword_only_arguments_with_their_defaults() -> None:
    options = options_of(search)
    assert {name: each.default for name, each in options.items()} == {
        "pooled": False,
        "rounds": 3,
        "scale": 1.0,
        "growth": None,
        "rule": "best",
    }


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pooled": True},
        {"rounds": 5, "scale": 2},
        {"scale": 0.5, "growth": None},
        {"growth": 1},
        {"rule": "x"},
    ],
)
def test_options_of_the_right_type_pass(options: dict[str, Any]) -> None:
    check_options("some", search, options)
    assert set(options) <= set(options_of(search))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooled": 1}, "option `pooled` is 1, but must be of type bool"),
        ({"rounds": True}, "option `rounds` is True, but must be of type int"),
        ({"rounds": 2.5}, "option `rounds` is 2.5, but must be of type int"),
        ({"scale": "fast"}, "option `scale` is 'fast', but must be of type float"),
        ({"growth": "x"}, "option `growth` is 'x', but must be of type float or NoneType"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        check_options("some", search, options)


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        UnknownName,
        match="option 'speed' is unknown to some; it takes pooled, rounds, scale, growth, rule",
    ):
        check_options("some", search, {"speed": 1})


def positional(problem: Problem, rng: np.random.Generator, scale: float = 1.0) -> Search:
    return search(problem, rng)


def anything(problem: Problem, rng: np.random.Generator, **options: Any) -> Search:
    return search(problem, rng)


def untyped(problem, rng, *, speed=1, depth: "Nowhere" = 2):  # type: ignore # noqa: F821
    return search(problem, rng)


def choices(
    problem: Problem,
    rng: np.random.Generator,
    *,
    rule: Literal["best", "worst"] = "best",
    sizes: list[int] | None = None,
    free: Any = None,
) -> Search:
    return search(problem, rng)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (anything, {"whatever": "you like"}),
        (untyped, {"speed": "high", "depth": 3}),
        (choices, {"rule": "worst", "sizes": [1, 2], "free": object()}),
    ],
)
def test_what_a_function_does_not_say_of_its_options_is_not_checked(
    function: Any, options: dict[str, Any]
) -> None:
    check_options("some", function, options)
    with pytest.raises(UnknownName, match="unknown to some"):
        check_options("some", search, options)


def test_an_option_by_position_is_an_option_by_name() -> None:
    assert list(options_of(positional)) == ["scale"]
    with pytest.raises(InvalidInput, match="option `scale` is 'x', but must be of type float"):
        check_options("some", positional, {"scale": "x"})
