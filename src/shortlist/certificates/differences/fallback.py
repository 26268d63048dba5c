"""The two-stage samples of Rinott: for ties, so that no run takes much longer than with them.

The variance S^2 of the first FIRST_PULLS pulls of an arm fixes its sample: N = h^2 S^2 / epsilon^2
pulls. Given the variances, the means of two samples are independent normal variables, and their
difference has a variance of at most epsilon^2 / h^2 (sigma_i^2 / S_i^2 + sigma_j^2 / S_j^2). So two
arms whose means are epsilon or more apart change places with probability at most

    E Phi(-h / sqrt(nu (1 / Y_i + 1 / Y_j))),   nu = FIRST_PULLS - 1, Y chi-square with nu degrees.

`two_stage_constant` is an h for which this is at most alpha; the union over K (n - K) pairs does
the rest (docs/normal.md, Theorem 3): where two samples are complete and the mean of i is not below
that of j, the lead of j over i is less than epsilon. So samples bound pairs, as the race does, and
those of arms that are not in doubt need not be completed. Both use the same pulls, each with its
own share of delta. Samples are a little larger, for SAMPLE_LEAD in the place of epsilon: the rest
is room for rounding."""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray

FIRST_PULLS = 60  # pulls of an arm that fix the size of its sample
RINOTT_PULLS = 20  # the same of the procedure that runs are compared with
WORSE = 1.32  # size of a sample, in units of that of the procedure alone with all of delta
WORST = 1.48  # largest total in these units up to which the race continues
FINISH = 0.1  # pulls that complete samples, as a share of those of their arms, if that is due
SAMPLE_LEAD = 0.999  # what samples prove, in units of epsilon
LEAST_SHARE, MOST_SHARE = 0.01, 0.5  # of delta
TAIL_CELLS = 60  # cells below probability 1 %, in equal ratios ...
BULK_CELLS = 240  # ... and above, in equal steps
LEAST_CELL = 1e-15  # probability of the first cell, ...
FIRST_CELL = 1e-5  # ... or this share of the probability that is allowed, if that is less


@lru_cache(maxsize=64)
def _cells(freedom: int, least: float) -> tuple[FloatArray, FloatArray]:
    """Probabilities of cells of a chi-square variable, and their lower ends divided by nu.

    `least` is the probability of the first cell: all of it counts as an error."""
    from scipy.stats import chi2  # takes long to load

    ratios = TAIL_CELLS * math.log(0.01 / least) / math.log(0.01 / LEAST_CELL)
    tail = np.geomspace(least, 0.01, math.ceil(ratios - 1e-9))
    edges = np.concatenate([[0.0], tail, np.linspace(0.01, 1, BULK_CELLS + 1)[1:-1]])
    return np.diff(np.append(edges, 1.0)), np.asarray(chi2.ppf(edges, freedom)) / freedom


def _least_cell(alpha: float) -> float:
    """The probability of the first cell where `alpha` is allowed."""
    return min(LEAST_CELL, FIRST_CELL * alpha)


def _wrong_order(h: float, freedom: int, least: float) -> float:
    """An upper bound on E Phi(-h / sqrt(...)): the integrand falls with both variables, so each is
    taken at the lower end of its cell."""
    from scipy.special import ndtr

    chances, low = _cells(freedom, least)
    with np.errstate(divide="ignore"):
        spread = 1 / low[:, None] + 1 / low[None, :]
    return float(chances @ ndtr(-h / np.sqrt(spread)) @ chances)


@lru_cache(maxsize=256)
def two_stage_constant(alpha: float, first: int = FIRST_PULLS) -> float:
    """An h at which two arms change places with probability at most `alpha`, below 1/2."""
    least = _least_cell(alpha)
    return _least_constant(lambda h: _wrong_order(h, first - 1, least), alpha)


@lru_cache(maxsize=256)
def rinott_constant(n_arms: int, delta: float, first: int) -> float:
    """Rinott's h, rounded up: by a product over the other arms where `two_stage_constant` adds."""
    least = _least_cell(delta / n_arms)
    return _least_constant(lambda h: _any_wrong(h, n_arms - 1, first - 1, least), delta)


def _any_wrong(h: float, others: int, freedom: int, least: float) -> float:
    """An upper bound on 1 - E[E[Phi(h / sqrt(...)) | Y]^others], by the same cells."""
    from scipy.special import ndtr

    chances, low = _cells(freedom, least)
    with np.errstate(divide="ignore"):
        spread = 1 / low[:, None] + 1 / low[None, :]
    wrong = ndtr(-h / np.sqrt(spread)) @ chances  # of one other arm, by the cell of the best one
    return float(chances @ -np.expm1(others * np.log1p(-wrong)))


def _least_constant(wrong: Callable[[float], float], alpha: float) -> float:
    """A least h at which the probability `wrong(h)` is at most alpha, rounded up."""
    from scipy.optimize import brentq

    high = 1.0
    while wrong(high) > alpha:
        high *= 2
    h = 0.0 if wrong(0.0) <= alpha else float(brentq(_excess(wrong, alpha), 0.0, high, xtol=1e-6))
    while wrong(h) > alpha:
        h = h * (1 + 1e-6) + 1e-9
    return h


def _excess(wrong: Callable[[float], float], alpha: float) -> Callable[[float], float]:
    return lambda h: float(np.log(wrong(h) / alpha))


def fallback_share(pairs: int, delta: float) -> float:
    """The share of delta with which samples are about WORSE times those of the procedure alone.

    By the approximation h = sqrt(2) times a quantile of Student's t."""
    from scipy.stats import t

    alone = t.isf(delta / pairs, RINOTT_PULLS - 1)
    alpha = t.sf(np.sqrt(WORSE) * alone, FIRST_PULLS - 1)
    return float(np.clip(alpha * pairs / delta, LEAST_SHARE, MOST_SHARE))


class TwoStageSample:
    """The samples of all arms, as far as they have been drawn; rewards in units of epsilon.

    Sums are around the first reward of an arm, so that no digits are lost."""

    def __init__(self, n_arms: int, k: int, delta: float) -> None:
        pairs = k * (n_arms - k)
        self.share = fallback_share(pairs, delta)
        self._constant = two_stage_constant(self.share * delta / pairs)
        self._alone = two_stage_constant(delta / pairs, RINOTT_PULLS)
        self._drawn: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._pivots: FloatArray = np.zeros(n_arms)
        self._first: FloatArray = np.zeros((n_arms, FIRST_PULLS))  # rewards around the pivot
        self._sums: FloatArray = np.zeros(n_arms)  # of the sample, around the pivot
        # pulls of every sample: (n,); FIRST_PULLS until it is known
        self.sizes: IntArray = np.full(n_arms, FIRST_PULLS)
        self._usual: FloatArray = np.full(n_arms, float(FIRST_PULLS))  # of the procedure alone

    @property
    def known(self) -> BoolArray:
        """The arms whose samples have a size: (n,)."""
        return self._drawn >= FIRST_PULLS

    @property
    def missing(self) -> IntArray:
        """Pulls that complete the samples, or the first pulls where sizes are unknown: (n,)."""
        missing: IntArray = np.maximum(self.sizes - self._drawn, 0)
        return missing

    @property
    def complete(self) -> BoolArray:
        """The arms whose samples are complete: (n,)."""
        return self.known & ~self.missing.astype(np.bool_)

    def due(self, arms: IntArray) -> bool:
        """Whether to complete the samples of these arms: it takes few pulls, or the race has taken
        as many as it may."""
        if not self.known[arms].all():
            return False
        missing = int(self.missing[arms].sum())
        if missing <= FINISH * self._drawn[arms].sum():
            return True
        return bool(self._drawn.sum() + missing > WORST * self._alone_total())

    def _alone_total(self) -> float:
        """Pulls of the procedure alone; guessed for arms with few pulls, which decides on pulls
        only."""
        total = float(self._usual[self.known].sum())
        for arm in np.flatnonzero(~self.known).tolist():
            seen = self._first[arm, : self._drawn[arm]]
            total += self._sizes(float(seen.var(ddof=1)) if seen.size > 1 else 0.0)[1]
        return total

    def _sizes(self, variance: float) -> tuple[int, float]:
        """Pulls of the sample of an arm of this variance, and those of the procedure alone."""
        needed = math.ceil((self._constant / SAMPLE_LEAD) ** 2 * variance)
        return max(FIRST_PULLS, needed), max(FIRST_PULLS, self._alone**2 * variance)

    def bounds(self, inside: IntArray, outside: IntArray) -> FloatArray:
        """Bounds on the leads of arms outside over arms inside, in units of epsilon.

        Infinite where a sample is not complete, or where the mean of the arm outside is larger."""
        both = self.complete[inside][:, None] & self.complete[outside]
        means = self.means()
        ordered = means[inside][:, None] >= means[outside]
        return np.where(both & ordered, SAMPLE_LEAD, np.inf)

    def take(self, arm: int, rewards: FloatArray) -> None:
        """Add the next rewards of an arm, in order."""
        before = int(self._drawn[arm])
        if not before:
            self._pivots[arm] = rewards[0]
        around = rewards - self._pivots[arm]
        first = max(0, min(FIRST_PULLS - before, around.size))
        self._first[arm, before : before + first] = around[:first]
        self._drawn[arm] += around.size
        if before < FIRST_PULLS <= self._drawn[arm]:
            self._fix(arm)
        counted = max(0, int(self.sizes[arm]) - before)
        self._sums[arm] += around[:counted].sum()

    def _fix(self, arm: int) -> None:
        """Fix the size of a sample by the variance of its first pulls, rounded up."""
        variance = float(self._first[arm].var(ddof=1)) * (1 + 1e-9)
        self.sizes[arm], self._usual[arm] = self._sizes(variance)

    def means(self) -> FloatArray:
        """The means of samples, right where they are complete: (n,)."""
        return self._pivots + self._sums / self.sizes
