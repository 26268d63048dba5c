"""Which arms to pull and how often: the design and its size, from the pilot alone.

Nothing here is part of the proof, as long as the design is settled before its rewards."""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.linear.bound import bound_over_ball, noise_radius
from shortlist.reward_models import UNIT_SIGMA
from shortlist.search import Pulls, Rewards

# These cost pulls or time; no bound rests on them.
EVEN = 0.1  # share of a design that goes evenly to some arms ...
EVEN_ARMS = 4  # ... this many per coefficient: fewer arms with more pulls show lack of fit better
LEAST_SHARE = 0.1  # of its even share that an arm has, or no pulls at all
DESIGN_STEPS = 40  # of the multiplicative algorithm
RIDGE = 0.1  # information about every coefficient that the pilot begins with
GUESSES = 3  # coefficients drawn from the pilot's uncertainty, to predict a bound
HOPELESS = 20.0  # part of the radius by misfit, in that by noise, at which pulls are no use
MOST_PULLS = 2.0**61  # more can be neither counted nor made


@dataclass(frozen=True, eq=False, slots=True)
class LinearDesign:
    """A design: the share of pulls of every arm, and how many pulls the first look takes."""

    shares: FloatArray  # (n,)
    size: int


@dataclass(frozen=True, eq=False, slots=True)
class Wanted:
    """What is to be proved, on the unit scale."""

    k: int
    allowed: float  # K epsilon, less the part of the misfit that no pulls reduce
    delta: float  # of the first look
    misfit: float


def best_arms(values: FloatArray, k: int, rng: np.random.Generator) -> BoolArray:
    """The k arms of largest value, ties broken at random."""
    order = np.lexsort((rng.random(values.size), -values))
    chosen = np.zeros(values.size, dtype=np.bool_)
    chosen[order[:k]] = True
    return chosen


def even_shares(basis: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Even shares of some arms that settle all coefficients, and of others at random."""
    n_arms, d = basis.shape
    if n_arms <= EVEN_ARMS * (d + 1):
        return np.full(n_arms, 1 / n_arms)
    shares = np.zeros(n_arms)
    shares[rng.permutation(n_arms)[: (EVEN_ARMS - 1) * (d + 1)]] = 1.0
    rest = np.column_stack([np.ones(n_arms), basis])
    for _ in range(d + 1):  # the arm that is farthest from the span of those before
        lengths = np.linalg.norm(rest, axis=1)
        arm = int(lengths.argmax())
        shares[arm] = 1.0
        rest = rest - np.outer(rest @ rest[arm], rest[arm]) / lengths[arm] ** 2
    return np.asarray(shares / shares.sum(), dtype=np.float64)


@dataclass(frozen=True, eq=False, slots=True)
class ArmSums:
    """Pulls, sums and sums of squares per arm: (n,) each."""

    pulls: IntArray
    sums: FloatArray
    squares: FloatArray

    @classmethod
    def none(cls, n_arms: int) -> "ArmSums":
        """Before the first pull."""
        return cls(np.zeros(n_arms, dtype=np.int64), np.zeros(n_arms), np.zeros(n_arms))

    @property
    def spent(self) -> int:
        """Number of pulls."""
        return int(self.pulls.sum())

    @property
    def means(self) -> FloatArray:
        """Mean reward per arm, 0 where there is none."""
        return np.asarray(self.sums / np.maximum(self.pulls, 1), dtype=np.float64)

    def add(self, pulls: Pulls, rewards: Rewards) -> None:
        """Add the rewards of a batch."""
        np.add.at(self.pulls, pulls.arms, pulls.times)
        np.add.at(self.sums, pulls.arms, rewards.sums)
        np.add.at(self.squares, pulls.arms, rewards.squares)

    def plus(self, other: "ArmSums") -> "ArmSums":
        """All rewards of two."""
        return ArmSums(
            self.pulls + other.pulls, self.sums + other.sums, self.squares + other.squares
        )

    def among(self, arms: IntArray) -> "ArmSums":
        """The same for these arms only."""
        return ArmSums(self.pulls[arms], self.sums[arms], self.squares[arms])


class LinearPilot:
    """The rewards of the pilot; they choose the design and are in no fit."""

    def __init__(
        self,
        basis: FloatArray,
        costs: FloatArray,
        rng: np.random.Generator,
        seen: ArmSums | None = None,
    ) -> None:
        self.basis = basis
        self.costs = costs
        self.even = even_shares(basis, rng)  # (n,)
        self.seen = ArmSums.none(len(basis)) if seen is None else seen

    @property
    def spent(self) -> int:
        """Number of pulls so far."""
        return self.seen.spent

    def estimate(self) -> tuple[FloatArray, FloatArray]:
        """Coefficients without the level, and the information on them."""
        rows = np.column_stack([np.ones(len(self.basis)), self.basis])
        information = (rows * self.seen.pulls[:, None]).T @ rows / UNIT_SIGMA**2
        information += RIDGE * np.eye(len(information))
        found = np.linalg.solve(information, rows.T @ self.seen.sums / UNIT_SIGMA**2)
        return np.asarray(found[1:], dtype=np.float64), _differences(information)

    def spread(self) -> FloatArray:
        """Shares of pulls that estimate all directions well."""
        everywhere = self.basis.T @ self.basis / len(self.basis)
        return self._mixed(_optimal(self.basis, everywhere, self.costs))

    def _mixed(self, shares: FloatArray) -> FloatArray:
        """The same with a part that goes evenly to some arms, so that no direction is left out."""
        mixed = (1 - EVEN) * shares + EVEN * self.even
        mixed = np.where((mixed < LEAST_SHARE / mixed.size) & (self.even == 0), 0.0, mixed)
        rounded = np.round(mixed, 9)  # so that other machines take the same turns
        return np.asarray(rounded / rounded.sum(), dtype=np.float64)

    def best(self, k: int, rng: np.random.Generator) -> BoolArray:
        """The k arms of largest estimated mean."""
        return best_arms(self.basis @ self.estimate()[0], k, rng)

    def draft(self, wanted: Wanted, rng: np.random.Generator) -> LinearDesign | None:
        """The design that should do in its first look; None if none is expected to.

        The bound at a size is predicted for coefficients drawn from the pilot's uncertainty about
        the fit to come."""
        estimate, information = self.estimate()
        known = information / max(1, self.spent)  # per pull
        noise = rng.normal(size=(GUESSES, estimate.size))
        size = 2.0 * (estimate.size + 1)
        radius = noise_radius(estimate.size, wanted.delta)
        while size < MOST_PULLS:
            bias = wanted.misfit * math.sqrt(size) / UNIT_SIGMA
            if bias > HOPELESS * radius:
                return None
            factor = _factor(known * size)
            chosen = best_arms(self.basis @ estimate, wanted.k, rng)
            drawn = bound_over_ball(self.basis, chosen, estimate, factor, radius + bias)
            curvature = factor.T @ drawn.curvature @ factor
            shares = self._mixed(_optimal(self.basis, curvature, self.costs))
            expected = self._expected(shares, size, estimate, noise, radius + bias, wanted.k, rng)
            if expected <= wanted.allowed:
                return LinearDesign(shares, math.ceil(size))
            size *= min(max((expected / wanted.allowed) ** 0.7, 1.1), 4.0)
        raise OverflowError(f"more than {MOST_PULLS:.1e} pulls are needed")

    def _expected(
        self,
        shares: FloatArray,
        size: float,
        estimate: FloatArray,
        noise: FloatArray,
        radius: float,
        k: int,
        rng: np.random.Generator,
    ) -> float:
        """The mean bound of a look with this many pulls."""
        rows = np.column_stack([np.ones(len(self.basis)), self.basis])
        information = (rows * (shares * size)[:, None]).T @ rows / UNIT_SIGMA**2
        factor = _factor(_differences(information))
        bounds = []
        for each in noise:
            guess = estimate + np.linalg.solve(factor, each)
            chosen = best_arms(self.basis @ guess, k, rng)
            bounds.append(bound_over_ball(self.basis, chosen, guess, factor, radius).total)
        return float(np.mean(bounds))


def _factor(information: FloatArray) -> FloatArray:
    """The upper triangular factor of an information matrix."""
    return np.asarray(np.linalg.cholesky(information).T, dtype=np.float64)


def _differences(information: FloatArray) -> FloatArray:
    """Information on all coefficients but the level, which is first: a Schur complement."""
    cross = information[0, 1:]
    result: FloatArray = information[1:, 1:] - np.outer(cross, cross) / information[0, 0]
    return result


def _optimal(basis: FloatArray, curvature: FloatArray, costs: FloatArray) -> FloatArray:
    """Shares of the cost that minimise trace(curvature V^-1), as shares of pulls.

    Multiplicative algorithm: shares grow with the root of their effect."""
    rows = np.column_stack([np.ones(len(basis)), basis]) / np.sqrt(costs)[:, None]
    d = rows.shape[1]
    padded = np.zeros((d, d))
    even = np.trace(curvature) / (d - 1) * 1e-6 or 1.0  # if nothing can be lost, all alike
    padded[1:, 1:] = curvature + even * np.eye(d - 1)
    share = np.full(len(rows), 1 / len(rows))
    for _ in range(DESIGN_STEPS):
        information = (rows * share[:, None]).T @ rows
        information += 1e-9 * np.trace(information) / d * np.eye(d)
        inverse = np.linalg.inv(information)
        effect = ((rows @ (inverse @ padded @ inverse)) * rows).sum(1)
        share = share * np.sqrt(np.maximum(effect, 0))
        share /= share.sum()
    pulls: FloatArray = share / costs
    return np.asarray(pulls / pulls.sum(), dtype=np.float64)


def whole_pulls(shares: FloatArray, total: int, rng: np.random.Generator) -> IntArray:
    """Whole numbers of pulls with these shares: largest remainders, ties broken at random."""
    exact = shares * total
    times = np.floor(exact).astype(np.int64)
    remainders = np.round(exact - times, 6)
    missing = max(0, total - int(times.sum()))
    order = np.lexsort((rng.random(times.size), -remainders))
    times[order[:missing]] += 1
    return times
