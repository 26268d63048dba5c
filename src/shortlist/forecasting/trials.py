"""Forecast by simulation: the pulls and the regret of searches on means drawn for every run."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from shortlist.algorithms import Algorithm, AlgorithmLike, find
from shortlist.algorithms.algorithm import options_of
from shortlist.arrays import FloatArray
from shortlist.cells import ItemsGiven
from shortlist.constraints import Constraint
from shortlist.errors import InvalidInput
from shortlist.features import Features, FeaturesGiven, checked_linear, features_of
from shortlist.forecasting.beliefs import Row, Scene, guess, scene_of
from shortlist.forecasting.days import Concurrency, SampleSize, sample_sizes
from shortlist.forecasting.prospects import LIVE, Forecast, Prospect
from shortlist.problem import FixedBudget, FixedConfidence, Problem, Traffic, budget_of, goal_of
from shortlist.quotas import ConstraintGiven, GroupsGiven, QuotasGiven, family_in_order
from shortlist.reward_models import Binary
from shortlist.settings import arguments, least_blocks, usual_width
from shortlist.simulation.parallel import parallel_map
from shortlist.simulation.simulate import checked_prices
from shortlist.spec import Certificate, Order, documented
from shortlist.validation import (
    MOST_ARMS,
    MOST_RUNS,
    MOST_WORKERS,
    RngGiven,
    check_sendable,
    collected,
    function_or_none,
    manners,
    number,
    seconds,
    shown,
    takes_rng,
    whole,
)

FOR_EPSILON = ("certified", "clucb-pac", "adaptive-top-k-tight", "uniform")
FOR_BUDGET = ("expected-loss", "sar", "uniform")
SECONDS = {"clucb-pac": 1e-3}  # that a run takes per arm, for algorithms that may take too long
LONGEST_RUNS = 20.0  # seconds for all runs of an algorithm that was not asked for by name

NO_CUTS: dict[str, Any] = {
    "max_rounds": None,
    "min_batch": None,
    "certificate": "auto",
    "window": None,
}
Wanted = tuple[Algorithm, float | None]  # with a budget, or None for epsilon and delta

RATE_DRAWS = 20  # of the means, for the mean rate


@dataclass(frozen=True, slots=True)
class Candidate:
    """One algorithm with one goal: a budget, or epsilon and delta if that is None."""

    algorithm: Algorithm
    budget: float | None
    problem: Problem
    options: dict[str, object]

    @property
    def name(self) -> str:
        """Its name in the forecast."""
        return self.algorithm.name if self.problem.traffic is None else LIVE


@takes_rng
@documented("forecast")
def forecast(  # noqa: D417  # `documented` adds the settings
    *,
    k: int,
    n: int | None = None,
    means: npt.ArrayLike | None = None,
    prior: tuple[float, float] | None = None,
    pilot: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    items: ItemsGiven | None = None,
    order: Order = "shared",
    epsilon: float | str | None = None,
    delta: float = 0.05,
    minimize: bool = False,
    budget: float | Sequence[float] | None = None,
    costs: npt.ArrayLike | None = None,
    limits: int | Sequence[int | None] | None = None,
    algorithms: Sequence[AlgorithmLike] | None = None,
    max_rounds: int | None = None,
    min_batch: int | None = None,
    window: int | None = None,
    certificate: Certificate = "auto",
    groups: GroupsGiven | None = None,
    quotas: QuotasGiven | None = None,
    constraint: ConstraintGiven | None = None,
    features: FeaturesGiven | None = None,
    linear: bool | float = False,
    drift: bool | None = None,
    concurrency: int | None = None,
    latency: float | None = None,
    per_day: float | None = None,
    delay: float = 0.0,
    skip_blocks: int = 0,
    min_blocks: int | None = None,
    runs: int = 20,
    seed: int = 0,
    rng: RngGiven | None = None,
    workers: int = 1,
    on_progress: Callable[[float], None] | None = None,
) -> Forecast:
    """Simulate what searches would spend and lose on arms like these.

    Describe the arms by `means`, by a `prior` or by a `pilot`. `epsilon` asks for the pulls until a
    search stops on its own, every `budget` for the regret after it. All algorithms see the same
    means in the same run. Rewards are 0 or 1, the noisiest in [0, 1] for their mean. The same
    `seed` gives the same forecast for any `workers`.

    Args:
        n: Number of arms, with a `prior`.
        means: Guessed mean reward of every arm.
        prior: (a, b): every run draws fresh Beta(a, b) means for `n` arms.
        pilot: (pulls, sums of rewards in [0, 1]), one each per arm: every run draws means from
            their empirical-Bayes posterior, so a short pilot widens the forecast.
        {settings}
        budget: Number of pulls, or several to be compared. With `costs` in their unit.
        costs: Cost of a pull of every arm, in the order of `means`. Default: 1 each.
        groups: Groups of the arms, in the order of `means`, for `quotas`.
        limits: Maximum number of pulls per arm: one number, or one per arm in the order of
            `means`, None without a limit. `Prospect.ended` reports how often limits end a run
            before epsilon is reached, `Prospect.bound` what is proved.
        algorithms: Names or search functions; each is tried with every goal that it serves.
            Default: a good and a plain choice for each goal.
        concurrency: Calls under way at a time, `workers` of `select`. On a test set batches are
            then as large as there, unless `min_batch` or `window` are given. Default: 1.
        latency: Seconds that a call takes: the forecast has the wall-clock time, too.
        per_day: Pulls per day: the forecast has days, too, and next to `certified`, which waits for
            every batch, a "live test", which does not (docs/ab-test.md), unless `drift` is False.
        delay: Days until a reward arrives.
        runs: Number of simulated runs.
        rng: Instead of `seed`: a seed, a sequence of seeds, or a `numpy.random.Generator`,
            `BitGenerator` or `SeedSequence`. A generator moves on, so that a second call differs.
        workers: Number of processes that simulate. It does not change the figures.
        on_progress: Function that is called with the share of the work that is done.

    Returns:
        A prospect per algorithm and goal.

    Raises:
        InvalidInput: An argument is not valid, or arguments do not go together.

    On a test set (`items`) the scores of every run are made up by item response theory
    (`instances.item_response_with`), pulls are cells, and regret is that of the means over these
    items; `Prospect.share` is the share of all cells that is evaluated.

    Example:
        >>> import shortlist
        >>> dawn = shortlist.forecast(k=1, means=[0.9, 0.1], budget=40, runs=3)
        >>> dawn.prospects[0].algorithm
        'expected-loss'"""
    asked = arguments(locals(), "forecast")
    runs, workers, seed = manners(runs, workers, seed)
    allowed: float | None = asked["epsilon"]
    delta = asked["delta"]
    function_or_none("on_progress", on_progress)
    believed = guess(n, k, means, prior, pilot)
    if costs is not None and pilot is not None:
        raise InvalidInput("`costs` are given with a `pilot`, but go with `means` or a `prior`")
    most = _checked_limits(limits, believed.n_arms, several=pilot is None)
    known = _checked_features(features, linear, means)
    scene = scene_of(believed, items, order, checked_prices(costs), most)
    family = _checked_family(groups, quotas, constraint, k, several=pilot is None)
    width = _checked_width(concurrency, latency, per_day)
    scene = replace(scene, features=known, constraint=family, width=width)
    goals = _goals(allowed, delta, budget)
    left_out: tuple[str, ...] = ()
    if algorithms is None and allowed is not None and items is None:
        left_out = _too_slow(believed.n_arms, runs)
    wanted = list(
        _defaults(goals, left_out, scene)
        if algorithms is None
        else _served(_distinct(algorithms), goals, allowed)
    )
    cuts = {
        "max_rounds": max_rounds,
        "min_batch": min_batch,
        "certificate": certificate,
        "window": window,
    }
    _check_of_use(cuts, [algorithm for algorithm, _ in wanted])
    candidates = [
        _candidate(algorithm, each, scene, k, allowed, delta, minimize, cuts)
        for algorithm, each in wanted
    ]
    pace = _checked_pace(per_day, delay)
    traffic = _traffic(pace, drift, skip_blocks, min_blocks)
    if traffic is not None:
        live = list(filter(None, [_live(each, traffic) for each in candidates]))
        if not live and (drift or skip_blocks or min_blocks):
            raise InvalidInput(
                "a live test is asked for (`drift`, `skip_blocks` or `min_blocks`), but these"
                " settings and algorithms allow none: it needs `epsilon` and 'certified' alone"
            )
        candidates = live + candidates
    started = time.perf_counter()
    prospects = _simulated(candidates, scene, allowed, pace, runs, seed, workers, on_progress)
    took = time.perf_counter() - started
    sizes = _sizes(scene, k, allowed, delta, pace, seed)
    about = scene.words, believed.n_arms, k, allowed, delta, runs, seed, left_out, took
    return Forecast(prospects, *about, sizes)


def _sizes(
    scene: Scene,
    k: int,
    epsilon: float | None,
    delta: float,
    pace: tuple[float, float] | None,
    seed: int,
) -> tuple[SampleSize, ...]:
    """Tests of fixed size at the mean rate of the arms, where textbooks have one."""
    if epsilon is None or pace is None or scene.items is not None or scene.constraint is not None:
        return ()
    rng = np.random.default_rng(seed)
    rate = float(np.mean([scene.believed.draw(rng).mean() for _ in range(RATE_DRAWS)]))
    return sample_sizes(scene.believed.n_arms, k, rate, epsilon, delta, pace)


def _simulated(
    candidates: Sequence[Candidate],
    scene: Scene,
    epsilon: float | None,
    pace: tuple[float, float] | None,
    runs: int,
    seed: int,
    workers: int,
    on_progress: Callable[[float], None] | None,
) -> tuple[Prospect, ...]:
    """What every candidate spends and loses in every run."""
    if workers > 1:
        for candidate in candidates:
            check_sendable(candidate.algorithm.name, candidate.algorithm)
    work = [(candidate, run) for run in range(runs) for candidate in candidates]
    tell = None if on_progress is None else lambda done: on_progress(done / len(work))
    rows = np.array(parallel_map(partial(_run, scene, seed), work, workers, tell))
    rows = rows.reshape(runs, len(candidates), 6)  # the columns of `Row`
    return tuple(
        Prospect(
            candidate.name,
            candidate.budget,
            rows[:, j, 0].astype(np.int64),
            rows[:, j, 1],
            epsilon,
            rows[:, j, 2].astype(np.int64),
            rows[:, j, 2] if candidate.name == LIVE else _days(pace, rows[:, j], candidate.options),
            scene.n_cells,
            None if scene.costs is None else rows[:, j, 3],
            None if scene.limits is None else rows[:, j, 4],
            rows[:, j, 5] if scene.width.seconds else None,
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


def _checked_family(
    groups: GroupsGiven | None, quotas: object, constraint: object, k: int, *, several: bool
) -> Constraint | None:
    """The sets that may be chosen; arms like those of a pilot have no group."""
    given = {"groups": groups, "quotas": quotas, "constraint": constraint}
    for name, value in given.items():
        if value is not None and not several:
            raise InvalidInput(
                f"`{name}` is given with a `pilot`, but goes with `means` or a `prior`"
            )
    return family_in_order(groups, quotas, constraint, k)


def _checked_features(
    features: FeaturesGiven | None, linear: bool | float, means: npt.ArrayLike | None
) -> Features | None:
    """The features of guessed means: means from a prior or a pilot do not depend on any."""
    known = features_of(features, checked_linear(linear), None, ())
    if known is not None and means is None:
        raise InvalidInput("`features` are given without `means`, but only go with them")
    return known


def _checked_pace(per_day: float | None, delay: float) -> tuple[float, float] | None:
    """Pulls per day, and days until a reward arrives."""
    late = number("delay", delay)
    if late < 0:
        raise InvalidInput(f"`delay` is {shown(delay)}, but must be at least 0 days")
    if per_day is None:
        if late > 0:
            raise InvalidInput(f"`delay` is {shown(delay)}, but days need `per_day`, too")
        return None
    return number("per_day", per_day, above=0), late


def _checked_width(
    concurrency: int | None, latency: float | None, per_day: float | None
) -> Concurrency:
    """Calls under way at a time, and the seconds that each takes."""
    if latency is not None and per_day is not None:
        rule = "one of them says how fast pulls are made"
        raise InvalidInput(f"`latency` and `per_day` are both given, but {rule}")
    calls = 1
    if concurrency is not None:
        calls = whole("concurrency", concurrency, at_least=1, at_most=MOST_WORKERS)
    return Concurrency(calls, 0.0 if latency is None else seconds("latency", latency))


def _traffic(
    pace: tuple[float, float] | None, drift: bool | None, skip_blocks: int, min_blocks: int | None
) -> Traffic | None:
    """The visitors of a live test, if one is to be forecast; parts of a day count as days."""
    if pace is None or drift is False:
        given = {"drift": drift or None, "skip_blocks": skip_blocks, "min_blocks": min_blocks}
        for name, value in given.items():
            if value:
                rule = "goes with `per_day` only" if pace is None else "needs `drift`"
                raise InvalidInput(f"`{name}` is {value}, but {rule}")
        return None
    per_day, delay = pace
    visitors = max(1, round(per_day))
    least = least_blocks(min_blocks, visitors)
    return Traffic(visitors, math.ceil(delay), skip_blocks, least)


def _live(candidate: Candidate, traffic: Traffic) -> Candidate | None:
    """The same as a live test; None where it cannot be one."""
    if candidate.algorithm.name != "certified" or candidate.options or candidate.budget:
        return None
    with suppress(InvalidInput):
        return replace(candidate, problem=replace(candidate.problem, traffic=traffic))
    return None


def _days(
    pace: tuple[float, float] | None, rows: FloatArray, options: Mapping[str, Any]
) -> FloatArray | None:
    """Every round waits for the last of its rewards, and meanwhile nothing is pulled.

    With a window no round waits, but pulls under way are never more than it holds."""
    if pace is None:
        return None
    per_day, delay = pace
    pulls, rounds = rows[:, 0], rows[:, 2]
    window = options.get("window")
    if window:
        return np.asarray(pulls * max(1 / per_day, delay / window) + delay)
    return np.asarray(pulls / per_day + rounds * delay)


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
    return tuple(name for name, each in SECONDS.items() if each * n_arms * runs > LONGEST_RUNS)


def _defaults(
    goals: Sequence[float | None], left_out: Sequence[str], scene: Scene
) -> Iterator[Wanted]:
    for goal in goals:
        names = FOR_EPSILON if goal is None else FOR_BUDGET
        tried = [find(name) for name in names if name not in left_out]
        apt = [each for each in tried if each.items or scene.items is None]
        apt = [each for each in apt if each.features or scene.features is None]
        yield from ((each, goal) for each in apt if each.constraints or scene.constraint is None)


def _distinct(algorithms: Sequence[AlgorithmLike]) -> list[Algorithm]:
    """Every algorithm once; their names must differ, for the results."""
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


def _check_of_use(cuts: Mapping[str, Any], algorithms: Sequence[Algorithm]) -> None:
    """Refuse what none of the algorithms has; one that has no such option runs without it."""
    given = [name for name, value in cuts.items() if value not in (None, "auto")]
    for name in given:
        if not any(name in options_of(each.search) for each in algorithms):
            algorithms[0].told(None, **{**NO_CUTS, name: cuts[name]})  # refuses


def _candidate(
    algorithm: Algorithm,
    goal: float | None,
    scene: Scene,
    k: int,
    epsilon: float | None,
    delta: float,
    minimize: bool,
    cuts: Mapping[str, Any],
) -> Candidate:
    wanted = goal_of(epsilon, delta, goal, capped=algorithm.capped)
    n_arms = scene.believed.n_arms
    of_arms: dict[str, Any] = {"items": scene.items, "costs": scene.costs, "limits": scene.limits}
    of_arms["constraint"] = scene.constraint
    known = options_of(algorithm.search)
    features = scene.features
    if features is not None and "certificate" not in known:  # nothing is proved there
        features = features.guiding()
    problem = Problem(n_arms, k, wanted, Binary(), minimize, features=features, **of_arms)
    cuts = {**cuts, **_usual_width(algorithm, scene, cuts)}
    told = algorithm.told(
        None, **NO_CUTS | {name: each for name, each in cuts.items() if name in known}
    )
    algorithm.check(problem, told)
    return Candidate(algorithm, goal, problem, told)


def _usual_width(algorithm: Algorithm, scene: Scene, cuts: Mapping[str, Any]) -> dict[str, int]:
    """How large batches are on a test set where this is left open, as in `select`."""
    open_ = all(cuts[name] is None for name in ("max_rounds", "min_batch", "window"))
    if scene.items is None or algorithm.name != "certified" or not open_:
        return {}
    return usual_width(scene.width.calls)


def _run(scene: Scene, seed: int, trial: tuple[Candidate, int]) -> Row:
    candidate, run = trial
    own = np.random.SeedSequence(seed, spawn_key=(run,))
    return scene.run(candidate.algorithm, candidate.problem, candidate.options, own)
