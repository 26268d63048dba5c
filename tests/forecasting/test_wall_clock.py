"""How long a search takes with calls that take a while, several at a time."""

from heapq import heappop, heappush
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shortlist
from shortlist.errors import InvalidInput
from shortlist.forecasting.days import Concurrency, Pool

SMALL: dict[str, Any] = {"n": 10, "k": 2, "prior": (6, 6), "items": 120, "runs": 3}


@given(
    st.integers(1, 7),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30)), min_size=1, max_size=12),
)
def test_calls_end_when_workers_that_are_free_first_take_them(
    workers: int, batches: list[tuple[int, int]]
) -> None:
    pool, free = Pool(Concurrency(workers, 2.0)), [0.0] * workers
    for waited, calls in batches:
        pool.clock += waited
        last = pool.clock
        for _ in range(calls):
            last = max(heappop(free), pool.clock) + 2.0
            heappush(free, last)
        assert pool.work(calls) == last
        assert np.array_equal(
            np.maximum(pool.free, pool.clock), np.maximum(sorted(free), pool.clock)
        )


def test_one_call_at_a_time_takes_as_long_as_all_pulls() -> None:
    (alone,) = shortlist.forecast(**SMALL, epsilon=0.1, latency=3.0).prospects
    assert alone.seconds is not None
    assert np.array_equal(alone.seconds, 3.0 * alone.pulls)
    assert alone.summary()["seconds"] == {
        name: 3.0 * pulls
        for name, pulls in alone.summary()["pulls"].items()  # type: ignore[attr-defined]
    }


def test_calls_at_a_time_shorten_it_and_keep_workers_busy() -> None:
    alone, wide = (
        shortlist.forecast(**SMALL, epsilon=0.1, latency=3.0, concurrency=calls).prospects[0]
        for calls in (1, 8)
    )
    assert alone.seconds is not None
    assert wide.seconds is not None
    assert (wide.seconds >= wide.pulls * 3.0 / 8).all()
    assert (wide.seconds <= wide.pulls * 3.0 / 8 / 0.85).all()  # `select` asks ahead, too
    assert (wide.seconds < alone.seconds / 4).all()
    assert (wide.rounds >= 2).all()


def test_batches_that_wait_for_the_last_take_their_rounds() -> None:
    cuts: dict[str, Any] = {"min_batch": 16, "window": 0, "concurrency": 8}
    (found,) = shortlist.forecast(**SMALL, epsilon=0.1, latency=1.0, **cuts).prospects
    assert found.seconds is not None
    assert (found.seconds >= 2 * found.rounds).all()


def test_the_time_of_pairs_is_that_of_their_rounds() -> None:
    found = shortlist.forecast(
        k=1, means=[0.9, 0.5, 0.1], epsilon=0.2, latency=2.0, concurrency=4, runs=3
    )
    pairs, uniform = found.prospect("certified"), found.prospect("uniform")
    assert pairs.seconds is not None
    assert uniform.seconds is not None
    assert (pairs.seconds >= 2.0 * np.maximum(pairs.rounds, pairs.pulls / 4)).all()
    assert (pairs.seconds <= 2.0 * (pairs.rounds + pairs.pulls / 4)).all()
    assert np.array_equal(uniform.seconds, 2.0 * np.ceil(uniform.pulls / 4))
    assert " time " in str(found)


def test_without_a_latency_there_is_no_time_and_nothing_changes() -> None:
    plain = shortlist.forecast(**SMALL, epsilon=0.1)
    wide = shortlist.forecast(**SMALL, epsilon=0.1, concurrency=1)
    assert plain.prospects[0].seconds is None
    assert "seconds" not in plain.prospects[0].summary()
    assert np.array_equal(plain.prospects[0].pulls, wide.prospects[0].pulls)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"concurrency": 0}, "`concurrency` is 0, but must be a whole number"),
        ({"latency": 0}, "`latency` is 0, but must be"),
        ({"latency": 2, "per_day": 9}, "`latency` and `per_day` are both given"),
    ],
)
def test_a_width_that_makes_no_sense_is_refused(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        shortlist.forecast(**SMALL, epsilon=0.1, **given)
