"""Figures show every method once in the legend, a panel each, nothing cut off or on top."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from shortlist.reproduction import report as figures
from shortlist.reproduction.design import (
    ON_BUDGET,
    PANELS,
    SWEPT,
    choose,
    sweep_over_epsilon,
    sweep_over_n,
)
from shortlist.reproduction.findings import Curve, Curves
from shortlist.reproduction.report import LINE_STYLES, styles_of
from shortlist.reproduction.runs import ResultRow, row_of

BUDGETS = np.geomspace(3000, 90_000, 9).astype(np.int64)
SWEEPS = sweep_over_n(2), sweep_over_epsilon(4)
NAMES = [method.name for method in ON_BUDGET]


def made_curves(methods: Sequence[str] = NAMES) -> Curves:
    """Curves of these methods on all panels, each falling a little later than the one before."""
    runs = np.full(BUDGETS.size, 200)

    def falling(place: int, method: str) -> Curve:
        rates = 1 / (1 + (BUDGETS / (9000 * 1.3**place)) ** 6)
        return Curve(method, BUDGETS, np.round(200 * rates).astype(np.int64), runs)

    return {
        name: {method: falling(place, method) for place, method in enumerate(methods)}
        for name in PANELS
    }


def sweep_rows() -> list[ResultRow]:
    """Pulls that grow like n / epsilon."""
    panels = {panel: panel.n / panel.epsilon for sweep in SWEEPS for panel in sweep}
    return [
        row_of("sweep", panel, method.name, 0, [int(pulls)], [0.0])
        for panel, pulls in panels.items()
        for method in SWEPT
    ]


FIGURES: dict[str, Callable[[], Figure]] = {
    "overview": lambda: figures.failure_figure(made_curves(), tuple(PANELS.values())),
    "dataset": lambda: figures.failure_figure(made_curves(), choose(["rte"])),
    "panel": lambda: figures.failure_figure(made_curves(), choose(["rte-30"])),
    "theory": lambda: figures.theory_figure(sweep_rows(), *SWEEPS),
}


def drawn(name: str) -> tuple[Figure, Any]:
    """A figure in our style, laid out, with what can measure it."""
    with matplotlib.rc_context(figures.STYLE):
        figure = FIGURES[name]()
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        return figure, canvas.get_renderer()


def test_a_page_has_a_panel_for_every_k_and_a_legend_with_every_method_once() -> None:
    figure = figures.failure_figure(made_curves(), choose(["uniform"]))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        panel.title for panel in choose(["uniform"])
    ]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(labels) == sorted(LINE_STYLES[name].label for name in NAMES)


def test_a_method_of_the_users_own_is_drawn_too() -> None:
    figure = figures.failure_figure(made_curves([*NAMES, "my.searches:greedy"]), choose(["rte"]))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(labels) == len(NAMES) + 1
    assert "greedy" in labels


def test_lines_are_told_apart_without_colour() -> None:
    looks = list(styles_of([*NAMES, "lucb", "own", "another"]).values())
    assert len({(look.marker, look.dashes, look.width) for look in looks}) == len(looks)


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off_and_no_label_lies_on_another(name: str) -> None:
    figure, renderer = drawn(name)
    page, used = figure.bbox_inches, figure.get_tightbbox(renderer)
    assert page.x0 <= used.x0 <= used.x1 <= page.x1
    assert page.y0 <= used.y0 <= used.y1 <= page.y1
    for axes in figure.axes:
        if axes.get_visible():
            low, high = axes.get_xlim()
            ticks = [tick for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
            boxes = [
                tick.label1.get_window_extent(renderer) for tick in ticks if tick.label1.get_text()
            ]
            assert len(boxes) >= 2
            assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_the_legends_of_the_sweeps_lie_on_no_line() -> None:
    figure, renderer = drawn("theory")
    for axes in figure.axes[2:]:
        legend = axes.get_legend()
        assert legend is not None
        box = legend.get_window_extent(renderer)
        for line in axes.get_lines():
            points = axes.transData.transform(np.asarray(line.get_xydata()))
            assert not any(box.contains(x, y) for x, y in points)


def test_slopes_stand_in_the_legend() -> None:
    figure = figures.theory_figure(sweep_rows(), *SWEEPS)
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert all(text.get_text().endswith("slope 1.00") for text in legend.get_texts())


def test_the_same_figure_is_the_same_file(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        with matplotlib.rc_context(figures.STYLE):
            figure = figures.failure_figure(made_curves(), choose(["rte"]))
            figure.savefig(tmp_path / f"{name}.svg", metadata={"Date": None})
            files.append((tmp_path / f"{name}.svg").read_bytes())
    assert files[0] == files[1]
