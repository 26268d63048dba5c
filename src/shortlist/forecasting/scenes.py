"""What a trial runs on: arms that can be pulled for ever, or a test set that is made up for it."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from shortlist.algorithms import Algorithm
from shortlist.arrays import FloatArray
from shortlist.driver import Outcome, counted, finish
from shortlist.errors import InvalidInput
from shortlist.evaluation.cells import ItemsGiven, check_cells, item_labels
from shortlist.forecasting.beliefs import Guess
from shortlist.instances import item_response_with
from shortlist.items import Items, checked_order
from shortlist.metrics import aggregate_regret
from shortlist.problem import Problem
from shortlist.simulation.bandit import BernoulliBandit
from shortlist.simulation.drive import drive
from shortlist.simulation.matrix import ScoreTable

# pulls, regret, rounds, cost and bound of a run; NaN where nothing is proved
Row = tuple[int, float, int, float, float]


@dataclass(frozen=True, slots=True)
class Scene:
    """Arms as they are believed to be; where there are `items`, only means over them count."""

    believed: Guess
    items: Items | None
    order: str
    costs: tuple[float, ...] | None = None  # of a pull, an arm in the order of the means
    limits: tuple[int | None, ...] | None = None  # the most pulls, an arm in the same order

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
        if self.items is None:
            outcome = drive(algorithm, problem, BernoulliBandit(means), run_rng, **options)
            return _row(outcome, problem.sign * means)
        scores = item_response_with(means, self.items.size, means_rng)
        table = ScoreTable(scores, means_rng, self.order)
        outcome = finish(counted(algorithm, problem, run_rng, **options), table.pull)
        return _row(outcome, problem.sign * scores.mean(1))

    def _shuffled(self, problem: Problem, rng: np.random.Generator) -> Problem:
        """The problem with costs and limits in the order in which guessed means will be."""
        if self.costs is None and self.limits is None:
            return problem
        order = deepcopy(rng).permutation(problem.n_arms).tolist()
        costs = None if self.costs is None else tuple(self.costs[arm] for arm in order)
        limits = None if self.limits is None else tuple(self.limits[arm] for arm in order)
        return replace(problem, costs=costs, limits=limits)


def scene_of(
    believed: Guess,
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


def _row(outcome: Outcome, means: FloatArray) -> Row:
    lost = aggregate_regret(means, outcome.answer.top)
    spent = outcome.pulls if outcome.spending is None else outcome.spending
    bound = outcome.answer.regret_bound
    proved = np.nan if bound is None else bound
    return int(outcome.pulls.sum()), lost, outcome.rounds, float(spent.sum()), proved
