"""What the tests of algorithms share, and the end of what tests of stores share."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from postgres import stop_shared_server

from shortlist.search import Pulls, Rewards
from shortlist.simulation.worlds import Bandit


@pytest.fixture(scope="session")
def finish() -> Callable[..., Any]:
    """Run any part of a search to its end against a bandit, writing its requests down if asked
    to."""

    def run(
        steps: Any, bandit: Bandit, rng: np.random.Generator, requests: list[Pulls] | None = None
    ) -> Any:
        reply: Rewards | None = None
        while True:
            try:
                request = steps.send(reply)
            except StopIteration as stop:
                return stop.value
            if requests is not None:
                requests.append(request)
            reply = bandit.pull(request.arms, request.times, rng)

    return run


def pytest_sessionfinish() -> None:
    """Stop the PostgreSQL that tests shared, if one was started."""
    stop_shared_server()
