"""Many independent runs of one algorithm on one instance, spread over processes."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from shortlist.algorithms import Algorithm, find
from shortlist.errors import InvalidInput
from shortlist.metrics import aggregate_regret
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem, number, whole
from shortlist.search import BoolArray, FloatArray, IntArray
from shortlist.simulation.bandit import Bandit, BernoulliBandit, BetaBandit, GaussianBandit
from shortlist.simulation.drive import drive

BANDITS: dict[str, type[BernoulliBandit] | type[BetaBandit] | type[GaussianBandit]] = {
    "bernoulli": BernoulliBandit,
    "beta": BetaBandit,
    "gaussian": GaussianBandit,
}
ROUNDING = 1e-9  # sums of means are floats: a regret of exactly epsilon is not a failure


@dataclass(frozen=True, slots=True)
class Runs:
    """The outcome of every run, in order of its seed."""

    algorithm: str
    n_arms: int
    k: int
    epsilon: float | None
    pulls: IntArray
    regret: FloatArray
    bound: FloatArray  # NaN where nothing is guaranteed
    seconds: float

    @property
    def failed(self) -> BoolArray:
        """Which runs lost more than epsilon; none where no epsilon was given."""
        if self.epsilon is None:
            return np.zeros(self.regret.size, dtype=np.bool_)
        return self.regret > self.epsilon + ROUNDING

    def summary(self) -> dict[str, object]:
        """The figures of the command line's JSON."""
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
            "seconds": self.seconds,
        }


def simulate(
    algorithm: str,
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
    options: Mapping[str, object] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Runs:
    """Run `algorithm` `runs` times on arms with these means, shuffled anew in every run.

    The goal is `epsilon` with `delta`, or `budget`; with a budget, `epsilon` says what counts as a failure (and for
    an algorithm that takes both, the budget is a cap). The same `seed` gives the same result for any `jobs`.
    `progress` is called with the number of runs done."""
    theta = checked_means(means, rewards)
    chosen = find(algorithm)
    whole("runs", runs, at_least=1)
    whole("jobs", jobs, at_least=1)
    whole("seed", seed, at_least=0)
    bandit = BANDITS[rewards](theta)
    problem = Problem(theta.size, k, goal_for(chosen, epsilon, delta, budget), bandit.model)
    chosen.check(problem)
    one = partial(_run, algorithm, problem, bandit, dict(options or {}))
    started = time.perf_counter()
    rows = []
    for row in _spread(one, np.random.SeedSequence(seed).spawn(runs), jobs):
        rows.append(row)
        if progress is not None:
            progress(len(rows))
    pulls, regret, bound = zip(*rows, strict=True)
    return Runs(
        algorithm=algorithm,
        n_arms=theta.size,
        k=k,
        epsilon=epsilon,
        pulls=np.array(pulls, dtype=np.int64),
        regret=np.array(regret),
        bound=np.array(bound),
        seconds=time.perf_counter() - started,
    )


def goal_for(algorithm: Algorithm, epsilon: float | None, delta: float, budget: int | None) -> Goal:
    """The goal that these options name."""
    if epsilon is not None:
        number("epsilon", epsilon, above=0)
    number("delta", delta, above=0, below=1)
    if budget is None and epsilon is None:
        raise InvalidInput("neither `epsilon` nor `budget` is given, but a goal needs one of them")
    if budget is None or (epsilon is not None and algorithm.capped):
        assert epsilon is not None
        return FixedConfidence(epsilon, delta, budget)
    return FixedBudget(budget)


def checked_means(means: npt.ArrayLike, rewards: str = "bernoulli") -> FloatArray:
    """The means as an array, if each is a number that such rewards can have as their mean."""
    if rewards not in BANDITS:
        raise InvalidInput(f"`rewards` is {rewards!r}, but must be one of {', '.join(BANDITS)}")
    theta = np.asarray(means, dtype=np.float64)
    if theta.ndim != 1:
        raise InvalidInput(f"`means` has shape {theta.shape}, but must be a list of numbers")
    low, high = (-np.inf, np.inf) if rewards == "gaussian" else (0.0, 1.0)
    wrong = np.flatnonzero(~(np.isfinite(theta) & (theta >= low) & (theta <= high)))
    if wrong.size:
        rule = "a finite number" if rewards == "gaussian" else "a number between 0 and 1"
        raise InvalidInput(f"mean of arm {wrong[0]} is {theta[wrong[0]]}, but must be {rule}")
    return theta


def _run(
    algorithm: str,
    problem: Problem,
    bandit: Bandit,
    options: dict[str, object],
    seed: np.random.SeedSequence,
) -> tuple[int, float, float]:
    """One run: pulls, regret, bound. Arms are shuffled, since a sorted instance leaks the truth (E18)."""
    rng = np.random.default_rng(seed)
    theta = rng.permutation(bandit.means)
    outcome = drive(find(algorithm), problem, bandit.with_means(theta), rng, **options)
    bound = outcome.answer.regret_bound
    return (
        int(outcome.pulls.sum()),
        aggregate_regret(theta, outcome.answer.top),
        float("nan") if bound is None else bound,
    )


def _spread(
    one: Callable[[np.random.SeedSequence], tuple[int, float, float]],
    seeds: Sequence[np.random.SeedSequence],
    jobs: int,
) -> Iterator[tuple[int, float, float]]:
    if jobs == 1 or len(seeds) == 1:
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(min(jobs, len(seeds))) as pool:
        yield from pool.map(one, seeds, chunksize=max(1, len(seeds) // (8 * jobs)))
