"""A service in front of a store in memory."""

from collections.abc import Iterator

import pytest
from services import MAKE, Call, caller, serving

from shortlist.stores.base import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def url(store: MemoryStore) -> Iterator[str]:
    with serving(store) as url:
        yield url


@pytest.fixture
def call(url: str) -> Call:
    return caller(url)


@pytest.fixture
def made(call: Call) -> Call:
    """Calls a service with an experiment."""
    assert call("POST", "/v1/experiments", MAKE).status == 201
    return call
