"""Number the calls of a request: whose turn is when, and which pulls of its arm a call makes.

A request is dealt out like cards: every entry gets its first call, then every entry its second, and
so on. So a change in the world while a request is worked off, the time of day for one, meets all
arms alike. Take arms 7, 4 and 9, to be pulled 1, 3 and 2 times, with tickets from 10 on:

    round 0    10 -> arm 4    11 -> arm 9    12 -> arm 7
    round 1    13 -> arm 4    14 -> arm 9
    round 2    15 -> arm 4

Rounds of the same width form a *stretch*. Tickets are looked up, never stored: bisection finds the
stretch, a division the round and the rank in it."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from shortlist.arrays import IntArray, total_before
from shortlist.search import Pulls

Tickets = Iterable[int] | IntArray


class Places(NamedTuple):
    """Where tickets belong, one figure per ticket."""

    entries: IntArray  # of the request
    arms: IntArray
    draws: IntArray  # the first pull that the call makes, counted per arm over the whole run
    times: IntArray  # pulls in the call


class Numbering:
    """The tickets `first`, `first` + 1, ... of a request, one for every call.

    `drawn` says how often each arm was asked for before. A call makes `most` pulls of its entry,
    the last one what is left; with None, one call makes all of them."""

    def __init__(self, pulls: Pulls, first: int, drawn: IntArray, most: int | None = 1) -> None:
        self.pulls = pulls
        self.first = first
        self._most = int(pulls.times.max(initial=1)) if most is None else most
        calls = -(-pulls.times // self._most)  # (entries,)
        self.total = int(calls.sum())
        self._first_draws = drawn[pulls.arms] + total_before(pulls.arms, pulls.times)
        # Most calls first: then every round goes to the first so many entries of this order.
        self._order = np.argsort(-calls, kind="stable")
        tops = np.unique(calls[calls > 0])  # (stretches,): rounds after which some entry is done
        self._bottoms = np.concatenate([[0], tops[:-1]])  # the first round of every stretch
        self._widths = calls.size - np.searchsorted(np.sort(calls), tops)  # entries still in it
        sizes = (tops - self._bottoms) * self._widths
        self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])  # its first ticket

    @property
    def end(self) -> int:
        """The first ticket after these."""
        return self.first + self.total

    @property
    def tickets(self) -> IntArray:
        """All tickets, in order."""
        return np.arange(self.first, self.end)

    def arms(self, tickets: Tickets) -> IntArray:
        """The arm of each of the tickets."""
        _, _, entries = self._turns(tickets)
        return self.pulls.arms[entries]

    def places(self, tickets: Tickets) -> Places:
        """Where each of the tickets belongs."""
        stretch, rounds, entries = self._turns(tickets)
        begun = (self._bottoms[stretch] + rounds) * self._most  # pulls in the calls before
        draws: IntArray = self._first_draws[entries] + begun
        times: IntArray = np.minimum(self._most, self.pulls.times[entries] - begun)
        return Places(entries, self.pulls.arms[entries], draws, times)

    def _turns(self, tickets: Tickets) -> tuple[IntArray, IntArray, IntArray]:
        """The stretch of each of the tickets, its round in it, and its entry."""
        offsets = np.asarray(tickets, dtype=np.int64) - self.first
        stretch = self._starts.searchsorted(offsets, side="right") - 1
        rounds, ranks = np.divmod(offsets - self._starts[stretch], self._widths[stretch])
        return stretch, rounds, self._order[ranks]
