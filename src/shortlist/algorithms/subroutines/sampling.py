"""Pull arms, rank their means, share pulls out: steps of every algorithm of the paper."""

from collections.abc import Generator

import numpy as np

from shortlist.arrays import FloatArray, IntArray
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
