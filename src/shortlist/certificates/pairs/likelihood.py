"""Likelihood ratios: one arm, the nominee, against each of its rivals.

For rewards x in [0, 1] with mean theta and any q known beforehand, as a power lies below its chord,

    E[(q / theta)^x ((1 - q) / (1 - theta))^(1 - x)] <= 1.

So the likelihood of an arm's rewards as they were predicted, one after the other, over their
likelihood at theta is a supermartingale from 1. So is the product over two arms, however they are
pulled. The largest likelihood of two arms whose means differ by `gap` or more is no smaller than
that at theta."""

from math import log

import numpy as np
from scipy.special import betaln, xlogy

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.pairs.bound import StageRewards

FIRST_NOMINEE = 0.6  # share of delta for the first nominee; later ones get this part of the rest
PREDICTION_PRIOR = 4.0  # pulls that the common mean of the arms is worth in a prediction
LARGEST_MULTIPLIER = 100.0  # times all pulls: a multiplier beyond which rounding would count
NEAR_ZERO = 1e-12  # instead of 0, in a denominator


Sums = tuple[FloatArray, FloatArray]  # of rewards x, and of 1 - x


class Likelihood:
    """Predicted likelihoods of all arms, and the arms that were nominated so far.

    Only rewards after its nomination count for a nominee. The share of delta of the r-th nominee is
    fixed beforehand, so it does not matter how many others there are."""

    def __init__(self, n_arms: int) -> None:
        self._good: FloatArray = np.zeros(n_arms)  # sums of x ...
        self._bad: FloatArray = np.zeros(n_arms)  # ... and of 1 - x
        self._predicted: FloatArray = np.zeros(n_arms)  # log likelihood, as it was predicted
        self._before: dict[int, tuple[float, float, float]] = {}  # the same at the nomination
        self._log_shares: dict[int, float] = {}

    def count(self, arms: IntArray, draws: StageRewards, known: StageRewards, mean: float) -> None:
        """Add rewards of these arms, predicted from their rewards so far and the mean of all arms.

        The prediction is a mixture over q by the Beta distribution of these, so the order of
        rewards within `draws` does not matter."""
        seen = np.clip(known.sums[arms], 0.0, known.times[arms])  # sums may be rounded
        good = seen + PREDICTION_PRIOR * mean
        bad = known.times[arms] - seen + PREDICTION_PRIOR * (1 - mean)
        gained = np.clip(draws.sums, 0.0, draws.times)
        lost = draws.times - gained
        self._predicted[arms] += betaln(good + gained, bad + lost) - betaln(good, bad)
        self._good[arms] += gained
        self._bad[arms] += lost

    def nominate(self, arm: int) -> None:
        """Compare this arm with all others by its rewards from now on."""
        if arm not in self._before:
            self._log_shares[arm] = log(FIRST_NOMINEE) + len(self._before) * log(1 - FIRST_NOMINEE)
            self._before[arm] = self._of(arm)

    def evidence(self, nominee: int, rivals: IntArray, gap: float, *, best: bool) -> FloatArray:
        """Log-likelihood ratio against "a rival is better than the nominee by `gap`": (rival,).

        If not `best`: against "the nominee is better than a rival". The nominee's share of delta is
        included."""
        now, before = self._of(nominee), self._before[nominee]
        good, bad, predicted = (float(x - y) for x, y in zip(now, before, strict=True))
        own = np.array(good), np.array(bad)
        others = self._good[rivals], self._bad[rivals]
        better, worse = (others, own) if best else (own, others)
        ratios = self._predicted[rivals] + predicted - largest_likelihood(better, worse, gap)
        return ratios + self._log_shares[nominee]

    def _of(self, arm: int) -> tuple[float, float, float]:
        return self._good[arm], self._bad[arm], self._predicted[arm]


def largest_likelihood(better: Sums, worse: Sums, gap: float) -> FloatArray:
    """Bound on the log likelihood of two arms with means y >= x + gap.

    Its Lagrangian at any multiplier >= 0 is a bound. That of the x at which the likelihood along
    y = x + gap is largest, found by bisection, makes it the maximum but for little."""
    y = better[0] / np.maximum(better[0] + better[1], 1)
    x = worse[0] / np.maximum(worse[0] + worse[1], 1)
    low = np.clip(y - gap, 0.0, 1 - gap)
    high = np.clip(x, low, 1 - gap)
    for _ in range(10):
        middle = (low + high) / 2
        rises = _slope(better, middle + gap) + _slope(worse, middle) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    middle = (low + high) / 2
    # the two slopes are opposite there, unless one of the means is 0 or 1
    steepest = np.maximum(_slope(worse, middle), -_slope(better, middle + gap))
    most = LARGEST_MULTIPLIER * (sum(better) + sum(worse))
    multiplier = np.where(y >= x + gap, 0.0, np.clip(steepest, 0.0, most))
    y, of_better = _at_best(better, multiplier)
    x, of_worse = _at_best(worse, -multiplier)
    return of_better + of_worse + multiplier * (y - x - gap)


def _slope(sums: Sums, mean: FloatArray) -> FloatArray:
    """Of the log likelihood of one arm."""
    good, bad = sums
    return good / np.maximum(mean, NEAR_ZERO) - bad / np.maximum(1 - mean, NEAR_ZERO)


def _at_best(sums: Sums, tilt: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mean y at which the log likelihood + tilt y is largest, and the log likelihood there.

    1 - y is found as y is, for the mirrored rewards: so no digits of it are lost near y = 1."""
    good, bad = sums
    y = _tilted(good, bad, tilt)
    likelihood = xlogy(good, y) + xlogy(bad, _tilted(bad, good, -tilt))
    return y, np.asarray(likelihood, dtype=np.float64)


def _tilted(good: FloatArray, bad: FloatArray, tilt: FloatArray) -> FloatArray:
    """The root in [0, 1] of tilt y^2 + (good + bad - tilt) y - good, without cancellation."""
    linear = good + bad - tilt
    root = np.sqrt(np.maximum(linear**2 + 4 * tilt * good, 0.0))
    direct = 2 * good / np.maximum(linear + root, NEAR_ZERO)
    other = (root - linear) / np.where(linear < 0, 2 * tilt, 1.0)
    return np.minimum(np.where(linear < 0, other, direct), 1.0)
