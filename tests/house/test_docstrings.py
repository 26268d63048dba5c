"""Docstrings of public names describe every parameter, and their examples give the output that
stands below them.

The example of `Client` needs a service, and is run by tests/client."""

import doctest
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import shortlist

PUBLIC = [getattr(shortlist, name) for name in shortlist.__all__]
IN_MODULES = [
    each
    for module in PUBLIC
    if isinstance(module, ModuleType)
    for name, each in vars(module).items()
    if not name.startswith("_") and getattr(each, "__module__", "") == module.__name__
]


def examples() -> Iterator[doctest.DocTest]:
    finder = doctest.DocTestFinder(recurse=False)
    for each in [*PUBLIC, *IN_MODULES]:
        if callable(each) and each is not shortlist.Client:
            yield from (test for test in finder.find(each, each.__name__) if test.examples)


@pytest.fixture(autouse=True)
def _registry_as_before() -> Iterator[None]:
    before = dict(shortlist.ALGORITHMS)
    yield
    shortlist.ALGORITHMS.clear()
    shortlist.ALGORITHMS.update(before)


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_an_example_gives_what_it_says(example: doctest.DocTest) -> None:
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(example)
    assert runner.failures == 0


def functions() -> Iterator[Any]:
    """All public functions, and all methods of public classes, with their names."""
    for each in [*PUBLIC, *IN_MODULES]:
        if inspect.isfunction(each):
            yield pytest.param(each, id=each.__qualname__)
        elif inspect.isclass(each) and not issubclass(each, BaseException):
            named = inspect.getmembers(each, lambda own: inspect.isfunction(inspect.unwrap(own)))
            bound = inspect.getmembers(each, inspect.ismethod)
            for name, method in [*named, *bound]:
                ours = str(getattr(method, "__module__", "")).startswith("shortlist")
                if ours and not name.startswith("_"):
                    yield pytest.param(method, id=f"{each.__name__}.{name}")


def described(function: Callable[..., Any]) -> set[str]:
    """The parameters in the section Args of a docstring."""
    text = inspect.getdoc(function) or ""
    section = re.search(r"^Args:\n((?: .*\n|\n)*)", f"{text}\n", re.MULTILINE)
    return set(re.findall(r"^ {4}(\w+): \S", section[1], re.MULTILINE)) if section else set()


@pytest.mark.parametrize("function", list(functions()))
def test_every_parameter_of_a_public_function_is_described(function: Callable[..., Any]) -> None:
    parameters = set(inspect.signature(function).parameters) - {"self", "args", "kwargs"}
    assert parameters - described(function) == set()


@pytest.mark.parametrize("function", list(functions()))
def test_a_public_function_with_parameters_says_what_it_returns(
    function: Callable[..., Any],
) -> None:
    text, returned = inspect.getdoc(function) or "", inspect.signature(function).return_annotation
    assert not described(function) or returned in (None, "None") or "Returns:\n" in text


@pytest.mark.parametrize("name", [name for name in shortlist.__all__ if name[0].isupper()])
def test_a_public_class_has_an_example(name: str) -> None:
    each = getattr(shortlist, name)
    assert not inspect.isclass(each) or ">>> " in (inspect.getdoc(each) or "")


def test_a_parameter_that_is_not_described_is_noticed() -> None:
    def half(a: int, b: int) -> None:
        """Do it.

        Args:
            a: One."""

    assert described(half) == {"a"}
