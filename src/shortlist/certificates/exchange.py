"""Feasible swaps of a family of sets: how many there are, and the one that gains most.

A swap out of a feasible set S removes m of its arms and brings in m others, so that the result is
feasible. The best set S* is not known, but it is one fixed set. So a union bound over swaps out of
S* pays for as many as any feasible set has, at most: `log_swaps_of`. Sets whose families are the
bases of a matroid have more structure: docs/constraints.md, Theorem 2."""

import math
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
from scipy.special import gammaln

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray
from shortlist.constraints import Constraint, MatroidConstraint, Quotas, best_set
from shortlist.errors import InvalidInput
from shortlist.problem import Problem
from shortlist.validation import shown

MOST_COUNTED = 1000  # numbers of chosen arms per group that are tried; more are not counted
MANY_ARMS = 200  # from which on they are not either

LogSwaps = tuple[float, ...] | None  # of swaps of 1, 2, ... arms; None: all sets are feasible
GroupRule = tuple[int, int, int]  # size of a group, least and most of it that may be chosen


def log_swaps(n_arms: int, k: int) -> FloatArray:
    """Logarithm of the number of swaps of m arms, m = 1 ... min(k, n - k), if all are feasible."""
    sizes = np.arange(1, min(k, n_arms - k) + 1)  # (M,)
    return _log_choose(k, sizes) + _log_choose(n_arms - k, sizes)


def _log_choose(n: int, m: IntArray) -> FloatArray:
    """Logarithm of the number of subsets, no less: digits are lost where factorials cancel."""
    whole = gammaln(n + 1)
    return whole - gammaln(m + 1) - gammaln(n - m + 1) + ROUNDED * whole


def log_swaps_of(problem: Problem) -> LogSwaps:
    """Logarithm of the number of swaps of m arms, m = 1, 2, ..., out of any feasible set, at most.

    None without a constraint."""
    return family_swaps(problem.constraint, problem.n_arms, problem.k)


def family_swaps(family: Constraint | None, n_arms: int, k: int) -> LogSwaps:
    """The same of a family of sets of k arms.

    Quotas are counted; of another family all swaps of m arms count."""
    if family is None:
        return None
    if isinstance(family, Quotas):
        sizes = [len(arms) for arms in family.groups.values()]
        rules = zip(sizes, family.least.tolist(), family.most.tolist(), strict=True)
        return _quota_swaps(tuple(sorted(rules)), k)
    return tuple(log_swaps(n_arms, k).tolist())


@cache
def _quota_swaps(rules: tuple[GroupRule, ...], k: int) -> tuple[float, ...]:
    """The largest number over all feasible numbers of chosen arms per group."""
    n_arms = sum(size for size, _, _ in rules)
    most = log_swaps(n_arms, k)  # (M,)
    profiles = _profiles(rules, k) if n_arms < MANY_ARMS else None
    if profiles is None:
        return tuple(most.tolist())
    counts = np.max([_swaps_from(profile, rules, most.size) for profile in profiles], axis=0)
    logs = np.log(counts[counts > 0])
    return tuple(np.minimum(most[: logs.size], logs + ROUNDED * (1 + logs)).tolist())


def _profiles(rules: tuple[GroupRule, ...], k: int) -> list[tuple[int, ...]] | None:
    """Feasible numbers of chosen arms per group; None if there are too many.

    Groups with equal rules are alike, so only the sorted numbers of these are listed."""
    kinds = sorted(set(rules))
    alike = [rules.count(kind) for kind in kinds]
    ways = [
        math.comb(high - low + times, times)
        for (_, low, high), times in zip(kinds, alike, strict=True)
    ]
    if math.prod(ways) > MOST_COUNTED:
        return None
    parts = [
        list(combinations_with_replacement(range(low, high + 1), times))
        for (_, low, high), times in zip(kinds, alike, strict=True)
    ]
    every = (tuple(count for part in chosen for count in part) for chosen in product(*parts))
    return [profile for profile in every if sum(profile) == k]


def _swaps_from(profile: tuple[int, ...], rules: tuple[GroupRule, ...], most: int) -> FloatArray:
    """Number of swaps of m = 1 ... `most` arms out of a set with these numbers per group."""
    ways = np.zeros((most + 1, most + 1))  # [arms removed, arms brought in]
    ways[0, 0] = 1.0
    for count, rule in zip(profile, rules, strict=True):
        before, ways = ways, np.zeros_like(ways)
        for removed, added, number in _swaps_within(count, rule, most):
            end = most + 1
            ways[removed:, added:] += number * before[: end - removed, : end - added]
    return np.diagonal(ways)[1:]


def _swaps_within(count: int, rule: GroupRule, most: int) -> list[tuple[int, int, int]]:
    """Arms removed from a group and brought in, and in how many ways."""
    size, least, highest = rule
    return [
        (removed, added, math.comb(count, removed) * math.comb(size - count, added))
        for removed in range(min(count, most) + 1)
        for added in range(min(size - count, most) + 1)
        if least <= count - removed + added <= highest
    ]


def check_matroid(family: object) -> MatroidConstraint:
    """Return the family, if its sets are linked by swaps of single arms."""
    if not isinstance(family, MatroidConstraint):
        raise InvalidInput(
            f"`constraint` is {shown(family)}, but pairs of arms prove nothing where sets are not"
            " linked by swaps of single arms: it has no `exchangeable`"
        )
    return family


class ExchangeGraph:
    """The feasible swaps of single arms, and the best sets, of a family that is a matroid."""

    def __init__(self, problem: Problem) -> None:
        self.family = check_matroid(problem.constraint)
        self.n_arms, self.k = problem.n_arms, problem.k
        self._chosen: BoolArray | None = None
        self._swaps: BoolArray = np.zeros((self.n_arms, self.n_arms), dtype=np.bool_)

    def swaps(self, chosen: BoolArray) -> BoolArray:
        """[j, i]: j outside may come in for i inside: (n, n)."""
        if self._chosen is None or not np.array_equal(chosen, self._chosen):
            self._chosen = chosen.copy()
            self._swaps = np.asarray(self.family.exchangeable(chosen), dtype=np.bool_)
        return self._swaps

    def first(self, order: IntArray) -> BoolArray:
        """The best set if arms are worth more the earlier they are in `order`, all arms.

        The best basis of a matroid depends on the order of the weights alone, and not on them."""
        weights = np.empty(self.n_arms)
        weights[order] = np.arange(self.n_arms, 0, -1)
        return best_set(self.family, weights, self.k)

    def largest(
        self, chosen: BoolArray, movable: BoolArray, gains: FloatArray
    ) -> tuple[FloatArray, BoolArray]:
        """The largest sum of gains over the arms that a feasible swap moves, and these arms."""
        return largest_swaps(self.family, chosen, movable, gains)


def largest_swaps(
    family: Constraint, chosen: BoolArray, movable: BoolArray, gains: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """The largest sum of gains over the arms that a feasible swap moves, and these arms.

    `gains` are (rows, n); only `movable` arms move, on either side of `chosen`. No sum is below 0,
    as no arm need move."""
    weights = np.where(chosen, -gains, gains)
    high = 1 + 2 * np.abs(gains).sum(1, keepdims=True)
    weights = np.where(movable, weights, np.where(chosen, high, -high))
    moved = _best_of_each(family, weights, int(chosen.sum())) ^ chosen
    sums = np.where(moved, gains, 0.0).sum(1)
    if (moved & ~movable).any() or (sums < -ROUNDED * high[:, 0]).any():
        raise InvalidInput("the constraint's `best` returned a set that is not the best one")
    return sums, moved


def _best_of_each(family: Constraint, weights: FloatArray, k: int) -> BoolArray:
    if isinstance(family, Quotas):
        return family.best_of_each(weights)
    return np.array([best_set(family, row, k) for row in weights])
