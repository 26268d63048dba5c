"""Small families of sets with all their sets, to compare every shortcut with enumeration."""

from collections.abc import Collection, Iterator
from itertools import combinations, product

import numpy as np

from shortlist.arrays import BoolArray
from shortlist.constraints import Laminar, Matching, Matroid, MatroidConstraint, Quotas
from shortlist.errors import InvalidInput

Sets = list[frozenset[int]]


def all_quotas(groups: str) -> Iterator[tuple[Quotas, Sets]]:
    """Every feasible family of quotas on these groups, for every k."""
    names = sorted(set(groups))
    ranges = [
        [(low, high) for high in range(groups.count(name) + 1) for low in range(high + 1)]
        for name in names
    ]
    for limits in product(*ranges):
        for k in range(1, len(groups)):
            try:
                family = Quotas(groups, dict(zip(names, limits, strict=True)), k=k)
            except InvalidInput:
                continue
            yield family, quota_sets(family)


def quota_sets(family: Laminar) -> Sets:
    """All sets that keep to the quotas."""
    return [
        frozenset(arms)
        for arms in combinations(range(family.n_arms), family.k)
        if all(
            low <= len(family.groups[name] & set(arms)) <= high
            for name, (low, high) in family.limits.items()
        )
    ]


def random_matroids(number: int, seed: int) -> Iterator[tuple[MatroidConstraint, Sets]]:
    """Nested quotas, graphs, transversals and vectors over the field of two elements."""
    rng = np.random.default_rng(seed)
    made = 0
    while made < number:
        n, kind = int(rng.integers(3, 8)), made % 4
        try:
            family = _KINDS[kind](n, rng)
        except InvalidInput:  # empty, or all arms
            continue
        made += 1
        yield family, bases_of(family)


def _nested(n: int, rng: np.random.Generator) -> Laminar:
    outer = rng.permutation(n)[: rng.integers(2, n + 1)]
    inner = outer[: rng.integers(1, outer.size + 1)]
    low, more = rng.integers(0, 2, 2), rng.integers(0, 3, 2)
    limits = {name: (int(a), int(a + b)) for name, a, b in zip("io", low, more, strict=True)}
    groups = {"o": outer.tolist(), "i": inner.tolist()}
    return Laminar(groups, limits, n_arms=n, k=int(rng.integers(1, n)))


def _graphic(n: int, rng: np.random.Generator) -> Matroid:
    ends = rng.integers(0, 4, (n, 2)).tolist()

    def is_forest(arms: Collection[int]) -> bool:
        part = list(range(4))
        for arm in arms:
            one, other = (part[point] for point in ends[arm])
            if one == other:
                return False
            part = [one if each == other else each for each in part]
        return True

    return _with_rank(is_forest, n)


def _transversal(n: int, rng: np.random.Generator) -> Matroid:
    fits = rng.random((n, 3)) < 0.5

    def can_be_matched(arms: Collection[int]) -> bool:
        places = [set(np.flatnonzero(fits[arm]).tolist()) for arm in arms]
        if len(places) > 3:
            return False
        return any(len(set(chosen)) == len(places) for chosen in product(*places))

    return _with_rank(can_be_matched, n)


def _binary_vectors(n: int, rng: np.random.Generator) -> Matroid:
    vectors = rng.integers(1, 16, n).tolist()

    def is_independent(arms: Collection[int]) -> bool:
        basis: list[int] = []
        for arm in arms:
            vector = vectors[arm]
            for each in basis:
                vector = min(vector, vector ^ each)
            if not vector:
                return False
            basis.append(vector)
            basis.sort(reverse=True)
        return True

    return _with_rank(is_independent, n)


def _with_rank(independent: object, n: int) -> Matroid:
    for k in range(1, n):
        try:
            return Matroid(independent, n, k=k)  # type: ignore[arg-type]
        except InvalidInput:
            continue
    raise InvalidInput("no rank fits")


_KINDS = (_nested, _graphic, _transversal, _binary_vectors)


def bases_of(family: object) -> Sets:
    """All sets of a small family of ours."""
    if isinstance(family, Laminar):
        return quota_sets(family)
    assert isinstance(family, Matroid)
    independent = family.independent
    every = combinations(range(family.n_arms), family.k)
    return [frozenset(arms) for arms in every if independent(arms)]


def square_matching(size: int) -> tuple[Matching, Sets]:
    """All perfect matchings of as many rows as columns."""
    rows, columns = zip(*product(range(size), repeat=2), strict=True)
    sets = [
        frozenset(arms)
        for arms in combinations(range(size**2), size)
        if len({rows[arm] for arm in arms}) == size == len({columns[arm] for arm in arms})
    ]
    return Matching(rows, columns), sets


def mask_of(arms: Collection[int], n: int) -> BoolArray:
    """The mask of a set."""
    return np.isin(np.arange(n), list(arms))
