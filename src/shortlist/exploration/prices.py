"""Prices: a boundary per arm, where not every set of k arms may be chosen.

A set T is best at prices p if no other allowed set has a larger total price. Among such prices
those with the least expected distance on the wrong side are wanted: of means above the price
outside T, below it inside. Its derivative by a price is the *excess*: arms inside expected below
the price less arms outside expected above it. It rises with the price.

Quotas, also of groups inside groups: the price of a group is at least that of the group around it
if it is full, at most that if it has its least number of arms, any if both, and the same if
neither. The least cost of a group, as a function of the price around it, has its own excess as
derivative, cut at 0 from below if the group is full, and from above if it has its least number. So
one pass from the inner groups to the outer ones adds up excesses, and one pass back finds prices.

A matching: the price of a pair is that of its row plus that of its column, by a linear program over
some quantiles of every posterior. The function has corners, where a descent by one price at a time
would end too early.

For other families prices are free, and sets that exceed the chosen one are cut off, one after the
other: those that `best` finds at the prices so far. Of a matroid, the single swaps that such a set
consists of are cut off instead, which is stronger.

`PricedPosterior` explores with these prices: the choice is the best allowed set by posterior means.
Its grid is even, since prices are spread out.

No guarantee rests on prices being good: certificates/under_constraints.py computes the surplus
of any prices."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.constraints import Constraint, Laminar, Matching, Matroid, best_set
from shortlist.exploration import tuning
from shortlist.exploration.posterior import (
    Grid,
    Posterior,
    UndeclaredPosterior,
    posterior_of,
)
from shortlist.problem import Problem
from shortlist.reward_models import RewardModel, Undeclared

PRICE_UNIT = 2.0**-40  # of which prices are multiples, so that sums of thousands are exact
UNCERTAIN = 1e-3  # expected number of arms on the wrong side that counts as none
JITTER = 2.0**-30  # added to means, as a share of the largest, so that ties are broken at random


@dataclass(frozen=True, slots=True)
class Prices:
    """A price per arm, and the prices it is made of if the family is a matching."""

    of_arms: FloatArray  # (arms,)
    of_rows: FloatArray | None = None
    of_columns: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class ArmBeliefs:
    """The posterior of every arm on a grid of means."""

    grid: FloatArray  # (grid,), rising
    weights: FloatArray  # (arms, grid)
    span: tuple[float, float]  # of the means

    @property
    def edges(self) -> FloatArray:
        """The upper end of the cell of every point of the grid."""
        return np.append((self.grid[1:] + self.grid[:-1]) / 2, self.grid[-1])

    def excess(self, chosen: BoolArray) -> FloatArray:
        """The excess of every arm at every edge: (arms, grid)."""
        below = np.cumsum(self.weights, axis=1)
        return np.where(chosen[:, None], below, below - 1)


def best_prices(constraint: Constraint, chosen: BoolArray, beliefs: ArmBeliefs) -> Prices:
    """Prices at which `chosen` is best, or nearly, with about the least expected charge."""
    if isinstance(constraint, Laminar):
        return Prices(_quota_prices(constraint, chosen, beliefs))
    quantiles = quantiles_of(beliefs.grid, beliefs.weights)
    low, high = beliefs.span
    if not isinstance(constraint, Matching):
        prices = free_prices(constraint, chosen, quantiles, beliefs.span)
        return Prices(in_units(np.clip(prices, low, high)))
    rows, columns = (in_units(each) for each in matching_parts(constraint, chosen, quantiles))
    together = rows[constraint.row_of] + columns[constraint.column_of]
    return Prices(in_units(np.clip(together, low, high)), rows, columns)


def in_units(prices: FloatArray) -> FloatArray:
    """Prices rounded to multiples of the unit."""
    rounded: FloatArray = np.rint(prices / PRICE_UNIT) * PRICE_UNIT
    return rounded


def _quota_prices(family: Laminar, chosen: BoolArray, beliefs: ArmBeliefs) -> FloatArray:
    """The price of its innermost group for every arm: (arms,)."""
    excess = beliefs.excess(chosen)
    edges = beliefs.edges
    groups = _groups_of(family, chosen)
    for group in groups:  # inner ones first
        group.excess = excess[group.own].sum(axis=0) + sum(
            (inner.passed_on for inner in group.inside), start=np.zeros(edges.size)
        )
    prices = np.empty(chosen.size)
    common = _root(groups[-1].excess, edges)
    found = {id(groups[-1]): common}  # by group
    for group in reversed(groups):  # outer ones first
        prices[group.own] = found[id(group)]
        for inner in group.inside:
            found[id(inner)] = inner.price(found[id(group)], edges)
    return in_units(prices)


@dataclass(slots=True)
class _Group:
    """A group with those inside it, and how its price may differ from that of the group around."""

    arms: frozenset[int]
    own: IntArray  # arms in no group inside it
    inside: list["_Group"]
    full: bool
    at_least: bool  # no arm fewer may be chosen
    excess: FloatArray = field(default_factory=lambda: np.empty(0))  # (edges,)

    @property
    def passed_on(self) -> FloatArray:
        """The excess that the price around it has to balance."""
        excess = self.excess
        if self.full:
            excess = np.maximum(excess, 0.0)
        if self.at_least:
            excess = np.minimum(excess, 0.0)
        return excess

    def price(self, around: float, edges: FloatArray) -> float:
        """Its best price, if this is the price around it."""
        low = -np.inf if self.at_least else around
        high = np.inf if self.full else around
        return float(np.clip(_root(self.excess, edges), low, high))


def _groups_of(family: Laminar, chosen: BoolArray) -> list[_Group]:
    """All groups with arms, inner ones before outer ones; the last one holds all arms."""
    named = sorted(family.groups, key=lambda name: len(family.groups[name]))
    groups: list[_Group] = []
    top: list[_Group] = []  # those that lie in no other group so far
    every = [(family.groups[name], family.limits[name]) for name in named]
    for arms, (least, most) in [*every, (frozenset(range(chosen.size)), (0, family.k))]:
        inside = [each for each in top if each.arms <= arms]
        top = [each for each in top if not each.arms <= arms]
        own = arms.difference(*(each.arms for each in inside))
        number = int(chosen[list(arms)].sum())
        listed = np.array(sorted(own), dtype=np.int64)
        group = _Group(arms, listed, inside, number == most, number == least)
        groups.append(group)
        top.append(group)
    return groups


def _root(excess: FloatArray, edges: FloatArray) -> float:
    """Where a rising function is 0; the middle if it is about 0 on an interval."""
    return float(np.interp([-UNCERTAIN, UNCERTAIN], excess, edges).mean())


@dataclass(frozen=True, slots=True)
class Sparse:
    """A sparse matrix by its entries, row by row."""

    rows: IntArray
    columns: IntArray
    values: FloatArray
    limits: FloatArray  # the right sides: (number of rows,)


class PriceProgram:
    """Minimise the expected distance on the wrong side, over prices with some inequalities.

    Variables are first those that prices are made of, then the distance of every quantile."""

    def __init__(
        self, chosen: BoolArray, quantiles: FloatArray, parts: list[IntArray], n_parts: int
    ) -> None:
        """The price of an arm is the sum of its `parts`, (arms,) each, of `n_parts` in all."""
        each = quantiles.shape[1]  # (arms, quantiles)
        self.n_parts = n_parts
        piece = np.arange(quantiles.size)
        side = np.repeat(np.where(chosen, 1.0, -1.0), each)
        # inside: distance >= price - quantile; outside: distance >= quantile - price
        columns = [np.repeat(part, each) for part in parts] + [n_parts + piece]
        values = [side for _ in parts] + [-np.ones(piece.size)]
        self.distances = Sparse(
            np.tile(piece, len(columns)),
            np.concatenate(columns),
            np.concatenate(values),
            side * quantiles.ravel(),
        )
        self.costs: FloatArray = np.concatenate([np.zeros(n_parts), np.full(piece.size, 1 / each)])

    def solve(self, more: Sparse, bounds: list[tuple[float | None, float | None]]) -> FloatArray:
        """The best parts under `more` inequalities and these bounds: (parts,)."""
        from scipy.optimize import linprog  # slow to load, and few need it
        from scipy.sparse import coo_matrix

        own = self.distances
        shape = own.limits.size + more.limits.size, self.costs.size
        matrix: Any = coo_matrix(
            (
                np.concatenate([own.values, more.values]),
                (
                    np.concatenate([own.rows, own.limits.size + more.rows]),
                    np.concatenate([own.columns, more.columns]),
                ),
            ),
            shape,
        )
        rest = self.costs.size - self.n_parts
        found = linprog(
            self.costs,
            A_ub=matrix.tocsr(),
            b_ub=np.concatenate([own.limits, more.limits]),
            bounds=bounds + [(0.0, None)] * rest,
            method="highs",
        )
        parts: FloatArray = np.zeros(self.n_parts)
        if found.x is not None:
            parts[:] = found.x[: self.n_parts]
        return parts


def quantiles_of(grid: FloatArray, weights: FloatArray) -> FloatArray:
    """Some quantiles of every posterior: (arms, quantiles)."""
    rising = np.cumsum(weights, axis=1)
    at = (np.arange(tuning.QUANTILES) + 0.5) / tuning.QUANTILES
    last = grid.size - 1
    places = [np.minimum((rising < each).sum(axis=1), last) for each in at]
    quantiles: FloatArray = grid[np.stack(places, axis=1)]
    return quantiles


def matching_parts(
    family: Matching, chosen: BoolArray, quantiles: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Prices of rows and of columns, as multiples of the step.

    Where not every row is matched, no unmatched row has a larger price than a matched one."""
    rows, columns = family.height, family.width
    n_parts = rows + columns
    program = PriceProgram(chosen, quantiles, [family.row_of, rows + family.column_of], n_parts + 2)
    cuts: list[tuple[int, int]] = []  # the first has no larger price than the second
    for number, (own, first, size) in enumerate(
        ((family.row_of, 0, rows), (family.column_of, rows, columns))
    ):
        used = np.zeros(size, dtype=np.bool_)
        used[own[chosen]] = True
        if not used.all():
            level = n_parts + number
            cuts += [(first + each, level) for each in np.flatnonzero(~used).tolist()]
            cuts += [(level, first + each) for each in np.flatnonzero(used).tolist()]
    found = program.solve(_order_of(cuts), [(None, None)] * (n_parts + 2))
    steps = np.rint(found[:n_parts] * tuning.PRICE_STEPS) / tuning.PRICE_STEPS
    return steps[:rows], steps[rows:]


Swap = tuple[IntArray, IntArray]  # arms that come in, and those they come in for


def free_prices(
    family: Constraint, chosen: BoolArray, quantiles: FloatArray, span: tuple[float, float]
) -> FloatArray:
    """A price per arm within the span, cutting off sets that exceed the chosen one: (arms,)."""
    n_arms = chosen.size
    program = PriceProgram(chosen, quantiles, [np.arange(n_arms)], n_arms + 1)
    program.costs[n_arms] = 1.0  # the surplus
    bounds: list[tuple[float | None, float | None]] = [span] * n_arms
    swaps: list[Swap] = []
    prices = np.where(chosen, quantiles[:, 0], quantiles[:, -1])  # nothing is charged there
    for _ in range(tuning.CUT_ROUNDS):
        best = best_set(family, prices, int(chosen.sum()))
        found = best & ~chosen, chosen & ~best
        if float(prices[found[0]].sum() - prices[found[1]].sum()) <= tuning.SMALL_SURPLUS:
            break
        swaps += _swaps(family, chosen, np.flatnonzero(found[0]), np.flatnonzero(found[1]))
        prices = program.solve(_no_gain(swaps, n_arms), [*bounds, (0.0, None)])[:n_arms]
    rounded: FloatArray = np.rint(prices * tuning.FINE_STEPS) / tuning.FINE_STEPS
    return rounded


def _swaps(family: Constraint, chosen: BoolArray, coming: IntArray, going: IntArray) -> list[Swap]:
    """The exchange of all these arms; of a matroid, all exchanges of one of them for another."""
    if not isinstance(family, Matroid):
        return [(coming, going)]
    inside = np.flatnonzero(chosen).tolist()
    return [
        (np.array([j]), np.array([i]))
        for i in going.tolist()
        for j in coming.tolist()
        if family.independent([*(arm for arm in inside if arm != i), j])
    ]


def _no_gain(swaps: list[Swap], surplus: int) -> Sparse:
    """Inequalities by which no exchange gains more than the variable `surplus`.

    Exchanges of one arm for another gain nothing."""
    rows, columns, values = [], [], []
    for number, (coming, going) in enumerate(swaps):
        single = coming.size == 1
        own = np.concatenate([coming, going, [] if single else [surplus]]).astype(np.int64)
        rows.append(np.full(own.size, number))
        columns.append(own)
        values.append(np.where(np.isin(own, coming), 1.0, -1.0))
    return Sparse(
        np.concatenate(rows), np.concatenate(columns), np.concatenate(values), np.zeros(len(swaps))
    )


def _order_of(pairs: list[tuple[int, int]]) -> Sparse:
    """Inequalities by which the first of every pair is no larger than the second."""
    number = np.arange(len(pairs))
    low, high = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Sparse(
        np.concatenate([number, number]),
        np.concatenate([low, high]),
        np.concatenate([np.ones(number.size), -np.ones(number.size)]),
        np.zeros(number.size),
    )


class PricedPosterior(Posterior):
    """Posterior over the mean of every arm, the best allowed set and its prices."""

    def __init__(self, n_arms: int, k: int, rewards: RewardModel, constraint: Constraint) -> None:
        super().__init__(n_arms, k, rewards)
        self.constraint = constraint
        self._grid = Grid(has_range=rewards.has_range, even=True)
        self._choice: tuple[BoolArray, Prices] | None = None

    def refresh(self) -> None:
        """Fit the prior to all arms and update every posterior."""
        super().refresh()
        self._choice = None

    def priced(self, rng: np.random.Generator) -> tuple[BoolArray, Prices]:
        """The best allowed set by posterior means, and its prices.

        Until there are more rewards the answer stays the same, ties included."""
        if self._choice is None:
            means = self.means()
            with np.errstate(over="ignore", under="ignore"):
                comparable = (means - means.mean()).astype(np.float32).astype(np.float64)
            noise = JITTER * float(np.abs(comparable).max()) * rng.random(means.size)
            chosen = best_set(self.constraint, comparable + noise, self.k)
            self._choice = chosen, best_prices(self.constraint, chosen, self.beliefs)
        return self._choice

    def split(self, rng: np.random.Generator) -> tuple[BoolArray, float]:
        """The best allowed set as a mask, and its average price."""
        chosen, prices = self.priced(rng)
        return chosen, float(prices.of_arms.mean())

    @property
    def beliefs(self) -> ArmBeliefs:
        """The posterior of every arm: (arms, grid)."""
        span = (0.0, 1.0) if self.rewards.has_range else (self.grid[0], self.grid[-1])
        return ArmBeliefs(self.grid, self.weights[self.row], span)

    def priorities(self, rng: np.random.Generator) -> tuple[IntArray, FloatArray, IntArray]:
        """Every arm as a kind of its own; its expected loss per pull, and its pulls."""
        return np.arange(self.n_arms), self.arm_losses(rng) / self._counts, self.pulls

    def arm_losses(self, rng: np.random.Generator) -> FloatArray:
        """Expected distance on the wrong side of its price, tempered posterior: (arms,)."""
        chosen, prices = self.priced(rng)
        prior = self.prior if self._row_prior is None else self._row_prior
        tempered = np.exp(tuning.TEMPER * self._log) * prior  # (rows, grid)
        return self._beyond(chosen, prices, tempered / tempered.sum(axis=1, keepdims=True))

    def total_loss(self, chosen: BoolArray, prices: Prices) -> float:
        """Expected total distance on the wrong side of the prices."""
        return float(self._beyond(chosen, prices, self.weights).sum())

    def _beyond(self, chosen: BoolArray, prices: Prices, weights: FloatArray) -> FloatArray:
        """Expected distance of every mean on the wrong side of its price: (arms,).

        E (m - p)+ is the first moment of the means above p less p times their probability."""
        price = prices.of_arms
        none = np.zeros((weights.shape[0], 1))
        at_most = np.concatenate([none, np.cumsum(weights, axis=1)], axis=1)
        moments = np.concatenate([none, np.cumsum(weights * self.grid, axis=1)], axis=1)
        first = np.searchsorted(self.grid, price)  # point of the grid that is not below
        below, moment = at_most[self.row, first], moments[self.row, first]
        inside = price * below - moment
        outside = (moments[self.row, -1] - moment) - price * (at_most[self.row, -1] - below)
        beyond: FloatArray = np.maximum(np.where(chosen, inside, outside), 0.0)
        return beyond


class PricedUndeclared(PricedPosterior, UndeclaredPosterior):
    """The same where nothing was declared about rewards."""

    def __init__(self, n_arms: int, k: int, constraint: Constraint) -> None:
        UndeclaredPosterior.__init__(self, n_arms, k)
        self.constraint = constraint
        self._choice = None


def exploring(problem: Problem) -> Posterior:
    """The posterior that a problem is explored with; features guide it."""
    posterior = _unguided(problem)
    if problem.features is not None:
        posterior.follow(problem.features)
    return posterior


def _unguided(problem: Problem) -> Posterior:
    if problem.constraint is None:
        return posterior_of(problem.n_arms, problem.k, problem.rewards)
    if isinstance(problem.rewards, Undeclared):
        return PricedUndeclared(problem.n_arms, problem.k, problem.constraint)
    return PricedPosterior(problem.n_arms, problem.k, problem.rewards, problem.constraint)


def remaining(posterior: Posterior, arms: IntArray, problem: Problem) -> Posterior:
    """The posterior of these arms only, which are those of `problem`."""
    some = posterior.among(arms)
    if isinstance(some, PricedPosterior):
        assert problem.constraint is not None
        some.constraint = problem.constraint
    return some
