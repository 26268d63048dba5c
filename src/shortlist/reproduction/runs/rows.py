"""A row of the results: what one method did on one panel, within a budget or to a confidence."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import get_type_hints

import numpy as np
import numpy.typing as npt

from shortlist.errors import InvalidInput
from shortlist.metrics import ROUNDING
from shortlist.reproduction.design.panels import Panel


@dataclass(frozen=True, slots=True)
class ResultRow:
    """The figures of several runs that differ in nothing but chance."""

    part: str  # pilot, curve, confidence, sweep or decision
    panel: str
    n: int
    k: int
    epsilon: float
    delta: float
    method: str
    budget: int  # 0 where there was none
    runs: int
    failures: int  # runs that lost more than epsilon
    pulls_mean: float
    pulls_sd: float
    pulls_max: int
    regret_mean: float  # NaN where runs were stopped before their answer
    regret_max: float

    def cells(self) -> list[str]:
        """The row as text; floats as the shortest that reads back the same."""
        return [str(value) for value in astuple(self)]


COLUMNS = tuple(field.name for field in fields(ResultRow))
KINDS = get_type_hints(ResultRow)


def read(cells: Sequence[str], where: str) -> ResultRow:
    """The row that these cells hold."""
    try:
        values = [KINDS[column](cell) for column, cell in zip(COLUMNS, cells, strict=True)]
    except ValueError as error:
        raise InvalidInput(
            f"{where} is {','.join(cells)!r}, but must be a row of results"
        ) from error
    return ResultRow(*values)


def row_of(
    part: str, panel: Panel, method: str, budget: int, pulls: npt.ArrayLike, regret: npt.ArrayLike
) -> ResultRow:
    """The row that sums these runs up."""
    spent = np.asarray(pulls)
    lost = np.asarray(regret)
    return ResultRow(
        part=part,
        panel=panel.name,
        n=panel.n,
        k=panel.k,
        epsilon=panel.epsilon,
        delta=panel.delta,
        method=method,
        budget=budget,
        runs=spent.size,
        failures=int((lost > panel.epsilon + ROUNDING).sum()),
        pulls_mean=float(spent.mean()),
        pulls_sd=float(spent.std(ddof=1)) if spent.size > 1 else 0.0,
        pulls_max=int(spent.max()),
        regret_mean=float(lost.mean()),
        regret_max=float(lost.max()),
    )
