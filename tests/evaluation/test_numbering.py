"""The numbering of a request's pulls, against dealing them out one by one."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from shortlist.evaluation.numbering import Deal
from shortlist.search import Pulls

requests = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=1, max_size=12)


def dealt_one_by_one(entries: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Entry and round of every pull, in the order of the tickets."""
    most = max(times for _, times in entries)
    order = sorted(range(len(entries)), key=lambda entry: -entries[entry][1])
    return [
        (entry, round_) for round_ in range(most) for entry in order if entries[entry][1] > round_
    ]


def deal_of(entries: list[tuple[int, int]], first: int, drawn: list[int]) -> Deal:
    arms, times = (np.array(column, dtype=np.int64) for column in zip(*entries, strict=True))
    return Deal(Pulls(arms, times), first, np.array(drawn))


@given(requests, st.integers(0, 100))
@example([(0, 3), (1, 0), (0, 2)], 7)
def test_tickets_go_round_the_entries_until_each_has_its_pulls(
    entries: list[tuple[int, int]], first: int
) -> None:
    deal = deal_of(entries, first, [0] * 6)
    expected = dealt_one_by_one(entries)
    tickets = range(first, first + len(expected))
    assert (deal.total, deal.end) == (len(expected), first + len(expected))
    assert deal.entries(tickets).tolist() == [entry for entry, _ in expected]
    assert deal.arms(tickets).tolist() == [entries[entry][0] for entry, _ in expected]


@given(requests, st.lists(st.integers(0, 9), min_size=6, max_size=6))
def test_the_draws_of_an_arm_are_numbered_without_gap_or_double(
    entries: list[tuple[int, int]], drawn: list[int]
) -> None:
    deal = deal_of(entries, 0, drawn)
    tickets = range(deal.total)
    for arm in range(6):
        draws = deal.draws(tickets)[deal.arms(tickets) == arm]
        assert sorted(draws) == list(range(drawn[arm], drawn[arm] + draws.size))


def test_a_request_of_a_billion_pulls_costs_no_memory_per_pull() -> None:
    deal = deal_of([(0, 10**9), (1, 10**9 - 1)], 0, [0, 0])
    assert deal.arms([0, 1, 2, 2 * 10**9 - 3, deal.end - 1]).tolist() == [0, 1, 0, 1, 0]
    assert deal.draws([deal.end - 1]).tolist() == [10**9 - 1]
