"""The figures: a page per dataset as in the paper, an overview of all panels, and the sweeps.

They need matplotlib, the extra `plot`. What is drawn for a curve is the share of failed runs with
its 95 % band."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shortlist.errors import InvalidInput
from shortlist.reproduction.design.design import Design
from shortlist.reproduction.design.panels import Panel
from shortlist.reproduction.design.sweeps import SWEPT
from shortlist.reproduction.findings import theorems
from shortlist.reproduction.findings.curves import Curve, Curves
from shortlist.reproduction.report.looks import LOOKS, Look, looks_of
from shortlist.reproduction.runs.rows import ResultRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e5e5",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "savefig.dpi": 160,
    "svg.hashsalt": "shortlist",  # the same figure is the same file
}


def check_matplotlib() -> None:
    """Refuse to start without what draws the figures."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            "figures need matplotlib, which is not installed: pip install 'shortlist[plot]'"
        ) from error


def draw_all(folder: Path, rows: Sequence[ResultRow], curves: Curves, design: Design) -> list[str]:
    """Draw every figure as PNG and SVG; return their names."""
    import matplotlib

    folder.mkdir(exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figures = {"overview": failure_figure(curves, design.panels)}
        for dataset, own in groupby(design.panels, key=lambda panel: panel.dataset):
            figures[f"failure-{dataset}"] = failure_figure(curves, list(own))
        if design.complete:
            figures["theory"] = theory_figure(rows, design.sweep_over_n, design.sweep_over_epsilon)
        for name, figure in figures.items():
            figure.savefig(folder / f"{name}.png")
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return list(figures)


def failure_figure(curves: Curves, panels: Sequence[Panel]) -> "Figure":
    """Failure probability against budget: a row per dataset, a column per K."""
    from matplotlib.figure import Figure

    families = [list(own) for _, own in groupby(panels, key=lambda panel: panel.dataset)]
    columns = max(len(own) for own in families)
    figure = Figure(figsize=(7.2, 0.75 + 1.95 * len(families)), layout="constrained")
    grid = figure.subplots(len(families), columns, squeeze=False, sharey=True)
    for axes_row, own in zip(grid, families, strict=True):
        axes_row[0].set_ylabel("failure probability")
        for axes, panel in zip(axes_row, own, strict=False):
            draw_panel(axes, curves[panel.name], panel)
        for axes in axes_row[len(own) :]:
            axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("number of pulls")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=4, handlelength=3.2, columnspacing=1.4
    )
    return figure


def draw_panel(axes: "Axes", curves: Mapping[str, Curve], panel: Panel) -> None:
    """One panel of the paper's figures."""
    axes.set_title(panel.title, loc="left")
    axes.set_xscale("log")
    axes.set_ylim(-0.03, 1.03)
    for method, look in looks_of(list(curves)).items():
        _draw_curve(axes, curves[method], look)
    _label(axes.xaxis, 1000, "k")


def _draw_curve(axes: "Axes", curve: Curve, look: Look) -> None:
    axes.fill_between(curve.budgets, *curve.band, color=look.colour, alpha=0.15, linewidth=0)
    _line(axes, curve.budgets.tolist(), curve.rates.tolist(), look, look.label)


def _line(axes: "Axes", x: Sequence[float], y: Sequence[float], look: Look, label: str) -> None:
    axes.plot(
        x,
        y,
        label=label,
        color=look.colour,
        marker=look.marker,
        markersize=6 if look.marker == "*" else 3.5,
        markeredgewidth=0,
        linewidth=look.width,
        dashes=look.dashes or (None, None),
        solid_capstyle="butt",
    )


def _label(axis: "Axis", unit: float = 1, suffix: str = "") -> None:
    """Numbers at 1, 2 and 5 times powers of ten of a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit:g}{suffix}"))
    axis.set_minor_formatter(NullFormatter())


def theory_figure(
    rows: Sequence[ResultRow], over_n: Sequence[Panel], over_epsilon: Sequence[Panel]
) -> "Figure":
    """Log-log, with fitted slopes: pulls over n and epsilon, and against theory, and H and H0."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 6.2), layout="constrained")
    grid = figure.subplots(2, 2)
    for axes in grid.flat:
        axes.set_xscale("log")
        axes.set_yscale("log")
    sizes = [panel.n for panel in over_n]
    fineness = [1 / panel.epsilon for panel in over_epsilon]
    _pulls_over(grid[0, 0], rows, over_n, sizes, "n")
    _pulls_over(grid[0, 1], rows, over_epsilon, fineness, "1/ε")
    _against_theorem_1(grid[1, 0], rows, {"over n": over_n, "over ε": over_epsilon})
    _hardness_over_epsilon(grid[1, 1], over_epsilon, fineness)
    return figure


def _pulls_over(
    axes: "Axes", rows: Sequence[ResultRow], panels: Sequence[Panel], x: Sequence[float], name: str
) -> None:
    axes.set_title(f"Uniform, K = n/2: pulls over {name}", loc="left")
    axes.set(xlabel=name, ylabel="pulls", ylim=(5e3, 5e13))
    for method in SWEPT:
        look = LOOKS[method.name]
        y = theorems.pulls(rows, method.name, panels)
        _line(axes, x, y, look, f"{look.label}: slope {theorems.slope(x, y):.2f}")
    _label(axes.xaxis)
    # between ImprovedTopK and the others
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(0, 0.56))


def _against_theorem_1(
    axes: "Axes", rows: Sequence[ResultRow], sweeps: Mapping[str, Sequence[Panel]]
) -> None:
    axes.set_title("AdaptiveTopK against Theorem 1", loc="left")
    axes.set(xlabel="(ln ln 1/ε + ln n + ln 1/δ) H", ylabel="pulls")
    blue = LOOKS["adaptive-top-k"].colour
    looks = (Look("", blue, "o", (4, 1.5)), Look("", blue, "s", (1, 1)))
    for (name, panels), look in zip(sweeps.items(), looks, strict=True):
        x = [theorems.theorem_1(panel) for panel in panels]
        y = theorems.pulls(rows, "adaptive-top-k", panels)
        _line(axes, x, y, look, f"{name}: slope {theorems.slope(x, y):.2f}")
    axes.legend(fontsize=8, loc="upper left")


def _hardness_over_epsilon(axes: "Axes", panels: Sequence[Panel], x: Sequence[float]) -> None:
    axes.set_title("Lemma c-spread: hardness over 1/ε", loc="left")
    axes.set(xlabel="1/ε", ylabel="hardness")
    hard = [panel.hardness() for panel in panels]
    h = [each.h for each in hard]
    h0 = [each.h0 for each in hard]
    _line(axes, x, h0, LOOKS["clucb-pac"], f"H0: slope {theorems.slope(x, h0):.2f} (lemma: 1)")
    _line(axes, x, h, LOOKS["adaptive-top-k"], f"H: slope {theorems.slope(x, h):.2f} (lemma: 1/2)")
    _label(axes.xaxis)
    axes.legend(fontsize=8, loc="upper left")
