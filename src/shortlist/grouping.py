"""Group equal rows: there may be a thousand arms, but only a few dozen kinds of them."""

from typing import TypeVar

import numpy as np

from shortlist.arrays import FloatArray, IntArray

Key = TypeVar("Key", IntArray, FloatArray)
ROOM = 16  # whole numbers below this times their number are grouped by a table


def grouped(keys: Key) -> tuple[Key, IntArray]:
    """The distinct keys, rising, and the position of every key among them.

    Faster than `numpy.unique`, which sorts even where a table would do."""
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


def total_before(keys: IntArray, values: IntArray) -> IntArray:
    """Per entry, the sum of the values of the entries before it that have the same key."""
    order = np.argsort(keys, kind="stable")
    before = np.cumsum(values[order]) - values[order]  # of all keys together
    same = np.concatenate([[False], np.diff(keys[order]) == 0])
    group = np.maximum.accumulate(np.where(same, 0, np.arange(keys.size)))  # first of a key
    earlier = np.empty_like(values)
    earlier[order] = before - before[group]
    return earlier
