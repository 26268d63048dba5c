"""Beliefs about the arms before the search: guessed means, a prior, or a pilot.

Means are drawn once per run, so that uncertainty about them shows in the forecast. A run is on arms
that can be pulled without limit, or on a test set that is made up for it."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from shortlist.algorithms import Algorithm
from shortlist.arrays import FloatArray, IntArray
from shortlist.cells import ItemsGiven, check_cells, item_labels
from shortlist.constraints import Constraint, reordered
from shortlist.driver import Outcome, counted
from shortlist.errors import InvalidInput
from shortlist.exploration.posterior import Posterior
from shortlist.features import Features, shuffled
from shortlist.forecasting.days import Concurrency, Pool, timed
from shortlist.formatting import given_text
from shortlist.instances import item_response_with
from shortlist.problem import Items, Problem, checked_order
from shortlist.reward_models import Binary, Bounded
from shortlist.search import Pulls, Rewards
from shortlist.simulation.worlds import BernoulliBandit, ScoreTable
from shortlist.validation import (
    COUNTABLE,
    MOST_ARMS,
    arm_means,
    check_choice,
    listed,
    number,
    reals,
    shown,
    whole,
)

FITS = 20  # refreshes of the prior, a few EM steps each, until it hardly moves


class ArmsBelief(Protocol):
    """Means that the arms may have."""

    @property
    def n_arms(self) -> int:
        """Number of arms."""

    @property
    def words(self) -> str:
        """What is assumed, for the reader."""

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One mean per arm, in random order (E18)."""


@dataclass(frozen=True, slots=True)
class GuessedMeans:
    """The means are these, in unknown order."""

    means: FloatArray

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.means.size

    @property
    def words(self) -> str:
        """What is assumed, for the reader."""
        return f"{self.n_arms:,} arms with guessed means"

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One mean per arm, in random order (E18)."""
        return rng.permutation(self.means)


@dataclass(frozen=True, slots=True)
class BetaPrior:
    """Every mean is an independent draw from Beta(a, b)."""

    n_arms: int
    a: float
    b: float

    @property
    def words(self) -> str:
        """What is assumed, for the reader."""
        return (
            f"{self.n_arms:,} arms with means from Beta({given_text(self.a)}, {given_text(self.b)})"
        )

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One mean per arm, in random order (E18)."""
        return rng.beta(self.a, self.b, self.n_arms)


@dataclass(frozen=True, slots=True)
class Pilot:
    """Every mean is a draw from its posterior after a pilot.

    An arm that the pilot left out is like a random one in it."""

    n_arms: int
    row: IntArray  # of every pilot arm
    mass: FloatArray  # (rows, cells): posterior probabilities, added up along a row
    edges: FloatArray  # of the cells

    @property
    def words(self) -> str:
        """What is assumed, for the reader."""
        same = self.n_arms == self.row.size
        return f"{self.n_arms:,} arms " + (
            "as in the pilot" if same else f"like the {self.row.size:,} in the pilot"
        )

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One mean per arm, in random order (E18)."""
        rows = np.concatenate([self.row, rng.choice(self.row, self.n_arms - self.row.size)])
        # one increasing sequence for all rows
        stacked = (self.mass + np.arange(len(self.mass))[:, None]).ravel()
        cell = (
            np.searchsorted(stacked, rows + rng.random(self.n_arms), side="right")
            - rows * self.mass.shape[1]
        )
        cell = np.minimum(cell, self.mass.shape[1] - 1)
        within = rng.random(self.n_arms)
        means: FloatArray = self.edges[cell] + within * np.diff(self.edges)[cell]
        return rng.permutation(means)


def guess(
    n: int | None,
    k: int,
    means: npt.ArrayLike | None,
    prior: tuple[float, float] | None,
    pilot: tuple[npt.ArrayLike, npt.ArrayLike] | None,
) -> ArmsBelief:
    """The belief that these arguments name, exactly one of the last three."""
    given = [
        name
        for name, value in (("means", means), ("prior", prior), ("pilot", pilot))
        if value is not None
    ]
    if len(given) != 1:
        what = " and ".join(f"`{name}`" for name in given) or "none"
        raise InvalidInput(
            f"{what} given, but exactly one of `means`, `prior` and `pilot` says what the arms are"
            " like"
        )
    if prior is not None:
        believed: ArmsBelief = _beta_prior(n, prior)
    elif pilot is not None:
        if not (isinstance(pilot, Sequence) and len(pilot) == 2):
            raise InvalidInput(f"`pilot` is {shown(pilot)}, but must be two lists: pulls and sums")
        believed = _pilot(n, k, *pilot)
    else:
        believed = _guessed_means(n, means)
    check_choice(believed.n_arms, k)
    return believed


def _guessed_means(n: int | None, means: npt.ArrayLike | None) -> GuessedMeans:
    theta = arm_means([] if means is None else means, 0.0, 1.0)
    if n is not None and whole("n", n, at_least=2) != theta.size:
        raise InvalidInput(f"`n` is {shown(n)}, but there are {theta.size} means")
    return GuessedMeans(theta)


def _beta_prior(n: int | None, prior: tuple[float, float]) -> BetaPrior:
    if n is None:
        raise InvalidInput("`n` is not given, but a prior needs it")
    if not (isinstance(prior, Sequence) and len(prior) == 2):
        raise InvalidInput(
            f"`prior` is {shown(prior)}, but must be the two numbers of a Beta distribution"
        )
    a, b = (number("prior", value, above=0) for value in prior)
    return BetaPrior(whole("n", n, at_least=2, at_most=MOST_ARMS), a, b)


def _pilot(n: int | None, k: int, pulls: npt.ArrayLike, sums: npt.ArrayLike) -> Pilot:
    counts, totals = _checked(pulls, sums)
    n_arms = counts.size if n is None else whole("n", n, at_least=2, at_most=MOST_ARMS)
    if n_arms < counts.size:
        raise InvalidInput(f"`n` is {shown(n)}, but the pilot has {counts.size} arms")
    check_choice(n_arms, k)
    seen = counts > 0
    share = round(k * seen.sum() / n_arms)
    posterior = fitted(counts[seen], totals[seen], int(np.clip(share, 1, seen.sum() - 1)))
    grid = posterior.grid
    edges = np.concatenate([[0.0], (grid[1:] + grid[:-1]) / 2, [1.0]])
    return Pilot(n_arms, posterior.row, np.cumsum(posterior.weights, axis=1), edges)


def _checked(pulls: npt.ArrayLike, sums: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
    counts, totals = listed("pilot", pulls), reals("pilot", sums)
    if counts.shape != totals.shape:
        raise InvalidInput(
            f"`pilot` has shapes {counts.shape} and {totals.shape}, but must be two lists of a"
            " length"
        )
    if not np.issubdtype(counts.dtype, np.integer) or not _countable(counts):
        raise InvalidInput(
            "`pilot` has pulls that are no count, but must have a whole number of at least 0 per"
            " arm"
        )
    if (counts > 0).sum() < 2:
        raise InvalidInput(
            f"`pilot` has {(counts > 0).sum()} arms that were pulled, but must have at least 2"
        )
    wrong = np.flatnonzero(~((totals >= 0) & (totals <= counts)))
    if wrong.size:
        arm = wrong[0]
        rule = f"must be between 0 and its {counts[arm]} pulls, since rewards are in [0, 1]"
        raise InvalidInput(f"the sum of arm {arm} is {given_text(totals[arm])}, but {rule}")
    return counts.astype(np.int64), totals


def _countable(counts: IntArray) -> bool:
    return bool(((counts >= 0) & (counts <= COUNTABLE)).all())


def fitted(pulls: IntArray, sums: FloatArray, k: int) -> Posterior:
    """The empirical-Bayes posterior after these rewards, its prior fitted until it hardly moves.

    Sums alone do not show the variance of rewards; it is taken as that of 0/1 rewards, the largest
    in [0, 1]."""
    model = Binary() if np.array_equal(sums, np.round(sums)) else Bounded()
    posterior = Posterior(pulls.size, k, model)
    posterior.add(Pulls(np.arange(pulls.size), pulls), Rewards(sums, sums))
    for _ in range(FITS):
        posterior.refresh()
    return posterior


ONE_BY_ONE = Concurrency(1, 0.0)
# pulls, regret, rounds, cost, bound and seconds of a run; NaN where nothing is proved
Row = tuple[int, float, int, float, float, float]


@dataclass(frozen=True, slots=True)
class Scene:
    """Arms as they are believed to be; where there are `items`, only means over them count."""

    believed: ArmsBelief
    items: Items | None
    order: str
    costs: tuple[float, ...] | None = None  # of a pull per arm, in the order of the means
    limits: tuple[int | None, ...] | None = None  # the most pulls per arm, in the same order
    features: Features | None = None  # of the arms, in the same order
    constraint: Constraint | None = None  # the sets that may be chosen
    width: Concurrency = ONE_BY_ONE

    @property
    def words(self) -> str:
        """What is assumed, for the reader."""
        place = "" if self.items is None else f" on {self.items.size:,} items"
        return f"{self.believed.words}{place}"

    @property
    def n_cells(self) -> int | None:
        """How many cells there are to be evaluated."""
        return None if self.items is None else self.items.cells(self.believed.n_arms)

    def run(
        self,
        algorithm: Algorithm,
        problem: Problem,
        options: Mapping[str, object],
        seed: np.random.SeedSequence,
    ) -> Row:
        """One run, on means (and scores) that depend on its seed alone, not on the algorithm."""
        means_rng, run_rng = np.random.default_rng(seed).spawn(2)
        problem = self._shuffled(problem, means_rng)
        means = self.believed.draw(means_rng)
        pool = Pool(self.width)
        if self.items is None:
            search_rng, reward_rng = run_rng.spawn(2)
            bandit = BernoulliBandit(means)
            run = counted(algorithm, problem, search_rng, **options)
            outcome = timed(run, lambda each: bandit.pull(each.arms, each.times, reward_rng), pool)
            return _row(outcome, problem, problem.sign * means, pool.clock)
        scores = item_response_with(means, self.items.size, means_rng)
        table = ScoreTable(scores, means_rng, self.order)
        outcome = timed(counted(algorithm, problem, run_rng, **options), table.pull, pool)
        return _row(outcome, problem, problem.sign * scores.mean(1), pool.clock)

    def _shuffled(self, problem: Problem, rng: np.random.Generator) -> Problem:
        """The problem with what is known of arms in the order of guessed means."""
        known = (self.costs, self.limits, self.features, self.constraint)
        if all(each is None for each in known):
            return problem
        order = deepcopy(rng).permutation(problem.n_arms)
        listed = order.tolist()
        costs = None if self.costs is None else tuple(self.costs[arm] for arm in listed)
        limits = None if self.limits is None else tuple(self.limits[arm] for arm in listed)
        features = shuffled(self.features, order)
        family = None if self.constraint is None else reordered(self.constraint, order)
        return replace(problem, costs=costs, limits=limits, features=features, constraint=family)


def scene_of(
    believed: ArmsBelief,
    items: ItemsGiven | None,
    order: str,
    costs: tuple[float, ...] | None = None,
    limits: tuple[int | None, ...] | None = None,
) -> Scene:
    """The scene that these arguments name."""
    checked_order(order)
    if items is None:
        if order != "shared":
            raise InvalidInput("`order` is given without `items`, but only goes with them")
        return Scene(believed, None, order, costs, limits)
    size = len(item_labels(items))
    check_cells(believed.n_arms, size)
    return Scene(believed, Items(size), order, costs, limits)


def _row(outcome: Outcome, problem: Problem, means: FloatArray, seconds: float) -> Row:
    lost = problem.regret(means, outcome.answer.top)
    spent = outcome.pulls if outcome.spending is None else outcome.spending
    bound = outcome.answer.regret_bound
    proved = np.nan if bound is None else bound
    return int(outcome.pulls.sum()), lost, outcome.rounds, float(spent.sum()), proved, seconds
