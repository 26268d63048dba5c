"""CLUCB-PAC: pull where the best set under pessimism differs from the best set on average."""

from math import log

import numpy as np

from shortlist.algorithms.algorithm import Delta, Growth
from shortlist.algorithms.race import Intervals, Race, Rule, race, top_mask
from shortlist.arrays import BoolArray, IntArray
from shortlist.constraints import best_by, best_set
from shortlist.problem import Problem
from shortlist.search import RunUpTo, Search

GROWTH = 0.02  # a batch, as a share of all pulls so far
DELTA = 0.01  # of the radii, where a budget leaves it open


def clucb_pac(
    problem: Problem, rng: np.random.Generator, *, growth: Growth = GROWTH, delta: Delta = DELTA
) -> Search:
    """Pull where the best set and the best pessimistic set disagree, until they nearly agree.

    With M the k best means, w~ = mean - radius inside M and mean + radius outside, and M~ the k
    largest w~: stop when w~(M~) - w~(M) <= k epsilon, else pull in M symmetric-difference M~ where
    the radius is largest. Under a constraint M and M~ are the best feasible sets by these. radius_i
    = sqrt(ln(4 n t^3 / delta) / (2 pulls_i)) after t pulls. R_T <= epsilon with probability >= 1 -
    delta:

    - An interval misses its mean after t pulls, of which N <= t were of that arm, with probability
      at most 2 exp(-2 N radius^2) = delta / (2 n t^3). Over arms, N and t that sums to pi^2 / 12 *
      delta < delta.
    - Otherwise k R_M = (means of the best set) - (means of M) <= w~(best set) - w~(M) <= w~(M~) -
      w~(M).

    Chen, Lin, King, Lyu, Chen (2014), Appendix B.2. There a step is one pull (`growth` = 0). Here
    it is a share `growth` of all pulls so far, fewest pulls first, among the arms that are in
    dispute or would come into it if the means stood still; it ends early when the lowest have grown
    by 5 `growth`. The radii hold for all t at once, so whatever a batch pulls the guarantee stays,
    and the last one overshoots by at most that share. In all, 0 to 10 % more pulls than one by one
    where we compared.

    With a budget the answer is M when the budget ends, or earlier if M~ = M. The bound it comes
    with is (w~(M~) - w~(M)) / k, right with probability >= 1 - delta."""
    return race(problem, rng, CLUCB_RULE, growth, delta)


def clucb_pac_anytime(problem: Problem, rng: np.random.Generator) -> RunUpTo:
    """The same race, to be run up to one number of pulls after another."""
    return Race(problem, rng, CLUCB_RULE, GROWTH, DELTA).run


def _log_term(n_arms: int, pulls: int, delta: float) -> float:
    return log(4 * n_arms / delta) + 3 * log(pulls)


def largest_loss(intervals: Intervals) -> float:
    """(w~(M~) - w~(M)) / k: the gain if the highest ends outside replace the lowest inside."""
    ends, inside = intervals.pessimistic, intervals.inside
    k = int(inside.sum())
    if intervals.constraint is not None:
        moved = best_set(intervals.constraint, ends, k) ^ inside
        return max(0.0, float(ends[moved & ~inside].sum() - ends[moved & inside].sum()) / k)
    swaps = min(k, inside.size - k)
    gains = np.sort(ends[~inside])[::-1][:swaps] - np.sort(ends[inside])[:swaps]
    return float(np.maximum(gains, 0).sum() / k)


def _shares(intervals: Intervals, batch: int, rng: np.random.Generator) -> IntArray:
    due = _due(intervals, batch, rng)
    pulls = intervals.pulls[due]
    room = np.maximum(pulls.min() + intervals.steps[due].min() - pulls, 0).sum()
    shares = np.zeros(due.size, dtype=np.int64)
    shares[due] = fewest_first(pulls, min(batch, int(room)), rng)
    return shares


def _due(intervals: Intervals, batch: int, rng: np.random.Generator) -> BoolArray:
    """The arms on which M and M~ differ, and in a batch those that come to differ meanwhile."""
    inside = intervals.inside
    k = int(inside.sum())
    if intervals.constraint is not None:
        return inside ^ best_by(
            intervals.constraint, intervals.pessimistic, rng.random(inside.size), k
        )
    disputed = inside ^ top_mask(intervals.pessimistic, k, rng)
    if batch == 1:
        return disputed
    # if no arm reaches further than this slack, they cost k * allowed at most
    swaps = min(k, inside.size - k)
    return disputed | intervals.reaches_across(k * intervals.allowed / (2 * swaps))


def fewest_first(pulls: IntArray, batch: int, rng: np.random.Generator) -> IntArray:
    """Share a batch so that each pull goes to an arm with the fewest; ties are broken by `rng`."""
    ordered = np.sort(pulls)
    # the j lowest to the j-th
    to_raise = np.arange(1, pulls.size + 1) * ordered - np.cumsum(ordered)
    served = int(np.searchsorted(to_raise, batch, side="right"))
    level, extra = divmod(batch + int(ordered[:served].sum()), served)
    shares = np.maximum(level - pulls, 0)
    shares[rng.permutation(np.flatnonzero(pulls <= level))[:extra]] += 1
    return shares


CLUCB_RULE = Rule(_log_term, largest_loss, _shares, least=1)
