"""Families of sets in a bound: how many swaps there are, and what the best set gains at prices.

A swap out of a feasible set S removes m of its arms and brings in m others, so that the result is
feasible. The best set S* is not known, but it is one fixed set. So a union bound over swaps out of
S* pays for as many as any feasible set has, at most: `log_swaps_of`. Sets whose families are the
bases of a matroid have more structure: docs/constraints.md, Theorem 2.

The *surplus* of prices is by how much an allowed set exceeds the chosen one T at these prices:

    surplus >= max over allowed sets S of p(S) - p(T)

Certificates with prices add it to their bound (docs/prices.md, Lemma 1). It is exact, or an
upper bound:

- The best set of a matroid is found by comparing prices. None are added, so no rounding error can
  make another set look best. The difference of the two totals is rounded once, and up.
- For matchings it follows from the prices of rows and columns, in whole multiples of the unit.
- For any other family it rests on `best` of that family, with a margin for its rounding errors."""

import math
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
from scipy.special import gammaln

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray
from shortlist.constraints import (
    AnyArms,
    Constraint,
    Laminar,
    Matching,
    Matroid,
    MatroidConstraint,
    Quotas,
    best_set,
)
from shortlist.errors import InvalidInput
from shortlist.exploration.prices import PRICE_UNIT, Prices
from shortlist.problem import Problem
from shortlist.validation import shown

MOST_COUNTED = 1000  # numbers of chosen arms per group that are tried; more are not counted
MANY_ARMS = 200  # from which on they are not either

LogSwaps = tuple[float, ...] | None  # of swaps of 1, 2, ... arms; None: all sets are feasible
GroupRule = tuple[int, int, int]  # size of a group, least and most of it that may be chosen
LARGEST_EXACT = 2.0**12  # multiples of the unit up to this are added and subtracted exactly
MOST_UNITS = 2.0**61  # total of prices in units, so that it is counted exactly


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


def surplus(constraint: Constraint, chosen: BoolArray, prices: Prices) -> float:
    """An upper bound on the total price of any allowed set less that of the chosen one."""
    if isinstance(constraint, Matching):
        return _matching_surplus(constraint, chosen, prices)
    return _difference(constraint, chosen, prices.of_arms)


def _matching_surplus(family: Matching, chosen: BoolArray, prices: Prices) -> float:
    """The surplus of a matching, from prices of rows a and columns c that pairs are to cost.

    Let y = a + c of the row and the column of a pair, and T the chosen set. Every matching has K
    rows, so that no a(S) exceeds the K largest; likewise for columns. Where p is not y, p(S) - p(T)
    is larger than y(S) - y(T) by (p - y)+ outside T and (y - p)+ inside at most."""
    assert prices.of_rows is not None
    assert prices.of_columns is not None
    rows, columns, arms = (
        _whole(each) for each in (prices.of_rows, prices.of_columns, prices.of_arms)
    )
    made = rows[family.row_of] + columns[family.column_of]
    moved = np.where(chosen, made - arms, arms - made)
    total = int(moved[moved > 0].sum())
    for parts, own in ((rows, family.row_of), (columns, family.column_of)):
        total += int(np.sort(parts)[parts.size - family.k :].sum() - parts[own[chosen]].sum())
    return math.nextafter(total * PRICE_UNIT, math.inf) if total > 0 else 0.0


def reference_prices(
    constraint: Constraint, chosen: BoolArray, prices: Prices
) -> FloatArray | None:
    """Prices of a perfect matching before they were cut, where cutting cost nothing.

    At these no allowed set has a smaller total than the chosen one, so that the bound by swaps
    holds with the reach K epsilon (docs/prices.md, Theorem 2). None for other families."""
    if not (isinstance(constraint, Matching) and is_perfect(constraint)):
        return None
    assert prices.of_rows is not None
    assert prices.of_columns is not None
    made = prices.of_rows[constraint.row_of] + prices.of_columns[constraint.column_of]
    costly = np.where(chosen, made > prices.of_arms, made < prices.of_arms)
    return np.where(costly, prices.of_arms, made)


def is_perfect(family: Matching) -> bool:
    """Whether all rows and all columns are matched."""
    return family.height == family.width == family.k


def _whole(prices: FloatArray) -> IntArray:
    """Prices in units, which must be whole; their sums must fit into 64 bits."""
    units = prices / PRICE_UNIT
    whole = np.rint(units)
    if not (np.array_equal(whole, units) and np.abs(units).sum() < MOST_UNITS):
        raise ValueError(f"prices must be multiples of {PRICE_UNIT:g} and not too large")
    return whole.astype(np.int64)


def largest_gain(
    constraint: Constraint, chosen: BoolArray, prices: FloatArray, charges: FloatArray
) -> float:
    """The largest p(S) - p(T) over allowed S, if arms of only one of both add their charge.

    Weights are rounded outward to multiples of the unit. The assignment problem of a matching is
    solved by adding, subtracting and comparing them along paths that visit every row and column
    once at most, which is exact unless they are large: then nothing is claimed."""
    weights = np.where(chosen, prices - charges, prices + charges)
    units = weights / PRICE_UNIT
    outward = np.where(chosen, np.floor(units) - 1, np.ceil(units) + 1) * PRICE_UNIT
    if isinstance(constraint, Matching):
        longest = 2 * (constraint.height + constraint.width)
        if not longest * float(np.abs(outward).max()) < LARGEST_EXACT:
            return math.inf
    return _difference(constraint, chosen, outward)


def _difference(constraint: Constraint, chosen: BoolArray, weights: FloatArray) -> float:
    """Total weight of the family's best set less that of the chosen one, or more.

    `best` of the families here is exact: that of a matroid compares weights and adds none. What
    other families do is not known: rounding errors are added."""
    k = int(chosen.sum())
    best = best_set(constraint, weights, k)
    moved = np.concatenate([weights[best & ~chosen], -weights[chosen & ~best]])
    total = max(0.0, math.fsum(moved.tolist()))  # the exact sum, rounded once
    if not isinstance(constraint, AnyArms | Laminar | Matroid | Matching):
        total += ROUNDED * k * float(np.abs(weights).max())
    return math.nextafter(total, math.inf) if total > 0 else 0.0
