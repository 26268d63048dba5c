"""The least bound on a difference that was ever proved, between the points of the grid.

Capital grows with m on every path (docs/items.md, Lemma 2), so the event of Lemma 3 holds for every
m at once, and bisection over m finds the least m that was rejected at some item. It needs all bets
once more, so it is done once, when a budget has ended a race."""

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certification.items.capital import Capital, every
from shortlist.certification.items.matching import largest_matching
from shortlist.certification.items.standing import Standing

POINTS = 24  # bounds that are tried, from 0 to 1


def refined_bound(standing: Standing) -> float:
    """The assignment bound with the bounds of a finer grid that goes up to 1."""
    outside = standing.outside
    bounds = standing.bounds.copy()
    arms = np.concatenate([standing.top, outside[~standing.verdicts.out[outside]]])
    inside = np.arange(standing.top.size)
    others = np.arange(standing.top.size, arms.size)
    known = np.where(standing.known, standing.scores, np.nan)[arms]
    before = standing.capital
    capital = Capital(_grid(before.grid[-1]), before.gaps, before.weights, known)
    reached = standing.reached[arms]
    least = np.ones((inside.size, others.size))
    for place in range(int(reached.max())):
        if place == standing.pilot:
            capital.variance = before.variance
        rows, columns = inside[reached[inside] > place], others[reached[others] > place]
        if not rows.size or not columns.size:
            continue
        pairs = every(rows, columns)
        capital.bet(pairs, standing.scores[arms, place], standing.known[arms, place])
        rejected = capital.against(pairs) >= standing.verdicts.level
        steps = np.where(rejected, capital.grid[:, None, None], 1.0).min(0)
        where = np.ix_(rows, columns - inside.size)
        least[where] = np.minimum(least[where], steps)
    open_ = ~standing.verdicts.out[outside]
    bounds[:, open_] = np.minimum(bounds[:, open_], least)
    return largest_matching(bounds)


def _grid(least: float) -> FloatArray:
    """Bounds from the largest of the race to 1."""
    return np.geomspace(max(least, 1e-6), 1.0, POINTS)
