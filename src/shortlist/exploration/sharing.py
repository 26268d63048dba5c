"""The size of a batch of pulls, and how it is shared out by priority, ties broken at random."""

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.exploration import tuning


def batch_size(n_arms: int, spent: int, early: float, growth: float) -> int:
    """A share of all pulls so far, but enough for many arms and for parallel workers."""
    at_first = min(n_arms, early * spent)
    return int(max(tuning.LEAST_BATCH, tuning.PER_ARM * n_arms, at_first, growth * spent))


def descending(values: FloatArray, rng: np.random.Generator) -> IntArray:
    """Positions of the values from largest to smallest, ties at random.

    Values are compared in single precision: the last bits differ between machines and must not
    decide."""
    order = rng.permutation(values.size)
    with np.errstate(over="ignore", under="ignore"):
        falling = -values[order].astype(np.float32)
    return order[falling.argsort(kind="stable")]


def share_out(
    batch: int, kind: IntArray, priority: FloatArray, at_most: IntArray, rng: np.random.Generator
) -> IntArray:
    """Share `batch` pulls: highest priority first, each arm as many as it may get, ties at random.

    `kind` is the kind of every arm; `priority` and `at_most` are those of an arm of a kind."""
    order = descending(priority, rng)
    demand = np.bincount(kind, minlength=priority.size) * at_most  # (kinds,)
    filled = demand[order].cumsum()
    last = int(filled.searchsorted(batch))  # the place in `order` where the batch ends, if it does
    full = at_most.copy()
    full[order[last:]] = 0
    times: IntArray = full[kind]  # (arms,)
    if last < order.size:
        left = batch - int(filled[last - 1] if last else 0)
        arms = (kind == order[last]).nonzero()[0]
        _share_among(times, arms, left, int(at_most[order[last]]), rng)
    return times


def _share_among(
    times: IntArray, arms: IntArray, left: int, each: int, rng: np.random.Generator
) -> None:
    """Give the rest to arms of one kind, drawn at random: `each`, and the last one less."""
    served = rng.permutation(arms)[: -(-left // each)]
    times[served] = each
    times[served[-1:]] -= each * served.size - left
