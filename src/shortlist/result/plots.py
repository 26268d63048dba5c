"""Plots and data frames of a result."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shortlist.arms import OwnLabel, plain_label, shown_label
from shortlist.arrays import FloatArray
from shortlist.errors import InvalidInput, UnknownName
from shortlist.result.arm_results import ArmResult
from shortlist.validation import LIBRARIES, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito 2008
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
CHOSEN, REST = COLOURS[0], "0.6"
KINDS = ("png", "svg", "pdf")  # of files of pictures
NAMED = 40  # arms, up to which each is labelled; of more, the chosen ones
UNNAMED = 25  # rows that all arms without a label share
ROW, FRAME, WIDTH = 0.28, 1.2, 7.2  # inches
SHARP = 110  # dots per inch in a notebook
LINE = 0.17  # inches per further line of the title
LONGEST = 30  # characters of a name
LEGEND = 0.8, 0.06  # rows below the arms, or share of all arms if that is more


@dataclass(frozen=True, slots=True)
class Mark:
    """The marker of an arm."""

    chosen: bool
    name: str  # in the legend
    shape: str = "o"
    filled: bool = True

    @property
    def colour(self) -> str:
        """The colour, which shows whether the arm is chosen."""
        return CHOSEN if self.chosen else REST


MARKS = Mark(True, "chosen"), Mark(False, "not chosen")


def draw(
    arms: Sequence[ArmResult],
    title: str,
    unit: str,
    ax: "Axes | None" = None,
    marks: Mapping[OwnLabel, Mark] | None = None,
) -> "Figure":
    """Draw arms with their intervals, the chosen ones first, into `ax` or a new figure.

    `marks` has a marker per arm; by default it shows whether the arm is chosen."""
    named = _named(arms)
    places = _places(len(arms), named)
    ax = axes_of(ax, WIDTH, FRAME + LINE * title.count("\n") + ROW * (places[-1] + 1 + LEGEND[0]))
    own = {arm.label: MARKS[not arm.chosen] for arm in arms} if marks is None else marks
    pulled = [place for place, arm in enumerate(arms) if arm.mean is not None]
    for mark in MARKS if marks is None else dict.fromkeys(own[arm.label] for arm in arms):
        here = [place for place in pulled if own[arms[place].label] == mark]
        _draw_arms(ax, [arms[place] for place in here], places[here], mark, len(arms) <= NAMED)
    _frame(ax, arms, places, named, title, unit)
    figure: Figure = ax.get_figure(root=True)  # type: ignore[assignment]
    return figure


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


def axes_of(ax: "Axes | None", width: float, height: float) -> "Axes":
    """The axes to draw into: `ax`, or those of a new figure of this size in inches."""
    if ax is None:
        made: Axes = new_figure(width, height).subplots()
        return made
    if not hasattr(ax, "axhline"):
        raise InvalidInput(
            f"`ax` is {shown(ax)}, but must be axes of matplotlib; to save a picture:"
            " plot().savefig('plot.png')"
        )
    return ax


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of this size in inches. A notebook shows it without a backend of pyplot."""
    if find_spec("matplotlib") is None:
        raise InvalidInput(
            "a plot needs matplotlib, which is not installed: pip install 'shortlist[plot]'"
        )
    return _notebook_figure()(figsize=(width, height), layout="constrained")


@cache
def _notebook_figure() -> "type[Figure]":
    from matplotlib.figure import Figure  # slow to load, and few need it

    class NotebookFigure(Figure):
        """A figure that a notebook shows as a picture."""

        def _repr_png_(self) -> bytes:
            file = BytesIO()
            self.savefig(file, format="png", dpi=SHARP)
            return file.getvalue()

    return NotebookFigure


def _named(arms: Sequence[ArmResult]) -> int:
    """How many arms, from the first on, are labelled: all of few, the chosen of many."""
    chosen = sum(arm.chosen for arm in arms)
    few = chosen if chosen <= NAMED else 0
    return len(arms) if len(arms) <= NAMED else few


def _places(n_arms: int, named: int) -> FloatArray:
    """The row of every arm: (n,). Arms without a label share the space of UNNAMED rows."""
    rest = n_arms - named
    below = named + np.arange(rest) * min(1, UNNAMED / max(rest, 1))
    return np.concatenate([np.arange(named), below])


def _draw_arms(
    ax: "Axes", drawn: Sequence[ArmResult], y: FloatArray, mark: Mark, few: bool
) -> None:
    means = np.array([arm.mean for arm in drawn], dtype=np.float64)
    ends = np.array([(arm.low, arm.high) for arm in drawn]).reshape(-1, 2)  # (arms, 2)
    width, size = (3.0, 5.0) if few or mark.chosen else (0.6, 1.5)
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


def _frame(
    ax: "Axes", arms: Sequence[ArmResult], places: FloatArray, named: int, title: str, unit: str
) -> None:
    ax.set_yticks(places[:named], [shown_label(arm.label)[:LONGEST] for arm in arms[:named]])
    if len(arms) > named:
        ax.set_ylabel(f"{len(arms):,} arms, best first")
    legend = max(LEGEND[0], LEGEND[1] * (places[-1] + 1))  # where no interval reaches
    ax.set_ylim(places[-1] + 0.6 + legend, -0.6)
    ax.set_title(title, fontsize=10, loc="left")
    ax.set_xlabel(unit)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.legend(frameon=False, fontsize=8, loc="lower right", ncols=4, borderpad=0.0)


def frame_of(arms: Iterable[ArmResult], library: str | None) -> Any:
    """Return a data frame with a row per arm."""
    return frame_of_rows([asdict(arm) for arm in arms], library)


def frame_of_rows(rows: Sequence[Mapping[str, Any]], library: str | None) -> Any:
    """Return a data frame of rows; the column `label` becomes the first, `arm`."""
    labels = _column([plain_label(row["label"]) for row in rows])
    figures = [{name: row[name] for name in row if name != "label"} for row in rows]
    lines = [{"arm": label, **own} for label, own in zip(labels, figures, strict=True)]
    return plain_frame(lines, library)


def plain_frame(rows: Sequence[Mapping[str, Any]], library: str | None) -> Any:
    """Return a data frame of rows, of the given library or of the first that is installed."""
    return import_module(_available(library)).DataFrame(rows)


def _column(labels: list[str | int]) -> list[str] | list[int]:
    """Labels of one type: integers if all are and fit into 64 bits, else texts."""
    numbers = [label for label in labels if isinstance(label, int) and abs(label) < 2**63]
    return numbers if len(numbers) == len(labels) else list(map(str, labels))


def _available(library: str | None) -> str:
    """The given library, or the first that is installed."""
    if library is not None and library not in LIBRARIES:
        raise UnknownName(
            f"`library` is {shown(library)}, but must be one of {', '.join(LIBRARIES)}"
        )
    for name in LIBRARIES if library is None else (library,):
        if find_spec(name) is not None:
            return name
    missing = f"neither {' nor '.join(LIBRARIES)}" if library is None else f"no {library}"
    wanted = library or LIBRARIES[0]
    raise InvalidInput(
        f"a data frame needs pandas or polars, but {missing} is installed: pip install {wanted}"
    )
