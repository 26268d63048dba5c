"""A result as a picture: the chosen arms against the rest, with their intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from shortlist.arms import OwnLabel, shown_label
from shortlist.errors import InvalidInput
from shortlist.result.arm_result import ArmResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHOSEN, REST = "#0072B2", "0.6"  # Okabe and Ito 2008
NAMED = 40  # arms that get a line with their name; more are drawn without
ROW, FRAME, WIDTH = 0.28, 1.2, 7.2  # inches
LINE = 0.17  # inches of a line of the title after the first
LONGEST = 30  # characters of a name
LEGEND = 0.8, 0.06  # rows for it below all arms, or that share of them if it is more


@dataclass(frozen=True, slots=True)
class Mark:
    """How the mean of an arm is drawn."""

    chosen: bool
    name: str  # in the legend
    shape: str = "o"
    filled: bool = True

    @property
    def colour(self) -> str:
        """By whether the arm is chosen."""
        return CHOSEN if self.chosen else REST


MARKS = Mark(True, "chosen"), Mark(False, "not chosen")


def draw(
    arms: Sequence[ArmResult],
    title: str,
    unit: str,
    ax: "Axes | None" = None,
    marks: Mapping[OwnLabel, Mark] | None = None,
) -> "Figure":
    """`arms` from best to worst, from top to bottom; into `ax`, or a figure of its own.

    `marks` of every arm may say more than whether it is chosen."""
    if ax is None:
        ax = _own_axes(len(arms), title.count("\n"))
    own = {arm.label: MARKS[not arm.chosen] for arm in arms} if marks is None else marks
    pulled = [arm for arm in arms if arm.mean is not None]
    for mark in MARKS if marks is None else dict.fromkeys(own[arm.label] for arm in arms):
        _draw_arms(ax, arms, [arm for arm in pulled if own[arm.label] == mark], mark)
    _frame(ax, arms, title, unit)
    figure: Figure = ax.get_figure(root=True)  # type: ignore[assignment]
    return figure


def _own_axes(rows: int, more_lines: int) -> "Axes":
    if find_spec("matplotlib") is None:
        raise InvalidInput(
            "a picture is asked for, but matplotlib is not installed: pip install 'shortlist[plot]'"
        )
    from matplotlib.figure import Figure

    height = FRAME + LINE * more_lines + ROW * (min(rows, NAMED) + LEGEND[0])
    return Figure(figsize=(WIDTH, height), layout="constrained").subplots()


def _draw_arms(
    ax: "Axes", arms: Sequence[ArmResult], drawn: Sequence[ArmResult], mark: Mark
) -> None:
    places = {arm.label: place for place, arm in enumerate(arms)}
    y = np.array([places[arm.label] for arm in drawn])
    means = np.array([arm.mean for arm in drawn], dtype=np.float64)
    ends = np.array([(arm.low, arm.high) for arm in drawn]).reshape(-1, 2)  # (arms, 2)
    few = len(arms) <= NAMED
    width, size = (3.0, 5.0) if few else (0.6, 1.5)
    ax.hlines(y, ends[:, 0], ends[:, 1], color=mark.colour, linewidth=width, alpha=0.5)
    inner = mark.colour if mark.filled else "white"
    ax.plot(
        means,
        y,
        mark.shape,
        color=mark.colour,
        markerfacecolor=inner,
        markersize=size,
        label=mark.name,
    )


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
    ax.legend(frameon=False, fontsize=8, loc="lower right", ncols=4, borderpad=0.0)
