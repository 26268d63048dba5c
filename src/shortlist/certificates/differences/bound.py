"""Bounds on the leads of all pairs of arms, by bets on their differences (docs/normal.md).

Let d be the difference x_j - x_i of a pair in a row, and c >= 0 a clock known before the row.

    symmetric   given the past, d is symmetric about the lead D. Then the product of the factors
                1 + tanh(c (D - d)) is a martingale from 1, and the product at g grows with g.
                As 1 + tanh u >= exp(u - u^2 / 2), its logarithm at g is at least
                    g A - C - (g^2 E - 2 g F + H) / 2,
                A = sum c, C = sum c d, E = sum c^2, F = sum c^2 d, H = sum (c d)^2.
    ranged      d lies in [-1, 1] and has mean D given the past. For a centre m known before the
                row and c (1 - m) < 1, exp(sum of ln(1 + c (m - d)) - c m, plus D sum c) is a
                supermartingale from 1: the same form with E = F = H = 0.

A row earns at most 1/2 by the parabola, and ln 2 in truth. Where arms are far apart that decides:
for symmetric differences exact wealths are kept, too, over the first rows: `ExactWealths`. One more
bet, the *sharp* one, is kept there only, and ends with these rows; its clock may be large.

`PairSums` holds all bets. A mixture over clocks is again a supermartingale from 1, W_ij for the
ordered pair (i, j). With probability 1 - delta, at all times and for every arm j of the best set B,
the sum of W_ij at the true leads over all i not in B is less than K (n - K) / delta: a mean of
K (n - K) supermartingales, and Ville's inequality. These leads are at least 0. So what other arms
have earned against j at lead 0 may be added to W_ij(g): if the sum reaches K (n - K) / delta, the
lead of j over i is less than g (Theorem 2). Sums are rounded outward."""

from math import log
from typing import NamedTuple

import numpy as np

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray

# lead against which exact wealths are kept, in units of epsilon; the rest is room for rounding
EXACT_LEAD = 0.999
HALVINGS = 14  # of the interval in which the least bound lies
MORE = 1 + 1e-9  # by which what must be on the safe side is enlarged
DROPPED = -1.0  # bound of a pair that cannot matter, in units of epsilon; any negative number


class ExactWealths:
    """Logarithms of exact wealths of every ordered pair and bet, over the first rows.

    They are against the leads EXACT_LEAD and 0. The last bet is the sharp one."""

    def __init__(self, n_arms: int, weights: FloatArray) -> None:
        shape = (n_arms, n_arms, weights.size)
        with np.errstate(divide="ignore"):
            self.logs = np.log(weights)
        self.at_lead: FloatArray = np.zeros(shape)
        self.at_zero: FloatArray = np.zeros(shape)
        self.size: FloatArray = np.zeros(shape)  # of the numbers that were added up, for rounding
        self.ended = False

    def bet(self, arms: IntArray, rows: FloatArray, clocks: FloatArray) -> None:
        """Book rows of these arms, (rows, arms), with clocks (arms, arms, bets)."""
        pairs = np.ix_(arms, arms)
        around = rows - rows.mean(axis=1, keepdims=True)
        for row in around:
            zero = -clocks * (row[None, :] - row[:, None])[:, :, None]
            u = zero + EXACT_LEAD * clocks
            self.at_lead[pairs] += log(2) - np.logaddexp(0.0, -2 * u)  # ln(1 + tanh u)
            self.at_zero[pairs] += log(2) - np.logaddexp(0.0, -2 * zero)
            self.size[pairs] += 1 + np.abs(u) + clocks * (1 + np.abs(row).max())

    def lead_earned(self, pairs: tuple[IntArray, ...]) -> FloatArray:
        """Logarithm of the mixture against EXACT_LEAD, rounded down: (pairs)."""
        return log_sum(self.at_lead[pairs] - ROUNDED * self.size[pairs] + self.logs)

    def zero_logs(self, pairs: tuple[IntArray, ...]) -> FloatArray:
        """Logarithm of every wealth against 0, rounded down: (pairs, bets)."""
        logs: FloatArray = self.at_zero[pairs] - ROUNDED * self.size[pairs]
        return logs


class PairSums:
    """The sums of every ordered pair (i, j) and clock, and the least bounds so far.

    `bounds[i, j]` bounds how much better j is than i, if j is in B and i is not. `sharp` is the
    weight of the sharp bet, the others share the rest."""

    def __init__(self, n_arms: int, weights: FloatArray, sharp: float = 0.0) -> None:
        self.weights = weights * (1 - sharp)  # (clocks,) adding up to 1 with `sharp`
        shape = (n_arms, n_arms, weights.size)
        self.slope: FloatArray = np.zeros(shape)  # A
        self.spent: FloatArray = np.zeros(shape)  # C + H / 2
        self.slope_spent: FloatArray = np.zeros(shape)  # F
        self.square_spent: FloatArray = np.zeros(shape)  # E
        self.size: FloatArray = np.zeros(shape)  # of the numbers that were added up, for rounding
        self.exact = ExactWealths(n_arms, np.append(self.weights, sharp))
        self.bounds: FloatArray = np.full((n_arms, n_arms), np.inf)
        self.retired: BoolArray = np.zeros(n_arms, dtype=np.bool_)

    def bet(self, arms: IntArray, rows: "RowSums", clocks: FloatArray) -> None:
        """Book rows of these arms, differences symmetric about the lead.

        `clocks` are (arms, arms, clocks), at most 1: leads are in units of epsilon."""
        pairs = np.ix_(arms, arms)
        total, around = rows.leads[:, :, None], rows.squares[:, :, None]
        self.slope[pairs] += rows.number * clocks
        self.spent[pairs] += clocks * total + clocks**2 * around / 2
        self.slope_spent[pairs] += clocks**2 * total
        self.square_spent[pairs] += rows.number * clocks**2
        self.size[pairs] += clocks * rows.sizes[:, :, None] + clocks**2 * around

    def bet_ranged(
        self, arms: IntArray, rows: FloatArray, clocks: FloatArray, centres: FloatArray, unit: float
    ) -> None:
        """Book rows of these arms, rewards in [0, 1] and differences in [-1, 1]: (rows, arms).

        `clocks` are (arms, arms, clocks), `centres` (arms, arms); every clock (1 - centre) is below
        1. Leads are tested in multiples of `unit`."""
        self.exact.ended = True
        pairs = np.ix_(arms, arms)
        gains = log_gains(rows, clocks, centres)
        paid = len(rows) * clocks * centres[:, :, None]
        self.slope[pairs] += unit * len(rows) * clocks
        self.spent[pairs] += paid - gains
        self.size[pairs] += np.abs(paid) + np.abs(gains) + len(rows) * clocks

    def update(self, inside: IntArray, outside: IntArray, level: float) -> FloatArray:
        """Bound the leads of arms outside over arms inside: (inside, outside).

        `level` is ln(K (n - K) / delta). Bisection from the least lead at which any clock alone has
        earned what is missing, downward; the least bound ever found holds (Theorem 2)."""
        pairs = np.ix_(inside, outside)
        levels = self._missing(inside.size, outside, level)
        self._drop(outside, np.isneginf(levels))
        levels = np.maximum(levels[inside], -level)  # any number, where a pair was dropped
        sums = _Parabolas(self, pairs)
        high = sums.single_roots(levels)  # (inside, outside)
        high = np.where(sums.earned(high) >= levels, high, np.inf)
        found = np.isfinite(high)
        top = np.where(found, high, 0.0)
        low = top - np.maximum(1.0, np.abs(top))
        for _ in range(HALVINGS):
            middle = (low + top) / 2
            enough = sums.earned(middle) >= levels
            low, top = np.where(enough, low, middle), np.where(enough, middle, top)
        least = np.where(found, top, np.inf)
        if not self.exact.ended:
            settled = self.exact.lead_earned(pairs) >= levels
            least = np.where(settled, np.minimum(least, EXACT_LEAD), least)
        self.bounds[pairs] = np.minimum(self.bounds[pairs], least)
        return self.bounds[pairs]

    def retire(self, retired: BoolArray) -> None:
        """Leave these arms out of all sums, and prove all bounds again without them."""
        self.retired = retired.copy()
        self.bounds[:] = np.inf

    def _missing(self, k: int, outside: IntArray, level: float) -> FloatArray:
        """What W_ij has to earn, given what others earned against j at lead 0: (arms, outside).

        Of the other arms, k - 1 may be in B, so the largest k - 1 wealths do not count. -inf where
        nothing is missing: then i is in B or j is not."""
        wealth = np.exp(np.minimum(self._zero_earned(outside) - level, 0.0))
        wealth[outside, np.arange(outside.size)] = 0.0
        wealth[self.retired] = 0.0
        most = -np.partition(-wealth, k - 1, axis=0)[:k]
        left_out = most[:-1].sum(axis=0) + np.minimum(wealth, most[-1])
        rest = MORE - (wealth.sum(axis=0) - left_out)
        with np.errstate(divide="ignore"):
            missing: FloatArray = level + np.log(np.maximum(rest, 0.0))
        return missing

    def _zero_earned(self, outside: IntArray) -> FloatArray:
        """Logarithm of the mixture of every pair against lead 0, rounded down: (arms, outside)."""
        pairs = np.ix_(np.arange(len(self.bounds)), outside)
        each = self.exact.zero_logs(pairs)
        if self.exact.ended:  # the sharp bet has ended, the others continue
            each[:, :, :-1] = -self.spent[pairs] - ROUNDED * self.size[pairs]
        return log_sum(each + self.exact.logs)

    def _drop(self, outside: IntArray, settled: BoolArray) -> None:
        """Take note of pairs, (arms, outside), that cannot be j in B and i not."""
        known = self.bounds[:, outside]
        self.bounds[:, outside] = np.where(settled, np.minimum(known, DROPPED), known)


class _Parabolas:
    """Lower bounds on the logarithms of all wealths of some pairs, as functions of the lead."""

    def __init__(self, sums: PairSums, pairs: tuple[IntArray, ...]) -> None:
        self.logs = np.log(sums.weights)
        self.slope = sums.slope[pairs]
        self.spent = sums.spent[pairs]
        self.linear = sums.slope_spent[pairs]
        self.square = sums.square_spent[pairs]
        self.size = sums.size[pairs]

    def earned(self, lead: FloatArray) -> FloatArray:
        """Logarithm of the mixture of all wealths against a lead, rounded down: (pairs)."""
        finite = np.isfinite(lead)
        g = np.where(finite, lead, 0.0)[:, :, None]
        gained = g * (self.slope + self.linear)
        lost = g * g * self.square / 2
        wrong = ROUNDED * (np.abs(g) * (self.slope + self.size) + lost + self.size)
        total = log_sum(gained - lost - self.spent - wrong + self.logs)
        return np.where(finite, total, -np.inf)

    def single_roots(self, levels: FloatArray) -> FloatArray:
        """The least lead at which one clock alone has earned the level, a little enlarged.

        The smaller root of E g^2 / 2 - q g + r, q = A + F, r = C + H / 2 + level - ln w; infinite
        where there is none. Slightly above it the parabola still rises."""
        q = self.slope + self.linear
        r = self.spent + levels[:, :, None] - self.logs
        inside = q * q - 2 * self.square * r
        side = np.sqrt(np.maximum(inside, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            roots = np.where(q > 0, 2 * r / (q + side), (q - side) / self.square)
        roots = np.where((inside >= 0) & (self.slope > 0), roots, np.inf)
        least = roots.min(axis=2)
        return np.asarray(least + (MORE - 1) * np.abs(least), dtype=np.float64)


def log_sum(logs: FloatArray) -> FloatArray:
    """Logarithm of the sum over the last axis of numbers that are given by their logarithms."""
    most = logs.max(axis=2)
    total: FloatArray = most + np.log(np.exp(logs - most[:, :, None]).sum(axis=2))
    return total


class RowSums(NamedTuple):
    """What rows tell of all ordered pairs of the arms in them: (arms, arms) each."""

    number: int  # of the rows
    leads: FloatArray  # sums of differences
    squares: FloatArray  # sums of their squares, never rounded down
    sizes: FloatArray  # of the numbers that `leads` were computed from


def row_sums(rows: FloatArray) -> RowSums:
    """Add up rows, (rows, arms).

    The mean over the arms is subtracted from every row first: it cancels out of differences, and a
    large constant would take the digits of the squares."""
    around = rows - rows.mean(axis=1, keepdims=True)
    total = around.sum(axis=0)
    gram = np.einsum("ri,rj->ij", around, around)
    own = np.diag(gram)
    both = own[None, :] + own[:, None]
    squares = np.maximum(both - 2 * gram, 0.0) + ROUNDED * both
    return RowSums(len(rows), total[None, :] - total[:, None], squares, np.sqrt(len(rows) * both))


def log_gains(rows: FloatArray, clocks: FloatArray, centres: FloatArray) -> FloatArray:
    """Sums of ln(1 + clock (centre - d)) over rows, for all ordered pairs: (arms, arms, clocks).

    Where all rewards are 0 or 1, d is -1, 0 or 1, and counts are enough."""
    centre = centres[:, :, None]
    if ((rows == 0) | (rows == 1)).all():
        both = np.einsum("ri,rj->ij", rows, rows)
        ones = rows.sum(axis=0)
        ahead, behind = (ones[None, :] - both)[:, :, None], (ones[:, None] - both)[:, :, None]
        gains = ahead * np.log1p(clocks * (centre - 1)) + behind * np.log1p(clocks * (centre + 1))
        gains += (len(rows) - ahead - behind) * np.log1p(clocks * centre)
        return np.asarray(gains, dtype=np.float64)
    gains = np.zeros_like(clocks)
    for row in rows:
        gains += np.log1p(clocks * (centre - (row[None, :] - row[:, None])[:, :, None]))
    return gains


def pair_level(n_arms: int, k: int, delta: float) -> float:
    """ln(1 / alpha) of each of the K (n - K) pairs that matter (Theorem 2)."""
    return log(k * (n_arms - k) / delta)
