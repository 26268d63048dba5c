"""A forecast as a picture: a dot for every run, a bar from 10 to 90 %, and the median."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.forecasting.trials import Forecast, Prospect, quantiles
from shortlist.formatting import bound_text, confidence_text, given_text
from shortlist.result.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito 2008
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
KINDS = ("png", "svg", "pdf")
ROW, FRAME, WIDTH = 0.42, 1.3, 7.2  # inches
WIDE = 30  # from this ratio of the most to the fewest pulls on, powers of ten are labels enough


def check_file(path: str) -> None:
    """Refuse a picture that cannot be saved, before an hour is spent on it."""
    file = Path(path)
    if file.suffix.removeprefix(".").lower() not in KINDS:
        raise InvalidInput(
            f"the picture is to be {path!r}, but its name must end in .{', .'.join(KINDS)}"
        )
    if not file.parent.is_dir():
        raise InvalidInput(
            f"the picture is to be {path!r}, but there is no folder {str(file.parent)!r}"
        )
    if find_spec("matplotlib") is None:
        raise InvalidInput(
            "a picture is asked for, but matplotlib is not installed: pip install 'shortlist[plot]'"
        )


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
