"""How much better or worse every arm is than a control, as those who test variants ask."""

from dataclasses import asdict, dataclass, field

import numpy as np

from shortlist.arms import OwnLabel, plain_label, shown_label
from shortlist.arrays import BoolArray, FloatArray, IntArray, confidence_of
from shortlist.confidence import delta_of, differences, ratios
from shortlist.formatting import (
    Tabular,
    TextTable,
    confidence_text,
    interval_text,
    mean_text,
    plain,
)
from shortlist.problem import Problem

SHOWN = 40  # arms in a table


@dataclass(frozen=True, slots=True)
class ArmLift:
    """One arm against the control; intervals of all arms hold together."""

    label: OwnLabel  #: the arm
    difference: float | None  #: its mean reward less that of the control
    difference_low: float  #: the lower end of the interval for the difference of the true means
    difference_high: float  #: its upper end
    ratio: float | None  #: its mean reward over that of the control, where rewards are from 0 on
    ratio_low: float | None  #: the lower end of the interval for the ratio of the true means
    ratio_high: float | None  #: its upper end


@dataclass(frozen=True)
class Lift(Tabular):
    """Every arm against the control.

    With probability at least `confidence` all intervals hold, whenever one looks and however the
    pulls were shared out."""

    control: OwnLabel  #: the arm that the others are compared with
    confidence: float  #: the probability with which all intervals hold
    arms: tuple[ArmLift, ...] = field(repr=False)  #: all other arms, in the order they were given

    def to_dict(self) -> dict[str, object]:
        """Everything as JSON has it; None for what is not known."""
        arms = [asdict(arm) | {"label": plain_label(arm.label)} for arm in self.arms]
        control = plain_label(self.control)
        return {"control": control, "confidence": self.confidence, "arms": plain(arms)}

    def tables(self) -> tuple[TextTable]:
        """The largest differences first."""
        ordered = sorted(self.arms, key=_largest_first)
        left_out = len(ordered) - SHOWN
        sure = confidence_text(self.confidence)
        rows = [_cells(arm) for arm in ordered[:SHOWN]]
        if left_out > 0:
            rows.append((f"... {left_out:,} more", "", "", "", ""))
        return (
            TextTable(
                ("arm", "difference", "interval", "ratio", "interval"),
                rows,
                title=f"Every arm against {shown_label(self.control)}",
                verdict=f"All intervals hold together with {sure} confidence.",
            ),
        )


def lift_of(
    labels: tuple[OwnLabel, ...],
    problem: Problem,
    pulls: IntArray,
    means: FloatArray,
    control: int,
    in_step: BoolArray,
) -> Lift:
    """Every arm against the arm number `control`.

    `in_step` says which arms are counted just as far as the control, see `differences`."""
    low, high = differences(problem, pulls, means, control, in_step)
    gaps = means - means[control]
    quotients = low_ratios = high_ratios = np.full(means.size, np.nan)
    if problem.rewards.support[0] == 0:
        low_ratios, high_ratios = ratios(problem, pulls, means, control, in_step)
        with np.errstate(divide="ignore", invalid="ignore"):
            quotients = means / means[control]
    columns = (gaps, low, high, quotients, low_ratios, high_ratios)
    arms = [
        ArmLift(labels[arm], _known(gap), below, above, *map(_known, rest))
        for arm, (gap, below, above, *rest) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        )
        if arm != control
    ]
    return Lift(labels[control], confidence_of(delta_of(problem.goal)), tuple(arms))


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _largest_first(arm: ArmLift) -> float:
    return np.inf if arm.difference is None else -arm.difference


def _cells(arm: ArmLift) -> tuple[str, ...]:
    gap = arm.difference_low, arm.difference_high
    cells = shown_label(arm.label), mean_text(arm.difference, *gap, sign=True)
    if arm.ratio_low is None or arm.ratio_high is None:
        return (*cells, interval_text(*gap, sign=True), "-", "-")
    quotient = arm.ratio_low, arm.ratio_high
    ratio = mean_text(arm.ratio, *quotient)
    return (*cells, interval_text(*gap, sign=True), ratio, interval_text(*quotient))
