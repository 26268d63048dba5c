"""A search is a generator: it yields the pulls it wants, is sent their rewards, returns its answer.

All its randomness comes from the generator it is given, so a search is a function of (problem,
seed, replies in order): to resume one, run it again and send it the same replies.

A search may ask ahead. After a batch with `more` it is sent nothing (None) and yields the next
batch at once; after any other it is sent the reply to its oldest batch that was not answered. A
batch without pulls, while others are unanswered, asks for nothing new. So replies come in the order
of batches, and when a search asks is up to it, never to its driver. `Dialogue` keeps to this."""

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray


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

    An arm may be in it more than once; each entry is answered on its own.

    Args:
        arms: Numbers of arms, from 0.
        times: Number of pulls of each entry.
        progress: State of the search, for display. Default: none.
        more: Whether the next batch may be asked for before this one is answered. Default: no.

    Example:
        >>> import numpy as np, shortlist
        >>> shortlist.Pulls(np.array([0, 2]), np.array([5, 3])).total
        8
    """

    arms: IntArray
    times: IntArray
    progress: Progress = NO_PROGRESS
    more: bool = False

    @property
    def total(self) -> int:
        """Number of pulls in the batch."""
        return int(self.times.sum())


@dataclass(frozen=True, slots=True)
class Rewards:
    """The reply to a batch: per entry, the sum and the sum of squares of its rewards.

    Args:
        sums: Sum of the rewards of each entry.
        squares: Sum of their squares.
        each: Every reward in the order of pulls, where there are items. Default None.
        costs: Cost of each entry, where actual costs were reported. Default None.
        retired: All arms that have retired so far; their rewards may be made up. Default None: no
            arm has.
        void: Pulls of each entry that do not count, on void seeds: NaN in `each`. Default None: all
            count.

    Example:
        >>> import numpy as np, shortlist
        >>> shortlist.Rewards(np.array([3.0]), np.array([3.0])).retired is None
        True
    """

    sums: FloatArray
    squares: FloatArray
    # where there are items: every reward, entry by entry, in the order of pulls
    each: FloatArray | None = None
    # where actual costs were reported: the cost of each entry
    costs: FloatArray | None = None
    # all arms that have retired by now; their rewards may be made up. None if no arm has
    retired: IntArray | None = None
    # pulls of each entry on void seeds, which are in no sum; None if there are none
    void: IntArray | None = None

    def counted(self, times: IntArray) -> IntArray:
        """How many of these pulls per entry count.

        Args:
            times: Pulls of each entry.

        Returns:
            The pulls of each entry that are not void."""
        return times if self.void is None else times - self.void

    def rows(self, n_arms: int) -> FloatArray:
        """Single rewards of arms that were pulled equally often, but void rows.

        Args:
            n_arms: Number of arms that were pulled.

        Returns:
            The rewards: (rows, arms)."""
        assert self.each is not None, "drivers send single rewards where rows are compared"
        rows = self.each.reshape(n_arms, -1).T
        return rows if self.void is None else rows[np.isfinite(rows).all(axis=1)]


def rewards_of(
    each: FloatArray, entries: IntArray, size: int, retired: IntArray | None = None
) -> Rewards:
    """The reply made of single rewards, in the order of pulls, and the entry that each is of."""
    sums = np.zeros(size)
    squares = np.zeros(size)
    np.add.at(sums, entries, each)
    np.add.at(squares, entries, each**2)
    return Rewards(sums, squares, each, retired=retired)


def moments_by_entry(
    rewards: FloatArray, entries: IntArray, size: int
) -> tuple[FloatArray, FloatArray]:
    """Sums of rewards and of their squares by the entry that each belongs to.

    They are taken around the first reward of the entry: rewards far from 0 would lose their digits
    in a long sum, and always in the same direction."""
    pivots = np.zeros(size)
    pivots[entries[::-1]] = rewards[::-1]
    around = rewards - pivots[entries]
    moved = np.bincount(entries, around, size)
    whole = np.bincount(entries, minlength=size) * pivots
    squares = np.bincount(entries, around**2, size) + pivots * (2 * moved + whole)
    return moved + whole, squares.astype(np.float64)


class Tiers(NamedTuple):
    """Arms that are proved to be in a set of the k best means, and arms that are proved not to be.

    Both are (n,) masks; they hold together with the bound of their answer, at its confidence."""

    inside: BoolArray
    outside: BoolArray


def moments_of(rewards: FloatArray, times: IntArray) -> tuple[FloatArray, FloatArray]:
    """Mean and squared deviations of every entry, each around its first reward."""
    entry = np.repeat(np.arange(times.size), times)
    pivots = rewards[np.cumsum(times) - times]
    around = rewards - pivots[entry]
    shifts = np.bincount(entry, around, times.size) / times
    squares = np.bincount(entry, (around - shifts[entry]) ** 2, times.size)
    return pivots + shifts, squares.astype(np.float64)


@dataclass(frozen=True, slots=True)
class Answer:
    """The chosen arms and the bound on their regret.

    Args:
        top: Numbers of the chosen arms, from 0.
        regret_bound: Bound on the regret on the unit scale. Default None: no guarantee.
        confidence: Probability with which the bound holds. Default None: no guarantee.
        evidence: Quantities that the bound rests on, by name. Default: empty.
        tiers: Arms that are proved to be in or out. Default None: nothing is proved of single arms.

    Example:
        >>> import numpy as np, shortlist
        >>> shortlist.Answer(np.array([1, 4])).regret_bound is None
        True
    """

    top: IntArray
    regret_bound: float | None = None
    confidence: float | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)
    tiers: Tiers | None = None


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


class Dialogue(Generic[End]):
    """A run and its batches that are not answered, oldest first, until there is a `result`."""

    def __init__(self, run: Generator[Pulls, Rewards, End]) -> None:
        self._run = run
        self.unanswered: deque[Pulls] = deque()
        self.progress = NO_PROGRESS
        self.result: End | None = None
        self.new: list[Pulls] = []  # batches since the last reply
        self._advance(None)

    def reply(self, rewards: Rewards) -> None:
        """Answer the oldest batch."""
        self.unanswered.popleft()
        self._advance(rewards)

    def _advance(self, rewards: Rewards | None) -> None:
        """Take all batches that the run asks for before it needs a reply."""
        self.new = []
        turn = advance(self._run, rewards)
        while isinstance(turn, Pulls):
            self.progress = turn.progress
            if turn.total or not self.unanswered:
                self.unanswered.append(turn)
                self.new.append(turn)
            if not turn.more:
                return
            turn = advance(self._run, None)
        self.result = turn


def total_before(arms: IntArray, values: IntArray) -> IntArray:
    """Per entry, the sum of the values of the entries before it that are of the same arm."""
    order = np.argsort(arms, kind="stable")
    before = np.cumsum(values[order]) - values[order]  # of all arms together
    same = np.concatenate([[False], np.diff(arms[order]) == 0])
    group = np.maximum.accumulate(np.where(same, 0, np.arange(arms.size)))  # first of an arm
    earlier = np.empty_like(values)
    earlier[order] = before - before[group]
    return earlier
