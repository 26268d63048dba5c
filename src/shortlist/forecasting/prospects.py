"""How many pulls will a search need, and what will it lose? Simulated on means that the arms may
have."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from shortlist.algorithms import Algorithm, find
from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.forecasting.beliefs import Guess, guess
from shortlist.metrics import ROUNDING, aggregate_regret
from shortlist.problem import FixedBudget, FixedConfidence, Problem, goal_of
from shortlist.reward_models import Binary
from shortlist.simulation.bandit import BernoulliBandit
from shortlist.simulation.drive import drive
from shortlist.simulation.parallel import spread
from shortlist.validation import whole

FOR_EPSILON = ("certified", "clucb-pac", "adaptive-top-k-tight", "uniform")
FOR_BUDGET = ("expected-loss", "sar", "uniform")
QUANTILES = (0.1, 0.5, 0.9)
SECONDS = {"clucb-pac": 1e-3}  # that a run takes per arm, for algorithms that may take too long
LONGEST = 20.0  # seconds for all runs of an algorithm that nobody asked for by name


@dataclass(frozen=True, slots=True)
class Case:
    """One algorithm with one goal: a budget, or epsilon and delta if that is None."""

    algorithm: str
    budget: int | None
    problem: Problem


@dataclass(frozen=True, eq=False)
class Prospect:
    """What an algorithm is to spend and to lose, in every run; with no budget it stops by epsilon
    and delta."""

    algorithm: str
    budget: int | None
    pulls: IntArray
    regret: FloatArray
    epsilon: float | None

    @property
    def failure_rate(self) -> float | None:
        """The share of runs that lost more than epsilon; None where no epsilon was given."""
        return (
            None if self.epsilon is None else float((self.regret > self.epsilon + ROUNDING).mean())
        )

    def summary(self) -> dict[str, object]:
        """The figures of one entry of the command line's JSON."""
        return {
            "algorithm": self.algorithm,
            "budget": self.budget,
            "pulls": quantiles(self.pulls),
            "regret": quantiles(self.regret),
            "failure_rate": self.failure_rate,
        }


@dataclass(frozen=True, eq=False)
class Forecast:
    """A prospect for every algorithm and goal, with the settings they were simulated for."""

    prospects: tuple[Prospect, ...]
    arms: str  # what was assumed about them, in words
    n_arms: int
    k: int
    epsilon: float | None
    delta: float
    runs: int
    seed: int
    left_out: tuple[str, ...]  # algorithms that would have taken too long
    seconds: float

    def prospect(self, algorithm: str, budget: int | None = None) -> Prospect:
        """The prospect of that algorithm for that budget, or for epsilon and delta."""
        for prospect in self.prospects:
            if (prospect.algorithm, prospect.budget) == (algorithm, budget):
                return prospect
        goal = "epsilon" if budget is None else f"a budget of {budget}"
        raise InvalidInput(f"{algorithm!r} for {goal} was not forecast")

    def summary(self) -> dict[str, object]:
        """The figures of the command line's JSON."""
        return {
            "arms": self.arms,
            "n": self.n_arms,
            "k": self.k,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "runs": self.runs,
            "seed": self.seed,
            "prospects": [prospect.summary() for prospect in self.prospects],
            "left_out": list(self.left_out),
            "seconds": self.seconds,
        }


def quantiles(values: FloatArray | IntArray) -> dict[str, float]:
    """{"p10": x, ...}: 10 % of the runs have at most x."""
    return {
        f"p{100 * share:g}": np.quantile(values, share, method="inverted_cdf").item()
        for share in QUANTILES
    }


def forecast(
    *,
    k: int,
    n: int | None = None,
    means: npt.ArrayLike | None = None,
    prior: tuple[float, float] | None = None,
    pilot: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    epsilon: float | None = None,
    delta: float = 0.05,
    budget: int | Sequence[int] | None = None,
    algorithms: Sequence[str] | None = None,
    runs: int = 20,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Forecast:
    """Simulate what searches would spend and lose on arms like these.

    What the arms are like: guessed `means`; a `prior` (a, b), every run drawing fresh Beta(a, b)
    means for `n` arms; or a `pilot` (pulls, sums of rewards in [0, 1], one each per arm), every run
    drawing means from their empirical-Bayes posterior, so that what a short pilot leaves open
    widens the forecast. Rewards are 0 or 1, the noisiest there are in [0, 1] for their mean.

    `epsilon` with `delta` asks for the pulls until a search stops by itself, and every `budget` for
    what is lost after it. All algorithms see the same means in the same run. Those of `algorithms`
    are tried with every goal they serve; without that it is a good and a plain choice for each
    goal, less what would take too long. `progress` is called with the share that is done. The same
    `seed` gives the same forecast for any `jobs`."""
    for name, value, least in (("runs", runs, 1), ("jobs", jobs, 1), ("seed", seed, 0)):
        whole(name, value, at_least=least)
    believed = guess(n, k, means, prior, pilot)
    goals = _goals(epsilon, delta, budget)
    left_out = (
        _too_slow(believed.n_arms, runs) if algorithms is None and epsilon is not None else ()
    )
    wanted = (
        _defaults(goals, left_out) if algorithms is None else _served(algorithms, goals, epsilon)
    )
    cases = [_case(name, each, believed.n_arms, k, epsilon, delta) for name, each in wanted]
    work = [(case, run) for run in range(runs) for case in cases]
    tell = None if progress is None else lambda done: progress(done / len(work))
    started = time.perf_counter()
    rows = np.array(spread(partial(_run, believed, seed), work, jobs, tell)).reshape(
        runs, len(cases), 2
    )
    seconds = time.perf_counter() - started
    prospects = tuple(
        Prospect(
            case.algorithm, case.budget, rows[:, j, 0].astype(np.int64), rows[:, j, 1], epsilon
        )
        for j, case in enumerate(cases)
    )
    return Forecast(
        prospects, believed.words, believed.n_arms, k, epsilon, delta, runs, seed, left_out, seconds
    )


def _goals(
    epsilon: float | None, delta: float, budget: int | Sequence[int] | None
) -> list[int | None]:
    """None for epsilon, and every budget once."""
    budgets = [] if budget is None else list(budget) if isinstance(budget, Sequence) else [budget]
    goals = [*([] if epsilon is None else [None]), *dict.fromkeys(budgets)]
    if not goals:
        goal_of(None, delta, None)  # refuses, in the words that every call has for it
    return goals


def _too_slow(n_arms: int, runs: int) -> tuple[str, ...]:
    """The algorithms whose runs are predicted to take too long: a rule and no clock, so that seeds
    settle results."""
    return tuple(name for name, each in SECONDS.items() if each * n_arms * runs > LONGEST)


def _defaults(
    goals: Sequence[int | None], left_out: Sequence[str]
) -> Iterator[tuple[str, int | None]]:
    for goal in goals:
        names = FOR_EPSILON if goal is None else FOR_BUDGET
        yield from ((name, goal) for name in names if name not in left_out)


def _served(
    names: Sequence[str], goals: Sequence[int | None], epsilon: float | None
) -> Iterator[tuple[str, int | None]]:
    """Every named algorithm with the goals it serves; with one that it does not, to be refused, if
    it serves none."""
    served = {
        name: [goal for goal in goals if _serves(find(name), goal, epsilon)]
        for name in dict.fromkeys(names)
    }
    for goal in goals:
        yield from ((name, goal) for name, own in served.items() if goal in (own or goals[:1]))


def _serves(algorithm: Algorithm, goal: int | None, epsilon: float | None) -> bool:
    if goal is None or (algorithm.capped and epsilon is not None):
        return FixedConfidence in algorithm.goals
    return FixedBudget in algorithm.goals


def _case(
    name: str, goal: int | None, n_arms: int, k: int, epsilon: float | None, delta: float
) -> Case:
    algorithm = find(name)
    wanted = goal_of(epsilon, delta, goal, capped=algorithm.capped)
    problem = Problem(n_arms, k, wanted, Binary())
    algorithm.check(problem)
    return Case(name, goal, problem)


def _run(believed: Guess, seed: int, item: tuple[Case, int]) -> tuple[int, float]:
    """Pulls and regret of one run; its means depend on its number alone, not on the algorithm."""
    case, run = item
    means_rng, run_rng = np.random.default_rng(
        np.random.SeedSequence(seed, spawn_key=(run,))
    ).spawn(2)
    means = believed.draw(means_rng)
    outcome = drive(find(case.algorithm), case.problem, BernoulliBandit(means), run_rng)
    return int(outcome.pulls.sum()), aggregate_regret(means, outcome.answer.top)
