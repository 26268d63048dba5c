"""What a matrix of scores with missing cells proves of means over all its items.

For every arm the items with a score are a random sample of all items, without replacement. They are
put into a random order; then bets along it bound the mean from both sides (docs/items.md, Lemma 1).
With a share delta / 2n for each of 2n bounds, all intervals hold together with probability
1 - delta. Where all arms with missing cells have scores on the same items, differences of two arms
are bounded in the same way, each with a share of the other half of delta: docs/assess.md."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.frame import tiers_of
from shortlist.certificates.items import race
from shortlist.certificates.items.bound import EXACT, BettingUpperBound, largest_matching
from shortlist.search import Tiers

MATRIX_GAPS = (0.12, 0.25, 0.5, 1.0)  # gaps that are bet on, in units of the expected half-width

MOST_PAIRED = 60  # arms up to which all differences are bounded


@dataclass(frozen=True, slots=True)
class MatrixBounds:
    """Bounds on means over all items that hold together, on the unit scale."""

    means: FloatArray  # (arms,) of the scores; NaN without any
    low: FloatArray  # (arms,)
    high: FloatArray  # (arms,)
    above: FloatArray  # [i, j]: how much the mean of j is above that of i at most

    def tiers(self, k: int) -> Tiers:
        """Which arms are surely among the k best, and which are surely not."""
        return tiers_of(self.above < -EXACT, k)

    def separates_at(self) -> tuple[int, ...]:
        """Every k at which the k best arms are surely above all others."""
        sizes = range(1, self.means.size)
        return tuple(k for k in sizes if int(self.tiers(k)[0].sum()) == k)

    def regret(self, chosen: BoolArray) -> float:
        """A bound on the regret of a set: its largest matching with the other arms."""
        between = self.above[np.ix_(chosen, ~chosen)]
        return largest_matching(between) / int(chosen.sum())


def matrix_bounds(scores: FloatArray, delta: float, rng: np.random.Generator) -> MatrixBounds:
    """Bounds for a matrix of scores in [0, 1], NaN where there is none: (arms, items)."""
    n = len(scores)
    seen = ~np.isnan(scores)
    order = rng.permutation(scores.shape[1])
    shared = _shared(seen)
    paired = shared and n <= MOST_PAIRED
    level = 2 * n / (delta / 2 if paired else delta)
    placed, counts = _placed(scores[:, order], seen[:, order], rng, shared=shared)
    high = _upper(placed, counts, scores.shape[1], level)
    low = 1 - _upper(1 - placed, counts, scores.shape[1], level)
    above = high[None, :] - low[:, None]
    if paired:
        above = np.minimum(above, _differences(placed, counts, scores.shape[1], delta / 2))
    np.fill_diagonal(above, 0.0)
    sums = np.where(seen, scores, 0.0).sum(1)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return MatrixBounds(means, low, high, above)


def _shared(seen: BoolArray) -> bool:
    """Whether all arms with missing cells have scores on the same items."""
    partly = seen[~seen.all(axis=1)]
    return bool((partly == partly[:1]).all())


def _placed(
    scores: FloatArray, seen: BoolArray, rng: np.random.Generator, *, shared: bool
) -> tuple[FloatArray, IntArray]:
    """The scores of every arm, those that are seen first, in a random order; and their numbers.

    Where items are shared, all arms have the same order: items that all have seen come first."""
    counts: IntArray = seen.sum(axis=1)
    if shared:
        order = np.argsort(~seen.all(axis=0), kind="stable")
        return scores[:, order], counts
    lots = np.where(seen, rng.random(seen.shape), 2.0)
    return np.take_along_axis(scores, np.argsort(lots, axis=1, kind="stable"), axis=1), counts


def _upper(placed: FloatArray, counts: IntArray, size: int, level: float) -> FloatArray:
    """Bounds on the means of all arms from above: (arms,)."""
    upper = np.ones(len(placed))
    for count in np.unique(counts[counts > 0]).tolist():
        arms = np.flatnonzero(counts == count)
        upper[arms] = _bound(placed[arms, :count], size, level)
    return upper


def _bound(scores: FloatArray, size: int, level: float) -> FloatArray:
    """Bounds on means of rows from above, by scores on the first of `size` items."""
    rows, count = scores.shape
    none = np.zeros(rows)
    # the half-width to be expected of 0/1 scores; it depends on numbers of items alone
    width = np.sqrt(np.log(level) / (2 * count) * max(1 - count / size, 1 / size))
    gaps = np.array(MATRIX_GAPS) * width
    weights = np.full(gaps.size, 1 / gaps.size)
    fresh = np.ones(scores.shape, dtype=np.bool_)
    variances = np.full(count, race.SINGLE_VARIANCE)
    band = BettingUpperBound(scores, fresh, size, none, none, variances, gaps)
    return band.upper(weights, level, np.ones(rows))


def _differences(placed: FloatArray, counts: IntArray, size: int, delta: float) -> FloatArray:
    """[i, j]: a bound on the mean of j less that of i, by their scores on the same items."""
    n, count = len(placed), int(counts.min())
    above = np.ones((n, n))
    if count == 0:
        return above
    level = n * (n - 1) / delta
    for arm in range(n):
        halves = (1 + placed[:, :count] - placed[arm, :count]) / 2  # in [0, 1]
        above[arm] = 2 * _bound(halves, size, level) - 1
    return above
