"""Files of scores: a row an arm and a column an item, or a line a cell with arm, item and score."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shortlist.cli.columns import Columns, read_columns
from shortlist.errors import InvalidInput

if TYPE_CHECKING:
    from shortlist.arrays import FloatArray

CELL = {"arm", "item", "score"}


@dataclass(frozen=True, slots=True)
class ScoreFile:
    """Scores by arm and item, NaN where there is none."""

    arms: tuple[str, ...]
    items: tuple[str, ...]
    scores: "FloatArray"  # (arms, items)


def read_scores(path: str) -> ScoreFile:
    """Read a CSV: columns `arm,item,score`, or a matrix with or without names above and beside it.

    A matrix has names above it if its first line holds anything but numbers, and names beside it if
    its first column is called `arm`."""
    import numpy as np

    table = read_columns(path)
    if set(table.names) == CELL:
        return _from_cells(table)
    rows = [(table.first, list(table.header)), *table.rows]
    header = [f"{place}" for place in range(len(table.header))]
    if any(_number(cell) is None for cell in table.header):
        header, rows = list(table.header), list(table.rows)
    named = header[:1] == ["arm"] or header[:1] == ["Arm"]
    if not rows:
        raise InvalidInput(f"{path} has no scores, but must have a line an arm")
    for number, row in rows:
        if len(row) != len(header):
            raise InvalidInput(
                f"{path}, line {number} has {len(row)} values, but must have {len(header)} as the"
                " first line"
            )
    arms = [row[0] if named else f"{place}" for place, (_, row) in enumerate(rows)]
    _check_distinct(path, "arm", arms)
    _check_distinct(path, "item", header[named:])
    scores = [[_score(cell, path, number) for cell in row[named:]] for number, row in rows]
    return ScoreFile(tuple(arms), tuple(header[named:]), np.array(scores))


def _from_cells(table: Columns) -> ScoreFile:
    """Cells in any order; the same one twice must have the same score."""
    import numpy as np

    cells: dict[tuple[str, str], float] = {}
    for line, (number, _) in zip(table.lines(), table.rows, strict=True):
        cell = line["arm"], line["item"]
        score = _score(line["score"], table.path, number)
        before = cells.setdefault(cell, score)
        if before != score and not (math.isnan(before) and math.isnan(score)):
            raise InvalidInput(
                f"{line.where} says that {cell[0]!r} scores {score:g} on item {cell[1]!r}, but a"
                f" line before says {before:g}"
            )
    arms = tuple(dict.fromkeys(arm for arm, _ in cells))
    items = tuple(dict.fromkeys(item for _, item in cells))
    scores = np.full((len(arms), len(items)), np.nan)
    for (arm, item), score in cells.items():
        scores[arms.index(arm), items.index(item)] = score
    return ScoreFile(arms, items, scores)


def placed(file: ScoreFile, arms: list[str], items: list[str], path: str) -> "FloatArray":
    """The scores by these arms and items; a file may know fewer, but none that are not there."""
    import numpy as np

    for kind, known, asked in (("arm", file.arms, arms), ("item", file.items, items)):
        unknown = [each for each in known if each not in set(asked)]
        if unknown:
            raise InvalidInput(f"{path} has scores of {kind} {unknown[0]!r}, but there is none")
    scores = np.full((len(arms), len(items)), np.nan)
    rows = [arms.index(each) for each in file.arms]
    columns = [items.index(each) for each in file.items]
    scores[np.ix_(rows, columns)] = file.scores
    return scores


def _check_distinct(path: str, kind: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        double = next(each for each in names if names.count(each) > 1)
        raise InvalidInput(f"{path} has two {kind}s {double!r}, but their names must differ")


def _number(cell: str) -> float | None:
    """A finite number; NaN for an empty cell; None for anything else."""
    if not cell.strip():
        return math.nan
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _score(cell: str, path: str, line: int) -> float:
    score = _number(cell)
    if score is None:
        raise InvalidInput(
            f"{path}, line {line} says {cell!r}, but a score must be a finite number, or empty if"
            " it is not known"
        )
    return score
