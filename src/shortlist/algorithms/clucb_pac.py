"""CLUCB-PAC: pull where the best set under pessimism differs from the best set on average."""

from bisect import bisect_right
from math import log

import numpy as np

from shortlist.algorithms.race import Rule, Standing, race, top_mask
from shortlist.problem import Problem
from shortlist.search import IntArray, Search


def clucb_pac(problem: Problem, rng: np.random.Generator, *, growth: float = 0.02, delta: float = 0.01) -> Search:
    """Pull the least known arm on which the best set and the best pessimistic set disagree, until they nearly agree.

    With M the k best means, w~ = mean - radius inside M and mean + radius outside, and M~ the k largest w~:
    stop when w~(M~) - w~(M) <= k epsilon, else pull in M symmetric-difference M~ where the radius is largest.
    radius_i = sqrt(ln(4 n t^3 / delta) / (2 pulls_i)) after t pulls. R_T <= epsilon with probability >= 1 - delta:

    - An interval misses its mean after t pulls, of which N <= t were of that arm, with probability at most
      2 exp(-2 N radius^2) = delta / (2 n t^3). Over arms, N and t that sums to pi^2 / 12 * delta < delta.
    - Otherwise k R_M = (means of the best set) - (means of M) <= w~(best set) - w~(M) <= w~(M~) - w~(M).

    Chen, Lin, King, Lyu, Chen (2014), Appendix B.2. There a step is one pull (`growth` = 0). Here it is a share
    `growth` of all pulls so far, each still where the radius is largest, but no arm gets more than would settle it if
    the means stood still: else an arm hardly in dispute would swallow the batch. The radii hold for all t at once,
    so whatever a batch pulls the guarantee stays, and the last batch overshoots by at most that share.

    With a budget the answer is M when the budget ends, or earlier if M~ = M. The bound it comes with is
    (w~(M~) - w~(M)) / k, right with probability >= 1 - delta."""
    return race(problem, rng, RULE, growth, delta)


def _log_term(n_arms: int, pulls: int, delta: float) -> float:
    return log(4 * n_arms / delta) + 3 * log(pulls)


def largest_loss(standing: Standing) -> float:
    """(w~(M~) - w~(M)) / k: what is gained if the highest ends outside replace the lowest ends inside."""
    ends, inside = standing.pessimistic, standing.inside
    k = int(inside.sum())
    swaps = min(k, inside.size - k)
    gains = np.sort(ends[~inside])[::-1][:swaps] - np.sort(ends[inside])[:swaps]
    return float(np.maximum(gains, 0).sum() / k)


def _shares(standing: Standing, batch: int, rng: np.random.Generator) -> IntArray:
    ends, inside = standing.pessimistic, standing.inside
    rest = int((~inside).sum())
    disputed = inside != top_mask(ends, inside.size - rest, rng)
    boundary = float(np.partition(ends, (rest - 1, rest))[rest - 1 : rest + 1].mean())  # of M~
    most = np.clip(standing.to_settle(boundary)[disputed], 1, batch).astype(np.int64)
    shares = np.zeros(inside.size, dtype=np.int64)
    shares[disputed] = fewest_first(standing.pulls[disputed], most, batch, rng)
    return shares


def fewest_first(pulls: IntArray, most: IntArray, batch: int, rng: np.random.Generator) -> IntArray:
    """Share a batch so that each pull goes to an arm with the fewest, ties broken by `rng`, none beyond its `most`."""

    def up_to(level: int) -> IntArray:
        return np.clip(level - pulls, 0, most)

    levels = range(int(pulls.min()), int((pulls + most).max()) + 1)
    level = levels[bisect_right(levels, batch, key=lambda level: int(up_to(level).sum())) - 1]
    shares = up_to(level)
    next_ones = np.flatnonzero((pulls + shares == level) & (shares < most))
    shares[rng.permutation(next_ones)[: batch - int(shares.sum())]] += 1
    return shares


RULE = Rule(_log_term, largest_loss, _shares, least=1)
