"""Scores that a user gives in Python: the name of a file, or a data frame that names its arms."""

import math
import os
from typing import Any

from shortlist.errors import InvalidInput
from shortlist.reading.scores import ScoreFile, grid_of, read_scores, scores_of
from shortlist.validation import encodable, shown


def named_scores(scores: object) -> ScoreFile | None:
    """The scores in a file, or in a data frame with a column `arm`; None for anything else."""
    if isinstance(scores, str | os.PathLike):
        path = os.fspath(scores)
        if not isinstance(path, str) or not encodable(path) or not os.path.isfile(path):
            raise InvalidInput(f"`scores` is {shown(scores)}, but there is no such file")
        return read_scores(path)
    names = [str(name) for name in getattr(scores, "columns", ())]
    if "arm" not in map(str.lower, names):
        return None
    frame: Any = scores
    columns = {name: [_known(cell) for cell in frame[name]] for name in names}
    return scores_of(grid_of("`scores`", columns))


def _known(cell: object) -> object:
    """None for NaN, which is what data frames have where nothing is."""
    return None if isinstance(cell, float) and math.isnan(cell) else cell
