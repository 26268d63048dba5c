"""Whether two arms give independent rewards: a test that is valid at any time.

A function with a seed of its own for the number of the pull, but the same for all arms, gives arms
rewards that go up and down together. Arms are compared in pairs, neighbours in their order, by the
bits of exchangeability.py at the same number of the draw. Under the declaration these are
independent Bernoulli bits, with some theta each; let P be their largest likelihood, and Q the
Dirichlet(1/2) mixture over the four cells (0, 0) ... (1, 1). Taken draw by draw, Q / P is at most
a martingale from 1, so for one pair it stays below 1 / alpha at all draws with probability
1 - alpha, and so for whichever number of draws the search makes of both arms."""

import numpy as np
from scipy.special import gammaln, xlogy

from shortlist.arrays import FloatArray, IntArray
from shortlist.evaluation.exchangeability import rank_within

KEPT = 512  # draws of an arm that are compared
MOST_ARMS = 1000  # arms that are
NONE_YET = -1


class Independence:
    """Capital against the claim that neighbouring arms are independent."""

    def __init__(self, n_arms: int) -> None:
        rows = min(n_arms, MOST_ARMS)
        self._bits = np.full((rows, 8), NONE_YET, dtype=np.int8)  # by draw; grows
        self._seen: IntArray = np.zeros(n_arms, dtype=np.int64)

    def take(self, arms: IntArray, bits: IntArray) -> None:
        """Book bits; those of one arm stand together, in the order of its draws."""
        draws = self._seen[arms] + rank_within(arms)
        np.add.at(self._seen, arms, 1)
        kept = (arms < self._bits.shape[0]) & (draws < KEPT)
        arms, draws = arms[kept], draws[kept]
        longest = int(draws.max(initial=-1)) + 1
        if longest > self._bits.shape[1]:
            more = max(longest, 2 * self._bits.shape[1]) - self._bits.shape[1]
            self._bits = np.pad(self._bits, ((0, 0), (0, more)), constant_values=NONE_YET)
        self._bits[arms, draws] = bits[kept]

    def log_capital(self) -> FloatArray:
        """Logarithm of the capital of every pair of arms j and j + 1: (pairs,)."""
        cells = self._cells()
        total = cells.sum(axis=1)
        mixture = gammaln(cells + 0.5).sum(axis=1) - gammaln(total + 2.0)
        mixture += gammaln(2.0) - 4 * gammaln(0.5)
        first = cells[:, 2] + cells[:, 3]
        second = cells[:, 1] + cells[:, 3]
        null = _log_likelihood(first, total) + _log_likelihood(second, total)
        return np.asarray(mixture - null, dtype=np.float64)

    def alike(self, pair: int) -> tuple[int, int]:
        """How often both arms of a pair gave the same bit, and of how many draws."""
        cells = self._cells()[pair]
        return int(cells[0] + cells[3]), int(cells.sum())

    def _cells(self) -> IntArray:
        """How often each pair gave (0, 0), (0, 1), (1, 0) and (1, 1): (pairs, 4)."""
        one, other = self._bits[:-1], self._bits[1:]
        both = (one != NONE_YET) & (other != NONE_YET)
        cell = 2 * one + other
        counts: IntArray = np.stack([(both & (cell == each)).sum(axis=1) for each in range(4)], 1)
        return counts


def _log_likelihood(ones: IntArray, total: IntArray) -> FloatArray:
    share = np.maximum(1, total)
    zeros = total - ones
    logs = xlogy(ones, ones / share) + xlogy(zeros, zeros / share)
    return np.asarray(logs, dtype=np.float64)
