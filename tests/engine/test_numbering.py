"""The numbering of a request's calls, against dealing them out one by one."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shortlist.engine.numbering import Numbering
from shortlist.search import Pulls

Entries = list[tuple[int, int]]

requests = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=1, max_size=12)
sizes = st.one_of(st.none(), st.integers(1, 4))


def calls_of(times: int, most: int | None) -> list[int]:
    """Pulls in every call of an entry."""
    step = most or max(times, 1)
    return [min(step, times - begun) for begun in range(0, times, step)]


def dealt_one_by_one(entries: Entries, most: int | None) -> list[tuple[int, int]]:
    """Entry and round of every call, in the order of the tickets."""
    calls = [len(calls_of(times, most)) for _, times in entries]
    order = sorted(range(len(entries)), key=lambda entry: -calls[entry])
    return [
        (entry, round_) for round_ in range(max(calls)) for entry in order if calls[entry] > round_
    ]


def numbering_of(entries: Entries, first: int, drawn: list[int], most: int | None = 1) -> Numbering:
    arms, times = (np.array(column, dtype=np.int64) for column in zip(*entries, strict=True))
    return Numbering(Pulls(arms, times), first, np.array(drawn), most)


@given(requests, st.integers(0, 100), sizes)
@example([(0, 3), (1, 0), (0, 2)], 7, 1)
def test_tickets_go_round_the_entries_until_each_has_its_pulls(
    entries: Entries, first: int, most: int | None
) -> None:
    numbering = numbering_of(entries, first, [0] * 6, most)
    expected = dealt_one_by_one(entries, most)
    places = numbering.places(numbering.tickets)
    assert (numbering.total, numbering.end) == (len(expected), first + len(expected))
    assert numbering.tickets.tolist() == list(range(first, numbering.end))
    assert places.entries.tolist() == [entry for entry, _ in expected]
    assert places.arms.tolist() == [entries[entry][0] for entry, _ in expected]
    assert numbering.arms(numbering.tickets).tolist() == places.arms.tolist()
    times = [calls_of(entries[entry][1], most)[round_] for entry, round_ in expected]
    assert places.times.tolist() == times


@given(requests, st.lists(st.integers(0, 9), min_size=6, max_size=6), sizes)
def test_the_draws_of_an_arm_are_numbered_without_gap_or_double(
    entries: Entries, drawn: list[int], most: int | None
) -> None:
    numbering = numbering_of(entries, 0, drawn, most)
    places = numbering.places(numbering.tickets)
    for arm in range(6):
        own = places.arms == arm
        spans = zip(places.draws[own].tolist(), places.times[own].tolist(), strict=True)
        draws = sorted(draw for first, times in spans for draw in range(first, first + times))
        assert draws == list(range(drawn[arm], drawn[arm] + len(draws)))
        assert len(draws) == sum(times for each, times in entries if each == arm)


def test_the_example_in_the_docstring() -> None:
    numbering = numbering_of([(7, 1), (4, 3), (9, 2)], 10, [0] * 10)
    assert numbering.places(range(10, 16)).arms.tolist() == [4, 9, 7, 4, 9, 4]


@pytest.mark.parametrize("most", [1, None])
def test_a_request_of_a_billion_pulls_costs_no_memory_per_pull(most: int | None) -> None:
    numbering = numbering_of([(0, 10**9), (1, 10**9 - 1)], 0, [0, 0], most)
    places = numbering.places([0, 1, numbering.end - 1])
    assert places.arms.tolist()[:2] == [0, 1]
    last = places.draws[-1] + places.times[-1]
    assert last == (10**9 if most else 10**9 - 1)
