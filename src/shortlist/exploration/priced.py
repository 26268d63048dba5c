"""The posterior where not every set of k arms may be chosen: a price per arm, not one boundary.

The choice is the best allowed set by posterior means. The grid is even, since prices are spread
out. No guarantee rests on it."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.constraints import Constraint, best_set
from shortlist.exploration import tuning
from shortlist.exploration.posterior import (
    Grid,
    Posterior,
    UndeclaredPosterior,
    posterior_of,
)
from shortlist.exploration.prices import ArmBeliefs, Prices, best_prices
from shortlist.problem import Problem
from shortlist.reward_models import RewardModel, Undeclared

JITTER = 2.0**-30  # added to means, as a share of the largest, so that ties are broken at random


class PricedPosterior(Posterior):
    """Posterior over the mean of every arm, the best allowed set and its prices."""

    def __init__(self, n_arms: int, k: int, rewards: RewardModel, constraint: Constraint) -> None:
        super().__init__(n_arms, k, rewards)
        self.constraint = constraint
        self._grid = Grid(has_range=rewards.has_range, even=True)
        self._choice: tuple[BoolArray, Prices] | None = None

    def refresh(self) -> None:
        """Fit the prior to all arms and update every posterior."""
        super().refresh()
        self._choice = None

    def priced(self, rng: np.random.Generator) -> tuple[BoolArray, Prices]:
        """The best allowed set by posterior means, and its prices.

        Until there are more rewards the answer stays the same, ties included."""
        if self._choice is None:
            means = self.means()
            with np.errstate(over="ignore", under="ignore"):
                comparable = (means - means.mean()).astype(np.float32).astype(np.float64)
            noise = JITTER * float(np.abs(comparable).max()) * rng.random(means.size)
            chosen = best_set(self.constraint, comparable + noise, self.k)
            self._choice = chosen, best_prices(self.constraint, chosen, self.beliefs)
        return self._choice

    def split(self, rng: np.random.Generator) -> tuple[BoolArray, float]:
        """The best allowed set as a mask, and its average price."""
        chosen, prices = self.priced(rng)
        return chosen, float(prices.of_arms.mean())

    @property
    def beliefs(self) -> ArmBeliefs:
        """The posterior of every arm: (arms, grid)."""
        span = (0.0, 1.0) if self.rewards.has_range else (self.grid[0], self.grid[-1])
        return ArmBeliefs(self.grid, self.weights[self.row], span)

    def priorities(self, rng: np.random.Generator) -> tuple[IntArray, FloatArray, IntArray]:
        """Every arm as a kind of its own; its expected loss per pull, and its pulls."""
        return np.arange(self.n_arms), self.arm_losses(rng) / self._counts, self.pulls

    def arm_losses(self, rng: np.random.Generator) -> FloatArray:
        """Expected distance on the wrong side of its price, tempered posterior: (arms,)."""
        chosen, prices = self.priced(rng)
        tempered = np.exp(tuning.TEMPER * self._log) * self.prior  # (rows, grid)
        return self._beyond(chosen, prices, tempered / tempered.sum(axis=1, keepdims=True))

    def total_loss(self, chosen: BoolArray, prices: Prices) -> float:
        """Expected total distance on the wrong side of the prices."""
        return float(self._beyond(chosen, prices, self.weights).sum())

    def _beyond(self, chosen: BoolArray, prices: Prices, weights: FloatArray) -> FloatArray:
        """Expected distance of every mean on the wrong side of its price: (arms,).

        E (m - p)+ is the first moment of the means above p less p times their probability."""
        price = prices.of_arms
        none = np.zeros((weights.shape[0], 1))
        at_most = np.concatenate([none, np.cumsum(weights, axis=1)], axis=1)
        moments = np.concatenate([none, np.cumsum(weights * self.grid, axis=1)], axis=1)
        first = np.searchsorted(self.grid, price)  # point of the grid that is not below
        below, moment = at_most[self.row, first], moments[self.row, first]
        inside = price * below - moment
        outside = (moments[self.row, -1] - moment) - price * (at_most[self.row, -1] - below)
        beyond: FloatArray = np.maximum(np.where(chosen, inside, outside), 0.0)
        return beyond


class PricedUndeclared(PricedPosterior, UndeclaredPosterior):
    """The same where nothing was declared about rewards."""

    def __init__(self, n_arms: int, k: int, constraint: Constraint) -> None:
        UndeclaredPosterior.__init__(self, n_arms, k)
        self.constraint = constraint
        self._choice = None


def exploring(problem: Problem) -> Posterior:
    """The posterior that a problem is explored with; features guide it."""
    posterior = _unguided(problem)
    if problem.features is not None:
        posterior.follow(problem.features)
    return posterior


def _unguided(problem: Problem) -> Posterior:
    if problem.constraint is None:
        return posterior_of(problem.n_arms, problem.k, problem.rewards)
    if isinstance(problem.rewards, Undeclared):
        return PricedUndeclared(problem.n_arms, problem.k, problem.constraint)
    return PricedPosterior(problem.n_arms, problem.k, problem.rewards, problem.constraint)


def remaining(posterior: Posterior, arms: IntArray, problem: Problem) -> Posterior:
    """The posterior of these arms only, which are those of `problem`."""
    some = posterior.among(arms)
    if isinstance(some, PricedPosterior):
        assert problem.constraint is not None
        some.constraint = problem.constraint
    return some
