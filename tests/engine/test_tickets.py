"""The numbering of a request's calls, against dealing them out one by one."""

from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shortlist.engine.tickets import Numbering
from shortlist.search import Pulls

Entries = list[tuple[int, int]]

requests = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=1, max_size=12)
sizes = st.one_of(st.none(), st.integers(1, 4))


def dealt_one_by_one(entries: Entries) -> list[tuple[int, int]]:
    """Entry and number of every pull, in the order of the tickets."""
    pulls = [times for _, times in entries]
    order = sorted(range(len(entries)), key=lambda entry: -pulls[entry])
    due = [(Fraction(2 * nth + 1, pulls[e]), e, nth) for e in order for nth in range(pulls[e])]
    return [(entry, nth) for _, entry, nth in sorted(due, key=lambda each: each[0])]


def numbering_of(entries: Entries, first: int, drawn: list[int]) -> Numbering:
    arms, times = (np.array(column, dtype=np.int64) for column in zip(*entries, strict=True))
    return Numbering(Pulls(arms, times), first, np.array(drawn))


@given(requests, st.integers(0, 100))
@example([(0, 3), (1, 0), (0, 2)], 7)
def test_tickets_are_in_the_order_in_which_their_pulls_are_due(
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


@given(requests)
def test_every_arm_gets_its_share_of_the_tickets_all_along(entries: Entries) -> None:
    numbering = numbering_of(entries, 0, [0] * 6)
    times = numbering.pulls.times
    if not numbering.total:
        return
    given_out = np.eye(times.size)[numbering.places(numbering.tickets).entries].cumsum(axis=0)
    fair = np.arange(1, numbering.total + 1)[:, None] * times / numbering.total
    assert (np.abs(given_out - fair) <= 0.5 + times.size * times / numbering.total / 2).all()


def test_two_of_every_five_tickets_are_of_an_arm_with_two_fifths_of_the_pulls() -> None:
    numbering = numbering_of([(0, 400), (1, 600)], 0, [0, 0])
    fives = numbering.arms(numbering.tickets).reshape(-1, 5)
    assert ((fives == 0).sum(axis=1) == 2).all()


def test_a_level_that_rises_within_a_batch_meets_arms_with_unequal_pulls_alike() -> None:
    numbering = numbering_of([(0, 300), (1, 700), (2, 700)], 0, [0, 0, 0])
    level = np.linspace(0.7, 1.3, numbering.total)
    arms = numbering.arms(numbering.tickets)
    means = [level[arms == arm].mean() for arm in range(3)]
    assert np.ptp(means) < 0.001


def test_the_example_in_the_docstring() -> None:
    numbering = numbering_of([(7, 1), (4, 4), (9, 2)], 10, [0] * 10)
    assert numbering.places(range(10, 17)).arms.tolist() == [4, 9, 4, 7, 4, 9, 4]


@settings(max_examples=10)
@given(requests)
def test_a_batch_dealt_in_parts_has_the_same_pulls_in_the_same_proportion(entries: Entries) -> None:
    numbering = numbering_of([(arm, 20_000 * times) for arm, times in entries], 5, [0] * 6)
    some = np.linspace(5, max(5, numbering.end - 1), 7).astype(np.int64)[: numbering.total]
    found, every = numbering.places(some[::-1]), numbering.places(numbering.tickets)
    assert (np.bincount(every.entries, minlength=len(entries)) == numbering.pulls.times).all()
    for column, whole in zip(found, every, strict=True):
        assert (column == whole[some[::-1] - 5]).all()
    assert np.unique(every.arms * 10**9 + every.draws).size == numbering.total


def test_a_batch_of_a_billion_pulls_costs_no_memory_per_pull() -> None:
    numbering = numbering_of([(0, 10**9), (1, 10**9 - 1)], 0, [0, 0])
    places = numbering.places([0, 1, numbering.end - 1])
    assert sorted(places.arms.tolist()[:2]) == [0, 1]
    assert places.draws.tolist()[:2] == [0, 0]
    assert places.draws[-1] in (10**9 - 1, 10**9 - 2)
