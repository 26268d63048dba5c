"""What past rewards prove: a bound on the regret of a set, and the arms surely in or out.

Let S be a set of the k best means. With probability at least 1 - delta, for every swap of arms A of
S for as many arms B outside it, the sum of the means of A less that of B is at most the bound of
the swap. All results here follow from that: docs/assess.md."""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray
from shortlist.certificates.frame import family_swaps, tiers_of
from shortlist.certificates.items.bound import largest_matching
from shortlist.certificates.past.charges import (
    Evidence,
    Evidences,
    SwapCharges,
    Totals,
    joined,
    log_shares,
    prices_for,
    tilted_charges,
)
from shortlist.certificates.under_constraints import largest_swaps
from shortlist.constraints import Constraint, MatroidConstraint, Quotas, best_by

STEEPER = (0.0, 0.5, 1.0, 2.0)  # slopes tried under a constraint, in units of the first cost ...
MOST_COLUMNS = 20  # columns tried where best sets are found one by one, for few and many arms
MOST_RISES = 3  # ... and how many of those between the costs of two sizes
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


def bound_past(
    totals: Totals,
    k: int,
    delta: float,
    evidences: Evidences,
    family: Constraint | None = None,
    chosen: BoolArray | None = None,
) -> PastBounds:
    """The k best means and bounds for them that hold with probability at least 1 - delta.

    Under a constraint, the best feasible set; else, if given, `chosen`. Intervals hold together
    with probability at least 1 - delta, too, but that is another event."""
    found = [_proofs(totals, k, delta / len(evidences), each, family) for each in evidences]
    charged = joined([each.charged for each in found])
    pairs = pair_bounds(joined([each.of_pairs for each in found]))
    low = np.max([each.low for each in found], axis=0)
    high = np.min([each.high for each in found], axis=0)
    if family is not None:
        chosen = best_feasible(totals, k, family)
        return PastBounds(chosen, *_feasible(pairs, charged, chosen, family, evidences), low, high)
    chosen = best_means(totals, k) if chosen is None else chosen
    inside, outside = tiers_of(pairs < 0, k)
    inside &= chosen  # where delta is near 1, evidence may speak against the better mean
    outside &= ~chosen
    lost = _largest_loss(pairs, charged, chosen & ~inside, ~chosen & ~outside)
    if evidences[0].ranged:  # no more arms can be swapped, each for one as far off as can be
        lost = min(lost, k, chosen.size - k)
    return PastBounds(chosen, lost / k, inside, outside, low, high)


@dataclass(frozen=True, slots=True)
class _EvidenceBounds:
    """The bounds of one kind of evidence."""

    charged: SwapCharges
    of_pairs: SwapCharges  # the same, or fewer columns where there are many pairs
    low: FloatArray
    high: FloatArray


def _feasible(
    pairs: FloatArray,
    charged: SwapCharges,
    chosen: BoolArray,
    family: Constraint,
    evidences: Evidences,
) -> tuple[float, BoolArray, BoolArray]:
    """The regret bound under a constraint, and the arms surely in and out of the best set.

    In and out need a matroid: docs/constraints.md, Lemma 1."""
    k = int(chosen.sum())
    inside, outside = np.zeros_like(chosen), np.zeros_like(chosen)
    one = math.inf
    if isinstance(family, MatroidConstraint):
        swaps = family.exchangeable(chosen).T  # [i, j]: j may come in for i
        open_pairs = swaps & (pairs >= 0)
        inside = chosen & ~open_pairs.any(axis=1)
        outside = ~chosen & ~open_pairs.any(axis=0)
        one = max(0.0, float(pairs[swaps].max(initial=0.0)))
    sets = feasible_set_bounds(charged, chosen, ~inside & ~outside, family)
    sets[:1] = np.minimum(sets[:1], one)
    lost = max(0.0, float(sets.max(initial=0.0)))
    if evidences[0].ranged:
        lost = min(lost, float(sets.size))
    return lost / k, inside, outside


def feasible_set_bounds(
    charged: SwapCharges, chosen: BoolArray, movable: BoolArray, family: Constraint
) -> FloatArray:
    """(M,) Bound on the loss of a feasible swap of m of these arms: the least over the columns.

    If every arm that comes in gains s more, the largest total over swaps of all sizes is at least
    that over swaps of m arms, and s m: for every slope s."""
    most = len(charged.costs)
    if not movable.any():
        return np.zeros(most)
    known = np.isfinite(charged.up[movable] + charged.down[movable]).all(axis=0)  # (columns,)
    if not known.any():
        return np.full(most, np.inf)
    gains = np.where(chosen, charged.down.T[known], charged.up.T[known])  # (columns, arms)
    gains = np.where(movable, gains, 0.0)
    costs = charged.costs[:, known]  # (M, columns)
    if not isinstance(family, Quotas):  # whose best sets are found for many columns at once
        few = _promising(gains, costs, chosen)
        gains, costs = gains[few], costs[:, few]
    bounds = np.full(most, np.inf)
    sizes = np.arange(1, most + 1)[:, None]
    for slope in _slopes(costs):  # (columns,)
        sums, _ = largest_swaps(family, chosen, movable, gains + slope[:, None] * ~chosen)
        found = (sums - slope * sizes + costs).min(axis=1)
        bounds = np.minimum(bounds, found)
    largest = float(np.abs(gains).max() + np.abs(costs).max())
    result: FloatArray = bounds + ROUNDED * most * (1 + largest)
    return result


def _promising(gains: FloatArray, costs: FloatArray, chosen: BoolArray) -> IntArray:
    """The columns with the least bounds if one arm, or all that can, were swapped freely."""
    most = len(costs)
    kept = []
    for size in (1, most):
        joined = -np.sort(-gains[:, ~chosen], axis=1)[:, :size].sum(axis=1)
        left = -np.sort(-gains[:, chosen], axis=1)[:, :size].sum(axis=1)
        kept.append(np.argsort(joined + left + costs[size - 1])[:MOST_COLUMNS])
    return np.unique(np.concatenate(kept))


def _slopes(costs: FloatArray) -> list[FloatArray]:
    """Slopes to be tried: those of the costs at a few sizes, and steeper ones; (columns,) each."""
    steeper = [costs[0] * factor for factor in STEEPER]
    rises = np.diff(costs, axis=0)
    if not len(rises):
        return steeper
    places = np.unique(np.linspace(0, len(rises) - 1, MOST_RISES).astype(int)).tolist()
    return [*steeper, *(rises[place] for place in places)]


def best_feasible(totals: Totals, k: int, family: Constraint) -> BoolArray:
    """The best feasible set by the means; of equal means those with more pulls."""
    means = totals.means
    lowest = float(np.nanmin(means, initial=0.0))
    known = np.where(np.isnan(means), lowest - 1.0, means)
    return best_by(family, known, totals.pulls, k)


def _proofs(
    totals: Totals, k: int, delta: float, evidence: Evidence, family: Constraint | None
) -> _EvidenceBounds:
    n = totals.pulls.size
    prices = prices_for(totals.pulls)
    limit = evidence.limit(delta / (2 * n))
    upward, downward = totals.raised, evidence.mirrored(totals).raised
    swaps = family_swaps(family, n, k)
    shares = log_shares(n, k, delta, (0.0,) if swaps == () else swaps)
    thresholds = evidence.thresholds(shares)
    # every arm of a swap is in a feasible swap of two single arms: so it is in a matroid
    linked = family is None or isinstance(family, MatroidConstraint)
    largest = evidence.largest_charge(thresholds) if linked else math.inf
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
