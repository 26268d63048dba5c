"""Coordinates of the charts: bars for few arms, a band for many, a line for the bound.

Charts are drawn on a square of 1000 by 1000 that the page stretches; labels are text next to it,
so they stay readable on a phone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from math import inf, isfinite, log10

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.engine.status import ArmsTold
from shortlist.formatting import (
    RAW,
    Unit,
    bound_text,
    end_texts,
    interval_text,
    mean_text,
    plural,
    range_of,
)

SIDE = 1000.0
FEW = 60  # arms, up to which each has a bar
COLUMNS = 250  # of a band
NEAR = 15  # arms on each side of the border that have a bar if there are many


@dataclass(frozen=True, slots=True)
class Axis:
    """The axis of rewards."""

    least: float
    most: float

    @classmethod
    def of(cls, arms: ArmsTold) -> "Axis":
        """The axis that spans all means and intervals."""
        ends = np.concatenate([arms.low, arms.high, arms.means])
        known = ends[np.isfinite(ends)]
        if not known.size:
            return cls(0.0, 1.0)
        least, most = float(known.min()), float(known.max())
        return cls(least, most) if most > least else cls(least - 0.5, most + 0.5)

    def place(self, value: float) -> float:
        """The coordinate of a reward, clipped to the ends."""
        share = (value - self.least) / (self.most - self.least)
        return round(SIDE * min(1.0, max(0.0, share)), 1) if not np.isnan(share) else 0.0

    def ticks(self, unit: Unit) -> tuple[str, str]:
        """Its ends."""
        low, high = end_texts(self.least, self.most, unit=unit)
        return low + unit.mark, high + unit.mark


@dataclass(frozen=True, slots=True)
class Bar:
    """An arm in the table."""

    rank: int
    label: str
    place: str  # in, out, undecided or retired
    pulls: int
    mean: str
    interval: str
    left: float
    right: float
    middle: float | None  # None if the arm was never pulled
    bounded: bool  # whether it has an interval


@dataclass(frozen=True, slots=True)
class Band:
    """Many arms, best first: the outline of their intervals, their means, and their places."""

    outline: str
    means: str
    border: float
    strips: Sequence[tuple[str, float, float]]  # place, from, width


def best_first(arms: ArmsTold) -> IntArray:
    """Arms by mean, best first; then arms never pulled, then retired arms."""
    worth = np.nan_to_num(-arms.means if arms.minimize else arms.means, nan=-np.inf)
    retired = np.array([place == "retired" for place in arms.places])
    order: IntArray = np.lexsort((-worth, retired))
    return order


def bars(arms: ArmsTold, order: IntArray, axis: Axis, k: int, unit: Unit = RAW) -> list[list[Bar]]:
    """The arms of the table, in groups with gaps between them.

    All arms if they are few; otherwise the best, and those around the border of the choice."""
    size = order.size
    if size <= FEW:
        groups = [range(size)]
    else:
        border = range(max(0, k - NEAR), min(size, k + NEAR))
        joined = border.start <= 2 * NEAR
        groups = [range(max(2 * NEAR, border.stop))] if joined else [range(2 * NEAR), border]
    return [[_bar(arms, int(order[rank]), rank, axis, unit) for rank in group] for group in groups]


def _bar(arms: ArmsTold, arm: int, rank: int, axis: Axis, unit: Unit) -> Bar:
    mean, low, high = float(arms.means[arm]), float(arms.low[arm]), float(arms.high[arm])
    known = isfinite(mean)
    return Bar(
        rank=rank + 1,
        label=str(arms.labels[arm]),
        place=arms.places[arm],
        pulls=int(arms.pulls[arm]),
        mean=mean_text(mean, low, high, among=range_of(arms.means.tolist()), unit=unit)
        if known
        else "–",
        interval=interval_text(low, high, unit=unit),
        left=axis.place(low),
        right=axis.place(high),
        middle=axis.place(mean) if known else None,
        bounded=isfinite(low) or isfinite(high),
    )


def band(arms: ArmsTold, order: IntArray, axis: Axis, k: int) -> Band:
    """All arms; several share a column if there are more arms than columns."""
    columns = np.array_split(order, min(COLUMNS, order.size))
    across = np.linspace(0, SIDE, len(columns)).round(1).tolist()
    tops = [_height(axis, float(np.median(arms.high[column]))) for column in columns]
    feet = [_height(axis, float(np.median(arms.low[column]))) for column in columns]
    means = [_mean(arms.means[column]) for column in columns]
    outline = [*zip(across, tops, strict=True), *reversed([*zip(across, feet, strict=True)])]
    line = [
        (x, _height(axis, mean)) for x, mean in zip(across, means, strict=True) if isfinite(mean)
    ]
    border = round(SIDE * k / order.size, 1)
    return Band(_points(outline), _points(line), border, _strips(arms, columns))


def _height(axis: Axis, value: float) -> float:
    return round(SIDE - axis.place(value), 1)


def _mean(means: FloatArray) -> float:
    known = means[np.isfinite(means)]
    return float(known.mean()) if known.size else np.nan


def _strips(arms: ArmsTold, columns: Sequence[IntArray]) -> list[tuple[str, float, float]]:
    """Runs of columns with one place; a column with mixed places is undecided."""
    places = [_place({arms.places[arm] for arm in column.tolist()}) for column in columns]
    width = SIDE / len(columns)
    strips = []
    begin = 0
    for place, group in groupby(places):
        count = len([*group])
        strips.append((place, round(begin * width, 1), round(count * width, 1)))
        begin += count
    return strips


def _place(places: set[str]) -> str:
    return places.pop() if len(places) == 1 else "undecided"


@dataclass(frozen=True, slots=True)
class BoundChart:
    """The bound by pulls on logarithmic axes, or by day, with epsilon."""

    points: str
    goal: float | None  # the height of epsilon, if there is one
    across: tuple[str, str]  # the ends of the axes
    up: tuple[str, str]
    by: str = "pulls"  # the axis across: pulls, or the days of a live test


def bound_chart(
    pulls: Sequence[int], bounds: Sequence[float], goal: float | None, unit: Unit = RAW
) -> BoundChart | None:
    """The bound by pulls; None if there are fewer than two points."""
    # logarithmic axes have no 0: some searches bound the regret before the first pull
    points = [(x, y) for x, y in zip(pulls, bounds, strict=True) if x > 0 and 0 < y < inf]
    flat = sum(1 for _ in takewhile(lambda point: point[1] == points[0][1], points))
    points = points[max(0, flat - 1) :]  # from where it begins to fall
    points = points[-1 :: -max(1, len(points) // COLUMNS)][::-1]
    if len(points) < 2:
        return None
    heights = [y for _, y in points] + ([] if goal is None else [goal])
    left, right = log10(points[0][0]), log10(points[-1][0])
    foot, top = log10(min(heights)), log10(max(heights))
    drawn = [(_share(log10(x), left, right), SIDE - _share(log10(y), foot, top)) for x, y in points]
    return BoundChart(
        points=_points(drawn),
        goal=None if goal is None else round(SIDE - _share(log10(goal), foot, top), 1),
        across=(plural(points[0][0], "pull"), plural(points[-1][0], "pull")),
        up=_bounds_text(min(heights), max(heights), unit),
    )


def days_chart(
    blocks: Sequence[str], bounds: Sequence[float], goal: float | None, unit: Unit = RAW
) -> BoundChart | None:
    """The bound after every block of a live test, evenly spaced in time; None if there are fewer
    than two. Only the axis of bounds is logarithmic."""
    points = [(x, y) for x, y in enumerate(bounds) if 0 < y < inf]
    if len(points) < 2:
        return None
    heights = [y for _, y in points] + ([] if goal is None else [goal])
    left, right = points[0][0], points[-1][0]
    foot, top = log10(min(heights)), log10(max(heights))
    drawn = [(_share(x, left, right), SIDE - _share(log10(y), foot, top)) for x, y in points]
    return BoundChart(
        points=_points(drawn),
        goal=None if goal is None else round(SIDE - _share(log10(goal), foot, top), 1),
        across=(blocks[left], blocks[right]),
        up=_bounds_text(min(heights), max(heights), unit),
        by="day",
    )


def _bounds_text(least: float, most: float, unit: Unit) -> tuple[str, str]:
    """Two bounds, with enough digits to distinguish them."""
    short = replace(unit, spelled=unit.points)  # next to a narrow axis
    texts = [
        (bound_text(least, digits, short), bound_text(most, digits, short))
        for digits in range(3, 18)
    ]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[0])


def _share(value: float, least: float, most: float) -> float:
    return SIDE * (value - least) / (most - least) if most > least else SIDE / 2


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{round(y, 1):g}" for x, y in points)
