"""Steps of the algorithms of the paper: pull, rank, share pulls out, sort arms.

`Sorting` has the arms sorted into accepted, undecided and rejected ones."""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.problem import Problem
from shortlist.search import NO_PROGRESS, Progress, Pulls, Rewards

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
    """Positions of the `k` largest values, best first, ties at random (E18)."""
    if k <= 0:
        return np.empty(0, dtype=np.int64)
    shuffled = rng.permutation(values.size)
    return shuffled[np.argsort(-values[shuffled], kind="stable")[:k]]


def even_shares(total: int, parts: int, rng: np.random.Generator) -> IntArray:
    """Share `total` pulls among `parts` arms as evenly as can be, the remainder at random."""
    shares = np.full(parts, total // parts)
    shares[rng.permutation(parts)[: total % parts]] += 1
    return shares


def rounded_shares(shares: FloatArray, batch: int, rng: np.random.Generator) -> IntArray:
    """Whole numbers that add up to the batch, the largest remainders rounded up."""
    whole = np.floor(shares).astype(np.int64)
    left = batch - int(whole.sum())
    whole[best(shares - whole, left, rng)] += 1
    return whole


@dataclass
class Sorting:
    """The arms as sorted so far: accepted (A), undecided (S), and the rest rejected (B)."""

    n_arms: int
    k: int
    accepted: IntArray
    undecided: IntArray
    pulls: IntArray  # per arm, over all rounds
    sums: FloatArray

    @classmethod
    def start(cls, problem: Problem) -> "Sorting":
        """All arms undecided, none pulled."""
        n = problem.n_arms
        none = np.empty(0, dtype=np.int64)
        return cls(n, problem.k, none, np.arange(n), np.zeros(n, dtype=np.int64), np.zeros(n))

    @property
    def wanted(self) -> int:
        """K' = K - |A|."""
        return self.k - self.accepted.size

    @property
    def settled(self) -> bool:
        """Whether no choice is left: K' = 0 or K' = |S| (E3)."""
        return self.wanted == 0 or self.wanted == self.undecided.size

    def progress(self, round_: int) -> Progress:
        """How far the sorting is."""
        rejected = self.n_arms - self.accepted.size - self.undecided.size
        return Progress(round_, self.accepted.size, rejected, self.undecided.size)

    def pull(self, times: int | IntArray, round_: int) -> Sampling:
        """Pull every undecided arm, add to the pool, and return the means of the fresh rewards."""
        means = yield from sample(self.undecided, times, self.progress(round_))
        self.pulls[self.undecided] += times
        self.sums[self.undecided] += means * times
        return means

    def pooled_means(self) -> FloatArray:
        """Means of all rewards of every undecided arm."""
        return self.sums[self.undecided] / np.maximum(self.pulls[self.undecided], 1)

    def sort(self, means: FloatArray, width: float) -> FloatArray:
        """Move every arm that is clear of the boundary; the others' means (Alg. 1, lines 7-15)."""
        accept, reject = clear_arms(means, self.wanted, width)
        kept = ~accept & ~reject
        self.accepted = np.concatenate([self.accepted, self.undecided[accept]])
        self.undecided = self.undecided[kept]
        return means[kept]

    def fill_up(self, means: FloatArray, rng: np.random.Generator) -> IntArray:
        """A and the K' best of S (Alg. 1, line 17)."""
        return np.concatenate([self.accepted, self.undecided[best(means, self.wanted, rng)]])


def clear_arms(means: FloatArray, wanted: int, width: float) -> tuple[BoolArray, BoolArray]:
    """Which arms lie more than 2*width beyond the boundary, as two masks: accept and reject.

    The printed inner loop moves one arm at a time; its thresholds never move meanwhile (E2)."""
    size = means.size
    if wanted == 0 or wanted == size:  # E3
        return np.full(size, wanted == size), np.full(size, wanted == 0)
    ordered = np.partition(means, (size - wanted - 1, size - wanted))
    a, b = ordered[size - wanted - 1], ordered[size - wanted]  # (K'+1)-th and K'-th largest
    return means > a + 2 * width, means < b - 2 * width
