"""Which arms to choose and to pull next. Errors here cost pulls, never the guarantee."""

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.differences import tuning
from shortlist.certificates.differences.bound import RowSums


class Comparisons:
    """Rows, sums of differences and of their squares, of all ordered pairs of arms: (n, n) each."""

    def __init__(self, n_arms: int) -> None:
        self.rows: FloatArray = np.zeros((n_arms, n_arms))
        self.leads: FloatArray = np.zeros((n_arms, n_arms))
        self.squares: FloatArray = np.zeros((n_arms, n_arms))

    def add(self, arms: IntArray, rows: RowSums) -> None:
        """Add rows of these arms."""
        pairs = np.ix_(arms, arms)
        self.rows[pairs] += rows.number
        self.leads[pairs] += rows.leads
        self.squares[pairs] += rows.squares

    def variances(self) -> FloatArray:
        """Variance of a difference, drawn a little to that of all pairs: (n, n)."""
        own = np.maximum(self.squares - self.leads * self.mean_leads(), 0.0)
        pooled = max(own.sum() / max(1.0, self.rows.sum()), tuning.LEAST_VARIANCE)
        prior = tuning.PRIOR_ROWS
        variances: FloatArray = (own + prior * pooled) / (self.rows + prior)
        return variances

    def mean_leads(self) -> FloatArray:
        """Mean difference of every pair; 0 where there is none."""
        return self.leads / np.maximum(self.rows, 1)

    def effects(self) -> FloatArray:
        """Arm effects fitted to all mean differences, weighted by their precision: (n,).

        Arms that were not pulled together are compared through others, so that seeds which only
        one of them has seen do not count."""
        weights = self.rows / self.variances()
        np.fill_diagonal(weights, 0.0)
        laplacian = np.diag(weights.sum(1)) - weights
        # one effect is free: fix their sum
        system = laplacian + weights.sum() / weights.shape[0] ** 2
        pulled = (weights * self.mean_leads()).sum(0)
        effects: FloatArray = np.linalg.solve(system, pulled)
        return effects


def clocks_for(variances: FloatArray, k: int) -> FloatArray:
    """Clocks of every pair, for every gap that is bet on: (pairs, gaps).

    gap / (v + gap^2): never more than what one row can tell."""
    gaps = np.array(tuning.GAPS if k == 1 else tuning.GAPS_OF_SETS)
    clocks: FloatArray = gaps / (variances[:, :, None] + gaps**2)
    return clocks


def ranged_clocks(variances: FloatArray, centres: FloatArray, k: int, epsilon: float) -> FloatArray:
    """The same for rewards in [0, 1], in their own units; no row takes more than half of a wealth.

    `variances` are in units of epsilon squared."""
    clocks = clocks_for(variances, k) / epsilon
    most: FloatArray = tuning.MOST_STAKE / (1 + np.abs(centres))
    return np.minimum(clocks, most[:, :, None])


def best_first(effects: FloatArray, ties: IntArray) -> IntArray:
    """Arms by effect; ties in a random order."""
    return np.lexsort((ties, -effects))


def next_rows(so_far: int) -> int:
    """Rows of the next batch, where this many have been drawn."""
    return max(tuning.LEAST_ROWS, int(tuning.ROW_GROWTH * so_far))
