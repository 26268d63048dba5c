"""The numbering of a request's calls, against dealing them out one by one."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from shortlist.engine.tickets import Numbering
from shortlist.search import Pulls

Entries = list[tuple[int, int]]

requests = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=1, max_size=12)
sizes = st.one_of(st.none(), st.integers(1, 4))


def dealt_one_by_one(entries: Entries) -> list[tuple[int, int]]:
    """Entry and round of every pull, in the order of the tickets."""
    pulls = [times for _, times in entries]
    order = sorted(range(len(entries)), key=lambda entry: -pulls[entry])
    return [
        (entry, round_) for round_ in range(max(pulls)) for entry in order if pulls[entry] > round_
    ]


def numbering_of(entries: Entries, first: int, drawn: list[int]) -> Numbering:
    arms, times = (np.array(column, dtype=np.int64) for column in zip(*entries, strict=True))
    return Numbering(Pulls(arms, times), first, np.array(drawn))


@given(requests, st.integers(0, 100))
@example([(0, 3), (1, 0), (0, 2)], 7)
def test_tickets_go_round_the_entries_until_each_has_its_pulls(
    entries: Entries, first: int
) -> None:
    numbering = numbering_of(entries, first, [0] * 6)
    expected = dealt_one_by_one(entries)
    places = numbering.places(numbering.tickets)
    assert (numbering.total, numbering.end) == (len(expected), first + len(expected))
    assert numbering.tickets.tolist() == list(range(first, numbering.end))
    assert places.entries.tolist() == [entry for entry, _ in expected]
    assert places.arms.tolist() == [entries[entry][0] for entry, _ in expected]
    assert numbering.arms(numbering.tickets).tolist() == places.arms.tolist()


@given(requests, st.lists(st.integers(0, 9), min_size=6, max_size=6))
def test_the_draws_of_an_arm_are_numbered_without_gap_or_double(
    entries: Entries, drawn: list[int]
) -> None:
    numbering = numbering_of(entries, 0, drawn)
    places = numbering.places(numbering.tickets)
    for arm in range(6):
        draws = sorted(places.draws[places.arms == arm].tolist())
        assert draws == list(range(drawn[arm], drawn[arm] + len(draws)))
        assert len(draws) == sum(times for each, times in entries if each == arm)


@given(requests, sizes)
def test_a_call_makes_consecutive_pulls_of_one_entry_and_no_more_than_allowed(
    entries: Entries, most: int | None
) -> None:
    numbering = numbering_of(entries, 3, [0] * 6)
    places, calls = numbering.places(numbering.tickets), numbering.calls(numbering.tickets, most)
    sizes = []
    for call in np.unique(calls):
        own = calls == call
        assert np.unique(places.entries[own]).size == 1
        assert np.ptp(places.draws[own]) == own.sum() - 1
        sizes.append(int(own.sum()))
    step = most or 6
    expected = [min(step, times - begun) for _, times in entries for begun in range(0, times, step)]
    assert sorted(sizes) == sorted(expected)


def test_the_example_in_the_docstring() -> None:
    numbering = numbering_of([(7, 1), (4, 3), (9, 2)], 10, [0] * 10)
    assert numbering.places(range(10, 16)).arms.tolist() == [4, 9, 7, 4, 9, 4]


def test_a_batch_of_a_billion_pulls_costs_no_memory_per_pull() -> None:
    numbering = numbering_of([(0, 10**9), (1, 10**9 - 1)], 0, [0, 0])
    places = numbering.places([0, 1, numbering.end - 1])
    assert places.arms.tolist() == [0, 1, 0]
    assert places.draws[-1] == 10**9 - 1
