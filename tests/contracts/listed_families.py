"""Small families with all their sets as masks, also such of which nothing but `best` is known."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from small_families import Sets, all_quotas, mask_of, random_matroids

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.constraints import Constraint, Laminar, Matching, Matroid


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


def masks(sets: Sets, n: int) -> BoolArray:
    return np.array([mask_of(each, n) for each in sets], dtype=np.bool_)


def matchings(rng: np.random.Generator) -> Iterator[Family]:
    """All matchings of 3 x 3 of every size, and of some tables with missing pairs."""
    every = list(product(range(3), range(3)))
    tables = [every, *([every[i] for i in rng.permutation(9)[:6]] for _ in range(6))]
    tables.append([(row, column) for row, column in every if row < 2])
    for pairs in tables:
        for k in (1, 2, 3):
            found = []
            for arms in combinations(range(len(pairs)), k):
                rows, columns = zip(*(pairs[arm] for arm in arms), strict=True)
                if len(set(rows)) == len(set(columns)) == k:
                    found.append(frozenset(arms))
            if found:
                rows, columns = zip(*pairs, strict=True)
                yield Family(Matching(rows, columns, k=k), masks(found, len(pairs)))


def lists(rng: np.random.Generator, number: int) -> Iterator[Family]:
    """Random lists of sets of one size."""
    for _ in range(number):
        n = int(rng.integers(3, 8))
        k = int(rng.integers(1, n))
        every = masks([frozenset(arms) for arms in combinations(range(n), k)], n)
        some = every[rng.permutation(len(every))[: int(rng.integers(1, 8))]]
        yield Family(Listed(some), some)


def listed_families(seed: int, number: int = 40) -> Iterator[Family]:
    """All quotas on three groups of two, all small matchings, some matroids, some lists."""
    rng = np.random.default_rng(seed)
    for quotas, sets in all_quotas("aabbcc"):
        yield Family(quotas, masks(sets, 6))
    for matroid, sets in random_matroids(2 * number, seed):
        assert isinstance(matroid, Laminar | Matroid)
        yield Family(matroid, masks(sets, matroid.n_arms))
    yield from matchings(rng)
    yield from lists(rng, number)
