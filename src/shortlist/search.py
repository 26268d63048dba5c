"""The one idea everything stands on: a search is a generator.

It yields the pulls it wants, is sent what they gave, and returns its answer. All its randomness
comes from the generator it is given, so a search is a function of (problem, seed, replies in
order): to resume one, run it again and feed it the same replies."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from shortlist.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a search stands, on the unit scale; nothing but the search itself depends on it."""

    round: int = 0
    accepted: int = 0
    rejected: int = 0
    undecided: int = 0
    bound: float | None = None
    # the arms that `bound` is about, if it holds at any time: whoever stops here may rely on it
    top: Sequence[int] | None = field(default=None, compare=False, repr=False)


NO_PROGRESS = Progress()


@dataclass(frozen=True, slots=True)
class Pulls:
    """A request: pull `arms[j]` exactly `times[j]` times, for every j.

    An arm may stand in it more than once; each entry is answered on its own."""

    arms: IntArray
    times: IntArray
    progress: Progress = NO_PROGRESS

    @property
    def total(self) -> int:
        """How many pulls this asks for."""
        return int(self.times.sum())


@dataclass(frozen=True, slots=True)
class Rewards:
    """The reply: per entry of the request, the sum and the sum of squares of exactly that many
    rewards."""

    sums: FloatArray
    squares: FloatArray
    # where there are items: every reward, entry by entry, in the order of pulls
    each: FloatArray | None = None
    # where somebody said so: per entry, what its pulls have cost in all
    costs: FloatArray | None = None
    # all arms that have retired by now; their rewards may be made up. None if no arm has
    retired: IntArray | None = None


def rewards_of(
    each: FloatArray, entries: IntArray, size: int, retired: IntArray | None = None
) -> Rewards:
    """The reply made of single rewards, in the order of pulls, and the entry that each is of."""
    sums = np.zeros(size)
    squares = np.zeros(size)
    np.add.at(sums, entries, each)
    np.add.at(squares, entries, each**2)
    return Rewards(sums, squares, each, retired=retired)


@dataclass(frozen=True, slots=True)
class Answer:
    """The arms chosen and what is known about them.

    `regret_bound` holds with probability at least `confidence`; both are None where nothing is
    guaranteed. `evidence` names the quantities the bound rests on."""

    top: IntArray
    regret_bound: float | None = None
    confidence: float | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)


Search = Generator[Pulls, Rewards, Answer]
# goes on, where the last call left off, until so many pulls are spent in all
RunUpTo = Callable[[int], Search]
End = TypeVar("End")


def advance(run: Generator[Pulls, Rewards, End], reply: Rewards | None) -> Pulls | End:
    """Send the reply to the last request, None at the start; return the next request, or at the end
    the result."""
    try:
        return next(run) if reply is None else run.send(reply)
    except StopIteration as stop:
        end: End = stop.value
        return end
