"""Figures in what JSON knows."""

import math
from collections.abc import Mapping, Sequence

import numpy as np


def plain(value: object) -> object:
    """The same value in what JSON knows: no arrays, no infinities."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)
