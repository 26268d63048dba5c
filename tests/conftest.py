"""Settings and fixtures of all tests."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack_scale import SCALE
from hypothesis import HealthCheck, settings
from postgres import stop_shared_server

from shortlist.search import Pulls, Rewards
from shortlist.simulation.worlds import Bandit

ATTACKS = Path(__file__).parent / "attack"
PAGES = Path(__file__).parent / "house"
PROOFS = Path(__file__).parent / "certificates"
# A busy machine is no failure, and `make test` tries the same few examples in every run.
settings.register_profile(
    "shortlist",
    max_examples=50 * SCALE,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=SCALE == 1,
)
settings.load_profile("shortlist")


@pytest.hookimpl(optionalhook=True)  # environments of harnesses have no xdist
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: tests of servers and processes often wait for them."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the attacks, and run what repeats others without the tracer of coverage, which would
    double its time: statistical tests, pages, and all seeds but the first. Tests of certificates
    keep it, for all their lines must be run."""
    for item in items:
        if item.path.is_relative_to(ATTACKS):
            item.add_marker("attack")
        proves = item.path.is_relative_to(PROOFS)
        repeated = isinstance(item, pytest.Function) and _seed(item) > 0 and not proves
        if repeated or item.path.is_relative_to(PAGES) or item.get_closest_marker("rates"):
            item.add_marker("no_cover")


def _seed(item: pytest.Function) -> int:
    """The place of its seed among those that the test is run with."""
    return int(item.callspec.indices.get("seed", 0)) if hasattr(item, "callspec") else 0


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
