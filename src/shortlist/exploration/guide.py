"""Features as a guide: a prior mean and spread for every arm, learned with the rewards.

The mean of an arm is a linear function of its features, give or take a spread. Coefficients are
fitted by weighted least squares over the arms that were pulled, the spread by marginal likelihood.
This prior is mixed with the one that all arms share; its weight is learned by EM. So features that
explain little are hardly used. No guarantee rests on it."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.exploration import tuning


@dataclass(eq=False, slots=True)
class ArmMoments:
    """What the guide needs of the rewards so far: (n,) each."""

    pulls: IntArray
    means: FloatArray  # 0 where an arm was not pulled
    variance: (
        float | None
    )  # of a reward; None for that of 0/1 rewards with the same mean, times ...
    dispersion: float = 1.0  # ... this


@dataclass(eq=False, slots=True)
class FeatureGuide:
    """Features of every arm, with the coefficients, the spread and the weight that were learned."""

    rows: FloatArray  # (n, d): features with a constant
    weight: float = tuning.FIRST_WEIGHT  # of the prior by features
    spread: float = np.nan  # standard deviation of means around the linear ones

    @classmethod
    def of(cls, basis: FloatArray) -> "FeatureGuide":
        """A guide by these features, before the first reward."""
        return cls(np.column_stack([np.ones(len(basis)), basis]))

    @property
    def first_arms(self) -> int:
        """Arms to pull first: enough for a rough fit."""
        return tuning.FIRST_PER_COEFFICIENT * int(self.rows.shape[1])

    def among(self, arms: IntArray) -> "FeatureGuide":
        """The same guide for these arms only."""
        return FeatureGuide(self.rows[arms], self.weight, self.spread)

    def predict(self, seen: ArmMoments) -> tuple[FloatArray, FloatArray]:
        """The prior mean of every arm and its standard deviation, fitted to all rewards."""
        pulled = seen.pulls > 0
        rows, observed = self.rows[pulled], seen.means[pulled]
        fitted = np.full(observed.size, observed.mean())
        scale = 1.0 if seen.variance is None else max(float(observed.std()), tuning.LEAST_SPREAD)
        for _ in range(2):  # variances depend on the fit
            noise = _variance(fitted, seen) / seen.pulls[pulled]
            coefficients, covariance, self.spread = _best_fit(rows, observed, noise, scale)
            fitted = rows @ coefficients
        uncertain = ((self.rows @ covariance) * self.rows).sum(1)
        return self.rows @ coefficients, np.sqrt(self.spread**2 + uncertain)

    def prior(
        self,
        seen: ArmMoments,
        likelihood: FloatArray,
        shared: FloatArray,
        grid: FloatArray,
        flat: FloatArray,
    ) -> FloatArray:
        """The prior of every arm on the grid: (n, grid). `shared` is that of all arms."""
        means, deviations = self.predict(seen)
        places = np.clip(means, grid[0], grid[-1])
        steps = np.interp(places, grid, np.gradient(grid))
        deviations = np.maximum(deviations, tuning.LEAST_STEPS * steps)
        own = np.exp(-(((grid - places[:, None]) / deviations[:, None]) ** 2) / 2) * flat
        own /= own.sum(1, keepdims=True)
        pulled = seen.pulls > 0
        by_features = (likelihood * own).sum(1)[pulled]
        by_all = (likelihood @ shared)[pulled]
        for _ in range(tuning.WEIGHT_STEPS):
            told = self.weight * by_features
            share = float((told / (told + (1 - self.weight) * by_all)).mean())
            self.weight = min(max(share, tuning.LEAST_WEIGHT), tuning.MOST_WEIGHT)
        return np.asarray(self.weight * own + (1 - self.weight) * shared, dtype=np.float64)


def _variance(fitted: FloatArray, seen: ArmMoments) -> FloatArray:
    """Variance of a reward of every arm that was pulled."""
    if seen.variance is not None:
        return np.full(fitted.size, seen.variance)
    inside = np.clip(fitted, tuning.NEAREST, 1 - tuning.NEAREST)
    return np.asarray(seen.dispersion * inside * (1 - inside), dtype=np.float64)


def _best_fit(
    rows: FloatArray, observed: FloatArray, noise: FloatArray, scale: float
) -> tuple[FloatArray, FloatArray, float]:
    """Coefficients, their covariance, and the spread of largest marginal likelihood."""
    best = None
    for spread in scale * np.geomspace(*tuning.SPREAD_RANGE, tuning.SPREADS):
        weights = 1 / (noise + spread**2)
        information = (rows * weights[:, None]).T @ rows
        information += tuning.RIDGE / scale**2 * np.eye(len(information))
        coefficients = np.linalg.solve(information, rows.T @ (weights * observed))
        rest = observed - rows @ coefficients
        evidence = np.log(weights).sum() - weights @ rest**2 - np.linalg.slogdet(information)[1]
        if best is None or evidence > best[0]:
            best = float(evidence), coefficients, information, float(spread)
    assert best is not None
    _, coefficients, information, spread = best
    return coefficients, np.linalg.inv(information), spread
