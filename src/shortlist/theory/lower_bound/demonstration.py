"""What a search pays on the hard instance as epsilon falls, measured."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import linregress

from shortlist.instances import lower_bound
from shortlist.simulation.simulate import simulate
from shortlist.theory.hardness import hardness
from shortlist.theory.lower_bound.reduction import FAILURE


@dataclass(frozen=True, slots=True)
class NeededBudget:
    """The least budget that was enough for epsilon on n coins, and H, which does not see it."""

    n_arms: int
    epsilon: float
    budget: int
    h: float

    @property
    def tosses_per_arm(self) -> float:
        """Budget / n."""
        return self.budget / self.n_arms


@dataclass(frozen=True, slots=True)
class Growth:
    """Tosses per arm fitted by intercept + slope * ln(1/epsilon)."""

    needed: tuple[NeededBudget, ...]
    slope: float
    intercept: float
    r_squared: float


def demonstrate(
    epsilons: npt.ArrayLike,
    n_arms: int = 1000,
    *,
    eta: float = 0.1,
    algorithm: str = "uniform",
    runs: int = 100,
    seed: int = 0,
) -> Growth:
    """Measure how the budget that a search needs on the hard instance grows with ln(1/epsilon).

    For uniform sampling an arm lands on the wrong side with probability of about exp(-2 eta^2 N)
    after N tosses, and epsilon / (2 eta) of them may: N grows by about 1 / (2 eta^2) per unit of
    ln(1/epsilon)."""
    grid = np.asarray(epsilons, dtype=np.float64)
    needed = []
    for epsilon in grid.tolist():
        budget = least_budget(algorithm, n_arms, epsilon, eta=eta, runs=runs, seed=seed)
        h = hardness(lower_bound(n_arms, eta), n_arms // 2, epsilon).h
        needed.append(NeededBudget(n_arms, epsilon, budget, h))
    fit = linregress(-np.log(grid), [each.tosses_per_arm for each in needed])
    return Growth(tuple(needed), float(fit.slope), float(fit.intercept), float(fit.rvalue**2))


def least_budget(
    algorithm: str,
    n_arms: int,
    epsilon: float,
    *,
    eta: float,
    runs: int,
    seed: int,
    precision: float = 0.02,
) -> int:
    """The least budget at which at most a tenth of the runs lose more than epsilon.

    Doubling, then bisection up to `precision`; every budget is tried on the same seeds."""
    means = lower_bound(n_arms, eta)

    def fails(budget: int) -> bool:
        found = simulate(
            algorithm, means, k=n_arms // 2, epsilon=epsilon, budget=budget, runs=runs, seed=seed
        )
        return bool(found.failed.mean() > FAILURE)

    high = n_arms
    while fails(high):
        high *= 2
    low = high // 2
    while high - low > precision * high:
        middle = (low + high) // 2
        if fails(middle):
            low = middle
        else:
            high = middle
    return high
