"""The least bound on a difference that was ever proved, between the points of the grid.

Capital grows with m on every path (docs/items.md, Lemma 2), so the event of Lemma 3 holds for every
m at once, and the least m that was rejected at some item is a bound. It needs all bets once more,
so it is done once, when a budget has ended a race."""

from collections.abc import Callable

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.items.capital import Capital, every
from shortlist.certification.items.cells import Cells

POINTS = 24  # bounds that are tried, from the largest of the race to 1


def refined_bounds(
    before: Capital,
    level: float,
    cells: Cells,
    top: IntArray,
    outside: IntArray,
    expected: Callable[[int], float],
) -> FloatArray:
    """Bounds of a grid that goes up to 1: (inside, outside).

    `expected` is the variance of a difference that was expected at a place of the order."""
    arms = np.concatenate([top, outside])
    inside, others = np.arange(top.size), np.arange(top.size, arms.size)
    known = np.where(cells.known, cells.scores, np.nan)[arms]
    capital = Capital(_grid(before.grid[-1]), before.gaps, before.weights, known)
    reached = cells.reached[arms]
    least = np.ones((inside.size, others.size))
    for place in range(int(reached.max())):
        rows, columns = inside[reached[inside] > place], others[reached[others] > place]
        if not rows.size or not columns.size:
            continue
        pairs = every(rows, columns)
        at_place = cells.scores[arms, place], cells.known[arms, place]
        capital.bet(pairs, *at_place, expected(place))
        rejected = capital.against(pairs) >= level
        steps = np.where(rejected, capital.grid[:, None, None], 1.0).min(0)
        where = np.ix_(rows, columns - inside.size)
        least[where] = np.minimum(least[where], steps)
    return least


def _grid(least: float) -> FloatArray:
    """Bounds from the largest of the race to 1."""
    return np.geomspace(max(least, 1e-6), 1.0, POINTS)
