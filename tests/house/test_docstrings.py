"""The examples in docstrings of public names give the output that stands below them."""

import doctest
from collections.abc import Iterator
from types import ModuleType

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
        if callable(each):
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
