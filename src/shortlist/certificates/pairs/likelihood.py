"""The means that make a swap of two arms hardest to exclude, and how fast it is excluded there.

That the arm outside is better by `gap` is to be refuted, where the arm inside seems to have the
mean `inside` and the other one `outside`. Of all means x and y = x + gap the least favourable have

    r_in (inside - x) / v(x) = r_out (y - outside) / v(y),

r the pulls and v the variance of 0/1 rewards: there r_in kl(inside, x) + r_out kl(outside, y) is
least, and bets with that strength and these centres are the likelihood ratio against x and y.

How much likelier the rewards are as they were predicted than if a swap lost more than allowed.

For rewards x in [0, 1] with mean theta and any q known beforehand, as a power lies below its chord,

    E[(q / theta)^x ((1 - q) / (1 - theta))^(1 - x)] <= 1.

So the rewards of an arm, predicted one after the other, over their likelihood at theta are a
supermartingale from 1; and so is the product over two arms, however they are pulled. The largest
likelihood of two arms whose means differ by `gap` or more is no smaller than that at theta."""

from math import log

import numpy as np
from scipy.special import betaln, rel_entr, xlogy

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.pairs.bound import Draws

STEPS = 3  # of the fixed point: bets need not be centred exactly
MARGIN = 0.002  # that the centre of a bet keeps from 0 and 1


def least_favourable(
    inside: FloatArray, outside: FloatArray, gap: float, ratio: FloatArray
) -> FloatArray:
    """The lower mean x; all arrays broadcast, `ratio` is pulls inside per pull outside."""
    total = np.maximum(inside - outside, 0.0) + gap
    most = max(MARGIN, 1 - MARGIN - gap)
    x = np.minimum(np.maximum((inside + outside - gap) / 2, MARGIN), most)
    for _ in range(STEPS):
        y = np.minimum(x + gap, 1 - MARGIN)
        inner, outer = x * (1 - x), y * (1 - y) * ratio
        x = (x + inside - total * inner / (inner + outer)) / 2
        x = np.minimum(np.maximum(x, MARGIN), most)
    return x


def information(mean: FloatArray, other: FloatArray) -> FloatArray:
    """kl(mean, other) of 0/1 rewards."""
    result: FloatArray = rel_entr(mean, other) + rel_entr(1 - mean, 1 - other)
    return result


FIRST = 0.6  # share of the first nominee, and of each later one in what those before it left
PRIOR = 4.0  # pulls that the common mean of the arms is worth in a prediction
HALVINGS = 10  # of the interval of means
STEEPEST = 100.0  # times all pulls: a multiplier beyond which rounding would count
LEAST = 1e-12  # instead of 0, in a denominator


Sums = tuple[FloatArray, FloatArray]  # of rewards x, and of 1 - x


class Likelihood:
    """What was predicted of every arm, and which arms were nominated as the one to tell apart.

    Of a nominee only rewards after its nomination count, and the r-th has a share of the
    confidence that was settled beforehand: so it does not matter how many others there are."""

    def __init__(self, n_arms: int) -> None:
        self._good: FloatArray = np.zeros(n_arms)  # sums of x ...
        self._bad: FloatArray = np.zeros(n_arms)  # ... and of 1 - x
        self._predicted: FloatArray = np.zeros(n_arms)  # log likelihood, as it was predicted
        self._before: dict[int, tuple[float, float, float]] = {}  # the same at the nomination
        self._log_shares: dict[int, float] = {}

    def count(self, arms: IntArray, draws: Draws, known: Draws, mean: float) -> None:
        """Add rewards of these arms, predicted by all that is known and the mean of all arms.

        The prediction is a mixture over q by the Beta law that these are worth, so the order of
        rewards within `draws` does not matter."""
        seen = np.clip(known.sums[arms], 0.0, known.times[arms])  # sums may be rounded
        good = seen + PRIOR * mean
        bad = known.times[arms] - seen + PRIOR * (1 - mean)
        gained = np.clip(draws.sums, 0.0, draws.times)
        lost = draws.times - gained
        self._predicted[arms] += betaln(good + gained, bad + lost) - betaln(good, bad)
        self._good[arms] += gained
        self._bad[arms] += lost

    def nominate(self, arm: int) -> None:
        """Let this arm be told from all others by what it gives from now on."""
        if arm not in self._before:
            self._log_shares[arm] = log(FIRST) + len(self._before) * log(1 - FIRST)
            self._before[arm] = self._of(arm)

    def evidence(self, nominee: int, rivals: IntArray, gap: float, *, best: bool) -> FloatArray:
        """Logarithm of the ratio against "a rival is better than the nominee by `gap`": (rival,).

        If not `best`: against "the nominee is better than a rival". The nominee's share of the
        confidence is taken off."""
        now, before = self._of(nominee), self._before[nominee]
        good, bad, predicted = (float(x - y) for x, y in zip(now, before, strict=True))
        own = np.array(good), np.array(bad)
        others = self._good[rivals], self._bad[rivals]
        better, worse = (others, own) if best else (own, others)
        ratios = self._predicted[rivals] + predicted - largest_likelihood(better, worse, gap)
        result: FloatArray = ratios + self._log_shares[nominee]
        return result

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
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        rises = _slope(better, middle + gap) + _slope(worse, middle) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    middle = (low + high) / 2
    # the two slopes are opposite there, unless one of the means is 0 or 1
    steepest = np.maximum(_slope(worse, middle), -_slope(better, middle + gap))
    most = STEEPEST * (sum(better) + sum(worse))
    multiplier = np.where(y >= x + gap, 0.0, np.clip(steepest, 0.0, most))
    y, of_better = _at_best(better, multiplier)
    x, of_worse = _at_best(worse, -multiplier)
    result: FloatArray = of_better + of_worse + multiplier * (y - x - gap)
    return result


def _slope(sums: Sums, mean: FloatArray) -> FloatArray:
    """Of the log likelihood of one arm."""
    good, bad = sums
    result: FloatArray = good / np.maximum(mean, LEAST) - bad / np.maximum(1 - mean, LEAST)
    return result


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
    direct = 2 * good / np.maximum(linear + root, LEAST)
    other = (root - linear) / np.where(linear < 0, 2 * tilt, 1.0)
    result: FloatArray = np.minimum(np.where(linear < 0, other, direct), 1.0)
    return result
