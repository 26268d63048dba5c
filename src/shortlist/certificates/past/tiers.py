"""What past rewards prove: a bound on the regret of a set, and the arms surely in or out.

Let S be a set of the k best means. With probability at least 1 - delta, for every swap of arms A of
S for as many arms B outside it, the sum of the means of A less that of B is at most the bound of
the swap. All results here follow from that: docs/assess.md."""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import ROUNDED, BoolArray, FloatArray
from shortlist.certificates.items.bound import largest_matching
from shortlist.certificates.past.bound import (
    Evidence,
    Evidences,
    SwapCharges,
    Totals,
    joined,
    log_shares,
    prices_for,
    tilted_charges,
)

MOST_TILTED = 200  # arms up to which tilted bets are made on every pair
MOST_AT_ONCE = 10**6  # pairs and columns of them


@dataclass(frozen=True, slots=True)
class PastBounds:
    """Proved bounds, on the unit scale."""

    chosen: BoolArray  # (arms,) the k best means
    regret_bound: float  # their largest average loss
    inside: BoolArray  # (arms,) surely among the k best
    outside: BoolArray  # (arms,) surely not
    low: FloatArray  # (arms,) the lower ends of intervals that hold together
    high: FloatArray  # (arms,) the upper ends


def bound_past(totals: Totals, k: int, delta: float, evidences: Evidences) -> PastBounds:
    """The k best means and bounds for them that hold with probability at least 1 - delta.

    Intervals hold together with probability at least 1 - delta, too, but that is another event."""
    found = [_proofs(totals, k, delta / len(evidences), each) for each in evidences]
    charged = joined([each.charged for each in found])
    chosen = best_means(totals, k)
    pairs = pair_bounds(joined([each.of_pairs for each in found]))
    inside, outside = tiers(pairs, k)
    inside &= chosen  # where delta is near 1, evidence may speak against the better mean
    outside &= ~chosen
    lost = _largest_loss(pairs, charged, chosen & ~inside, ~chosen & ~outside)
    if evidences[0].ranged:  # no more arms can be swapped, each for one as far off as can be
        lost = min(lost, k, chosen.size - k)
    low = np.max([each.low for each in found], axis=0)
    high = np.min([each.high for each in found], axis=0)
    return PastBounds(chosen, lost / k, inside, outside, low, high)


@dataclass(frozen=True, slots=True)
class _EvidenceBounds:
    """The bounds of one kind of evidence."""

    charged: SwapCharges
    of_pairs: SwapCharges  # the same, or fewer columns where there are many pairs
    low: FloatArray
    high: FloatArray


def _proofs(totals: Totals, k: int, delta: float, evidence: Evidence) -> _EvidenceBounds:
    n = totals.pulls.size
    prices = prices_for(totals.pulls)
    limit = evidence.limit(delta / (2 * n))
    upward, downward = totals.raised, evidence.mirrored(totals).raised
    shares = log_shares(n, k, delta)
    thresholds = evidence.thresholds(shares)
    largest = evidence.largest_charge(thresholds)
    up, high = evidence.reaches(upward, prices, largest, limit)
    down, above = evidence.reaches(downward, prices, largest, limit)
    costs = prices * thresholds[:, None]
    charged = plain = SwapCharges(up, down - evidence.mirror, costs)
    if evidence.tilted:
        charged = joined([plain, tilted_charges(upward, downward, shares)])
    of_pairs = charged if n <= MOST_TILTED else plain
    return _EvidenceBounds(charged, of_pairs, evidence.mirror - above, high)


def best_means(totals: Totals, k: int) -> BoolArray:
    """The k best means; of equal ones those with more pulls, then the first."""
    means = np.nan_to_num(totals.means, nan=-np.inf)
    order = np.lexsort((-totals.pulls, -means))
    chosen = np.zeros(means.size, dtype=np.bool_)
    chosen[order[:k]] = True
    return chosen


def pair_bounds(charged: SwapCharges) -> FloatArray:
    """[i, j]: how much the mean of j is above that of i at most, if j is in S and i is not."""
    n, columns = charged.up.shape
    bounds = np.full((n, n), np.inf)
    width = max(1, MOST_AT_ONCE // n**2)
    for start in range(0, columns, width):
        part = slice(start, start + width)
        down, up = charged.down.T[part], charged.up.T[part] + charged.costs[0, part, None]
        np.minimum(bounds, (down[:, :, None] + up[:, None, :]).min(axis=0), out=bounds)
    result: FloatArray = bounds + ROUNDED * (1 + np.abs(bounds))
    return result


def tiers(pairs: FloatArray, k: int) -> tuple[BoolArray, BoolArray]:
    """Which arms are surely in S, and which are surely not.

    Where the bound of j over i is below 0, j is not in S without i. So an arm with k arms of this
    kind above it is not in S, and one with n - k below it is."""
    before = pairs < 0  # [i, j]
    np.fill_diagonal(before, False)
    inside, outside = before.sum(axis=1) >= len(pairs) - k, before.sum(axis=0) >= k
    return inside, outside


def _largest_loss(
    pairs: FloatArray,
    charged: SwapCharges,
    kept: BoolArray,
    left: BoolArray,
) -> float:
    """Bound on the loss of all swaps between chosen arms that may be wrong and others.

    A swap of m arms is one of sets, and m swaps of single arms: the smaller bound counts."""
    most = min(int(kept.sum()), int(left.sum()))
    if most == 0:
        return 0.0
    between = pairs[np.ix_(kept, left)]
    one = max(0.0, float(between.max()))
    if most == 1 or one == 0 or not math.isfinite(one):
        return one
    sets = set_bounds(charged, kept, left)
    single = np.minimum(one * np.arange(1, most + 1), largest_matching(between))
    return max(0.0, float(np.minimum(sets, single).max()))


def set_bounds(charged: SwapCharges, kept: BoolArray, left: BoolArray) -> FloatArray:
    """(M,) Bound on the loss of a swap of m arms: in each column the m largest reaches count."""
    most = min(int(kept.sum()), int(left.sum()))
    gained = np.cumsum(-np.sort(-charged.up[left], axis=0)[:most], axis=0)  # (M, columns)
    spared = np.cumsum(-np.sort(-charged.down[kept], axis=0)[:most], axis=0)
    bounds = (gained + spared + charged.costs[:most]).min(axis=1)
    result: FloatArray = bounds + ROUNDED * most * (1 + np.abs(bounds))
    return result
