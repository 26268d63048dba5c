"""How many pulls will a search need, and what will it lose? Simulated on means drawn for it."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from shortlist.algorithms import Algorithm, AlgorithmLike, find
from shortlist.algorithms.options import options_of
from shortlist.arrays import FloatArray
from shortlist.errors import InvalidInput
from shortlist.evaluation.cells import ItemsGiven
from shortlist.forecasting.beliefs import guess
from shortlist.forecasting.prospects import Forecast, Prospect
from shortlist.forecasting.scenes import Row, Scene, scene_of
from shortlist.problem import FixedBudget, FixedConfidence, Problem, budget_of, goal_of
from shortlist.reward_models import Binary
from shortlist.simulation.parallel import parallel_map
from shortlist.simulation.simulate import checked_prices
from shortlist.validation import (
    MOST_ARMS,
    MOST_RUNS,
    check_sendable,
    collected,
    function_or_none,
    manners,
    number,
    shown,
    whole,
)

FOR_EPSILON = ("certified", "clucb-pac", "adaptive-top-k-tight", "uniform")
FOR_BUDGET = ("expected-loss", "sar", "uniform")
SECONDS = {"clucb-pac": 1e-3}  # that a run takes per arm, for algorithms that may take too long
LONGEST = 20.0  # seconds for all runs of an algorithm that nobody asked for by name

Wanted = tuple[Algorithm, float | None]  # with a budget, or None for epsilon and delta


@dataclass(frozen=True, slots=True)
class Candidate:
    """One algorithm with one goal: a budget, or epsilon and delta if that is None."""

    algorithm: Algorithm
    budget: float | None
    problem: Problem
    options: dict[str, object]


def forecast(
    *,
    k: int,
    n: int | None = None,
    means: npt.ArrayLike | None = None,
    prior: tuple[float, float] | None = None,
    pilot: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    items: ItemsGiven | None = None,
    order: str = "shared",
    epsilon: float | None = None,
    delta: float = 0.05,
    minimize: bool = False,
    budget: float | Sequence[float] | None = None,
    costs: npt.ArrayLike | None = None,
    limits: int | Sequence[int | None] | None = None,
    algorithms: Sequence[AlgorithmLike] | None = None,
    rounds: int | None = None,
    least: int | None = None,
    certificate: str = "auto",
    per_day: float | None = None,
    delay: float = 0.0,
    runs: int = 20,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Forecast:
    """Simulate what searches would spend and lose on arms like these.

    What the arms are like: guessed `means`; a `prior` (a, b), every run drawing fresh Beta(a, b)
    means for `n` arms; or a `pilot` (pulls, sums of rewards in [0, 1], one each per arm), every run
    drawing means from their empirical-Bayes posterior, so that what a short pilot leaves open
    widens the forecast. With `minimize` the best arms are those of the smallest means. Rewards
    are 0 or 1, the noisiest there are in [0, 1] for their mean.

    With `items`, a number or a list, arms are scored on a test set, in one `order` or orders of
    their own as in `select`: the scores of every run are made up by item response theory
    (`instances.item_response_with`), pulls are cells, and what is lost is of the means over these
    items. `Prospect.share` says which share of all cells is evaluated.

    `epsilon` with `delta` asks for the pulls until a search stops by itself, and every `budget` for
    what is lost after it. With `costs` of a pull, one an arm in the order of `means`, budgets are
    in their unit. `limits` are the most pulls of an arm: one number for all arms, or one per arm in
    the order of `means`, None where there is no limit; `Prospect.ended` then says how often they
    end a run before epsilon is reached, and `Prospect.bound` what is proved.

    All algorithms see the same means in the same run. Those of `algorithms`, by name
    or as search functions of your own, are tried with every goal they serve; without that it is a
    good and a plain choice for each goal, less what would take too long. `rounds`,
    `least` and `certificate` are as in `select`, for the algorithms that can be told. With
    `per_day` pulls a day and a `delay` of so many days until a reward is there, the forecast has
    days, too. `progress` is called with the share that is done. The same `seed` gives the same
    forecast for any `jobs`."""
    runs, jobs, seed = manners(runs, jobs, seed)
    epsilon = None if epsilon is None else number("epsilon", epsilon, above=0)
    delta = number("delta", delta, above=0, below=1)
    function_or_none("progress", progress)
    believed = guess(n, k, means, prior, pilot)
    if costs is not None and pilot is not None:
        raise InvalidInput("`costs` are given with a `pilot`, but go with `means` or a `prior`")
    most = _checked_limits(limits, believed.n_arms, several=pilot is None)
    scene = scene_of(believed, items, order, checked_prices(costs), most)
    goals = _goals(epsilon, delta, budget)
    left_out: tuple[str, ...] = ()
    if algorithms is None and epsilon is not None and items is None:
        left_out = _too_slow(believed.n_arms, runs)
    wanted = _defaults(goals, left_out, on_items=items is not None)
    if algorithms is not None:
        wanted = _served(_distinct(algorithms), goals, epsilon)
    candidates = [
        _candidate(algorithm, each, scene, k, epsilon, delta, minimize, rounds, least, certificate)
        for algorithm, each in wanted
    ]
    pace = _checked_pace(per_day, delay)
    started = time.perf_counter()
    prospects = _simulated(candidates, scene, epsilon, pace, runs, seed, jobs, progress)
    seconds = time.perf_counter() - started
    return Forecast(
        prospects, scene.words, believed.n_arms, k, epsilon, delta, runs, seed, left_out, seconds
    )


def _simulated(
    candidates: Sequence[Candidate],
    scene: Scene,
    epsilon: float | None,
    pace: tuple[float, float] | None,
    runs: int,
    seed: int,
    jobs: int,
    progress: Callable[[float], None] | None,
) -> tuple[Prospect, ...]:
    """What every candidate spends and loses in every run."""
    if jobs > 1:
        for candidate in candidates:
            check_sendable(candidate.algorithm.name, candidate.algorithm)
    work = [(candidate, run) for run in range(runs) for candidate in candidates]
    tell = None if progress is None else lambda done: progress(done / len(work))
    rows = np.array(parallel_map(partial(_run, scene, seed), work, jobs, tell))
    rows = rows.reshape(runs, len(candidates), 5)  # pulls, regret, rounds, cost and bound
    return tuple(
        Prospect(
            candidate.algorithm.name,
            candidate.budget,
            rows[:, j, 0].astype(np.int64),
            rows[:, j, 1],
            epsilon,
            rows[:, j, 2].astype(np.int64),
            _days(pace, rows[:, j, 0], rows[:, j, 2]),
            scene.n_cells,
            None if scene.costs is None else rows[:, j, 3],
            None if scene.limits is None else rows[:, j, 4],
        )
        for j, candidate in enumerate(candidates)
    )


def _checked_limits(
    limits: int | Sequence[int | None] | None, n_arms: int, *, several: bool
) -> tuple[int | None, ...] | None:
    """A limit for every arm; whether there are `several` of them is not for a pilot to say."""
    if limits is None:
        return None
    if isinstance(limits, int | Integral):
        return (whole("limits", limits, at_least=1),) * n_arms
    if not several:
        raise InvalidInput(
            "`limits` are given with a `pilot`, but must be one number for all arms there"
        )
    return tuple(collected("limits", limits, at_most=MOST_ARMS))


def _checked_pace(per_day: float | None, delay: float) -> tuple[float, float] | None:
    """Pulls a day, and days until a reward is there."""
    late = number("delay", delay)
    if late < 0:
        raise InvalidInput(f"`delay` is {shown(delay)}, but must be at least 0 days")
    if per_day is None:
        if late > 0:
            raise InvalidInput(f"`delay` is {shown(delay)}, but days need `per_day`, too")
        return None
    return number("per_day", per_day, above=0), late


def _days(
    pace: tuple[float, float] | None, pulls: FloatArray, rounds: FloatArray
) -> FloatArray | None:
    """Every round waits for the last of its rewards, and meanwhile nothing is pulled."""
    if pace is None:
        return None
    per_day, delay = pace
    days: FloatArray = pulls / per_day + rounds * delay
    return days


def _goals(
    epsilon: float | None, delta: float, budget: float | Sequence[float] | None
) -> list[float | None]:
    """None for epsilon, and every budget once."""
    several = budget if isinstance(budget, Sequence) else [] if budget is None else [budget]
    given = collected("budget", several, at_most=MOST_RUNS)
    budgets = [budget_of(each) for each in given]
    goals = [*([] if epsilon is None else [None]), *dict.fromkeys(budgets)]
    if not goals:
        goal_of(None, delta, None)  # refuses, in the words that every call has for it
    return goals


def _too_slow(n_arms: int, runs: int) -> tuple[str, ...]:
    """The algorithms whose runs are predicted to take too long.

    A rule and no clock, so that seeds settle results."""
    return tuple(name for name, each in SECONDS.items() if each * n_arms * runs > LONGEST)


def _defaults(
    goals: Sequence[float | None], left_out: Sequence[str], *, on_items: bool
) -> Iterator[Wanted]:
    for goal in goals:
        names = FOR_EPSILON if goal is None else FOR_BUDGET
        tried = [find(name) for name in names if name not in left_out]
        yield from ((each, goal) for each in tried if each.items or not on_items)


def _distinct(algorithms: Sequence[AlgorithmLike]) -> list[Algorithm]:
    """Every algorithm once; two of the same name could not be told apart afterwards."""
    if isinstance(algorithms, str) or not isinstance(algorithms, Sequence) or not algorithms:
        raise InvalidInput(
            f"`algorithms` is {shown(algorithms)}, but must be a list of at least one"
        )
    distinct: list[Algorithm] = []
    for each in map(find, algorithms):
        if each not in distinct:
            distinct.append(each)
    name, times = Counter(each.name for each in distinct).most_common(1)[0]
    if times > 1:
        raise InvalidInput(f"two algorithms are called {name!r}, but their names must differ")
    return distinct


def _served(
    algorithms: Sequence[Algorithm], goals: Sequence[float | None], epsilon: float | None
) -> Iterator[Wanted]:
    """Every algorithm with the goals it serves; if there are none with the first, to be refused."""
    for goal in goals:
        for algorithm in algorithms:
            own = [each for each in goals if _serves(algorithm, each, epsilon)]
            if goal in (own or goals[:1]):
                yield algorithm, goal


def _serves(algorithm: Algorithm, goal: float | None, epsilon: float | None) -> bool:
    if goal is None or (algorithm.capped and epsilon is not None):
        return FixedConfidence in algorithm.goals
    return FixedBudget in algorithm.goals


def _candidate(
    algorithm: Algorithm,
    goal: float | None,
    scene: Scene,
    k: int,
    epsilon: float | None,
    delta: float,
    minimize: bool,
    rounds: int | None,
    least: int | None,
    certificate: str,
) -> Candidate:
    wanted = goal_of(epsilon, delta, goal, capped=algorithm.capped)
    n_arms = scene.believed.n_arms
    of_arms: dict[str, Any] = {"items": scene.items, "costs": scene.costs, "limits": scene.limits}
    problem = Problem(n_arms, k, wanted, Binary(), minimize, **of_arms)
    known = options_of(algorithm.search)
    told = algorithm.told(
        None,
        rounds if "rounds" in known else None,
        least if "least" in known else None,
        certificate if "certificate" in known else "auto",
    )
    algorithm.check(problem, told)
    return Candidate(algorithm, goal, problem, told)


def _run(scene: Scene, seed: int, trial: tuple[Candidate, int]) -> Row:
    candidate, run = trial
    own = np.random.SeedSequence(seed, spawn_key=(run,))
    return scene.run(candidate.algorithm, candidate.problem, candidate.options, own)
