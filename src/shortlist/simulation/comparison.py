"""Compare algorithms on the same simulated arms: their regret and failures, budget by budget."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shortlist.algorithms import Algorithm, AlgorithmLike, find
from shortlist.errors import InvalidInput, UnsupportedGoal
from shortlist.formatting import (
    Tabular,
    TextTable,
    amount_text,
    given_text,
    interval_text,
    readable,
)
from shortlist.problem import FixedBudget, FixedConfidence, budget_of
from shortlist.result.plots import COLOURS, new_figure, plain_frame
from shortlist.simulation.simulate import Runs, simulate
from shortlist.validation import (
    MOST_RUNS,
    RngGiven,
    collected,
    function_or_none,
    number,
    shown,
    takes_rng,
    whole,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SECONDS = 60.0  # that a comparison takes, unless more are allowed
CONFIDENCE = 0.95  # of the interval around a failure rate
ERRORS = 2.0  # standard errors on either side of a mean regret in the plot
WIDTH, HEIGHT = 7.2, 3.2  # inches of a panel
HEADER = ("algorithm", "budget", "pulls", "regret", "90 %", "failed", "95 % interval")
MOST_COMPARED = 1000  # algorithms, or budgets


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """The runs of one algorithm for one goal.

    Example:
        >>> import shortlist
        >>> found = shortlist.compare(["uniform"], [0.9, 0.5, 0.1], k=1, budgets=[30], runs=2)
        >>> found.points[0].runs.pulls.tolist()
        [30, 30]"""

    budget: float | None  #: what every run could spend; None: it stopped by epsilon and delta
    runs: Runs  #: the outcome of every run

    def row(self) -> dict[str, Any]:
        """The figures of a row of the data frame."""
        regret, total = self.runs.regret, self.runs.pulls.size
        low, high = np.quantile(regret, [0.1, 0.9], method="inverted_cdf").tolist()
        figures = {
            "algorithm": self.runs.algorithm,
            "budget": self.budget,
            "runs": total,
            "pulls": float(self.runs.pulls.mean()),
            "regret": float(regret.mean()),
            "regret_p10": low,
            "regret_p90": high,
        }
        if self.runs.epsilon is None:
            return figures
        failures = int(self.runs.failed.sum())
        ends = dict(zip(("failure_low", "failure_high"), _interval(failures, total), strict=True))
        return figures | {"failures": failures, "failure_rate": failures / total} | ends


@dataclass(frozen=True, slots=True)
class ComparedAlgorithms(Tabular):
    """What several algorithms spend and lose on the same arms; printed, it is a table.

    Example:
        >>> import shortlist
        >>> found = shortlist.compare(["sar", "uniform"], [0.9, 0.5, 0.1], k=1, budgets=[30])
        >>> [point.runs.algorithm for point in found.points]
        ['sar', 'uniform']"""

    points: tuple[ComparedRuns, ...] = field(repr=False)  #: by budget, then by algorithm
    left_out: tuple[str, ...]  #: algorithm and goal of the runs that the time was too short for
    seconds: float  #: that all of it took

    def to_frame(self, library: str | None = None) -> Any:
        """All figures as a data frame with a row per algorithm and goal.

        Args:
            library: "pandas" or "polars". Default: the first of these that is installed.

        Returns:
            The data frame: algorithm, budget (none where epsilon ends a run), number of runs, mean
            pulls, mean regret and its 10 % and 90 % quantiles; with an epsilon also the failures,
            their rate, and the ends of its exact 95 % interval.

        Raises:
            InvalidInput: If neither is installed.

        Example:
            >>> import shortlist
            >>> found = shortlist.compare(["sar", "uniform"], [0.9, 0.5, 0.1], k=1, budgets=30)
            >>> found.to_frame("pandas")[["algorithm", "pulls"]].values.tolist()
            [['sar', 30.0], ['uniform', 30.0]]"""
        return plain_frame(self.rows(), library)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the data frame, and of the JSON of the command line."""
        return [point.row() for point in self.points]

    def plot(self) -> "Figure":
        """Draw the regret of every algorithm against its pulls; with an epsilon also its failures.

        Lines join the budgets, with two standard errors on either side of a mean and the exact 95 %
        interval of a failure rate. A diamond stands for runs that epsilon and delta ended.

        Returns:
            The figure.

        Raises:
            InvalidInput: matplotlib is not installed.

        Example:
            >>> import shortlist
            >>> found = shortlist.compare(["sar"], [0.9, 0.5, 0.1], k=1, budgets=[30, 60])
            >>> found.plot().savefig("comparison.png")"""
        epsilons = {point.runs.epsilon for point in self.points} - {None}
        panels = 2 if epsilons else 1
        figure = new_figure(WIDTH, HEIGHT * panels)
        axes = figure.subplots(panels, sharex=True, squeeze=False)[:, 0]
        names = dict.fromkeys(point.runs.algorithm for point in self.points)
        for place, name in enumerate(names):
            own = [point for point in self.points if point.runs.algorithm == name]
            colour = COLOURS[place % len(COLOURS)]
            _draw(axes[0], own, _mean_regret, colour, name)
            if epsilons:
                _draw(axes[1], own, _failure_rate, colour, name)
        _frame(list(axes), sorted(filter(None, epsilons)))
        return figure

    def tables(self) -> tuple[TextTable]:
        """A row per algorithm and goal, and what the time was too short for."""
        left = ", ".join(self.left_out)
        verdict = f"Left out, since the time was over: {left}." if left else ""
        rows = [_cells(point) for point in self.points]
        header = HEADER if rows and len(rows[0]) == len(HEADER) else HEADER[:-2]
        return (TextTable(header, rows, verdict=verdict),)


@takes_rng
def compare(
    algorithms: Sequence[AlgorithmLike],
    means: npt.ArrayLike | None = None,
    *,
    k: int,
    epsilon: float | str | None = None,
    budgets: float | Sequence[float] | None = None,
    runs: int = 20,
    seed: int = 0,
    rng: RngGiven | None = None,  # noqa: ARG001  # `takes_rng` makes a seed of it
    seconds: float | None = SECONDS,
    on_progress: Callable[[float], None] | None = None,
    **settings: Any,
) -> ComparedAlgorithms:
    """Run algorithms many times on the same arms with known means, for one goal or several.

    Every `budget` is a point of the regret curve of each algorithm that takes one. An `epsilon`
    counts failures, runs that lose more; algorithms that stop on their own are also run until they
    prove it. Runs of all algorithms have the same arms in the same order.

    Args:
        algorithms: Names, search functions (problem, rng, *, option=...), or
            "package.module:function".
        means: True mean reward of every arm; instead, `scores` of a test set may be given.
        k: Number of arms to choose.
        epsilon: Largest regret allowed, in the unit of the rewards; "0.2%" is 0.002.
        budgets: Number of pulls to spend, or several of them. Default: none, only `epsilon`.
        runs: Number of runs for every algorithm and goal.
        seed: Random seed. Runs with the same seed are identical.
        rng: Instead of `seed`: a seed, a sequence of seeds, or a `numpy.random.Generator`,
            `BitGenerator` or `SeedSequence`. A generator moves on, so that a second call differs.
        seconds: When this much time is over, no more runs are begun: the runs of an algorithm and
            a goal that are not complete by then are left out and named. Small budgets come first.
            Default 60; None: no limit.
        on_progress: Function that is called with the share of the runs that is done.
        settings: Further arguments of `simulate`, such as `delta`, `rewards`, `quotas`, `workers`.

    Returns:
        The runs of every algorithm and goal; a table, a data frame and a plot of them.

    Raises:
        InvalidInput: An argument is not valid, or arguments do not go together.

    Example:
        >>> import shortlist
        >>> found = shortlist.compare(["sar", "uniform"], [0.9, 0.5, 0.1], k=1, budgets=[30, 90])
        >>> [point.runs.algorithm for point in found.points]
        ['sar', 'uniform', 'sar', 'uniform']"""
    runs = whole("runs", runs, at_least=1, at_most=MOST_RUNS)
    function_or_none("on_progress", on_progress)
    wanted = _wanted(algorithms, epsilon, budgets)
    clock = _TimeLimit(seconds, len(wanted) * runs, on_progress)
    settings |= {"k": k, "epsilon": epsilon, "runs": runs, "seed": seed}
    points, left_out = [], []
    refused: dict[AlgorithmLike, UnsupportedGoal] = {}
    for place, (algorithm, budget) in enumerate(wanted):
        tell = clock.after(place * runs)
        try:
            tell(0)
            made = simulate(algorithm, means, budget=budget, on_progress=tell, **settings)
            points.append(ComparedRuns(budget, made))
        except _TimeOver:
            left_out.append(f"{find(algorithm).name} {_goal(budget)}")
        except UnsupportedGoal as error:  # a function says only when it runs which goals it takes
            refused[algorithm] = error
    served = {point.runs.algorithm for point in points}
    for algorithm, unfit in refused.items():
        if find(algorithm).name not in served and not left_out:
            raise unfit
    return ComparedAlgorithms(tuple(points), tuple(left_out), clock.passed)


class _TimeOver(Exception):
    """No more runs are to be begun."""


class _TimeLimit:
    """Ends the runs when the time is over, and tells the share that is done."""

    def __init__(
        self, seconds: float | None, total: int, tell: Callable[[float], None] | None
    ) -> None:
        self.limit = None if seconds is None else number("seconds", seconds, above=0)
        self.total = total
        self.tell = tell
        self.started = time.perf_counter()

    @property
    def passed(self) -> float:
        """Seconds since the begin."""
        return time.perf_counter() - self.started

    def after(self, before: int) -> Callable[[int], None]:
        """What to call with the number of runs done, if there were some before."""

        def tick(done: int) -> None:
            if self.tell is not None and done:
                self.tell((before + done) / self.total)
            if self.limit is not None and self.passed > self.limit:
                raise _TimeOver

        return tick


Wanted = tuple[AlgorithmLike, float | None]  # with a budget, or None for epsilon and delta


def _wanted(algorithms: Any, epsilon: object, budgets: Any) -> list[Wanted]:
    """Every algorithm with every goal that it takes; the smallest budget first."""
    if isinstance(algorithms, str) or callable(algorithms):
        raise InvalidInput(f"`algorithms` is {shown(algorithms)}, but must be a list of them")
    tried: list[AlgorithmLike] = collected("algorithms", algorithms, at_most=MOST_COMPARED)
    goals: list[float | None] = [*sorted(_checked_budgets(budgets))]
    goals += [] if epsilon is None else [None]
    if not goals or not tried:
        missing = "`algorithms` is empty" if goals else "neither `epsilon` nor `budgets` is given"
        raise InvalidInput(f"{missing}, but a comparison needs algorithms and a goal")
    wanted = [(each, goal) for goal in goals for each in tried if _takes(find(each), goal, epsilon)]
    for each in tried:
        if not any(algorithm is each for algorithm, _ in wanted):
            rule = "does not stop on its own: give `budgets`"
            raise InvalidInput(f"`algorithms` has {find(each).name!r}, but it {rule}")
    return wanted


def _checked_budgets(budgets: Any) -> list[float]:
    if budgets is None:
        return []
    several: Any = [budgets] if isinstance(budgets, int | float | np.number) else budgets
    given: list[float] = collected("budgets", several, at_most=MOST_COMPARED)
    return list(dict.fromkeys(budget_of(each) for each in given))


def _takes(algorithm: Algorithm, budget: float | None, epsilon: object) -> bool:
    """Whether an algorithm has this goal."""
    if budget is None:
        return FixedConfidence in algorithm.goals
    return FixedBudget in algorithm.goals or (algorithm.capped and epsilon is not None)


def _goal(budget: float | None) -> str:
    return "until epsilon" if budget is None else f"with a budget of {amount_text(budget)}"


def _interval(failures: int, runs: int) -> tuple[float, float]:
    """The exact interval of a failure rate (Clopper and Pearson 1934)."""
    from scipy.stats import binomtest

    found = binomtest(failures, runs).proportion_ci(CONFIDENCE, method="exact")
    return float(found.low), float(found.high)


def _cells(point: ComparedRuns) -> tuple[str, ...]:
    """A row of the table, under `HEADER`."""
    row = point.row()
    budget = "until epsilon" if point.budget is None else amount_text(point.budget)
    spent = f"{row['pulls']:,.0f}"
    own = (row["algorithm"], budget, spent, readable(row["regret"]), readable(row["regret_p90"]))
    if "failures" not in row:
        return own
    interval = interval_text(row["failure_low"], row["failure_high"])
    return (*own, f"{row['failures']:,} of {row['runs']:,}", interval)


def _mean_regret(point: ComparedRuns) -> tuple[float, float, float]:
    """The mean regret, and the ends of its bar."""
    regret = point.runs.regret
    mean, error = regret.mean(), ERRORS * regret.std() / np.sqrt(regret.size)
    return float(mean), float(max(0.0, mean - error)), float(mean + error)


def _failure_rate(point: ComparedRuns) -> tuple[float, float, float]:
    """The failure rate, and the ends of its interval."""
    failed = point.runs.failed
    return float(failed.mean()), *_interval(int(failed.sum()), failed.size)


def _draw(
    ax: "Axes",
    points: Sequence[ComparedRuns],
    measure: Callable[[ComparedRuns], tuple[float, float, float]],
    colour: str,
    name: str,
) -> None:
    """The curve of one algorithm over its budgets, and a diamond where epsilon ends its runs."""
    for marker, until in (("o", False), ("D", True)):
        own = [point for point in points if (point.budget is None) == until]
        if not own:
            continue
        value, low, high = np.transpose([measure(point) for point in own])
        pulls = [point.runs.pulls.mean() for point in own]
        ax.errorbar(
            pulls,
            value,
            yerr=[(value - low).tolist(), (high - value).tolist()],
            color=colour,
            fmt=marker if until else f"{marker}-",
            label=f"{name}, until epsilon" if until else name,
            capsize=2,
            markersize=5,
        )


def _frame(axes: Sequence["Axes"], epsilons: Sequence[float]) -> None:
    axes[0].set_ylabel("regret")
    for epsilon in epsilons:
        axes[0].axhline(epsilon, color="0.6", linestyle="--", linewidth=1, zorder=0)
        axes[0].annotate(
            f" epsilon = {given_text(epsilon)}",
            (0, epsilon),
            xycoords=("axes fraction", "data"),
            va="bottom",
            fontsize=8,
        )
        axes[1].set_ylabel("failure rate")
        axes[1].set_ylim(-0.03, 1.03)
    axes[-1].set_xlabel("mean pulls")
    axes[-1].set_xscale("log")
    axes[0].set_ylim(bottom=0)
    if axes[0].get_legend_handles_labels()[0]:  # none if the time was up before any runs ended
        axes[0].legend(frameon=False, fontsize=8)
    for ax in axes:
        ax.grid(color="0.92", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
