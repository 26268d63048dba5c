"""What every test may rely on."""

from collections.abc import Iterator

import pytest

from shortlist.algorithms import ALGORITHMS


@pytest.fixture(autouse=True)
def _the_registry_is_left_as_it_was() -> Iterator[None]:
    before = dict(ALGORITHMS)
    yield
    ALGORITHMS.clear()
    ALGORITHMS.update(before)
