"""Simulate an algorithm on arms with known means: many independent runs, in several processes."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrc

from shortlist.algorithms import Algorithm, AlgorithmLike, find
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.cells import Drawn, checked_clusters
from shortlist.constraints import Constraint, reordered
from shortlist.driver import Outcome, counted, finish
from shortlist.errors import InvalidInput, UnknownName, caution
from shortlist.features import Features, FeaturesGiven, checked_linear, features_of, shuffled
from shortlist.formatting import Tabular, TextTable, confidence_text, figures, given_text
from shortlist.problem import Goal, Problem, ScoresGiven, checked_order, goal_of
from shortlist.quotas import ConstraintGiven, GroupsGiven, QuotasGiven, family_in_order
from shortlist.reading.scores import check_repeats, named_scores
from shortlist.regret import ROUNDING
from shortlist.result.plots import CHOSEN, REST, axes_of, plain_frame
from shortlist.settings import arguments, check_drawn
from shortlist.simulation.parallel import parallel_map
from shortlist.simulation.worlds import (
    Bandit,
    BernoulliBandit,
    BetaBandit,
    CopulaBandit,
    GaussianBandit,
    NormalBandit,
    ScoreTable,
    model_of_scores,
    score_matrix,
)
from shortlist.spec import FIELDS, Certificate, Order, Population, Seeds, documented
from shortlist.validation import (
    LARGEST,
    RngGiven,
    arm_means,
    check_sendable,
    function_or_none,
    library_of,
    manners,
    number,
    reals,
    shown,
    takes_rng,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def drive(
    algorithm: Algorithm,
    problem: Problem,
    bandit: Bandit,
    rng: np.random.Generator,
    **options: object,
) -> Outcome:
    """Run `algorithm` to its end on `bandit`.

    Search and rewards get independent streams of `rng`."""
    search_rng, reward_rng = rng.spawn(2)
    run = counted(algorithm, problem, search_rng, **options)
    return finish(run, lambda request: bandit.pull(request.arms, request.times, reward_rng))


BANDITS: dict[str, Callable[[FloatArray], Bandit]] = {
    "bernoulli": BernoulliBandit,
    "beta": BetaBandit,
    "gaussian": GaussianBandit,
    "normal": NormalBandit,
}

Row = tuple[int, float, float, int, float, float]  # pulls, regret, bound, rounds, spent, confidence
DOUBTED = 1e-3  # chance of this many wrong bounds below which a caution points them out


@dataclass(frozen=True, slots=True)
class Runs(Tabular):
    """The outcome of every run, in order of its seed.

    Example:
        >>> import shortlist
        >>> runs = shortlist.simulate("uniform", [0.9, 0.1], k=1, budget=10, runs=2)
        >>> runs.pulls.tolist()
        [10, 10]"""

    algorithm: str  #: its name
    n_arms: int  #: how many arms there are
    k: int  #: how many were chosen in every run
    epsilon: float | None  #: the regret from which on a run has failed, if there is one
    pulls: IntArray = field(repr=False)  #: (runs,) what every run spent
    regret: FloatArray = field(repr=False)  #: (runs,) what every run lost, R_T
    bound: FloatArray = field(repr=False)  #: (runs,) what it proved; NaN where nothing is proved
    seconds: float  #: that all runs took together
    rounds: IntArray = field(repr=False)  #: (runs,) requests, each after all rewards of the last
    n_items: int | None = None  #: how many items there are, where a matrix of scores was given
    spent: FloatArray | None = field(repr=False, default=None)  #: (runs,) cost, where arms have one
    #: library of the data frame of scores, if one was given: that of `to_frame`, too
    frames: str | None = field(default=None, repr=False, compare=False)
    #: the least confidence with which a run claimed its bound; None if none claimed any
    confidence: float | None = field(default=None, repr=False)

    @property
    def failed(self) -> BoolArray:
        """Which runs lost more than epsilon; none where no epsilon was given."""
        if self.epsilon is None:
            return np.zeros(self.regret.size, dtype=np.bool_)
        return self.regret > self.epsilon + ROUNDING

    @property
    def wrong(self) -> BoolArray:
        """Which runs lost more than the bound that they claimed; none where nothing was claimed."""
        claimed = np.nan_to_num(self.bound, nan=np.inf)
        return np.asarray(self.regret > claimed + ROUNDING, dtype=np.bool_)

    def _caution(self) -> None:
        """Warn of bounds that are wrong more often than their confidence allows."""
        wrong, runs = int(self.wrong.sum()), self.pulls.size
        if not wrong or self.confidence is None:
            return
        chance = float(bdtrc(wrong - 1, runs, 1 - self.confidence))
        if chance < DOUBTED:
            caution(
                f"the regret is above the bound of the answer in {wrong:,} of {runs:,} runs, but"
                f" {self.algorithm} claims its bounds with {confidence_text(self.confidence)}"
                f" confidence (p < {DOUBTED:g}): do not rely on them"
            )

    def to_frame(self, library: str | None = None) -> Any:
        """All runs as a data frame with a row per run.

        Args:
            library: "pandas" or "polars". Default: that of the scores if they are a data frame,
                else the first that is installed.

        Returns:
            The data frame: run, pulls, rounds, regret, bound, failed, and spent where arms have
            costs.

        Raises:
            InvalidInput: If neither is installed.

        Example:
            >>> import shortlist
            >>> runs = shortlist.simulate("uniform", [0.9, 0.1], k=1, budget=10, runs=2)
            >>> list(runs.to_frame("pandas").columns)
            ['run', 'pulls', 'rounds', 'regret', 'bound', 'failed']"""
        columns: dict[str, npt.NDArray[Any]] = {
            "pulls": self.pulls,
            "rounds": self.rounds,
            "regret": self.regret,
        }
        columns |= {"bound": self.bound, "failed": self.failed}
        if self.spent is not None:
            columns["spent"] = self.spent
        values = {name: column.tolist() for name, column in columns.items()}
        rows = [
            {"run": run, **{name: column[run] for name, column in values.items()}}
            for run in range(self.pulls.size)
        ]
        return plain_frame(rows, library or self.frames)

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw the regret of every run against its pulls, and epsilon as a line.

        Args:
            ax: Axes of matplotlib to draw into. Default: those of a new figure.

        Returns:
            The figure.

        Raises:
            InvalidInput: matplotlib is not installed.

        Example:
            >>> import shortlist
            >>> runs = shortlist.simulate("uniform", [0.9, 0.1], k=1, budget=10, runs=2)
            >>> runs.plot().savefig("runs.png")"""
        ax = axes_of(ax, 7.2, 3.6)
        ax.plot(self.pulls, self.regret, "o", color=CHOSEN, alpha=0.6)
        if self.epsilon is not None:
            ax.axhline(self.epsilon, color=REST, linestyle="--")
            ax.annotate(
                f"epsilon = {given_text(self.epsilon)}",
                (0.01, self.epsilon),
                xycoords=("axes fraction", "data"),
                va="bottom",
                fontsize=8,
            )
        ax.set_title(f"{self.algorithm}, {self.pulls.size:,} runs", fontsize=10, loc="left")
        ax.set_xlabel("pulls")
        ax.set_ylabel("regret")
        ax.set_ylim(bottom=-0.05 * max(self.regret.max(), self.epsilon or 0, 1e-9))
        ax.spines[["top", "right"]].set_visible(False)
        figure: Figure = ax.get_figure(root=True)  # type: ignore[assignment]
        return figure

    def summary(self) -> dict[str, object]:
        """The figures of the command line's JSON; without an epsilon there are no failures."""
        unknown = self.epsilon is None
        figures: dict[str, object] = {
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
            "rounds": {"mean": float(self.rounds.mean()), "max": int(self.rounds.max())},
        }
        if self.n_items is not None:
            mean = float(self.pulls.mean())
            figures["cells"] = {"mean": mean, "share": mean / (self.n_arms * self.n_items)}
        if self.spent is not None:
            figures["spent"] = {"mean": float(self.spent.mean()), "max": float(self.spent.max())}
        return figures

    def tables(self) -> tuple[TextTable]:
        """The figures of `summary`, and how many runs failed."""
        runs, failed = self.pulls.size, int(self.failed.sum())
        verdict = ""
        if self.epsilon is not None:
            verdict = (
                f"{failed:,} of {runs:,} runs lost more than epsilon = {given_text(self.epsilon)}."
            )
        return (figures(self.summary(), verdict=verdict),)


@takes_rng
@documented("simulate", "scores")
def simulate(  # noqa: D417  # `documented` adds the settings
    algorithm: AlgorithmLike,
    means: npt.ArrayLike | None = None,
    *,
    k: int,
    epsilon: float | str | None = None,
    delta: float = 0.05,
    budget: float | None = None,
    costs: npt.ArrayLike | None = None,
    runs: int = 1,
    seed: int = 0,
    rng: RngGiven | None = None,
    workers: int = 1,
    rewards: str = "bernoulli",
    sd: npt.ArrayLike | None = None,
    correlation: float = 0.0,
    seeds: Seeds = "own",
    minimize: bool = False,
    scores: ScoresGiven | None = None,
    order: Order = "shared",
    repeats: int = 1,
    clusters: Sequence[str | int] | None = None,
    population: Population = "these",
    options: Mapping[str, object] | None = None,
    max_rounds: int | None = None,
    min_batch: int | None = None,
    window: int | None = None,
    certificate: Certificate = "auto",
    groups: GroupsGiven | None = None,
    quotas: QuotasGiven | None = None,
    constraint: ConstraintGiven | None = None,
    features: FeaturesGiven | None = None,
    linear: bool | float = False,
    on_progress: Callable[[int], None] | None = None,
) -> Runs:
    """Run an algorithm many times on simulated arms with known means, shuffled in every run.

    The same `seed` gives the same result for any `workers`.

    Args:
        algorithm: Name, search function (problem, rng, *, option=...), or
            "package.module:function". With several `workers` it must be defined at the top of a
            module.
        means: True mean reward of every arm.
        scores: Instead of `means`: scores of every arm (row) on every item (column) of a test set,
            or a file of them. A run draws the order of the items, and no cell twice. With `repeats`
            it has that many columns for each item, next to each other, or three dimensions. If
            `population` is "like these", a run draws as many items, with replacement.
        {settings}
        groups: Groups of the arms, in the order of `means`, for `quotas`.
        costs: Cost of a pull of every arm, in the order of `means`; the budget is in their unit.
            Default: 1 each.
        runs: Number of runs.
        rng: Instead of `seed`: a seed, a sequence of seeds, or a `numpy.random.Generator`,
            `BitGenerator` or `SeedSequence`. A generator moves on, so that a second call differs.
        workers: Number of processes.
        rewards: Distribution of the rewards: "bernoulli" (0 or 1), "beta", "gaussian" with a
            declared standard deviation, or "normal" without.
        sd: Standard deviation of the rewards, one number; for "normal" also one per arm. Beta
            rewards have the largest that their mean allows, if that is less.
        correlation: Correlation of the rewards of all arms on one seed, where `seeds` are shared.
        on_progress: Function that is called with the number of runs done.

    Returns:
        Pulls, regret and failures of every run.

    Raises:
        InvalidInput: An argument is not valid, or arguments do not go together.

    Example:
        >>> import shortlist
        >>> runs = shortlist.simulate("uniform", [0.9, 0.5, 0.1], k=1, budget=300, runs=5)
        >>> int(runs.pulls.max())
        300"""
    asked = arguments(locals(), "simulate")
    runs, workers, seed = manners(runs, workers, seed)
    allowed: float | None = asked["epsilon"]
    function_or_none("on_progress", on_progress)
    chosen = find(algorithm)
    given = chosen.told(options, max_rounds, min_batch, certificate, window)
    goal = goal_of(allowed, delta, budget, capped=chosen.capped)
    known = features_of(features, checked_linear(linear), None, ())
    family = family_in_order(groups, quotas, constraint, k)
    prices = checked_prices(costs)
    together = checked_correlation(correlation, seeds == "shared")
    figures_of_arms = (means, scores, rewards, sd, order, minimize, prices, known, family)
    drawn = Drawn(repeats, checked_clusters(clusters), population)
    check_drawn(drawn, chosen)
    world = SimulatedArms(*figures_of_arms, together, drawn)
    one, problem = _prepared(chosen, world, k, goal, given)
    chosen.check(problem, given)
    if workers > 1:
        check_sendable(chosen.name, chosen)
    started = time.perf_counter()
    rows = parallel_map(one, np.random.SeedSequence(seed).spawn(runs), workers, on_progress)
    seconds = time.perf_counter() - started
    columns = (np.array(column) for column in zip(*rows, strict=True))
    pulls, regret, bound, made, spent, sure = columns
    size = None if problem.items is None else problem.items.size
    paid = None if problem.costs is None else spent
    claimed = None if np.isnan(sure).all() else float(np.nanmin(sure))
    figures = (pulls, regret, bound, seconds, made, size, paid, library_of(scores), claimed)
    found = Runs(chosen.name, problem.n_arms, k, allowed, *figures)
    found._caution()
    return found


@dataclass(frozen=True, slots=True)
class SimulatedArms:
    """The arms to simulate, in plain arguments: by their means, or by a matrix of scores."""

    means: npt.ArrayLike | None
    scores: ScoresGiven | None
    rewards: str
    sd: npt.ArrayLike | None
    order: str
    minimize: bool
    costs: tuple[float, ...] | None = None
    features: Features | None = None
    constraint: Constraint | None = None
    correlation: float | None = None  # None: every pull has a seed of its own
    drawn: Drawn = field(default_factory=Drawn)


def _prepared(
    algorithm: Algorithm, world: SimulatedArms, k: int, goal: Goal, options: dict[str, object]
) -> tuple[Callable[[np.random.SeedSequence], Row], Problem]:
    """The function of a run, and the problem that it solves."""
    if world.means is not None and world.scores is None:
        _check_no_test_set(world)
        bandit = bandit_with(world.means, world.rewards, world.sd, world.correlation)
        declared = (bandit.model, world.minimize)
        of_arms: dict[str, Any] = {"costs": world.costs, "features": world.features}
        of_arms["shared_seeds"] = world.correlation is not None
        of_arms["constraint"] = world.constraint
        problem = Problem(bandit.means.size, k, goal, *declared, **of_arms)
        return partial(_run, algorithm, problem, bandit, options), problem
    if world.scores is None or world.means is not None:
        given = "neither" if world.means is None else "both"
        raise InvalidInput(f"{given} of `means` and `scores` given, but it must be one of them")
    if world.correlation is not None:
        raise InvalidInput("`seeds` is 'shared', but does not go with `scores`")
    if world.rewards != "bernoulli" or world.sd is not None:
        name, value = ("sd", world.sd) if world.sd is not None else ("rewards", world.rewards)
        raise InvalidInput(f"`{name}` is {shown(value)}, but the rewards are those of `scores`")
    checked_order(world.order)
    matrix = _matrix_of(world)
    model = model_of_scores(matrix)
    items = ScoreTable(matrix, np.random.default_rng(0), world.order, world.drawn).items
    declared = (model, world.minimize)
    known: dict[str, Any] = {"costs": world.costs, "features": world.features}
    known["constraint"] = world.constraint
    problem = Problem(len(matrix), k, goal, *declared, items=items, **known)
    drawn = (matrix, world.order, world.drawn)
    return partial(_run_on_scores, algorithm, problem, drawn, options), problem


def _check_no_test_set(world: SimulatedArms) -> None:
    """Refuse what goes with a matrix of scores only."""
    given = {"order": world.order} | {
        each.name: getattr(world.drawn, each.name) for each in fields(world.drawn)
    }
    for name, value in given.items():
        if value != FIELDS[name].default:
            raise InvalidInput(f"`{name}` is {shown(value)}, but only goes with `scores`")


def _matrix_of(world: SimulatedArms) -> FloatArray:
    """Scores of every arm on every item, or on every repetition of the items."""
    scores: Any = world.scores
    repeats = world.drawn.repeats
    named = named_scores(scores, repeats)
    if named is not None:
        check_repeats(named, repeats)
        scores = named.scores
    elif repeats > 1 and np.ndim(scores) == 3 and np.shape(scores)[2] == repeats:
        scores = np.reshape(scores, (len(scores), -1))
    matrix = score_matrix(scores)
    if matrix.shape[1] % repeats:
        raise InvalidInput(
            f"`scores` has {matrix.shape[1]} columns and `repeats` is {repeats}, but there must be"
            f" {repeats} columns for each item, one per repetition"
        )
    world.drawn.check(matrix.shape[1] // repeats, world.order)
    return matrix


def checked_correlation(correlation: float, shared: bool) -> float | None:
    """The correlation of arms on shared seeds; None if every pull has a seed of its own."""
    value = number("correlation", correlation, above=-1, below=2)
    if not 0 <= value <= 1:
        raise InvalidInput(f"`correlation` is {shown(correlation)}, but must be from 0 to 1")
    if value and not shared:
        raise InvalidInput(
            f"`correlation` is {shown(correlation)}, but arms are independent unless `seeds` is"
            " 'shared'"
        )
    return value if shared else None


def bandit_with(
    means: npt.ArrayLike,
    rewards: str = "bernoulli",
    sd: npt.ArrayLike | None = None,
    correlation: float | None = None,
) -> Bandit:
    """Arms with these means, if each is a number that such rewards can have as their mean."""
    if not isinstance(rewards, str) or str(rewards) not in BANDITS:
        there = ", ".join(BANDITS)
        raise UnknownName(f"`rewards` is {shown(rewards)}, but must be one of {there}")
    low, high = (-np.inf, np.inf) if rewards in ("gaussian", "normal") else (0.0, 1.0)
    theta = arm_means(means, low, high)
    if correlation is not None and rewards not in ("bernoulli", "normal"):
        raise InvalidInput(
            f"`rewards` is {shown(rewards)}, but must be 'bernoulli' or 'normal' on shared seeds"
        )
    if correlation is not None and rewards == "bernoulli" and sd is None:
        return CopulaBandit(theta, correlation)
    if sd is None and rewards == "normal":
        return NormalBandit(theta, correlation=correlation or 0.0)
    if sd is None:
        return BANDITS[str(rewards)](theta)
    if rewards == "normal":
        return NormalBandit(theta, _deviations(sd, theta.size), correlation or 0.0)
    sd = number("sd", sd, above=0)
    if rewards == "bernoulli":
        raise InvalidInput(
            f"`sd` is {shown(sd)}, but that of rewards that are 0 or 1 follows from their mean;"
            " `rewards` must be 'beta' or 'gaussian'"
        )
    return BetaBandit(theta, sd=sd) if rewards == "beta" else GaussianBandit(theta, sd)


def _deviations(sd: npt.ArrayLike, n_arms: int) -> FloatArray:
    """The standard deviation of every arm, from one number or one per arm."""
    each = reals("sd", sd if np.ndim(sd) else [sd])
    if each.size not in (1, n_arms) or not ((each > 0) & (each < LARGEST)).all():
        raise InvalidInput(
            f"`sd` is {shown(sd)}, but must be a number above 0, or {n_arms} of them, one per arm"
        )
    return np.broadcast_to(each, (n_arms,))


def _run(
    algorithm: Algorithm,
    problem: Problem,
    bandit: Bandit,
    options: dict[str, object],
    seed: np.random.SeedSequence,
) -> Row:
    """One run: pulls, regret, bound, rounds, cost, confidence.

    Arms are shuffled, since a sorted instance leaks the truth (E18)."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(bandit.means.size)
    theta, shuffled = bandit.means[order], _shuffled(problem, order)
    moved = bandit.in_order(order) if isinstance(bandit, NormalBandit) else bandit.with_means(theta)
    outcome = drive(algorithm, shuffled, moved, rng, **options)
    return _row(outcome, shuffled, problem.sign * theta)


def _run_on_scores(
    algorithm: Algorithm,
    problem: Problem,
    drawn: tuple[FloatArray, str, Drawn],
    options: dict[str, object],
    seed: np.random.SeedSequence,
) -> Row:
    """One run on a matrix of scores: arms are shuffled, and items."""
    matrix, order, how = drawn
    rng = np.random.default_rng(seed)
    places = rng.permutation(len(matrix))
    shuffled, problem = matrix[places], _shuffled(problem, places)
    search_rng, order_rng = rng.spawn(2)
    table = ScoreTable(shuffled, order_rng, order, how)
    problem = replace(problem, items=table.items)
    outcome = finish(counted(algorithm, problem, search_rng, **options), table.pull)
    return _row(outcome, problem, problem.sign * shuffled.mean(axis=1))


def checked_prices(costs: npt.ArrayLike | None) -> tuple[float, ...] | None:
    """Costs as a problem has them, if they are a list of numbers."""
    return None if costs is None else tuple(reals("costs", costs).tolist())


def _shuffled(problem: Problem, order: IntArray) -> Problem:
    """The same problem with its arms in that order."""
    costs = None if problem.costs is None else tuple(problem.declared_costs[order].tolist())
    family = None if problem.constraint is None else reordered(problem.constraint, order)
    features = shuffled(problem.features, order)
    return replace(problem, costs=costs, features=features, constraint=family)


def _row(outcome: Outcome, problem: Problem, means: FloatArray) -> Row:
    bound, sure = outcome.answer.regret_bound, outcome.answer.confidence
    assert outcome.ahead is not None
    return (
        int(outcome.pulls.sum() + outcome.ahead.sum()),
        problem.regret(means, outcome.answer.top),
        float("nan") if bound is None else bound,
        outcome.rounds,
        float(outcome.pulls.sum() if outcome.spending is None else outcome.spending.sum()),
        float("nan") if sure is None else sure,
    )
