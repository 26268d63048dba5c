"""A ticket is one pull that a worker was asked to make; tickets are numbered in one order.

The pulls of a batch are dealt out like cards: every entry gets its first pull, then every entry its
second, and so on. So a change in the world while a batch is worked off, the time of day for one,
meets all arms alike. Take arms 7, 4 and 9, to be pulled 1, 3 and 2 times, with tickets from 10 on:

    round 0    10 -> arm 4    11 -> arm 9    12 -> arm 7
    round 1    13 -> arm 4    14 -> arm 9
    round 2    15 -> arm 4

Rounds of the same width form a *stretch*. Tickets are looked up, never stored: bisection finds the
stretch, a division the round and the rank in it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from shortlist.arms import Label, OwnLabel
from shortlist.arrays import IntArray, total_before
from shortlist.search import Pulls


@dataclass(frozen=True, slots=True)
class Ticket:
    """Pull `arm` once and tell the reward.

    `draw` counts the pulls of an arm from 0. `seed` depends on nothing but the experiment's seed,
    the arm and the draw: an evaluation that takes its randomness from it gives the same reward
    whoever makes it, and however often."""

    id: int
    """Its number in the experiment, from 0."""
    arm: Label
    """The label of the arm to pull."""
    draw: int
    """Which pull of this arm it is, from 0."""
    seed: int
    """63 bits for the randomness of the evaluation."""
    expires: float
    """When its result is due, in seconds since 1970; what then happens is the experiment's
    `on_late`."""
    experiment: str = field(default="", repr=False)
    """Whose it is: a ticket of another experiment is refused."""
    item: Label | None = None
    """The item to score the arm on, where there is a test set."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of rewards that were told: all of them count but those that are named here."""

    late: tuple[int, ...] = ()
    """Tickets whose reward is discarded because their lease was over: the experiment's `on_late`
    counts instead."""
    unused: tuple[int, ...] = ()
    """Tickets whose reward is not needed: the search has finished, the budget is spent, or the arm
    is retired."""

    def of(self, tickets: Iterable[int]) -> "Receipt":
        """The part of it that is about these tickets."""
        own = set(tickets)
        late = tuple(each for each in self.late if each in own)
        return Receipt(late, tuple(each for each in self.unused if each in own))


class State(StrEnum):
    """Where an experiment stands, or why fewer tickets were handed out than asked for."""

    READY = "ready"
    """There are tickets to hand out."""
    PENDING = "pending"
    """All that the search wants now are out: ask again when some were told."""
    FINISHED = "finished"
    """The answer is there, with the guarantee that was wanted."""
    BUDGET = "budget"
    """The answer is there, because the budget is spent."""
    ENDED = "ended"
    """The answer is there, but without the guarantee that was wanted: limits allow no more pulls,
    an arm left, or the rewards refute the declaration. The verdict of the result says which."""
    STOPPED = "stopped"
    """A ticket failed too often: see status(), then resume()."""


class Handout(list[Ticket]):
    """The tickets that were handed out. If they are fewer than asked for, `state` says why; else it
    is READY.

    If it is PENDING, `meanwhile` is what to serve if you cannot wait for a ticket: the best arm so
    far that did not leave and is not at its limit, None if there is none. What that gives is not
    to be told, and counts nowhere."""

    def __init__(
        self, tickets: Iterable[Ticket], state: State, meanwhile: Label | None = None
    ) -> None:
        super().__init__(tickets)
        self.state = state
        self.meanwhile = meanwhile

    def __repr__(self) -> str:
        return f"Handout({super().__repr__()}, {self.state!r})"


@dataclass(frozen=True, slots=True)
class Block:
    """Tickets handed out together, as columns: to make a `Ticket` of each takes longer than a short
    evaluation."""

    ids: list[int]
    labels: list[OwnLabel]
    draws: list[int]
    due: list[float]
    state: State
    seeds: list[int] | None = None
    items: list[Any] | None = None
    calls: list[int] | None = None  # tickets with the same number may be made by one call

    def ticket(self, place: int) -> Ticket:
        """One of them on its own."""
        seed = 0 if self.seeds is None else self.seeds[place]
        item = None if self.items is None else self.items[place]
        label: Any = self.labels[place]
        return Ticket(self.ids[place], label, self.draws[place], seed, self.due[place], item=item)


def draw_seed(seed: int, arm: int, draw: int) -> int:
    """The seed of one pull: 63 bits made of the run's seed, the arm's position and the draw."""
    state = np.random.SeedSequence(seed, spawn_key=(arm, draw)).generate_state(1, np.uint64)
    return int(state[0]) >> 1  # many generators and services take a signed 64-bit number


Tickets = Iterable[int] | IntArray


class Places(NamedTuple):
    """Where tickets belong, one figure per ticket."""

    entries: IntArray  # of the batch
    arms: IntArray
    draws: IntArray  # which pull of its arm it is, counted over the whole run


class Numbering:
    """The tickets `first`, `first` + 1, ... of a batch, one for every pull.

    `drawn` says how often each arm was asked for before."""

    def __init__(self, pulls: Pulls, first: int, drawn: IntArray) -> None:
        self.pulls = pulls
        self.first = first
        times = pulls.times  # (entries,)
        self.total = int(times.sum())
        self._first_draws = drawn[pulls.arms] + total_before(pulls.arms, times)
        # Most pulls first: then every round goes to the first entries of this order.
        self._order = np.argsort(-times, kind="stable")
        tops = np.unique(times[times > 0])  # (stretches,): rounds after which some entry is done
        self._bottoms = np.concatenate([[0], tops[:-1]])  # the first round of every stretch
        self._widths = times.size - np.searchsorted(np.sort(times), tops)  # entries still in it
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
        draws: IntArray = self._first_draws[entries] + self._bottoms[stretch] + rounds
        return Places(entries, self.pulls.arms[entries], draws)

    def calls(self, tickets: Tickets, most: int | None) -> IntArray:
        """The number of the call that makes each of the tickets, where a call makes up to `most`
        pulls of an entry; without a limit, all of them."""
        stretch, rounds, entries = self._turns(tickets)
        nth = self._bottoms[stretch] + rounds  # pull of its entry
        size = entries.max(initial=0) + 1
        number: IntArray = entries if most is None else entries + size * (nth // most)
        return number

    def _turns(self, tickets: Tickets) -> tuple[IntArray, IntArray, IntArray]:
        """The stretch of each of the tickets, its round in it, and its entry."""
        offsets = np.asarray(tickets, dtype=np.int64) - self.first
        stretch = self._starts.searchsorted(offsets, side="right") - 1
        rounds, ranks = np.divmod(offsets - self._starts[stretch], self._widths[stretch])
        return stretch, rounds, self._order[ranks]


class OpenBatches:
    """The tickets of all batches that are not answered, oldest first; there is at least one."""

    def __init__(self, batches: Sequence[Numbering]) -> None:
        self.batches = tuple(batches)
        self._starts = np.array([each.first for each in self.batches], dtype=np.int64)

    @property
    def oldest(self) -> Numbering:
        """The batch that is answered next."""
        return self.batches[0]

    @property
    def first(self) -> int:
        """The first of their tickets."""
        return self.batches[0].first

    @property
    def end(self) -> int:
        """The first ticket after theirs."""
        return self.batches[-1].end

    def arms(self, tickets: Tickets) -> IntArray:
        """The arm of each of the tickets."""
        return self.places(tickets).arms

    def places(self, tickets: Tickets) -> Places:
        """Where each of the tickets belongs; entries are those of its own batch."""
        if len(self.batches) == 1:
            return self.oldest.places(tickets)
        ids = np.asarray(tickets, dtype=np.int64)
        found = [np.empty_like(ids) for _ in Places._fields]
        for batch, own in self._by_batch(ids):
            for column, part in zip(found, batch.places(ids[own]), strict=True):
                column[own] = part
        return Places(*found)

    def calls(self, tickets: Tickets, most: int | None) -> IntArray:
        """As `Numbering.calls`: no call makes pulls of two batches."""
        ids = np.asarray(tickets, dtype=np.int64)
        numbers = np.empty_like(ids)
        used = 0
        for batch, own in self._by_batch(ids):
            numbers[own] = used + batch.calls(ids[own], most)
            used = int(numbers[own].max()) + 1
        return numbers

    def _by_batch(self, ids: IntArray) -> Iterator[tuple[Numbering, IntArray]]:
        """Every batch that tickets are of, and the places of these tickets among all."""
        place = self._starts.searchsorted(ids, side="right") - 1
        for number, batch in enumerate(self.batches):
            own = np.flatnonzero(place == number)
            if own.size:
                yield batch, own
