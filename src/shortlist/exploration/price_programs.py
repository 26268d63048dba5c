"""Prices by linear programs, for matchings and for families of which only `best` is known.

An arm's expected distance on the wrong side of its price is taken as the mean over a few quantiles
of its posterior: a convex, piecewise linear function of the price. The price of a pair of a
matching is that of its row plus that of its column. For other families prices are free, and sets
that exceed the chosen one are cut off, one after the other: those that `best` finds at the prices
so far. Of a matroid, the single swaps that such a set consists of are cut off instead, which is
stronger."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.constraints import Constraint, Matching, Matroid, best_set
from shortlist.exploration import tuning


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
