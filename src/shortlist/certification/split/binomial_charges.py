"""The charge to expect of a candidate of few pulls: exact sums over the binomial law."""

from functools import lru_cache

import numpy as np
from scipy.special import betaln

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.split import tuning
from shortlist.certification.split.candidates import Candidates, all_counts, read_only


class BinomialCharges:
    """E[part (S/N - edge) + intercept ; S >= first], S binomial with every mean on the grid."""

    def __init__(self, candidates: Candidates, grid: FloatArray) -> None:
        self.candidates = candidates
        counts = all_counts()
        counts = counts[counts <= tuning.EXACT_CHARGES]
        # (2, sides, counts, first, grid)
        self.moments = _upper_moments(grid.tobytes(), tuple(counts.tolist()))
        self.side: IntArray = np.arange(2)[:, None]  # (sides, 1)
        self.count: IntArray = np.searchsorted(counts, candidates.pulls)  # (sides, candidates)

    def at(self, intercept: FloatArray) -> FloatArray:
        """The charges for such intercepts, (sides, candidates): (sides, grid, candidates)."""
        pulls, start, part, edge, _ = self.candidates
        free = np.maximum(start, pulls * (edge - intercept / part))  # no charge is negative
        first = np.minimum(np.maximum(np.floor(free) + 1, 0), pulls).astype(np.int64)
        # (2, sides, candidates, grid), then (sides, grid, candidates) each
        chance, successes = self.moments[:, self.side, self.count, first].swapaxes(2, 3)
        slope = (part / pulls)[:, None]
        at_none = (intercept - part * edge)[:, None]  # what S = 0 would be charged
        charge: FloatArray = slope * successes + at_none * chance
        return charge


@lru_cache(maxsize=4)
def _upper_moments(grid: bytes, counts: tuple[int, ...]) -> FloatArray:
    """P(S >= first) and E[S; S >= first] for S binomial, of every number of pulls and every mean.

    Shape (2, sides, counts, first, grid); inside the set failures count, so the mean is mirrored.
    The grid is passed as bytes, by which the cache can find it."""
    mean = np.frombuffer(grid)
    successes = np.arange(counts[-1] + 1.0)
    pulls = np.array(counts, dtype=np.float64)[:, None]  # (counts, 1)
    chance = np.stack(
        [
            _chances(pulls, successes, np.log(mean), np.log1p(-mean)),
            _chances(pulls, successes, np.log1p(-mean), np.log(mean)),
        ]
    )  # (sides, counts, successes, grid)
    moments: FloatArray = np.stack([chance, successes[:, None] * chance])
    for first in range(successes.size - 2, -1, -1):  # sums from above, smallest terms first
        moments[..., first, :] += moments[..., first + 1, :]
    return read_only(moments)


def _chances(
    pulls: FloatArray, successes: FloatArray, log_mean: FloatArray, log_rest: FloatArray
) -> FloatArray:
    """P(S = successes) for S binomial: (counts, successes, grid)."""
    failures = np.maximum(pulls - successes, 0)  # (counts, successes)
    log_choose = -np.log1p(pulls) - betaln(failures + 1, successes + 1)
    log_choose = np.where(successes <= pulls, log_choose, -np.inf)
    log_power = successes[:, None] * log_mean + failures[..., None] * log_rest
    chances: FloatArray = np.exp(log_choose[..., None] + log_power)
    return chances
