"""Constraints: which sets of k arms may be chosen.

A constraint is any object with a method `best(weights)` that returns the arms of a feasible set of
largest total weight. An object that also has `exchangeable(chosen)`, the feasible swaps of one arm
for another, declares that its sets are the bases of a matroid. The ones here find both exactly:

    Quotas     at least and at most this many arms of each group
    Laminar    the same for groups inside groups
    Matroid    the bases of a matroid, by a function that tells independent sets
    Matching   pairs of a row and a column, no row and no column twice: no matroid

Attributes that overlap, such as vendor and region, are neither quotas nor a matroid."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.validation import MOST_ARMS, collected, reals, shown, whole

Range = tuple[int, int]  # the least and the most arms of a group


class Constraint(Protocol):
    """A family of sets of arms, all of one size.

    Bounds rest on `best`: a set that is only nearly the best proves nothing."""

    def best(self, weights: FloatArray, /) -> npt.ArrayLike:
        """The arms, as positions from 0, of a feasible set of largest total weight."""


@runtime_checkable
class MatroidConstraint(Constraint, Protocol):
    """The bases of a matroid: any two feasible sets are linked by feasible swaps of single arms."""

    def exchangeable(self, chosen: BoolArray, /) -> BoolArray:
        """[j, i]: a feasible set, as a mask, stays feasible if j comes in for i: (n, n)."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A group with the groups inside it."""

    name: object
    arms: IntArray  # that belong to no group inside
    inside: tuple["_Node", ...]
    least: int
    most: int
    whole: bool = False  # the root: all arms

    @property
    def size(self) -> int:
        return self.arms.size + sum(node.size for node in self.inside)

    def feasible(self) -> Range:
        """The numbers of arms that can be chosen here, from the least to the most."""
        low = max(self.least, sum(node.feasible()[0] for node in self.inside))
        high = min(self.most, self.arms.size + sum(node.feasible()[1] for node in self.inside))
        if low > high:
            where = "the whole choice" if self.whole else f"group {shown(self.name)}"
            raise InvalidInput(
                f"no set of arms keeps to the quotas: {where} can have at most {high} chosen arms,"
                f" but needs at least {low}"
            )
        return low, high

    def greedy(self, weights: FloatArray) -> tuple[list[int], list[int]]:
        """The arms that a best set must have, and those that it may have, best first.

        A best choice of any number of arms takes the required ones and then the first optional
        ones: gains of a group fall with every arm, and groups are merged by falling gain."""
        required: list[int] = []
        optional = self.arms.tolist()
        for node in self.inside:
            must, may = node.greedy(weights)
            required += must
            optional += may
        optional.sort(key=lambda arm: -weights[arm])
        missing = max(0, self.least - len(required))
        required += optional[:missing]
        return required, optional[missing : missing + self.most - len(required)]


class Laminar:
    """Quotas on groups inside groups: any two groups are disjoint, or one lies in the other.

    Args:
        groups: Name of every group and its arms, as positions from 0.
        quotas: Name of a group and (least, most): how many of its arms may be chosen. Groups that
            are not named are free.
        n_arms: Number of arms.
        k: Number of arms to choose.

    Raises:
        InvalidInput: If groups overlap, a quota names no group, or no set keeps to the quotas.

    Example:
        >>> from shortlist.constraints import Laminar
        >>> groups = {"europe": [0, 1, 2], "france": [0, 1]}
        >>> family = Laminar(groups, {"europe": (0, 2), "france": (1, 1)}, n_arms=5, k=3)
        >>> family.best([0.9, 0.8, 0.7, 0.6, 0.5]).tolist()
        [0, 2, 3]
    """

    def __init__(
        self,
        groups: Mapping[Any, Iterable[int]],
        quotas: Mapping[Any, Range],
        *,
        n_arms: int,
        k: int,
    ) -> None:
        self.n_arms = whole("n_arms", n_arms, at_least=2, at_most=MOST_ARMS)
        self.k = whole("k", k, at_least=1, at_most=self.n_arms - 1)
        _check_mapping("groups", groups)
        _check_mapping("quotas", quotas)
        members = {name: _members(name, arms, self.n_arms) for name, arms in groups.items()}
        limits = _limits(quotas, members)
        self.groups: Mapping[Hashable, frozenset[int]] = members
        self.limits: Mapping[Hashable, Range] = limits  # least and most of every group
        self._root = _tree(members, limits, self.n_arms, self.k)
        low, high = self._root.feasible()
        if not low <= self.k <= high:
            raise InvalidInput(
                f"`k` is {self.k}, but the quotas allow at least {low} and at most {high} arms"
            )

    def best(self, weights: npt.ArrayLike) -> IntArray:
        """The arms of a feasible set of largest total weight, in increasing order.

        Args:
            weights: Weight of every arm.

        Returns:
            Numbers of the arms: (k,)."""
        values = _weights(weights, self.n_arms)
        required, optional = self._root.greedy(values)
        return np.sort(np.array(required + optional[: self.k - len(required)], dtype=np.int64))

    @property
    def is_free(self) -> bool:
        """Whether all sets of k arms keep to the quotas."""
        sizes = {name: len(arms) for name, arms in self.groups.items()}
        return all(
            least <= max(0, self.k - self.n_arms + sizes[name]) and most >= min(sizes[name], self.k)
            for name, (least, most) in self.limits.items()
        )

    def exchangeable(self, chosen: BoolArray) -> BoolArray:
        """[j, i]: whether j outside may come in for i inside: (n, n).

        No group that j joins may be full, and none that i leaves may be at its least.

        Args:
            chosen: Numbers of the chosen arms.

        Returns:
            A row per arm that comes in, a column per arm that goes out."""
        members = self._members()
        counts = members @ chosen
        limits = np.array(list(self.limits.values()), dtype=np.int64).reshape(-1, 2)
        full, least = members[counts >= limits[:, 1]], members[counts <= limits[:, 0]]
        barred = _split(full) | _split(least).T
        return np.asarray(~barred & ~chosen[:, None] & chosen, dtype=np.bool_)

    def _members(self) -> IntArray:
        """1 where an arm is in a group: (groups, n)."""
        members = np.zeros((len(self.groups), self.n_arms), dtype=np.int64)
        for row, arms in zip(members, self.groups.values(), strict=True):
            row[list(arms)] = 1
        return members

    def among(self, arms: IntArray) -> "Laminar":
        """The same quotas for these arms only, numbered from 0; refused if no set keeps to them.

        Args:
            arms: Numbers of the arms that remain.

        Returns:
            The quotas of the remaining arms."""
        place = {arm: position for position, arm in enumerate(arms.tolist())}
        groups = {
            name: [place[arm] for arm in members if arm in place]
            for name, members in self.groups.items()
        }
        return Laminar(groups, self.limits, n_arms=len(place), k=self.k)


class Quotas(Laminar):
    """At least and at most this many arms of each group.

    Args:
        groups: The group of every arm, in the order of the arms.
        quotas: Name of a group and (least, most): how many of its arms may be chosen. Groups that
            are not named are free.
        k: Number of arms to choose.

    Raises:
        InvalidInput: If a quota names no group, or no set of k arms keeps to the quotas.

    Example:
        >>> from shortlist.constraints import Quotas
        >>> family = Quotas(["meta", "meta", "openai", "openai"], {"meta": (1, 1)}, k=2)
        >>> family.best([0.9, 0.8, 0.1, 0.2]).tolist()
        [0, 3]
    """

    def __init__(self, groups: Sequence[Hashable], quotas: Mapping[Any, Range], *, k: int) -> None:
        members: dict[Hashable, list[int]] = {}
        names = _names("groups", groups)
        for arm, group in enumerate(names):
            members.setdefault(group, []).append(arm)
        super().__init__(members, quotas, n_arms=len(names), k=k)
        self.group_of: list[Hashable] = names  # of every arm
        self._group, _ = _numbered(names)
        # (groups,) each, in the order in which groups are first named
        self.least: IntArray = np.array([self.limits[name][0] for name in members])
        self.most: IntArray = np.array([self.limits[name][1] for name in members])

    def best_of_each(self, weights: FloatArray) -> BoolArray:
        """The masks of the best sets for many vectors of weights: (rows, n).

        Args:
            weights: Weight of every arm.

        Returns:
            A row per vector of weights, True where an arm is in its set."""
        order = np.argsort(-weights, axis=1, kind="stable")
        group = self._group[order]  # (rows, n), best first
        same = group[:, :, None] == np.arange(self.least.size)
        rank = np.take_along_axis(np.cumsum(same, axis=1), group[:, :, None], axis=2)[:, :, 0]
        required = rank <= self.least[group]
        optional = ~required & (rank <= self.most[group])
        taken = required | (optional & (optional.cumsum(1) <= self.k - self.least.sum()))
        chosen = np.zeros(weights.shape, dtype=np.bool_)
        np.put_along_axis(chosen, order, taken, axis=1)
        return chosen

    def among(self, arms: IntArray) -> "Quotas":
        """The same quotas for these arms only, numbered from 0; refused if no set keeps to them.

        Args:
            arms: Numbers of the arms that remain.

        Returns:
            The quotas of the remaining arms."""
        rest = [self.group_of[arm] for arm in arms.tolist()]
        gone = set(self.groups) - set(rest)
        for name in gone:
            _limit(name, self.limits[name], 0)
        limits = {name: limit for name, limit in self.limits.items() if name not in gone}
        return Quotas(rest, limits, k=self.k)


class Matching:
    """Pairs of a row and a column, such as people and posts: no row and no column twice.

    Args:
        rows: The row of every arm.
        columns: The column of every arm. Pairs that no arm stands for cannot be chosen.
        k: Number of pairs to choose. Default: as many as there are rows, or columns if these are
            fewer.

    Raises:
        InvalidInput: If two arms are the same pair, or k pairs cannot be chosen.

    Example:
        >>> from shortlist.constraints import Matching
        >>> family = Matching(["ann", "ann", "bob", "bob"], ["cook", "wait", "cook", "wait"])
        >>> family.best([0.9, 0.8, 0.8, 0.1]).tolist()
        [1, 2]
    """

    def __init__(
        self, rows: Sequence[Hashable], columns: Sequence[Hashable], *, k: int | None = None
    ) -> None:
        rows, columns = _names("rows", rows), _names("columns", columns)
        if len(rows) != len(columns):
            raise InvalidInput(
                f"`rows` has {len(rows)} entries and `columns` {len(columns)}, but both need one"
                " per arm"
            )
        self.n_arms = len(rows)
        self.rows, self.columns = rows, columns  # names, of every arm
        self.row_of, height = _numbered(rows)
        self.column_of, width = _numbered(columns)
        pairs = set(zip(self.row_of.tolist(), self.column_of.tolist(), strict=True))
        if len(pairs) < self.n_arms:
            raise InvalidInput("two arms are the same pair of row and column")
        most = min(height, width)
        self.k = most if k is None else whole("k", k, at_least=1, at_most=most)
        # rows and columns that stay unmatched are matched with these many extra ones
        self._shape = height + width - self.k, height + width - self.k
        self.height, self.width = height, width
        if self._assigned(np.zeros(self.n_arms)) is None:
            raise InvalidInput(
                f"`k` is {self.k}, but no {self.k} of the pairs share no row or column"
            )

    def best(self, weights: npt.ArrayLike) -> IntArray:
        """The arms of a feasible set of largest total weight, in increasing order.

        Args:
            weights: Weight of every arm.

        Returns:
            Numbers of the arms: (k,)."""
        arms = self._assigned(_weights(weights, self.n_arms))
        assert arms is not None  # settled when it was made
        return arms

    def among(self, arms: IntArray) -> "Matching":
        """The same pairs without those of other arms; refused if too few remain.

        Args:
            arms: Numbers of the arms that remain.

        Returns:
            The pairs of the remaining arms."""
        rows = [self.rows[arm] for arm in arms.tolist()]
        return Matching(rows, [self.columns[arm] for arm in arms.tolist()], k=self.k)

    def _assigned(self, weights: FloatArray) -> IntArray | None:
        from scipy.optimize import linear_sum_assignment  # slow to load, and few need it

        table = np.zeros(self._shape)
        table[: self.height, : self.width] = -np.inf
        table[self.height :, self.width :] = -np.inf
        table[self.row_of, self.column_of] = weights
        try:
            rows, columns = linear_sum_assignment(table, maximize=True)
        except ValueError:  # no assignment avoids the pairs that do not exist
            return None
        position = np.full(self._shape, -1)
        position[self.row_of, self.column_of] = np.arange(self.n_arms)
        arms: IntArray = position[rows, columns]
        return np.sort(arms[arms >= 0])


class Matroid:
    """The bases of a matroid, such as the spanning trees of a graph whose edges are the arms.

    Args:
        independent: Tells whether a set of arms, as positions from 0, is independent. Every part
            of an independent set must be independent, and two maximal ones must have equal sizes:
            this is not checked.
        n_arms: Number of arms.
        k: Number of arms to choose; must be the size of the bases.

    Raises:
        InvalidInput: If bases do not have `k` arms.

    Example:
        >>> from shortlist.constraints import Matroid
        >>> family = Matroid(lambda arms: len({arm // 2 for arm in arms}) == len(arms), 6, k=3)
        >>> family.best([1, 2, 4, 3, 5, 6]).tolist()
        [1, 2, 5]
    """

    def __init__(
        self, independent: Callable[[Collection[int]], bool], n_arms: int, *, k: int
    ) -> None:
        self.n_arms = whole("n_arms", n_arms, at_least=2, at_most=MOST_ARMS)
        self.k = whole("k", k, at_least=1, at_most=self.n_arms - 1)
        if not callable(independent):
            raise InvalidInput(f"`independent` is {shown(independent)}, but must be a function")
        self.independent = independent
        rank = len(self._basis(range(self.n_arms)))
        if rank != self.k:
            raise InvalidInput(f"`k` is {self.k}, but the bases of the matroid have {rank} arms")

    def best(self, weights: npt.ArrayLike) -> IntArray:
        """The arms of a basis of largest total weight, in increasing order.

        Args:
            weights: Weight of every arm.

        Returns:
            Numbers of the arms: (k,)."""
        order = np.argsort(-_weights(weights, self.n_arms), kind="stable")
        return np.sort(np.array(self._basis(order.tolist()), dtype=np.int64))

    def exchangeable(self, chosen: BoolArray) -> BoolArray:
        """[j, i]: whether j outside may come in for i inside: (n, n).

        Args:
            chosen: Numbers of the chosen arms.

        Returns:
            A row per arm that comes in, a column per arm that goes out."""
        inside = np.flatnonzero(chosen).tolist()
        swaps = np.zeros((self.n_arms, self.n_arms), dtype=np.bool_)
        for i in inside:
            rest = [arm for arm in inside if arm != i]
            for j in np.flatnonzero(~chosen).tolist():
                swaps[j, i] = self.independent([*rest, j])
        return swaps

    def among(self, arms: IntArray) -> "Matroid":
        """The same matroid without the other arms; refused if its bases become smaller.

        Args:
            arms: Numbers of the arms that remain.

        Returns:
            The matroid of the remaining arms."""
        names = arms.tolist()
        return Matroid(
            lambda some: self.independent([names[arm] for arm in some]), arms.size, k=self.k
        )

    def _basis(self, order: Iterable[int]) -> list[int]:
        taken: list[int] = []
        for arm in order:
            if self.independent([*taken, arm]):
                taken.append(arm)
        return taken


@dataclass(frozen=True, slots=True)
class Complement:
    """The sets of arms that a family leaves out."""

    family: Constraint
    n_arms: int

    def best(self, weights: FloatArray) -> IntArray:
        """The arms that remain if a set of least total weight is taken out."""
        return np.setdiff1d(np.arange(self.n_arms), np.asarray(self.family.best(-weights)))


class MatroidComplement(Complement):
    """The same of a matroid: these sets are the bases of its dual."""

    family: MatroidConstraint

    def exchangeable(self, chosen: BoolArray) -> BoolArray:
        """[j, i]: whether j outside may come in for i inside: (n, n)."""
        return self.family.exchangeable(~chosen).T


def complement_of(family: Constraint, n_arms: int) -> Complement:
    """The sets of arms that a family leaves out."""
    dual = MatroidComplement if isinstance(family, MatroidConstraint) else Complement
    return dual(family, n_arms)


@dataclass(frozen=True, slots=True)
class AnyArms:
    """All sets of k arms."""

    k: int

    def best(self, weights: FloatArray) -> IntArray:
        """The k arms of largest weight."""
        return np.argsort(-weights, kind="stable")[: self.k]


def best_set(constraint: Constraint, weights: FloatArray, k: int) -> BoolArray:
    """The mask of the set that a constraint finds best; refused if it is not a set of k arms."""
    arms = np.asarray(constraint.best(weights))
    whole_numbers = arms.ndim == 1 and (arms.dtype.kind in "iu" or arms.size == 0)
    if not whole_numbers or arms.size != k or np.unique(arms).size != k:
        raise InvalidInput(
            f"the constraint's `best` returned {shown(arms)}, but must return {k} arms"
        )
    if arms.min() < 0 or arms.max() >= weights.size:
        raise InvalidInput(
            f"the constraint's `best` returned {shown(arms)}, but arms are 0 to {weights.size - 1}"
        )
    chosen = np.zeros(weights.size, dtype=np.bool_)
    chosen[arms] = True
    return chosen


def check_family(constraint: Constraint, n_arms: int, k: int) -> None:
    """Refuse an object that is no family of sets of k of this many arms."""
    if not callable(getattr(constraint, "best", None)):
        raise InvalidInput(
            f"`constraint` is {shown(constraint)}, but must be an object with a method"
            " `best(weights)`, such as Quotas, Laminar, Matching or Matroid"
        )
    for name, value in (("n_arms", n_arms), ("k", k)):
        own = getattr(constraint, name, value)
        if own != value:
            raise InvalidInput(
                f"`constraint` was made for {name} = {shown(own)}, but `{name}` is {value}"
            )
    best_set(constraint, np.zeros(n_arms), k)


@dataclass(frozen=True, slots=True)
class Reordered:
    """The same family with its arms in another order."""

    family: Constraint
    order: IntArray  # the arm that is at every place now

    def best(self, weights: FloatArray) -> IntArray:
        """The arms of a feasible set of largest total weight."""
        own = np.empty_like(weights)
        own[self.order] = weights
        return np.flatnonzero(np.isin(self.order, np.asarray(self.family.best(own))))


def reordered(constraint: Constraint, order: IntArray) -> Constraint:
    """The same constraint with its arms in this order."""
    own = hasattr(constraint, "among")
    return family_among(constraint, order) if own else Reordered(constraint, order)


def best_by(
    constraint: Constraint, values: FloatArray, ties: FloatArray | IntArray, k: int
) -> BoolArray:
    """The mask of the best set by these values; of a matroid, equal ones count by `ties`."""
    if not isinstance(constraint, MatroidConstraint):
        return best_set(constraint, values, k)
    ranks = np.empty(values.size)  # which settle the best basis of a matroid
    ranks[np.lexsort((ties, values))] = np.arange(values.size)
    return best_set(constraint, ranks, k)


def family_among(constraint: Constraint, arms: IntArray) -> Constraint:
    """The same constraint for these arms only; refused if it cannot be restricted."""
    restrict: Callable[[IntArray], Constraint] | None = getattr(constraint, "among", None)
    if restrict is None:
        raise InvalidInput(
            f"arms cannot retire under the constraint {shown(constraint)}, but under quotas they"
            " can"
        )
    return restrict(arms)


def feasible_without(constraint: Constraint, n_arms: int, k: int, arms: Collection[int]) -> bool:
    """Whether a feasible set has none of these arms."""
    left = np.isin(np.arange(n_arms), list(arms))
    return not (best_set(constraint, np.where(left, -1.0, 0.0), k) & left).any()


def check_feasible(constraint: Constraint, chosen: BoolArray) -> None:
    """Refuse a set that breaks the constraint: no feasible set shares all of its arms."""
    found = best_set(constraint, chosen.astype(np.float64), int(chosen.sum()))
    if not np.array_equal(found, chosen):
        raise InvalidInput(
            f"arms {np.flatnonzero(chosen).tolist()} are chosen, but the constraint does not allow"
            " this set"
        )


def _names(what: str, values: Iterable[Hashable]) -> list[Hashable]:
    """The entries of a list, which must serve as names."""
    names = collected(what, values, at_most=MOST_ARMS)
    try:
        set(names)
    except TypeError as error:
        raise InvalidInput(f"`{what}` is {shown(values)}, but its entries must be names") from error
    return names


def _check_mapping(what: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"`{what}` is {shown(value)}, but must be a mapping")


def _weights(weights: npt.ArrayLike, n_arms: int) -> FloatArray:
    values = reals("weights", weights)
    if values.shape != (n_arms,):
        raise InvalidInput(f"`weights` has shape {values.shape}, but must have {n_arms} numbers")
    if not np.isfinite(values).all():
        raise InvalidInput(f"`weights` is {shown(weights)}, but must be finite numbers")
    return values


def _members(name: object, arms: Iterable[int], n_arms: int) -> frozenset[int]:
    given = collected(f"the arms of group {shown(name)}", arms, at_most=n_arms)
    what = f"an arm of group {shown(name)}"
    return frozenset(whole(what, arm, at_least=0, at_most=n_arms - 1) for arm in given)


def _limits(
    quotas: Mapping[Any, Range], members: Mapping[Any, frozenset[int]]
) -> dict[Hashable, Range]:
    """Least and most arms of every group, the most cut to its size."""
    for name in quotas:
        if name not in members:
            raise InvalidInput(
                f"`quotas` names group {shown(name)}, but the groups are"
                f" {', '.join(map(shown, members))}"
            )
    return {name: _limit(name, quotas.get(name), len(arms)) for name, arms in members.items()}


def _limit(name: object, quota: object, size: int) -> Range:
    if quota is None:
        return 0, size
    if not (isinstance(quota, tuple | list) and len(quota) == 2):
        raise InvalidInput(
            f"the quota of group {shown(name)} is {shown(quota)}, but must be (least, most)"
        )
    what = f"quota of group {shown(name)}"
    least = whole(f"least {what}", quota[0], at_least=0)
    most = whole(f"most {what}", quota[1], at_least=least)
    if least > size:
        raise InvalidInput(
            f"the quota of group {shown(name)} is at least {least}, but it has {size} arms"
        )
    return least, min(most, size)


def _tree(
    members: Mapping[Any, frozenset[int]],
    limits: Mapping[Any, Range],
    n_arms: int,
    k: int,
) -> _Node:
    """All groups below one that holds every arm."""
    names = sorted(members, key=lambda name: -len(members[name]))
    every = object()  # no name of a group, which None may be
    inside: dict[Hashable, list[Hashable]] = {every: [], **{name: [] for name in names}}
    for place, name in enumerate(names):
        larger = [other for other in names[:place] if members[other] & members[name]]
        for other in larger:
            if not members[name] <= members[other]:
                raise InvalidInput(
                    f"groups {shown(other)} and {shown(name)} overlap, but one must lie in the"
                    " other: overlapping groups are no matroid"
                )
        inside[larger[-1] if larger else every].append(name)

    def node(name: Hashable, arms: frozenset[int], limit: Range) -> _Node:
        nodes = tuple(node(each, members[each], limits[each]) for each in inside[name])
        deeper = frozenset().union(*(members[each] for each in inside[name]))
        own = np.array(sorted(arms - deeper), dtype=np.int64)
        whole = name is every
        return _Node("all arms" if whole else name, own, nodes, *limit, whole)

    return node(every, frozenset(range(n_arms)), (0, k))


def _split(groups: IntArray) -> BoolArray:
    """[j, i]: whether j and not i is in one of these groups, (groups, n): (n, n)."""
    return np.asarray(groups.T @ (1 - groups) > 0, dtype=np.bool_)


def _numbered(labels: Sequence[Hashable]) -> tuple[IntArray, int]:
    """Labels as numbers from 0, and how many different ones there are."""
    numbers: dict[Hashable, int] = {}
    listed = [numbers.setdefault(label, len(numbers)) for label in labels]
    return np.array(listed, dtype=np.int64), len(numbers)
