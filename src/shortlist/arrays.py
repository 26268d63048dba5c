"""Kinds of arrays, and a matrix product whose result is the same on every machine."""

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
