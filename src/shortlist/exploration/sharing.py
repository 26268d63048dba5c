"""Share out a batch of pulls by priority, ties broken at random."""

import numpy as np

from shortlist.arrays import FloatArray, IntArray


def descending(values: FloatArray, rng: np.random.Generator) -> IntArray:
    """Positions of the values from largest to smallest, ties at random.

    Values are compared in single precision: the last bits differ between machines and must not
    decide."""
    order = rng.permutation(values.size)
    with np.errstate(over="ignore", under="ignore"):
        falling = -values[order].astype(np.float32)
    ranked: IntArray = order[falling.argsort(kind="stable")]
    return ranked


def share_out(
    batch: int, kind: IntArray, priority: FloatArray, at_most: IntArray, rng: np.random.Generator
) -> IntArray:
    """Share `batch` pulls: arms of highest priority first, each no more than it may get, ties at
    random.

    `kind` tells the kind of every arm, `priority` and `at_most`, at least 1, are those of an arm of
    every kind."""
    order = descending(priority, rng)
    filled = (np.bincount(kind, minlength=priority.size) * at_most)[order].cumsum()
    last = int(filled.searchsorted(batch))  # in which the batch ends, if it does
    full = at_most.copy()
    full[order[last:]] = 0
    times: IntArray = full[kind]
    if last < order.size:
        each = int(at_most[order[last]])
        rest = batch - int(filled[last - 1] if last else 0)
        some = rng.permutation((kind == order[last]).nonzero()[0])[: -(-rest // each)]
        times[some] = each
        times[some[-1:]] -= each * some.size - rest
    return times
