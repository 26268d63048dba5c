"""A search is a generator: it yields the pulls it wants, is sent their rewards, returns its answer.

All its randomness comes from the generator it is given, so a search is a function of (problem,
seed, replies in order): to resume one, run it again and send it the same replies."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from shortlist.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a search for display, on the unit scale."""

    round: int = 0
    accepted: int = 0
    rejected: int = 0
    undecided: int = 0
    bound: float | None = None
    # the arms that `bound` is about, if it holds at any time: you may stop here and rely on it
    top: Sequence[int] | None = field(default=None, compare=False, repr=False)


NO_PROGRESS = Progress()


@dataclass(frozen=True, slots=True)
class Pulls:
    """A batch: pull `arms[j]` exactly `times[j]` times, for every j.

    An arm may be in it more than once; each entry is answered on its own."""

    arms: IntArray
    times: IntArray
    progress: Progress = NO_PROGRESS

    @property
    def total(self) -> int:
        """Number of pulls in the batch."""
        return int(self.times.sum())


@dataclass(frozen=True, slots=True)
class Rewards:
    """The reply: per entry of the batch, the sum and the sum of squares of its rewards."""

    sums: FloatArray
    squares: FloatArray
    # where there are items: every reward, entry by entry, in the order of pulls
    each: FloatArray | None = None
    # where actual costs were reported: the cost of each entry
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
    """The chosen arms and the bound on their regret.

    `regret_bound` holds with probability at least `confidence`; both are None where nothing is
    guaranteed. `evidence` names the quantities the bound rests on."""

    top: IntArray
    regret_bound: float | None = None
    confidence: float | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)


Search = Generator[Pulls, Rewards, Answer]
# continues, from where the last call stopped, up to this many pulls in all
RunUpTo = Callable[[int], Search]
End = TypeVar("End")


def advance(run: Generator[Pulls, Rewards, End], reply: Rewards | None) -> Pulls | End:
    """Send the reply to the last batch, None at the start; return the next batch or the result."""
    try:
        return next(run) if reply is None else run.send(reply)
    except StopIteration as stop:
        end: End = stop.value
        return end
