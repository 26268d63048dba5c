"""What the pulls so far tell of the arms, where to explore, and the plan of a look.

Errors here cost pulls, never the guarantee."""

from typing import NamedTuple

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.charged.bound import inflation

# Constants of the split certificate with charged variances that cost pulls; no bound rests on
# them.
FIRST_PULLS = 15  # of every arm; they fix the caps
CAP_SHARE = 0.1  # of delta, for caps that are too small
GRID = np.unique(np.rint(4 * 1.4 ** np.arange(30))).astype(np.int64)  # fresh pulls of an arm
SLOPES = (1.0, 0.7, 0.5, 0.35)  # slopes of an arm, as shares of the strength
STRENGTHS = (1.3, 1.5, 1.75, 2.1, 2.6, 3.3)  # strengths, in units of ln(1 / delta) / (K epsilon)
FIRST_GOAL = 0.9  # expected bound of the first look, as a share of K epsilon ...
LOWER_GOAL = 0.85  # ... by which factor it falls after a look that failed ...
LEAST_GOAL = 0.6  # ... and how far at most
READY = 1.2  # pulls of a look, in units of those so far, from which on it is made
APART = 1.25  # growth of the pulls between a look that failed and the next draft
GROWTH = 0.15  # pulls of a batch that explores, as a share of those so far
PRIOR_PULLS = 4.0  # pulls that the variance of all arms counts for in that of one
LEAST_VARIANCE = 1e-12  # of a reward, in units of epsilon squared
MOST_INFLATION = 3.0  # factor of a charged variance above which a candidate is left out


class Explored:
    """Pulls, means and squared deviations of every arm, around a pivot that keeps digits."""

    def __init__(self, n_arms: int) -> None:
        self.pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.means: FloatArray = np.zeros(n_arms)
        self.squares: FloatArray = np.zeros(n_arms)  # from the mean of the arm, added up

    def add(self, arms: IntArray, times: IntArray, means: FloatArray, squares: FloatArray) -> None:
        """Add pulls with these means and squared deviations; every arm at most once."""
        before = self.pulls[arms]
        apart = means - self.means[arms]
        total = before + times
        self.squares[arms] += squares + apart**2 * before * times / total
        self.means[arms] += apart * times / total
        self.pulls[arms] = total

    def variances(self) -> FloatArray:
        """Variance of a reward of every arm, drawn a little to that of all: (n,)."""
        freedom = self.pulls - 1
        pooled = self.squares.sum() / max(1, freedom.sum())
        prior = PRIOR_PULLS
        drawn = (self.squares + prior * pooled) / (freedom + prior)
        return np.asarray(np.maximum(drawn, LEAST_VARIANCE), dtype=np.float64)


class Guess(NamedTuple):
    """Posterior means and variances under a normal prior, the choice and its boundary."""

    means: FloatArray  # (n,)
    spread: FloatArray  # (n,) posterior variances
    variances: FloatArray  # (n,) of a reward
    chosen: BoolArray
    boundary: float

    @property
    def distances(self) -> FloatArray:
        """Distance of every arm from the boundary."""
        return np.abs(self.means - self.boundary)


def guess_of(explored: Explored, k: int, ties: IntArray) -> Guess:
    """Means drawn to that of all arms, and the k best of them."""
    own, variances = explored.means, explored.variances()
    noise = variances / explored.pulls
    between = max(float(own.var() - noise.mean()), 1e-6 * float(own.var()), LEAST_VARIANCE)
    spread = 1 / (1 / noise + 1 / between)
    centre = own.mean()
    means = centre + spread * (own - centre) / noise
    ranked = np.lexsort((ties, -means))
    chosen = np.zeros(own.size, dtype=np.bool_)
    chosen[ranked[:k]] = True
    boundary = float(means[ranked[k - 1]] + means[ranked[k]]) / 2
    return Guess(means, spread, variances, chosen, boundary)


def expected_excess(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """E max(0, Q) of a normal Q."""
    from scipy.special import ndtr

    ratio = mean / deviation
    density = np.exp(-0.5 * ratio**2) / np.sqrt(2 * np.pi)
    result: FloatArray = deviation * density + mean * ndtr(ratio)
    return result


def next_pulls(explored: Explored, guess: Guess, total: int, rng: np.random.Generator) -> IntArray:
    """Pulls of every arm in a batch that explores: where the expected loss per pull is largest."""
    loss = expected_excess(-guess.distances, np.sqrt(guess.spread)) / np.sqrt(explored.pulls)
    shares = loss + 1e-12 * (loss.max() + 1)
    return rng.multinomial(total, shares / shares.sum()).astype(np.int64)


class LookPlan(NamedTuple):
    """A look: its cost, and strength, slopes and fresh pulls."""

    cost: int
    strength: float
    slopes: FloatArray  # (n,)
    times: IntArray  # (n,)


def draft(
    guess: Guess, caps: FloatArray, threshold: float, reach: float, goal: float
) -> LookPlan | None:
    """The cheapest look whose bound is expected to be `goal`; None if no look is.

    `threshold` is ln(1 / delta) of the look."""
    plans = [
        plan
        for factor in STRENGTHS
        if (plan := _with_strength(guess, caps, factor * threshold / reach, threshold, reach, goal))
    ]
    return min(plans, key=lambda plan: plan.cost, default=None)


def _with_strength(
    guess: Guess, caps: FloatArray, strength: float, threshold: float, reach: float, goal: float
) -> LookPlan | None:
    """The cheapest look of this strength: a Lagrange multiplier shares the charges out."""
    left = goal - threshold / strength
    times = np.tile(GRID, len(SLOPES))[None, :].astype(np.float64)
    slopes = strength * np.repeat(SLOPES, GRID.size)[None, :]
    expected = _expected_charges(guess, caps, times, slopes, strength, reach)
    if left <= 0 or expected.min(axis=1).sum() > left:
        return None
    low, high = -30.0, 30.0  # logarithm of the multiplier
    for _ in range(30):
        middle = (low + high) / 2
        pick = np.argmin(times + np.exp(middle) * expected, axis=1)
        fits = np.take_along_axis(expected, pick[:, None], 1).sum() <= left
        low, high = (low, middle) if fits else (middle, high)
    pick = np.argmin(times + np.exp(high) * expected, axis=1)
    fresh = times[0, pick].astype(np.int64)
    return LookPlan(int(fresh.sum()), strength, slopes[0, pick], fresh)


def _expected_charges(
    guess: Guess,
    caps: FloatArray,
    times: FloatArray,
    slopes: FloatArray,
    strength: float,
    reach: float,
) -> FloatArray:
    """Expected charge of every arm for every candidate of pulls and slope: (arms, candidates)."""
    noise = guess.variances[:, None] / times
    factor = inflation(slopes, times, caps[:, None])
    usable = factor < MOST_INFLATION
    charged = np.where(usable, factor, 1.0) * slopes**2 * noise / 2
    centre = charged - slopes * guess.distances[:, None] + (strength - slopes) * reach
    spread = slopes**2 * (noise + guess.spread[:, None]) + 2 * charged**2 / (times - 1)
    expected = expected_excess(centre, np.sqrt(spread)) / strength
    return np.where(usable, expected, 10 * reach)
