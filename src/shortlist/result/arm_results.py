"""The result of one arm, and lift: differences and ratios between every arm and a control."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from shortlist.arms import OwnLabel, plain_label, shown_label
from shortlist.arrays import BoolArray, FloatArray, IntArray, confidence_of
from shortlist.confidence import delta_of, differences, ratios
from shortlist.formatting import (
    RAW,
    Tabular,
    TextTable,
    Unit,
    below_text,
    confidence_text,
    given_text,
    interval_text,
    mean_text,
    plain,
    printable,
    unit_of,
)
from shortlist.problem import FixedConfidence, Goal, Problem
from shortlist.reward_models import Binary

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    LabelT = TypeVar("LabelT", default=Any)
else:  # typing knows defaults from Python 3.13 on
    from typing import TypeVar

    LabelT = TypeVar("LabelT")


@dataclass(frozen=True, slots=True)
class ArmResult(Generic[LabelT]):
    """The result of one arm; generic in the type of its label.

    With probability at least 1 - delta, the true means of all arms are between `low` and `high`."""

    label: LabelT  #: label, as it was given
    pulls: int  #: number of rewards that count: in the order of its pulls, up to the first missing
    #: mean of these rewards, on a test set the estimated mean over all items; None if unknown
    mean: float | None
    low: float  #: lower end of the confidence interval of its mean
    high: float  #: upper end of that interval
    chosen: bool  #: whether it is in `top`
    limit: int | None = None  #: maximum number of pulls; None without a limit
    cost: float = 1.0  #: declared cost of a pull
    spent: float = 0.0  #: total cost of its pulls
    retired: bool = False  #: whether it was retired before the end
    #: number of rewards that do not count, because an earlier pull of the arm is missing
    waiting: int = 0
    #: number of scores on a test set known before the first pull; the mean includes them
    known: int = 0


SHOWN = 40  # arms in a table


@dataclass(frozen=True, slots=True)
class ArmLift(Generic[LabelT]):
    """The comparison of one arm with the control; the intervals of all arms hold simultaneously."""

    label: LabelT  #: label of the arm
    difference: float | None  #: its mean reward minus that of the control
    difference_low: float  #: lower end of the confidence interval of that difference
    difference_high: float  #: upper end of that interval
    ratio: (
        float | None
    )  #: its mean reward divided by that of the control; None if rewards may be negative
    ratio_low: float | None  #: lower end of the confidence interval of that ratio
    ratio_high: float | None  #: upper end of that interval


@dataclass(frozen=True)
class Lift(Tabular, Generic[LabelT]):
    """The comparison of every arm with a control; printed, it is a table.

    With probability at least `confidence` all intervals hold, at all times and for any allocation
    of the pulls.

    Example:
        >>> import random, shortlist
        >>> rates = {"grey": 0.1, "red": 0.9}
        >>> def click(arm): return random.random() < rates[arm]
        >>> result = shortlist.select(
        ...     click, arms=["grey", "red"], k=1, budget=200, rewards="binary"
        ... )
        >>> lift = result.lift("grey")
        >>> lift.control, [arm.label for arm in lift.arms]
        ('grey', ['red'])"""

    control: LabelT  #: label of the arm that the others are compared with
    confidence: float  #: probability with which all intervals hold
    arms: tuple[ArmLift[LabelT], ...] = field(repr=False)  #: all other arms, in the order given
    unit: str | None = field(default=None, repr=False)  #: unit of tables; figures are raw

    def to_dict(self) -> dict[str, object]:
        """Return all fields as JSON types; None for unknown values."""
        arms = [asdict(arm) | {"label": plain_label(arm.label)} for arm in self.arms]
        control = plain_label(self.control)
        return {"control": control, "confidence": self.confidence, "arms": plain(arms)}

    def tables(self) -> tuple[TextTable]:
        """Return the table of the arms, largest difference first."""
        ordered = sorted(self.arms, key=_largest_first)
        left_out = len(ordered) - SHOWN
        sure = confidence_text(self.confidence)
        rows = [lift_cells(arm, unit_of(self.unit)) for arm in ordered[:SHOWN]]
        if left_out > 0:
            rows.append((f"... {left_out:,} more", "", "", "", ""))
        # a live test has no ratios: its level moves
        shown = 5 if any(arm.ratio_low is not None for arm in self.arms) else 3
        return (
            TextTable(
                ("arm", "difference", "interval", "ratio", "interval")[:shown],
                [row[:shown] for row in rows],
                title=f"Every arm against {shown_label(self.control)}",
                verdict=f"All intervals hold together with {sure} confidence.",
            ),
        )


@dataclass(frozen=True)
class MetricLift(Lift[LabelT]):
    """A secondary metric of every arm, compared with the control; printed, it is a table.

    With probability at least `confidence` all intervals of this metric hold, at all times; those of
    all guardrails hold together. The comparison of a retired arm ends when it retires.

    Example:
        >>> import shortlist
        >>> test = shortlist.Experiment.create(
        ...     ["old", "new"], 1, epsilon=0.01, per_day=1000, control="old",
        ...     guardrails={"bounce": 0.05},
        ... )
        >>> _ = test.shares("monday")
        >>> counts = {"old": (505, 12), "new": (495, 14)}
        >>> bounces = {"old": 150, "new": 450}
        >>> _ = test.tell_counts("monday", counts, metrics={"bounce": bounces})
        >>> (bounce,) = test.result(partial=True).metrics
        >>> bounce.metric, bounce.broken
        ('bounce', ('new',))"""

    metric: str = ""  #: name of the metric
    #: as a guardrail: how much higher it may be, or if negative, how much lower; else None
    guardrail: float | None = None

    @property
    def broken(self) -> tuple[LabelT, ...]:
        """Labels of the arms that surely break the guardrail."""
        return tuple(arm.label for arm in self.arms if is_broken(arm, self.guardrail))

    def to_dict(self) -> dict[str, object]:
        """Return all fields as JSON types; None for unknown values."""
        broken = [plain_label(label) for label in self.broken]
        more = {"metric": self.metric, "guardrail": self.guardrail, "broken": broken}
        return {**more, **super().to_dict()}

    def tables(self) -> tuple[TextTable]:
        """Return the table of the arms, largest difference first."""
        (table,) = super().tables()
        rows = [(*row[:3], self._word(row[0])) for row in table.rows]
        title = f"{printable(self.metric)} of every arm against {shown_label(self.control)}"
        names = ("arm", "difference", "interval", "guardrail")
        return (replace(table, header=names, rows=rows, title=title),)

    def sentences(self) -> tuple[str, ...]:
        """What breaks the guardrail, a sentence for each arm."""
        return tuple(self._sentence(arm) for arm in self.arms if is_broken(arm, self.guardrail))

    def _sentence(self, arm: ArmLift) -> str:
        assert self.guardrail is not None
        unit, higher = unit_of(self.unit), self.guardrail >= 0
        least = arm.difference_low if higher else -arm.difference_high
        allowed = given_text(abs(self.guardrail), unit)
        return (
            f"the guardrail {printable(self.metric)!r} is broken by {shown_label(arm.label)}: at"
            f" least {below_text(least, unit)} {'higher' if higher else 'lower'} than"
            f" {shown_label(self.control)}, and at most {allowed} are allowed"
        )

    def _word(self, label: str) -> str:
        arms = {shown_label(arm.label): arm for arm in self.arms}
        return kept_word(arms[label], self.guardrail) if label in arms else ""


def kept_word(arm: ArmLift, guardrail: float | None) -> str:
    """What its interval proves of a guardrail: "broken", "kept" or "undecided"; empty without."""
    if guardrail is None:
        return ""
    if is_broken(arm, guardrail):
        return "broken"
    low, high = arm.difference_low, arm.difference_high
    kept = low >= guardrail if guardrail < 0 else high <= guardrail
    return "kept" if kept else "undecided"


def is_broken(arm: ArmLift, guardrail: float | None) -> bool:
    """Whether an arm is surely worse than the control by more than the guardrail allows."""
    if guardrail is None:
        return False
    if guardrail < 0:
        return arm.difference_high < guardrail
    return arm.difference_low > guardrail


def metric_lift(
    metric: str,
    guardrail: float | None,
    labels: tuple[OwnLabel, ...],
    control: int,
    columns: Sequence[FloatArray],
    confidence: float,
) -> MetricLift:
    """Compare every arm with the arm number `control`; columns are estimate, low and high."""
    rows = zip(labels, *(column.tolist() for column in columns), strict=True)
    arms = [
        ArmLift(label, _known(gap), low, high, None, None, None) for label, gap, low, high in rows
    ]
    own = tuple(arm for number, arm in enumerate(arms) if number != control)
    return MetricLift(labels[control], confidence, own, None, metric, guardrail)


@dataclass(frozen=True, slots=True)
class MetricOfPulls:
    """What is known of a metric of independent pulls (docs/experiments.md)."""

    #: pulls and sum of every arm: all that are counted, and those of complete batches
    tallies: Sequence[tuple[IntArray, FloatArray]]
    control: int  #: number of the control
    retired: BoolArray  #: retired arms
    sharing: int  #: metrics that share the probability of error

    def lift(
        self, name: str, guardrail: float | None, labels: tuple[OwnLabel, ...], goal: Goal
    ) -> MetricLift:
        """Compare every arm with the control: the narrower of two intervals that hold together.

        One is of complete batches, in which arms are in step with the control unless one of both
        retired; the other of all that is counted."""
        delta = delta_of(goal)
        problem = Problem(len(labels), 1, FixedConfidence(1.0, delta / self.sharing), Binary())
        apart = np.zeros(len(labels), dtype=np.bool_)
        in_step = apart if self.retired[self.control] else ~self.retired
        both = [
            self._figures(problem, *tally, step)
            for tally, step in zip(self.tallies, (apart, in_step), strict=True)
        ]
        wide, narrow = (high - low for _, low, high in both)
        figures = [np.where(narrow <= wide, one, other) for other, one in zip(*both, strict=True)]
        return metric_lift(name, guardrail, labels, self.control, figures, confidence_of(delta))

    def _figures(
        self, problem: Problem, pulls: IntArray, sums: FloatArray, in_step: BoolArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The difference of every arm to the control and the ends of its interval."""
        means = problem.means(pulls, sums)
        low, high = differences(problem, pulls, means, self.control, in_step)
        return means - means[self.control], low, high


Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class BlockLeads:
    """The average lead of every arm (column) over every other (row) in a live test, over the blocks
    that both were in play; the bounds of all pairs hold simultaneously."""

    lead: Matrix  #: estimate
    low: Matrix  #: lower bound
    high: Matrix  #: upper bound

    def lift(self, labels: tuple[OwnLabel, ...], control: int, goal: Goal) -> Lift:
        """Compare every arm with the arm number `control`."""
        gaps, lows, highs = self.lead[control], self.low[control], self.high[control]
        arms = [
            ArmLift(label, gaps[arm], lows[arm], highs[arm], None, None, None)
            for arm, label in enumerate(labels)
            if arm != control
        ]
        return Lift(labels[control], confidence_of(delta_of(goal)), tuple(arms))


def lift_of(
    labels: tuple[OwnLabel, ...],
    problem: Problem,
    pulls: IntArray,
    means: FloatArray,
    control: int,
    in_step: BoolArray,
) -> Lift:
    """Compare every arm with the arm number `control`.

    `in_step` are the arms whose rewards count up to the same batch as the control's, see
    `differences`."""
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


def lift_cells(arm: ArmLift, unit: Unit = RAW) -> tuple[str, ...]:
    """The cells of an arm: label, difference, its interval, ratio, its interval."""
    gap = arm.difference_low, arm.difference_high
    cells = (
        shown_label(arm.label),
        mean_text(arm.difference, *gap, sign=True, unit=unit),
        interval_text(*gap, sign=True, unit=unit),
    )
    if arm.ratio_low is None or arm.ratio_high is None:
        return (*cells, "-", "-")
    quotient = arm.ratio_low, arm.ratio_high
    return (*cells, mean_text(arm.ratio, *quotient), interval_text(*quotient))
