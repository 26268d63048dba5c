"""Prices by linear programs, for matchings and for families of which only `best` is known.

An arm's expected distance on the wrong side of its price is taken as the mean over a few quantiles
of its posterior: a convex, piecewise linear function of the price. The price of a pair of a
matching is that of its row plus that of its column. For other families prices are free, and sets
that exceed the chosen one are cut off, one after the other: those that `best` finds at the prices
so far. Of a matroid, the single swaps that such a set consists of are cut off instead, which is
stronger."""

from collections.abc import Iterator
from dataclasses import dataclass

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
        self.costs: FloatArray = np.concatenate(
            [np.zeros(n_parts), np.full(piece.size, 1 / each)]
        )

    def solve(self, more: Sparse, bounds: list[tuple[float | None, float | None]]) -> FloatArray:
        """The best parts under `more` inequalities and these bounds: (parts,)."""
        from scipy.optimize import linprog  # slow to load, and few need it
        from scipy.sparse import coo_matrix

        own = self.distances
        shape = own.limits.size + more.limits.size, self.costs.size
        matrix = coo_matrix(
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
        parts: FloatArray = np.zeros(self.n_parts) if found.x is None else found.x[: self.n_parts]
        return parts


def quantiles_of(grid: FloatArray, weights: FloatArray) -> FloatArray:
    """Some quantiles of every posterior: (arms, quantiles)."""
    rising = np.cumsum(weights, axis=1)
    at = (np.arange(tuning.QUANTILES) + 0.5) / tuning.QUANTILES
    last = grid.size - 1
    places = [np.minimum((rising < each).sum(axis=1), last) for each in at]
    return grid[np.stack(places, axis=1)]


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
