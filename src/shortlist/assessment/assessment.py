"""What `assess` returns: the K best arms, what they may lose, and which arms are sure."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from shortlist.arms import OwnLabel, plain_label, shown_label
from shortlist.digits import bound_text, confidence_text
from shortlist.result import ArmResult
from shortlist.result.frame import frame_of_rows
from shortlist.result.plain import plain
from shortlist.result.result import CHOSEN_SHOWN, HEADER, arm_cells
from shortlist.reward_models import RewardModel
from shortlist.tables import Tabular, TextTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TIERS = ("in", "out", "tied")
NAMED = 10  # arms of a tier that are named


@dataclass(frozen=True)
class Assessment(Tabular):
    """The K best arms of past results, and what these results prove.

    With probability at least `confidence`, both are true: the mean reward of `top`, averaged over
    its arms, is at most `regret_bound` below that of the best set of its size; and the tiers "in"
    and "out" are right."""

    top: tuple[OwnLabel, ...]  #: the arms with the best mean rewards, best first
    regret_bound: float  #: what this choice loses at most, in units of the rewards; may be infinite
    confidence: float  #: the probability with which `regret_bound` and `tiers` hold together
    #: "in": among the K best; "out": not among them; "tied": not known. An arm in "in" has a mean
    #: of at least the K-th best one, an arm in "out" a mean of at most the (K+1)-th best
    tiers: Mapping[str, tuple[OwnLabel, ...]] = field(hash=False)
    fixed: bool  #: whether the pulls of every arm were fixed before any reward was seen
    pulls: int  #: rewards that it rests on
    #: all arms, in the order they were given; their intervals hold together with probability
    #: `confidence`, which is a statement of its own
    arms: tuple[ArmResult, ...] = field(repr=False)
    rewards: RewardModel = field(repr=False)  #: what was declared about the rewards
    minimize: bool = field(repr=False)  #: whether small rewards are the good ones

    @property
    def verdict(self) -> str:
        """What may be lost, in a sentence."""
        if not math.isfinite(self.regret_bound):
            return "Nothing is guaranteed about what this choice loses: an arm was never pulled."
        return (
            f"At most {bound_text(self.regret_bound)} of mean reward is lost, with"
            f" {confidence_text(self.confidence)} confidence."
        )

    @property
    def table(self) -> TextTable:
        """The chosen arms, best first, and below them the others."""
        chosen, others = self._best_first()
        return TextTable((*HEADER, "tier"), self._rows(chosen), self._rows(others))

    def tables(self) -> tuple[TextTable]:
        """The table, with what it is of above, and the bound and the tiers below."""
        table = self.table
        below = "\n".join((self.verdict, *self._sure(), self._assumption))
        return (TextTable(table.header, table.rows, table.faint, self._title, below),)

    def to_frame(self, library: str | None = None) -> Any:
        """All arms as a data frame of pandas, or of polars if only that is installed.

        Columns: arm, pulls, mean, low, high, chosen, tier."""
        return frame_of_rows(self._records(), library)

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw the chosen arms against the rest, with intervals, into `ax` or a new figure.

        Filled circles are arms in tier "in", open circles are tied, crosses are "out"."""
        from shortlist.result.picture import Mark, draw

        chosen, others = self._best_first()
        tier = self._tier_of()
        marks = {
            arm.label: Mark(
                arm.chosen,
                f"{'chosen' if arm.chosen else 'not chosen'}, {tier[arm.label]}",
                shape="X" if tier[arm.label] == "out" else "o",
                filled=tier[arm.label] != "tied",
            )
            for arm in self.arms
        }
        title = "\n".join((self._title, self.verdict, self._assumption))
        return draw([*chosen, *others], title, "mean reward", ax, marks)

    def to_dict(self) -> dict[str, object]:
        """Everything as JSON has it; None for what is not known, as a mean without pulls."""
        return {
            "n_arms": len(self.arms),
            "k": len(self.top),
            "top": [plain_label(label) for label in self.top],
            "regret_bound": plain(self.regret_bound),
            "confidence": self.confidence,
            "tiers": {
                name: [plain_label(label) for label in labels]
                for name, labels in self.tiers.items()
            },
            "fixed": self.fixed,
            "minimize": self.minimize,
            "pulls": self.pulls,
            "arms": plain(self._records()),
        }

    def to_json(self) -> str:
        """`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    @property
    def _title(self) -> str:
        return (
            f"{len(self.top):,} of {len(self.arms):,} arms, the best mean rewards of"
            f" {self.pulls:,} pulls"
        )

    @property
    def _assumption(self) -> str:
        if self.fixed:
            return "This holds if the pulls of every arm were fixed before any reward was seen."
        return "This holds however the pulls were shared out, and whenever they ended."

    def _sure(self) -> tuple[str, str, str]:
        """Which arms are in or out, a line each, and with which confidence."""
        k = len(self.top)
        best = "the best one" if k == 1 else f"among the best {k:,}"
        confidence = f"With {confidence_text(self.confidence)} confidence"
        return (
            f"{confidence} {best}: {_listed(self.tiers['in'])}.",
            f"{confidence} not {best}: {_listed(self.tiers['out'])}.",
            f"Bound and tiers hold together {confidence.lower()}; the intervals separately.",
        )

    def _best_first(self) -> tuple[list[ArmResult], list[ArmResult]]:
        """The chosen arms and the others, each from best to worst."""
        ordered = sorted(self.arms, key=self._rank)
        chosen = [arm for arm in ordered if arm.chosen]
        return chosen, [arm for arm in ordered if not arm.chosen]

    def _rank(self, arm: ArmResult) -> tuple[float, int]:
        """Small for the best; arms never pulled come last."""
        if arm.mean is None:
            return math.inf, 0
        return (arm.mean if self.minimize else -arm.mean), -arm.pulls

    def _records(self) -> list[dict[str, object]]:
        tier = self._tier_of()
        return [_record(arm, tier[arm.label]) for arm in self.arms]

    def _tier_of(self) -> dict[OwnLabel, str]:
        return {label: name for name, labels in self.tiers.items() for label in labels}

    def _rows(self, arms: Sequence[ArmResult]) -> list[tuple[str, ...]]:
        tier = self._tier_of()
        rows = [(*arm_cells(arm), tier[arm.label]) for arm in arms[:CHOSEN_SHOWN]]
        if len(arms) > CHOSEN_SHOWN:
            rows.append((f"... {len(arms) - CHOSEN_SHOWN:,} more", *[""] * len(HEADER)))
        return rows


def _record(arm: ArmResult, tier: str) -> dict[str, object]:
    kept = ("pulls", "mean", "low", "high", "chosen")
    figures = {name: value for name, value in asdict(arm).items() if name in kept}
    return {"label": plain_label(arm.label), **figures, "tier": tier}


def _listed(labels: Sequence[OwnLabel]) -> str:
    """The first of some arms by their names, and how many more there are."""
    if not labels:
        return "none"
    more = f" and {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
    return ", ".join(shown_label(label) for label in labels[:NAMED]) + more
