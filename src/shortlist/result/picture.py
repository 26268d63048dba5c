"""A result as a picture: the chosen arms against the rest, with their intervals."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from shortlist.arms import shown_label
from shortlist.errors import InvalidInput
from shortlist.result.arm_result import ArmResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHOSEN, REST = "#0072B2", "0.6"  # Okabe and Ito 2008
NAMED = 40  # arms that get a line with their name; more are drawn without
ROW, FRAME, WIDTH = 0.28, 1.2, 7.2  # inches
LONGEST = 30  # characters of a name
LEGEND = 0.8, 0.06  # rows for it below all arms, or that share of them if it is more


def draw(arms: Sequence[ArmResult], title: str, unit: str, ax: "Axes | None" = None) -> "Figure":
    """`arms` from best to worst, from top to bottom; into `ax`, or a figure of its own."""
    if ax is None:
        ax = _own_axes(len(arms))
    pulled = [arm for arm in arms if arm.mean is not None]
    for colour, chosen, name in ((CHOSEN, True, "chosen"), (REST, False, "not chosen")):
        _draw_arms(ax, arms, [arm for arm in pulled if arm.chosen is chosen], colour, name)
    _frame(ax, arms, title, unit)
    figure: Figure = ax.get_figure(root=True)  # type: ignore[assignment]
    return figure


def _own_axes(rows: int) -> "Axes":
    if find_spec("matplotlib") is None:
        raise InvalidInput(
            "a picture is asked for, but matplotlib is not installed: pip install 'shortlist[plot]'"
        )
    from matplotlib.figure import Figure

    height = FRAME + ROW * (min(rows, NAMED) + LEGEND[0])
    return Figure(figsize=(WIDTH, height), layout="constrained").subplots()


def _draw_arms(
    ax: "Axes", arms: Sequence[ArmResult], drawn: Sequence[ArmResult], colour: str, name: str
) -> None:
    places = {arm.label: place for place, arm in enumerate(arms)}
    y = np.array([places[arm.label] for arm in drawn])
    means = np.array([arm.mean for arm in drawn], dtype=np.float64)
    ends = np.array([(arm.low, arm.high) for arm in drawn]).reshape(-1, 2)  # (arms, 2)
    few = len(arms) <= NAMED
    ax.hlines(y, ends[:, 0], ends[:, 1], color=colour, linewidth=3 if few else 0.6, alpha=0.5)
    ax.plot(means, y, "o", color=colour, markersize=5 if few else 1.5, label=name)


def _frame(ax: "Axes", arms: Sequence[ArmResult], title: str, unit: str) -> None:
    if len(arms) <= NAMED:
        ax.set_yticks(range(len(arms)), [shown_label(arm.label)[:LONGEST] for arm in arms])
    else:
        ax.set_ylabel(f"{len(arms):,} arms, best first")
        ax.set_yticks([])
    legend = max(LEGEND[0], LEGEND[1] * len(arms))  # where no interval reaches
    ax.set_ylim(len(arms) - 0.4 + legend, -0.6)
    ax.set_title(title, fontsize=10, loc="left")
    ax.set_xlabel(unit)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.legend(frameon=False, fontsize=8, loc="lower right", ncols=2, borderpad=0.0)
