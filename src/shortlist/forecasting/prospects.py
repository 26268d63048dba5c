"""What searches are to spend and to lose: the figures of a forecast, its tables and its picture.

The picture has a dot for every run, a bar from 10 to 90 %, and the median."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from shortlist.algorithms import AlgorithmLike, find
from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.forecasting.days import SampleSize
from shortlist.formatting import (
    Tabular,
    TextTable,
    bound_text,
    confidence_text,
    duration_text,
    given_text,
    readable,
)
from shortlist.regret import ROUNDING
from shortlist.result.plots import COLOURS, check_file, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUANTILES = (0.1, 0.5, 0.9)
LIVE = "live test"  # name of the forecast of `Experiment.create(per_day=…)`


ROW, FRAME, WIDTH = 0.42, 1.3, 7.2  # inches
WIDE = 30  # from this ratio of the most to the fewest pulls on, powers of ten are labels enough


@dataclass(frozen=True, eq=False)
class Prospect:
    """What an algorithm is to spend and to lose, in every run.

    Example:
        >>> import shortlist
        >>> found = shortlist.forecast(k=1, means=[0.9, 0.1], budget=40, runs=3)
        >>> found.prospects[0].algorithm, found.prospects[0].pulls.size
        ('expected-loss', 3)"""

    algorithm: str  #: its name
    budget: float | None  #: what it may spend; None if it stops by epsilon and delta
    pulls: IntArray = field(repr=False)  #: (runs,) what every run spends
    regret: FloatArray = field(repr=False)  #: (runs,) what every run loses, R_T
    epsilon: float | None  #: the regret from which on a run has failed, if there is one
    rounds: IntArray = field(repr=False)  #: (runs,) requests, each after all rewards of the last
    days: FloatArray | None = field(repr=False, default=None)  #: (runs,) if their pace was given
    n_cells: int | None = None  #: arms times items, where there is a test set
    spent: FloatArray | None = field(repr=False, default=None)  #: (runs,) cost, where arms have one
    #: (runs,) the regret bound proved, where arms have limits; NaN where nothing is proved
    bound: FloatArray | None = field(repr=False, default=None)
    seconds: FloatArray | None = field(repr=False, default=None)  #: (runs,) if a latency was given

    @property
    def ended(self) -> float | None:
        """The share of runs that limits ended before epsilon was proved; None without limits or
        without epsilon."""
        if self.bound is None or self.epsilon is None:
            return None
        return float((~(self.bound <= self.epsilon + ROUNDING)).mean())

    @property
    def proved(self) -> float | None:
        """The median bound of the runs that limits ended; None if they proved nothing."""
        if not self.ended:
            return None
        assert self.bound is not None
        unproved = np.where(np.isnan(self.bound), np.inf, self.bound)
        median = quantiles(unproved[~(unproved <= (self.epsilon or 0.0) + ROUNDING)])["p50"]
        return median if np.isfinite(median) else None

    @property
    def share(self) -> float | None:
        """The mean share of the cells that is evaluated; None where there is no test set."""
        return None if self.n_cells is None else float(self.pulls.mean()) / self.n_cells

    @property
    def failure_rate(self) -> float | None:
        """The share of runs that lost more than epsilon; None where no epsilon was given.

        A run that limits ended promised its `bound` instead of epsilon, or nothing: the share is
        that of the runs with a bound, and None if there are none."""
        if self.epsilon is None:
            return None
        if self.bound is None or self.budget is not None:
            return float((self.regret > self.epsilon + ROUNDING).mean())
        promised = ~np.isnan(self.bound)
        if not promised.any():
            return None
        allowed = np.maximum(self.bound[promised], self.epsilon)
        return float((self.regret[promised] > allowed + ROUNDING).mean())

    def summary(self) -> dict[str, object]:
        """The figures of one entry of the command line's JSON."""
        cells = {"mean": float(self.pulls.mean()), "share": self.share}
        return {
            "algorithm": self.algorithm,
            "budget": self.budget,
            "pulls": quantiles(self.pulls),
            "regret": quantiles(self.regret),
            "rounds": quantiles(self.rounds),
            **({} if self.days is None else {"days": quantiles(self.days)}),
            **({} if self.seconds is None else {"seconds": quantiles(self.seconds)}),
            **({} if self.n_cells is None else {"cells": cells}),
            **({} if self.spent is None else {"spent": quantiles(self.spent)}),
            **({} if self.ended is None else {"limits": self._limits()}),
            "failure_rate": self.failure_rate,
        }

    def _limits(self) -> dict[str, object]:
        return {"ended": self.ended, "bound": self.proved}

    def said_of_limits(self) -> str:
        """How often limits end a run, and what it proves then, in a sentence; "" if never."""
        if not self.ended:
            return ""
        ended = (
            f"Limits end {100 * self.ended:.3g} % of the runs of {self.algorithm} before epsilon"
        )
        if self.proved is None:
            return f"{ended}; most of these prove nothing."
        return f"{ended}; half of these prove a regret of {readable(self.proved)} or less."


@dataclass(frozen=True, eq=False)
class Forecast(Tabular):
    """A prospect for every algorithm and goal, with the settings they were simulated for.

    Example:
        >>> import shortlist
        >>> found = shortlist.forecast(k=1, means=[0.9, 0.1], budget=40, runs=3)
        >>> found.prospect("uniform", 40).pulls.tolist()
        [40, 40, 40]"""

    prospects: tuple[Prospect, ...] = field(repr=False)  #: in the order of goals, then algorithms
    arms: str  #: what was assumed about them, for the reader
    n_arms: int  #: how many arms there are
    k: int  #: how many are to be chosen
    epsilon: float | None  #: the regret allowed, if it was asked for
    delta: float  #: the probability of losing more than epsilon
    runs: int  #: simulated runs of every algorithm
    seed: int  #: what all randomness came from
    left_out: tuple[str, ...]  #: algorithms that would have taken too long
    seconds: float  #: that all runs took together
    #: with `per_day`, sizes of tests of fixed size for comparison: z-test and indifference zone
    sizes: tuple[SampleSize, ...] = ()

    def prospect(self, algorithm: AlgorithmLike, budget: float | None = None) -> Prospect:
        """The prospect of that algorithm for that budget, or for epsilon and delta.

        Args:
            algorithm: Name of the algorithm.
            budget: One of the budgets; default: the goal epsilon.

        Returns:
            Pulls, regret and failures of its simulated runs."""
        name = algorithm if isinstance(algorithm, str) else find(algorithm).name
        for prospect in self.prospects:
            if (prospect.algorithm, prospect.budget) == (name, budget):
                return prospect
        goal = "epsilon" if budget is None else f"a budget of {budget}"
        raise InvalidInput(f"{name!r} for {goal} was not forecast")

    def tables(self) -> list[TextTable]:
        """A table of pulls for epsilon, and one of regret for every budget."""
        budgets = list(dict.fromkeys(prospect.budget for prospect in self.prospects))
        tables = [self._table(budget, budget == budgets[0]) for budget in budgets]
        return [*tables, *self._fixed()]

    def _fixed(self) -> list[TextTable]:
        """The table of tests of fixed size, if there are any."""
        if not self.sizes:
            return []
        rows = [
            (each.name, f"{each.per_arm:,}", f"{each.pulls:,}", f"{each.days:g}")
            for each in self.sizes
        ]
        notes = "\n".join(f"{each.name}: {each.promise}." for each in self.sizes)
        title = "\nTests of a size that is fixed beforehand, where a level does not move:"
        header = ("test", "per arm", "pulls", "days")
        return [TextTable(header, rows, title=title, verdict=notes)]

    def _table(self, budget: float | None, first: bool) -> TextTable:
        here = [each for each in self.prospects if each.budget == budget]
        rows = [_cells(each, late=self._live) for each in here]
        shares = tuple(quantiles(np.zeros(1)))
        timed = any(each.days is not None for each in self.prospects)
        share = ["share"] * (self._unit == "cells")
        timing = (["days"] * timed) + (["days p90"] * self._live)
        timing += ["time"] * (self.prospects[0].seconds is not None)
        last = ("rounds", *timing, *share, "failure rate")
        about = f"The best {self.k:,} of {self.arms}, {self.runs} runs of every algorithm\n\n"
        return TextTable(
            ("algorithm", *shares, *last),
            rows,
            title=(about if first else "") + self._heading(budget),
            verdict=self._verdict(budget),
        )

    @property
    def _live(self) -> bool:
        """Whether a live test is among the prospects."""
        return any(each.algorithm == LIVE for each in self.prospects)

    @property
    def _unit(self) -> str:
        """What is spent."""
        if self.prospects[0].spent is not None:
            return "cost"
        return "pulls" if self.prospects[0].n_cells is None else "cells"

    def _heading(self, budget: float | None) -> str:
        if budget is not None:
            spent = f"a cost of {budget:,}" if self._unit == "cost" else f"{budget:,} {self._unit}"
            return f"Regret after {spent}:"
        sure = f"with probability {confidence_text(1 - self.delta)}"
        limited = " or limits end it" if self.prospects[0].bound is not None else ""
        assert self.epsilon is not None, "without a budget an epsilon ends the search"
        until = f"until at most {given_text(self.epsilon)} is lost {sure}{limited}"
        return f"{self._unit.capitalize()} {until}:"

    def _verdict(self, budget: float | None) -> str:
        """What limits do to the runs of every algorithm, and what was not tried."""
        here = [each for each in self.prospects if each.budget == budget]
        said = [each.said_of_limits() for each in here]
        said.append(self._missing() if budget is None else "")
        return "\n".join(filter(None, said))

    def _missing(self) -> str:
        """The algorithms that were not tried, so that they are not taken for missing."""
        names = ", ".join(self.left_out)
        return f"Left out, unless asked for by name, since it takes long: {names}" if names else ""

    def plot(self) -> "Figure":
        """Draw what is spent until epsilon is reached, and below it what every budget loses.

        Returns:
            The figure: a dot for every run, a bar from 10 to 90 %, and the median.

        Raises:
            InvalidInput: matplotlib is not installed.

        Example:
            >>> import shortlist
            >>> dawn = shortlist.forecast(k=1, means=[0.9, 0.1], budget=40, runs=3)
            >>> dawn.plot().savefig("forecast.png")"""
        return draw(self)

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
            "sizes": [asdict(each) for each in self.sizes],
            "seconds": self.seconds,
        }


def quantiles(values: FloatArray | IntArray) -> dict[str, float]:
    """{"p10": x, ...}: 10 % of the runs have at most x."""
    return {
        f"p{100 * share:g}": np.quantile(values, share, method="inverted_cdf").item()
        for share in QUANTILES
    }


def _cells(prospect: Prospect, *, late: bool = False) -> tuple[str, ...]:
    """A row: the pulls where the search stops on its own, the regret where a budget ends it.

    `late` adds the days that 90 % of the runs take at most."""
    spent = prospect.pulls if prospect.spent is None else prospect.spent
    shares = quantiles(spent if prospect.budget is None else prospect.regret)
    others: list[float | str | None] = [quantiles(prospect.rounds)["p50"]]
    if prospect.days is not None:
        days = quantiles(prospect.days)
        others += [days["p50"], *([days["p90"]] if late else [])]
    if prospect.seconds is not None:
        others.append(duration_text(quantiles(prospect.seconds)["p50"]))
    if prospect.share is not None:
        others.append(prospect.share)
    others.append(prospect.failure_rate)
    # a share of the runs stays below these: rounding down would make it smaller
    below = [
        readable(each) if isinstance(each, int) else bound_text(each) for each in shares.values()
    ]
    figures = (each if isinstance(each, str) else readable(each) for each in others)
    return (prospect.algorithm, *below, *figures)


def save(forecast: Forecast, path: str) -> None:
    """Draw the forecast and save it; the ending of the name says in which format."""
    check_file(path)
    draw(forecast).savefig(path, dpi=200)


def draw(forecast: Forecast) -> "Figure":
    """What is spent until epsilon is reached, and below it what is lost after every budget."""
    parts = [
        [prospect for prospect in forecast.prospects if (prospect.budget is None) == to_epsilon]
        for to_epsilon in (True, False)
    ]
    rows = [len(part) for part in parts if part]
    figure = new_figure(WIDTH, sum(rows) * ROW + len(rows) * FRAME)
    axes = figure.subplots(len(rows), squeeze=False, height_ratios=rows)[:, 0]
    figure.suptitle(
        f"The best {forecast.k:,} of {forecast.arms}, {forecast.runs} runs", fontsize=11
    )
    for ax, part in zip(axes, filter(None, parts), strict=True):
        (_draw_pulls if part[0].budget is None else _draw_regret)(ax, part, forecast)
    return figure


def _draw_pulls(ax: "Axes", part: Sequence[Prospect], forecast: Forecast) -> None:
    from matplotlib.ticker import LogLocator

    every = np.concatenate([prospect.pulls for prospect in part])
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(
        LogLocator(subs=(1.0,) if every.max() > WIDE * every.min() else (1.0, 2.0, 5.0))
    )
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.xaxis.set_minor_formatter("")
    assert forecast.epsilon is not None, "without a budget an epsilon ends the search"
    sure = f"with probability {confidence_text(1 - forecast.delta)}"
    ax.set_xlabel(f"pulls until at most {given_text(forecast.epsilon)} is lost {sure}")
    for y, prospect in enumerate(part):
        _draw_row(ax, y, prospect.pulls, "{:,.0f}".format, _colour(prospect, forecast))
    _frame(ax, [prospect.algorithm for prospect in part])
    ax.margins(x=0.12)


def _draw_regret(ax: "Axes", part: Sequence[Prospect], forecast: Forecast) -> None:
    for y, prospect in enumerate(part):
        _draw_row(ax, y, prospect.regret, bound_text, _colour(prospect, forecast))
    if forecast.epsilon is not None:
        ax.axvline(forecast.epsilon, color="0.3", linestyle="--", linewidth=1, zorder=0)
        ax.text(forecast.epsilon, 1, " epsilon", transform=ax.get_xaxis_transform(), fontsize=8)
    ax.set_xlabel("regret: mean reward lost per chosen arm")
    _frame(ax, [f"{prospect.algorithm}, {prospect.budget:,} pulls" for prospect in part])
    ax.set_xlim(left=0)


def _draw_row(
    ax: "Axes",
    y: int,
    values: FloatArray | IntArray,
    text: Callable[[float], str],
    colour: str,
) -> None:
    low, median, high = quantiles(values).values()
    # below the bar, so that equal runs do not hide each other
    spread = y + np.linspace(0.14, 0.38, values.size)
    ax.plot(values, spread, "o", color=colour, markersize=2.5, alpha=0.4, clip_on=False)
    ax.plot(
        [low, high],
        [y, y],
        color=colour,
        linewidth=4,
        solid_capstyle="round",
        alpha=0.8,
        clip_on=False,
    )
    ax.plot(
        median,
        y,
        "o",
        color="white",
        markeredgecolor=colour,
        markeredgewidth=2,
        zorder=3,
        clip_on=False,
    )
    ax.annotate(
        text(median), (median, y), (0, 6), textcoords="offset points", ha="center", fontsize=8
    )


def _colour(prospect: Prospect, forecast: Forecast) -> str:
    """The same for an algorithm in both parts."""
    names = list(dict.fromkeys(each.algorithm for each in forecast.prospects))
    return COLOURS[names.index(prospect.algorithm) % len(COLOURS)]


def _frame(ax: "Axes", names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0, pad=8)
