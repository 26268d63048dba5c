"""How the pulls of one request are numbered."""

from collections.abc import Iterable

import numpy as np

from shortlist.arrays import IntArray
from shortlist.search import Pulls


class Deal:
    """A request dealt out like cards: every entry gets its first pull, then every entry its second,
    and so on.

    So a change in the world while a request is worked off, the time of day for one, meets all arms
    alike. Nothing is stored per pull: tickets `first`, `first` + 1, ... are looked up."""

    def __init__(self, pulls: Pulls, first: int, drawn: IntArray) -> None:
        """`drawn`: how often each arm was asked for before."""
        self.pulls, self.first, self.total = pulls, first, pulls.total
        arms, times = pulls.arms, pulls.times
        self._first_draws = drawn[arms] + _asked_earlier(arms, times)
        # most pulls first: every round goes to the first so many
        self._entries = np.argsort(-times, kind="stable")
        heights = np.unique(times[times > 0])  # rounds after which some entry has all its pulls
        floors = np.concatenate([[0], heights[:-1]])
        self._floors = floors
        # entries still in those rounds
        self._widths = times.size - np.searchsorted(np.sort(times), heights)
        self._starts = np.concatenate([[0], np.cumsum((heights - floors) * self._widths)[:-1]])

    @property
    def end(self) -> int:
        """The first ticket after these."""
        return self.first + self.total

    def entries(self, tickets: Iterable[int] | IntArray) -> IntArray:
        """Which entry of the request each ticket answers."""
        return self._places(tickets)[0]

    def arms(self, tickets: Iterable[int] | IntArray) -> IntArray:
        """Which arm each ticket pulls."""
        return self.pulls.arms[self.entries(tickets)]

    def draws(self, tickets: Iterable[int] | IntArray) -> IntArray:
        """Which pull of its arm each ticket is, over the whole experiment."""
        entries, rounds = self._places(tickets)
        draws: IntArray = self._first_draws[entries] + rounds
        return draws

    def _places(self, tickets: Iterable[int] | IntArray) -> tuple[IntArray, IntArray]:
        """Entry and round of each ticket."""
        offsets = np.asarray(tickets, dtype=np.int64) - self.first
        stretch = np.searchsorted(self._starts, offsets, side="right") - 1
        rounds, ranks = np.divmod(offsets - self._starts[stretch], self._widths[stretch])
        return self._entries[ranks], self._floors[stretch] + rounds


def _asked_earlier(arms: IntArray, times: IntArray) -> IntArray:
    """Per entry, how many pulls of its arm the entries before it ask for."""
    order = np.argsort(arms, kind="stable")
    before = np.cumsum(times[order]) - times[order]
    same = np.concatenate([[False], np.diff(arms[order]) == 0])
    group = np.maximum.accumulate(np.where(same, 0, np.arange(arms.size)))
    earlier = np.empty_like(times)
    earlier[order] = before - before[group]
    return earlier
