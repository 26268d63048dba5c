"""Families small enough to list all their sets: quotas, matchings, matroids, and lists of sets."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.constraints import Constraint, Laminar, Matching, Matroid, Quotas


class Family(NamedTuple):
    """A family and all its sets, as masks: (sets, arms)."""

    constraint: Constraint
    sets: BoolArray

    @property
    def k(self) -> int:
        return int(self.sets[0].sum())


@dataclass(frozen=True)
class Listed:
    """A family by the list of its sets, of which no more is known."""

    sets: BoolArray

    def best(self, weights: FloatArray) -> IntArray:
        totals = [sum(weights[mask].tolist()) for mask in self.sets]
        return np.flatnonzero(self.sets[int(np.argmax(totals))])


def masks(n: int, k: int, feasible: Callable[[Collection[int]], bool]) -> BoolArray:
    found = [each for each in combinations(range(n), k) if feasible(each)]
    return np.array([np.isin(np.arange(n), each) for each in found], dtype=np.bool_)


def all_quotas() -> Iterator[Family]:
    """All quotas on three groups of two arms."""
    ranges = [(low, high) for low in range(3) for high in range(low, 3)]
    group = [0, 0, 1, 1, 2, 2]
    for limits in product(ranges, repeat=3):
        quotas = dict(enumerate(limits))
        for k in range(1, 6):

            def feasible(
                arms: Collection[int], quotas: dict[int, tuple[int, int]] = quotas
            ) -> bool:
                counts = [sum(group[arm] == each for arm in arms) for each in range(3)]
                return all(quotas[g][0] <= counts[g] <= quotas[g][1] for g in range(3))

            sets = masks(6, k, feasible)
            if len(sets):
                yield Family(Quotas(group, quotas, k=k), sets)


def nested_quotas(rng: np.random.Generator, number: int) -> Iterator[Family]:
    """Quotas on groups inside groups, at random."""
    groups = {"left": [0, 1, 2, 3], "corner": [0, 1], "edge": [2], "right": [4, 5]}
    while number:
        low = rng.integers(0, 3, len(groups))
        high = low + rng.integers(0, 3, len(groups))
        quotas = {name: (int(a), int(b)) for name, a, b in zip(groups, low, high, strict=True)}

        def feasible(arms: Collection[int], quotas: dict[str, tuple[int, int]] = quotas) -> bool:
            counts = {name: len(set(inside) & set(arms)) for name, inside in groups.items()}
            return all(quotas[name][0] <= counts[name] <= quotas[name][1] for name in groups)

        k = int(rng.integers(1, 7))
        sets = masks(7, k, feasible)
        if len(sets):
            number -= 1
            yield Family(Laminar(groups, quotas, n_arms=7, k=k), sets)


def matchings(rng: np.random.Generator) -> Iterator[Family]:
    """All matchings of 3 x 3 of every size, and of some tables with missing pairs."""
    every = list(product(range(3), range(3)))
    tables = [every, *([every[i] for i in rng.permutation(9)[:6]] for _ in range(6))]
    tables.append([(row, column) for row, column in every if row < 2])
    for pairs in tables:
        for k in (1, 2, 3):

            def feasible(arms: Collection[int], pairs: list[tuple[int, int]] = pairs) -> bool:
                rows, columns = zip(*(pairs[arm] for arm in arms), strict=True)
                return len(set(rows)) == len(set(columns)) == len(arms)

            sets = masks(len(pairs), k, feasible)
            if len(sets) and k < len(pairs):
                rows, columns = zip(*pairs, strict=True)
                yield Family(Matching(rows, columns, k=k), sets)


def matroids(rng: np.random.Generator, number: int) -> Iterator[Family]:
    """Spanning trees of four points, and matroids of random vectors of zeros and ones."""
    edges = list(combinations(range(4), 2))
    incidence = np.array([[point in edge for point in range(4)] for edge in edges], dtype=np.int64)
    tables = [incidence, *(rng.integers(0, 2, (int(rng.integers(4, 8)), 3)) for _ in range(number))]
    for vectors in tables:

        def independent(arms: Collection[int], vectors: IntArray = vectors) -> bool:
            return rank(vectors[list(arms)]) == len(arms)

        k = rank(vectors)
        n = len(vectors)
        if 0 < k < n:
            yield Family(Matroid(independent, n, k=k), masks(n, k, independent))


def rank(vectors: IntArray) -> int:
    """Rank over the field of two elements."""
    rows = [int("".join(map(str, row)), 2) for row in (vectors % 2).tolist()]
    found = 0
    while rows:
        pivot = rows.pop()
        if pivot:
            found += 1
            bit = pivot & -pivot
            rows = [row ^ pivot if row & bit else row for row in rows]
    return found


def lists(rng: np.random.Generator, number: int) -> Iterator[Family]:
    """Random lists of sets of one size."""
    for _ in range(number):
        n = int(rng.integers(3, 8))
        k = int(rng.integers(1, n))
        every = masks(n, k, lambda arms: True)
        some = every[rng.permutation(len(every))[: int(rng.integers(1, 8))]]
        yield Family(Listed(some), some)


def small_families(seed: int, number: int = 40) -> Iterator[Family]:
    rng = np.random.default_rng(seed)
    yield from all_quotas()
    yield from nested_quotas(rng, number)
    yield from matchings(rng)
    yield from matroids(rng, number)
    yield from lists(rng, number)
