"""Many independent runs of one algorithm on one instance, in as many processes as wanted."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from shortlist.algorithms import Algorithm, AlgorithmLike, find
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.errors import UnknownName
from shortlist.metrics import ROUNDING, aggregate_regret
from shortlist.problem import Problem, goal_of
from shortlist.simulation.bandit import Bandit, BernoulliBandit, BetaBandit, GaussianBandit
from shortlist.simulation.drive import drive
from shortlist.simulation.parallel import parallel_map
from shortlist.tables import Tabular, TextTable, figures
from shortlist.validation import arm_means, check_sendable, manners, shown

BANDITS: dict[str, Callable[[FloatArray], Bandit]] = {
    "bernoulli": BernoulliBandit,
    "beta": BetaBandit,
    "gaussian": GaussianBandit,
}


@dataclass(frozen=True, slots=True)
class Runs(Tabular):
    """The outcome of every run, in order of its seed."""

    algorithm: str  #: its name
    n_arms: int  #: how many arms there are
    k: int  #: how many were chosen in every run
    epsilon: float | None  #: the regret from which on a run has failed, if there is one
    pulls: IntArray = field(repr=False)  #: (runs,) what every run spent
    regret: FloatArray = field(repr=False)  #: (runs,) what every run lost, R_T
    bound: FloatArray = field(repr=False)  #: (runs,) what it proved; NaN where nothing is proved
    seconds: float  #: that all runs took together
    rounds: IntArray = field(repr=False)  #: (runs,) requests, each after all rewards of the last

    @property
    def failed(self) -> BoolArray:
        """Which runs lost more than epsilon; none where no epsilon was given."""
        if self.epsilon is None:
            return np.zeros(self.regret.size, dtype=np.bool_)
        return self.regret > self.epsilon + ROUNDING

    def summary(self) -> dict[str, object]:
        """The figures of the command line's JSON; without an epsilon there are no failures."""
        unknown = self.epsilon is None
        return {
            "algorithm": self.algorithm,
            "n": self.n_arms,
            "k": self.k,
            "runs": self.pulls.size,
            "pulls": {
                "mean": float(self.pulls.mean()),
                "sd": float(self.pulls.std(ddof=1)) if self.pulls.size > 1 else 0.0,
                "max": int(self.pulls.max()),
            },
            "regret": {"mean": float(self.regret.mean()), "max": float(self.regret.max())},
            "failures": None if unknown else int(self.failed.sum()),
            "failure_rate": None if unknown else float(self.failed.mean()),
            "rounds": {"mean": float(self.rounds.mean()), "max": int(self.rounds.max())},
            "seconds": self.seconds,
        }

    def tables(self) -> tuple[TextTable]:
        """The figures of `summary`, and how many runs failed."""
        runs, failed = self.pulls.size, int(self.failed.sum())
        verdict = ""
        if self.epsilon is not None:
            verdict = f"{failed:,} of {runs:,} runs lost more than epsilon = {self.epsilon:g}."
        return (figures(self.summary(), verdict=verdict),)


def simulate(
    algorithm: AlgorithmLike,
    means: npt.ArrayLike,
    *,
    k: int,
    epsilon: float | None = None,
    delta: float = 0.05,
    budget: int | None = None,
    runs: int = 1,
    seed: int = 0,
    jobs: int = 1,
    rewards: str = "bernoulli",
    minimize: bool = False,
    options: Mapping[str, object] | None = None,
    rounds: int | None = None,
    least: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Runs:
    """Run `algorithm` `runs` times on arms with these means, shuffled anew in every run.

    `algorithm` is a name, a search function of your own (problem, rng, *, option=...), or
    "package.module:function"; with `jobs` processes it must be defined at the top of a module.
    The goal is `epsilon` with `delta`, or `budget`; with a budget, `epsilon` says what counts as a
    failure (and for an algorithm that takes both, the budget is a cap). The same `seed` gives the
    same result for any `jobs`. `options` are the algorithm's own, `rounds` and `least` are as in
    `select`; `progress` is called with the number of runs done."""
    manners(runs, jobs, seed)
    chosen = find(algorithm)
    given = chosen.paced(options, rounds, least)
    bandit = bandit_with(means, rewards)
    goal = goal_of(epsilon, delta, budget, capped=chosen.capped)
    problem = Problem(bandit.means.size, k, goal, bandit.model, minimize)
    chosen.check(problem, given)
    if jobs > 1:
        check_sendable(chosen.name, chosen)
    one = partial(_run, chosen, problem, bandit, given)
    started = time.perf_counter()
    rows = parallel_map(one, np.random.SeedSequence(seed).spawn(runs), jobs, progress)
    seconds = time.perf_counter() - started
    pulls, regret, bound, made = (np.array(column) for column in zip(*rows, strict=True))
    return Runs(chosen.name, problem.n_arms, k, epsilon, pulls, regret, bound, seconds, made)


def bandit_with(means: npt.ArrayLike, rewards: str = "bernoulli") -> Bandit:
    """Arms with these means, if each is a number that such rewards can have as their mean."""
    if not isinstance(rewards, str) or str(rewards) not in BANDITS:
        there = ", ".join(BANDITS)
        raise UnknownName(f"`rewards` is {shown(rewards)}, but must be one of {there}")
    low, high = (-np.inf, np.inf) if rewards == "gaussian" else (0.0, 1.0)
    return BANDITS[str(rewards)](arm_means(means, low, high))


def _run(
    algorithm: Algorithm,
    problem: Problem,
    bandit: Bandit,
    options: dict[str, object],
    seed: np.random.SeedSequence,
) -> tuple[int, float, float, int]:
    """One run: pulls, regret, bound, rounds.

    Arms are shuffled, since a sorted instance leaks the truth (E18)."""
    rng = np.random.default_rng(seed)
    theta = rng.permutation(bandit.means)
    outcome = drive(algorithm, problem, bandit.with_means(theta), rng, **options)
    bound = outcome.answer.regret_bound
    return (
        int(outcome.pulls.sum()),
        aggregate_regret(problem.sign * theta, outcome.answer.top),
        float("nan") if bound is None else bound,
        outcome.rounds,
    )
