"""The one idea everything stands on: a search is a generator.

It yields the pulls it wants, is sent what they gave, and returns its answer. All its randomness
comes from the generator it is given, so a search is a function of (problem, seed, rewards in
order): to resume one, run it again and feed it the same rewards."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a search stands, for display only."""

    round: int = 0
    accepted: int = 0
    rejected: int = 0
    undecided: int = 0
    bound: float | None = None


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


@dataclass(frozen=True, slots=True)
class Answer:
    """The arms chosen and what is known about them.

    `regret_bound` holds with probability at least `confidence`; both are None where nothing is
    guaranteed. `evidence` names the quantities the bound rests on."""

    top: IntArray
    regret_bound: float | None = None
    confidence: float | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)


def sums_by_entry(
    sums: FloatArray, times: IntArray, first: FloatArray, entries: IntArray, size: int
) -> FloatArray:
    """Add up the sums of several parts by the entry that each belongs to, around the `first` reward
    of its first part.

    Rewards far from 0 would lose their digits in a long sum, and always in the same direction."""
    pivots = np.zeros(size)
    pivots[entries[::-1]] = first[::-1]
    around = np.bincount(entries, sums - times * pivots[entries], size)
    total: FloatArray = around + np.bincount(entries, times, size) * pivots
    return total


Search = Generator[Pulls, Rewards, Answer]
Sampling = Generator[Pulls, Rewards, FloatArray]


def sample(arms: IntArray, times: int | IntArray, progress: Progress = NO_PROGRESS) -> Sampling:
    """Pull each of `arms` that many fresh times and return their means: one request, one reply.

    Arms pulled zero times are left out of the request and have mean 0."""
    counts = np.broadcast_to(np.asarray(times, dtype=np.int64), arms.shape)
    means = np.zeros(arms.size)
    pulled = counts > 0
    if pulled.any():
        rewards = yield Pulls(arms[pulled], counts[pulled], progress)
        means[pulled] = rewards.sums / counts[pulled]
    return means


def best(values: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Positions of the `k` largest values, best first; ties are broken by `rng`, never by position
    (E18)."""
    if k <= 0:
        return np.empty(0, dtype=np.int64)
    shuffled = rng.permutation(values.size)
    return shuffled[np.argsort(-values[shuffled], kind="stable")[:k]]


def mirrored(search: Search, n_arms: int) -> Search:
    """Run `search` for the bottom arms on rewards 1 - x and return the arms it leaves.

    A loss summed over the bottom n - k is the same loss summed over the top k, so the bound is
    rescaled."""
    rewards: Rewards | None = None
    while True:
        try:
            pulls = next(search) if rewards is None else search.send(rewards)
        except StopIteration as stop:
            return _complement(stop.value, n_arms)
        given = yield pulls
        rewards = Rewards(pulls.times - given.sums, pulls.times - 2 * given.sums + given.squares)


def _complement(answer: Answer, n_arms: int) -> Answer:
    rest = np.setdiff1d(np.arange(n_arms), answer.top)
    bound = answer.regret_bound
    bound = None if bound is None else bound * answer.top.size / rest.size
    return Answer(rest, bound, answer.confidence, answer.evidence)
