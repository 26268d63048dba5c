"""The file that holds what a pilot gave."""

from typing import TYPE_CHECKING

from shortlist.digits import given_text
from shortlist.errors import InvalidInput
from shortlist.reading.columns import Line
from shortlist.reading.totals import read_totals, total, whole

if TYPE_CHECKING:
    from shortlist.arrays import FloatArray, IntArray


def read_pilot(path: str) -> tuple["IntArray", "FloatArray"]:
    """Pulls and sum of rewards of every arm."""
    import numpy as np

    lines = read_totals(path)
    pulls = [whole(line, "pulls") for line in lines]
    sums = [_unit_total(line, count) for line, count in zip(lines, pulls, strict=True)]
    return np.array(pulls, dtype=np.int64), np.array(sums, dtype=np.float64)


def _unit_total(line: Line, pulls: int) -> float:
    """The sum of rewards in [0, 1], or of successes and failures."""
    value = total(line)
    if not 0 <= value <= pulls:
        raise InvalidInput(
            f"{line.where} says {given_text(value)}, but rewards in [0, 1] add up to at most"
            f" {pulls} in {pulls} pulls"
        )
    return value
