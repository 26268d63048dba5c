"""The posterior where nothing was declared of rewards: their place and their spread are learned."""

import math

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.exploration.grid import Grid
from shortlist.exploration.posterior import LARGEST_VARIANCE, LEAST_VARIANCE, SHARED, Posterior
from shortlist.reward_models import UNIT_SIGMA, Bounded, RewardModel, SubGaussian, Undeclared
from shortlist.rounding import ROUNDED
from shortlist.search import Pulls, Rewards

TOLERANCE = 1e-9  # of a sum of squares beyond the sum that rounding may make up


def posterior_of(n_arms: int, k: int, rewards: RewardModel) -> Posterior:
    """The posterior that suits what was declared of rewards."""
    if isinstance(rewards, Undeclared):
        return UndeclaredPosterior(n_arms, k)
    return Posterior(n_arms, k, rewards)


class UndeclaredPosterior(Posterior):
    """As for rewards in [0, 1] as long as they can be such; from then on a normal model.

    In [0, 1] no sum of squares exceeds the sum. Where one does, rewards are moved and scaled by
    their mean and spread so far, and the variance of every arm is drawn to that of all (Smyth
    2004). So the choice does not depend on the units of rewards."""

    def __init__(self, n_arms: int, k: int) -> None:
        super().__init__(n_arms, k, Bounded())
        self._centre, self._scale = 0.0, 1.0

    def add(self, pulls: Pulls, rewards: Rewards) -> None:
        """Take in the reply to a request."""
        super().add(pulls, self._scaled(pulls.times, rewards.sums, rewards.squares))

    def refresh(self) -> None:
        """Fit the prior to all arms and update every posterior."""
        if self.rewards.has_range and (self.squares > self.sums * (1 + TOLERANCE)).any():
            self._leave_range()
        super().refresh()

    def _leave_range(self) -> None:
        """Go over to the normal model, with the rewards so far."""
        centre = float(self.sums.sum() / self.spent)
        spread = math.sqrt(max(0.0, float(self.squares.sum() / self.spent) - centre**2))
        self._centre, self._scale = centre, 2 * spread or 1.0
        rewards = self._scaled(self.pulls, self.sums, self.squares)
        self.sums, self.squares = rewards.sums, rewards.squares
        self.rewards = SubGaussian(UNIT_SIGMA)
        self._grid = Grid(has_range=False)
        self.prior = self.flat

    def _scaled(self, times: IntArray, sums: FloatArray, squares: FloatArray) -> Rewards:
        """The same rewards as (x - centre) / scale; no variance is rounded down."""
        if self.rewards.has_range and self._scale == 1.0:
            return Rewards(sums, squares)
        centre, scale = self._centre, self._scale
        around = squares - 2 * centre * sums + times * centre**2
        rounded = 4 * ROUNDED * (centre / scale) ** 2 * times
        return Rewards((sums - times * centre) / scale, around / scale**2 + rounded)

    def variance(self) -> float:
        """Variance of a reward around its arm's mean, pooled over arms; the total is worth one."""
        if self.rewards.has_range:
            return super().variance()
        within = float(self._within().sum())
        freedom = float(np.maximum(self.pulls - 1, 0).sum())
        return max(LEAST_VARIANCE, (within + LARGEST_VARIANCE) / (freedom + 1))

    def _within(self) -> FloatArray:
        """Squared deviations from every arm's mean: (arms,)."""
        within: FloatArray = np.maximum(0.0, self.squares - self.sums**2 / self._counts)
        return within

    def _log_likelihood(self, pulls: IntArray, sums: FloatArray) -> FloatArray:
        """That of Student's t, where the variance of an arm is learned, too: (arms, grid)."""
        if self.rewards.has_range:
            return super()._log_likelihood(pulls, sums)
        freedom = SHARED[0] + np.maximum(pulls - 1, 0)  # (arms,)
        variances = (SHARED[0] * self.variance() + self._within()) / freedom
        means = sums / np.maximum(pulls, 1)  # (arms,)
        squared = (self.grid - means[:, None]) ** 2 * (pulls / variances)[:, None]
        log: FloatArray = -(freedom[:, None] + 1) / 2 * np.log1p(squared / freedom[:, None])
        return self._trimmed(log)
