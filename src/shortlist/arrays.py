"""Array types, grouping, a reproducible matrix product, and the size of rounding errors.

A float is off by 2^-53 of itself at most, and the elementary functions of numpy by 4 units in the
last place. A result of a hundred such steps is off by `ROUNDED` of the largest number on the way at
most, and is rounded outward by that. docs/certificate.md has the proof."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Matrix product in one thread and a fixed order.

    So a search that is replayed on another machine takes the same turns. Charges of plans would
    take too long that way: they may differ in their last digits."""
    result: FloatArray = np.einsum("ij,jk->ik", left, right)
    return result


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


ROUNDED = 2.0**-46
WRITTEN = 2e-9  # relative error of a variance around 0 from sums and squares of ten digits
RESOLVED = 1000 * ROUNDED  # least epsilon, as a share of the numbers it is computed from
SUREST = 1 - 2.0**-53  # the largest number below 1


def confidence_of(delta: float) -> float:
    """1 - delta, which is never 1: a float next to 1 is rounded down."""
    return min(1 - delta, SUREST)
