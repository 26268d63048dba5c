"""Which arms to choose and to pull next. Errors here cost pulls, never the guarantee."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.differences.bound import RowSums

# Constants of the certificate "differences" that cost pulls; no bound rests on them.
#
# Leads are in units of epsilon. They were chosen on the instances of
#
#     python benchmarks/normal.py --runs 100
#     python benchmarks/shared_seeds.py --inventory --runs 10
#
# with other seeds than those that docs/normal.md and docs/shared-seeds.md report.
GAPS = (1.3, 2.6, 5.2, 10.4, 20.8, 41.6)  # gaps that are bet on, in units of epsilon, for K = 1 ...
GAPS_OF_SETS = (1.6, 3.2, 6.4, 12.8, 25.6, 51.2)  # ... and for larger K: a pair may be off by more
GAP_WEIGHTS = (0.6, 0.17, 0.1, 0.06, 0.04, 0.03)  # shares of the wealth on each
SHARP_WEIGHT = 0.1  # share of the sharp bet, for arms far apart ...
SHARP_CAUTION = 0.5  # ... standard errors by which their gap is taken for smaller ...
LEAST_SHARP = 2.0  # ... its least gap, in units of epsilon ...
SHARP_CAP = 6.0  # ... and about the largest clock, in units of 1 / gap
FIRST_ROWS = 4  # rows of the first batch, on which nothing is bet
EXACT_ROWS = 200  # rows up to which exact wealths are kept, and the sharp bet is made
ROW_GROWTH = 0.025  # further rows of a batch, as a share of those so far ...
LEAST_ROWS = 1  # ... and how many at least
PRIOR_ROWS = 3.0  # rows that the variance of all pairs counts for in that of one
LEAST_VARIANCE = 1e-12  # of a difference, in units of epsilon squared
MOST_STAKE = 0.5  # of rewards with a range: the largest stake, as a share of what ruins


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
        pooled = max(own.sum() / max(1.0, self.rows.sum()), LEAST_VARIANCE)
        prior = PRIOR_ROWS
        variances: FloatArray = (own + prior * pooled) / (self.rows + prior)
        return variances

    def mean_leads(self) -> FloatArray:
        """Mean difference of every pair; 0 where there is none."""
        return self.leads / np.maximum(self.rows, 1)

    def effects(self, retired: BoolArray | None = None) -> FloatArray:
        """Arm effects fitted to all mean differences, weighted by their precision: (n,).

        Arms that were not pulled together are compared through others, so that seeds which only
        one of them has seen do not count. Retired arms come last."""
        stay = np.arange(len(self.rows)) if retired is None else np.flatnonzero(~retired)
        effects: FloatArray = np.full(len(self.rows), -np.inf)
        effects[stay] = self._effects(np.ix_(stay, stay))
        return effects

    def _effects(self, pairs: tuple[IntArray, ...]) -> FloatArray:
        weights = (self.rows / self.variances())[pairs]
        np.fill_diagonal(weights, 0.0)
        laplacian = np.diag(weights.sum(1)) - weights
        # one effect is free: fix their sum
        system = laplacian + weights.sum() / weights.shape[0] ** 2
        pulled = (weights * self.mean_leads()[pairs]).sum(0)
        effects: FloatArray = np.linalg.solve(system, pulled)
        return effects


def clocks_for(variances: FloatArray, k: int) -> FloatArray:
    """Clocks of every pair, for every gap that is bet on: (pairs, gaps).

    gap / (v + gap^2): never more than what one row can tell."""
    gaps = np.array(GAPS if k == 1 else GAPS_OF_SETS)
    clocks: FloatArray = gaps / (variances[:, :, None] + gaps**2)
    return clocks


def sharp_clocks(compared: Comparisons, arms: IntArray) -> FloatArray:
    """Clocks of the sharp bet of every pair of these arms, by its mean lead so far: (arms, arms).

    gap / v is the best one, for normal differences of variance v."""
    pairs = np.ix_(arms, arms)
    variances = compared.variances()[pairs]
    error = np.sqrt(variances / np.maximum(compared.rows[pairs], 1))
    gaps = np.maximum(1 - compared.mean_leads()[pairs] - SHARP_CAUTION * error, LEAST_SHARP)
    clocks: FloatArray = gaps / (variances + gaps**2 / SHARP_CAP)
    return clocks


def ranged_clocks(variances: FloatArray, centres: FloatArray, k: int, epsilon: float) -> FloatArray:
    """The same for rewards in [0, 1], in their own units; no row takes more than half of a wealth.

    `variances` are in units of epsilon squared."""
    clocks = clocks_for(variances, k) / epsilon
    most: FloatArray = MOST_STAKE / (1 + np.abs(centres))
    return np.minimum(clocks, most[:, :, None])


def best_first(effects: FloatArray, ties: IntArray) -> IntArray:
    """Arms by effect; ties in a random order."""
    return np.lexsort((ties, -effects))


def next_rows(so_far: int) -> int:
    """Rows of the next batch, where this many have been drawn."""
    return max(LEAST_ROWS, int(ROW_GROWTH * so_far))
