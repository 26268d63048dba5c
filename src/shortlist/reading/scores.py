"""Scores of arms on items, from a CSV or Parquet file, a data frame, or results of a harness.

A file is a matrix with a row per arm and a column per item, or has a line per cell: arm, item,
score. Where items are scored several times, there may be several lines of an arm and an item: its
repetitions in their order, or by a column `repetition` from 0."""

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from numbers import Real
from typing import TYPE_CHECKING, Any

from shortlist.errors import InvalidInput
from shortlist.formatting import given_text
from shortlist.reading.files import (
    is_parquet,
    number_hint,
    read_columns,
    read_parquet,
    truth,
)
from shortlist.reading.results import is_results, result_rows
from shortlist.validation import encodable, shown

if TYPE_CHECKING:
    from shortlist.arrays import FloatArray

CELL_COLUMNS = ("arm", "item", "score")
# of cells that were exported; only the last is read, where items are scored several times
EXPORTED = ("cost", "seconds", "info")
MORE_COLUMNS = (*EXPORTED, "repetition")
MOST_REPEATS = 10**4
PATHS = (str, os.PathLike)
ARM_COLUMNS = ("arm", "__index_level_0__")  # the latter is the index of pandas


@dataclass(frozen=True, slots=True)
class ScoreFile:
    """Scores by arm and item, NaN where there is none."""

    path: str
    arms: tuple[str, ...] | None  # None if the file does not name them
    items: tuple[str, ...] | None
    scores: "FloatArray"  # (arms, items * repeats): repetitions of an item next to each other
    repeats: int = 1
    exported: bool = False  # by a search, which chose the cells

    def placed(self, arms: Iterable[object], items: Iterable[object]) -> "FloatArray":
        """The scores by these arms and items; a file that names them may know fewer."""
        import numpy as np

        asked = tuple(map(str, arms)), tuple(map(str, items))
        rows = self._places("arm", self.arms, asked[0], self.scores.shape[0])
        several = self.repeats
        places = self._places("item", self.items, asked[1], self.scores.shape[1] // several)
        columns = [several * place + turn for place in places for turn in range(several)]
        scores = np.full((len(asked[0]), several * len(asked[1])), np.nan)
        scores[np.ix_(rows, columns)] = self.scores
        return scores

    def _places(
        self, kind: str, known: Sequence[str] | None, asked: Sequence[str], size: int
    ) -> list[int]:
        if known is None:
            if size != len(asked):
                raise InvalidInput(
                    f"{self.path} has {size} {kind}s without names, but there are {len(asked)}"
                )
            return list(range(size))
        place = {name: number for number, name in enumerate(asked)}
        unknown = next((name for name in known if name not in place), None)
        if unknown is not None:
            some = ", ".join(map(repr, asked[:3])) + (", ..." if len(asked) > 3 else "")
            raise InvalidInput(
                f"{self.path} has scores of {kind} {unknown!r}, but there is none of that name: the"
                f" {kind}s are {some}"
            )
        return [place[name] for name in known]


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """The rows of a file."""

    path: str
    header: tuple[str, ...] | None  # None if the file has none
    rows: Sequence[tuple[str, Sequence[Any]]]  # each with its place, for messages

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in lower case."""
        return tuple(name.lower() for name in self.header or ())


def read_scores(path: str, repeats: int | None = 1) -> ScoreFile:
    """Read a CSV or a Parquet file: columns `arm,item,score`, or a matrix; or results of a harness.

    A matrix in a CSV names its items if its first line holds anything but numbers, and any
    matrix names its arms if one of its columns is called `arm`. Without a number of repeats, it is
    the one of the file."""
    if is_results(path):
        return _from_results([path], repeats)
    return scores_of(_parquet_grid(path) if is_parquet(path) else _csv_grid(path), repeats)


def scores_of(grid: ScoreRows, repeats: int | None = 1) -> ScoreFile:
    """The scores in a grid: of cells if it has just these three columns, else a matrix."""
    if not has_cells(grid.names):
        return _from_matrix(grid)
    return _from_cells(grid, _repeats(grid) if repeats is None else repeats)


def _from_results(paths: Sequence[str], repeats: int | None) -> ScoreFile:
    """The scores in results of harnesses; epochs are repetitions."""
    rows = result_rows(paths)
    header = (*CELL_COLUMNS, "repetition")
    second = next((row for row in rows if row[-1]), None)
    if repeats == 1 and second is not None:
        where, arm, item, _, turn = second
        raise InvalidInput(
            f"{where} has score {turn + 1} of {arm!r} on item {item!r}, but `repeats` is 1: an item"
            " has one score"
        )
    name = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    return scores_of(ScoreRows(name, header, [(row[0], row[1:]) for row in rows]), repeats)


def check_repeats(named: ScoreFile, repeats: int) -> None:
    """Refuse a matrix with a score per item where there must be several."""
    if named.repeats != repeats:
        raise InvalidInput(
            f"{named.path} has one score per item, but `repeats` is {repeats}: there must be"
            f" {repeats} lines for every arm and item, in columns arm, item, score"
        )


def _repeats(grid: ScoreRows) -> int:
    """How many scores an item has at most, by the column of repetitions."""
    if "repetition" not in grid.names:
        return 1
    place = grid.names.index("repetition")
    turns = [_number(row[place]) for _, row in grid.rows if len(row) > place]
    return 1 + int(max((each for each in turns if each and 0 < each < MOST_REPEATS), default=0))


def has_cells(names: Sequence[str]) -> bool:
    """Whether these are the columns of a file with a line per cell."""
    own = [name for name in names if name not in MORE_COLUMNS]
    return sorted(own) == sorted(CELL_COLUMNS)


def _parquet_grid(path: str) -> ScoreRows:
    return grid_of(path, read_parquet(path))


def grid_of(name: str, columns: Mapping[str, Sequence[Any]]) -> ScoreRows:
    """The rows of columns that have names."""
    rows = enumerate(zip(*columns.values(), strict=True), start=1)
    return ScoreRows(name, tuple(columns), [(f"{name}, row {number}", row) for number, row in rows])


def _csv_grid(path: str) -> ScoreRows:
    table = read_columns(path)
    if not table.header:
        raise InvalidInput(f"{path} is empty, but must have a line per arm")
    rows = [(f"{path}, line {number}", row) for number, row in table.rows]
    if any(_number(cell) is None for cell in table.header):
        return ScoreRows(path, table.header, rows)
    return ScoreRows(path, None, [(f"{path}, line {table.first}", table.header), *rows])


def _from_matrix(grid: ScoreRows) -> ScoreFile:
    import numpy as np

    if not grid.rows:
        raise InvalidInput(f"{grid.path} has no scores, but must have a line per arm")
    width = len(grid.rows[0][1]) if grid.header is None else len(grid.header)
    for where, row in grid.rows:
        if len(row) != width:
            raise InvalidInput(
                f"{where} has {len(row)} values, but must have {width} as the first line"
            )
    named = next((place for place, name in enumerate(grid.names) if name in ARM_COLUMNS), None)
    arms = None if named is None else tuple(str(row[named]) for _, row in grid.rows)
    others = [place for place in range(width) if place != named]
    items = None if grid.header is None else tuple(grid.header[place] for place in others)
    _check_distinct(grid.path, "arm", arms or ())
    _check_distinct(grid.path, "item", items or ())
    if named is None and grid.header is not None:
        _check_unnamed(grid)
    scores = [[_score(row[place], where) for place in others] for where, row in grid.rows]
    return ScoreFile(grid.path, arms, items, np.array(scores, dtype=np.float64))


def _check_unnamed(grid: ScoreRows) -> None:
    """Refuse rows of which the first has a text: a name, in a column of an unknown name."""
    where, row = grid.rows[0] if grid.rows else ("", ())
    for name, cell in zip(grid.header or (), row, strict=False):
        if isinstance(cell, str) and _number(cell) is None:
            raise InvalidInput(
                f"{where} says {shown(cell)} in column {name!r}, but a score must be a finite"
                " number, or empty if it is not known; columns of names must be called 'arm', or"
                " 'arm', 'item' and 'score' where there is a line per cell"
            )


def _from_cells(grid: ScoreRows, repeats: int = 1) -> ScoreFile:
    """Cells in any order; the same one twice must have the same score.

    With repeats, lines of the same arm and item are its repetitions."""
    import numpy as np

    places = [grid.names.index(name) for name in CELL_COLUMNS]
    cells: dict[tuple[str, str, int], float] = {}
    lines: Counter[tuple[str, str]] = Counter()  # so far
    for where, row in grid.rows:
        if len(row) != len(grid.names):
            raise InvalidInput(
                f"{where} has {len(row)} values, but must have {len(grid.names)}:"
                f" {', '.join(grid.names)}"
            )
        arm, item, given = (row[place] for place in places)
        score = _score(given, where)
        turn = _repetition(grid, row, where, lines[str(arm), str(item)], repeats)
        lines[str(arm), str(item)] += 1
        before = cells.setdefault((str(arm), str(item), turn), score)
        if before != score and not (math.isnan(before) and math.isnan(score)):
            raise InvalidInput(
                f"{where} says that {str(arm)!r} scores {given_text(score)} on item {str(item)!r},"
                f" but a line before says {given_text(before)}; `repeats` must say how often items"
                " are scored, if that is more than once"
            )
    arms = {arm: place for place, arm in enumerate(dict.fromkeys(arm for arm, _, _ in cells))}
    items = {item: place for place, item in enumerate(dict.fromkeys(item for _, item, _ in cells))}
    scores = np.full((len(arms), repeats * len(items)), np.nan)
    for (arm, item, turn), score in cells.items():
        scores[arms[arm], repeats * items[item] + turn] = score
    exported = set(EXPORTED) <= set(grid.names)
    return ScoreFile(grid.path, tuple(arms), tuple(items), scores, repeats, exported)


def _repetition(grid: ScoreRows, row: Sequence[Any], where: str, before: int, repeats: int) -> int:
    """Which repetition of its item a line has, from 0: by its column, or by the lines before."""
    if repeats == 1:
        return 0
    turn: float | None = before
    if "repetition" in grid.names:
        turn = _number(row[grid.names.index("repetition")])
    if turn is None or math.isnan(turn) or turn != int(turn) or not 0 <= turn < repeats:
        said = before + 1 if "repetition" not in grid.names else shown(turn)
        rule = f"`repeats` is {repeats}: repetitions are numbered from 0 to {repeats - 1}"
        raise InvalidInput(f"{where} is repetition {said} of its arm and item, but {rule}")
    return int(turn)


def _check_distinct(path: str, kind: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            cells = " unless every line is a cell, in columns arm, item, score" * (kind == "arm")
            raise InvalidInput(f"{path} has two {kind}s {name!r}, but names must differ{cells}")
        seen.add(name)


def _number(cell: object) -> float | None:
    """A finite number, 1 for true and 0 for false; NaN for an empty cell; None for others."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return math.nan
    if not isinstance(cell, str | Real):
        return None
    if isinstance(cell, str) and (right := truth(cell)) is not None:
        return right
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _score(cell: object, where: str) -> float:
    score = _number(cell)
    if score is None:
        raise InvalidInput(
            f"{where} says {shown(cell)}, but a score must be a finite number, or empty if it is"
            f" not known{number_hint(cell)}"
        )
    return score


def named_scores(scores: object, repeats: int | None = 1) -> ScoreFile | None:
    """The scores in files, or in a data frame that names its arms; None for anything else.

    Arms are named by a column `arm` or by the index of pandas, unless it is the default one; items
    by the other columns. A matrix has a column per item: with repeats, its first repetition."""
    if isinstance(scores, Mapping):
        rule = "must be a matrix, or a data frame with the arms in its index"
        raise InvalidInput(f"`scores` is {shown(scores)}, but {rule}: list(scores.values())")
    if isinstance(scores, list | tuple) and any(isinstance(each, PATHS) for each in scores):
        return _from_results([_path(each) for each in scores], repeats)
    if isinstance(scores, PATHS):
        path = _path(scores)
        if not is_results(path) and not (encodable(path) and os.path.isfile(path)):
            raise InvalidInput(f"`scores` is {shown(scores)}, but there is no such file")
        return read_scores(path, repeats)
    if not len(getattr(scores, "columns", ())):
        return None
    frame = with_arm_column(scores)
    columns = {str(name): [_known(cell) for cell in frame[name]] for name in frame.columns}
    grid = grid_of("`scores`", columns)
    if "arm" in grid.names:
        return scores_of(grid, repeats)
    _check_unnamed(grid)
    by_place = all(map(_is_default, grid.names, count()))
    return None if by_place else _from_matrix(grid)


def _is_default(name: str, place: int) -> bool:
    """Whether pandas or polars call a column that has no name like this."""
    return name in (str(place), f"column_{place}")


def with_arm_column(frame: Any) -> Any:
    """The data frame, with the index of pandas as its column `arm` if that names the arms.

    A frame that was sorted or filtered has no default index: its rows are in another order."""
    index = getattr(frame, "index", None)  # polars has none
    named = "arm" in [str(name).lower() for name in frame.columns]
    if named or index is None or list(index) == list(range(len(index))):
        return frame
    if "arm" not in index.names:
        frame = frame.rename_axis(index="arm")
    return frame.reset_index()


def _path(given: object) -> str:
    """The name of a file, as text."""
    path = os.fspath(given) if isinstance(given, PATHS) else None
    if not isinstance(path, str):
        raise InvalidInput(f"`scores` has {shown(given)}, but must have names of files")
    return path


def _known(cell: object) -> object:
    """None for NaN, which data frames have for a missing value."""
    return None if isinstance(cell, float) and math.isnan(cell) else cell
