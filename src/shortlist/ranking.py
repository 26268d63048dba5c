"""Rank arms and share out pulls among them, ties broken at random.

Arms that are alike are ranked once: there may be a thousand arms, but only a few dozen kinds of
them."""

from typing import TypeVar

import numpy as np

from shortlist.search import FloatArray, IntArray

Key = TypeVar("Key", IntArray, FloatArray)

ROOM = 16  # whole numbers below this times their number are grouped by a table


def descending(values: FloatArray, rng: np.random.Generator) -> IntArray:
    """Positions of the values from largest to smallest, ties at random.

    Values are compared in single precision: the last bits differ between machines and must not
    decide."""
    order = rng.permutation(values.size)
    with np.errstate(over="ignore", under="ignore"):
        falling = -values[order].astype(np.float32)
    ranked: IntArray = order[falling.argsort(kind="stable")]
    return ranked


def grouped(keys: Key) -> tuple[Key, IntArray]:
    """The distinct keys, rising, and the position among them of every key; faster than
    `numpy.unique`."""
    if keys.dtype.kind == "i" and keys.min() >= 0 and keys.max() < ROOM * keys.size:
        seen = np.zeros(int(keys.max()) + 1, dtype=np.bool_)
        seen[keys] = True
        distinct = np.flatnonzero(seen).astype(keys.dtype)
        position = np.empty(seen.size, dtype=np.int64)
        position[distinct] = np.arange(distinct.size)
        return distinct, position[keys]
    ordered = np.sort(keys)
    distinct = ordered[np.append(True, ordered[1:] > ordered[:-1])]
    return distinct, np.searchsorted(distinct, keys)


def grouped_by(*columns: Key) -> tuple[list[Key], IntArray]:
    """The distinct rows of a table, column by column, and the position among them of every row."""
    values, codes = zip(*map(grouped, columns), strict=True)
    sizes = [each.size for each in values]
    distinct, group = grouped(np.ravel_multi_index(codes, sizes))
    rows = np.unravel_index(distinct, sizes)
    return [value[code] for value, code in zip(values, rows, strict=True)], group


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
