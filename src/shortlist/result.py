"""What `select` returns: the choice, what it may cost, and what it rests on."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np

from shortlist.arms import Label
from shortlist.driver import Outcome
from shortlist.metrics import ROUNDING
from shortlist.problem import FixedConfidence, Goal
from shortlist.search import Answer

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

CHOSEN_SHOWN, OTHERS_SHOWN = 30, 5  # arms in a table
HEADER = ("arm", "pulls", "mean")


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm: how often it was pulled, its mean reward (None if never pulled), and whether it was
    chosen."""

    label: Label
    pulls: int
    mean: float | None
    chosen: bool


@dataclass(frozen=True)
class Result:
    """The arms chosen and what is known about them.

    With probability at least `confidence`, the mean reward of `top`, averaged over its arms, is at
    most `regret_bound` below that of the best set of its size; both are None where nothing is
    guaranteed. `reached` is True if that bound is the epsilon asked for, False if the budget ended
    first, and None if no epsilon was asked for."""

    top: tuple[Label, ...]  # best first, by mean reward
    regret_bound: float | None
    confidence: float | None
    reached: bool | None
    pulls: int
    goal: Goal
    algorithm: str
    seed: int
    seconds: float = field(compare=False)  # so that equal seeds give equal results
    arms: tuple[Arm, ...] = field(repr=False)
    evidence: Mapping[str, object] = field(repr=False, hash=False)

    @classmethod
    def of(
        cls,
        outcome: Outcome,
        labels: Sequence[Label],
        goal: Goal,
        algorithm: str,
        seed: int,
        seconds: float,
    ) -> "Result":
        """The outcome of a run, in labels."""
        answer = outcome.answer
        best_first = answer.top[np.argsort(-outcome.means[answer.top], kind="stable")]
        reached, bound = _reached(answer, goal)
        return cls(
            top=tuple(labels[arm] for arm in best_first),
            regret_bound=bound,
            confidence=answer.confidence,
            reached=reached,
            pulls=int(outcome.pulls.sum()),
            goal=goal,
            algorithm=algorithm,
            seed=seed,
            seconds=seconds,
            arms=tuple(_arms(outcome, labels)),
            evidence=answer.evidence,
        )

    @property
    def verdict(self) -> str:
        """What may be lost, in a sentence."""
        lost = "Nothing is guaranteed about what this choice loses."
        if self.regret_bound is not None and self.confidence is not None:
            lost = (
                f"At most {self.regret_bound:.4g} of mean reward is lost, with"
                f" {self.confidence:.4g} confidence."
            )
        if self.reached is False and isinstance(self.goal, FixedConfidence):
            return f"The budget ended before epsilon = {self.goal.epsilon:g} was reached. {lost}"
        return lost

    @property
    def table(self) -> "Table":
        """The chosen arms, best first, and the best of the others, for rich to print."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD)
        for name in HEADER:
            table.add_column(name, justify="left" if name == "arm" else "right")
        for chosen in (True, False):
            for row in self._rows(chosen):
                # a label is no markup
                table.add_row(*map(Text, row), style=None if chosen else "dim")
            table.add_section()
        return table

    def __rich__(self) -> "Group":
        from rich.console import Group
        from rich.text import Text

        return Group(Text(self._title), self.table, Text(self.verdict))

    def __str__(self) -> str:
        from rich.console import Console

        text = StringIO()
        Console(file=text, width=100, color_system=None).print(self)
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    def _repr_html_(self) -> str:
        head = _html_row("th", HEADER)
        bodies = [
            "<tbody>" + "".join(_html_row("td", row) for row in self._rows(chosen)) + "</tbody>"
            for chosen in (True, False)
        ]
        title, verdict = escape(self._title), escape(self.verdict)
        caption, body = f"<caption>{title}</caption>", "".join(bodies)
        return f"<table>{caption}<thead>{head}</thead>{body}</table><p>{verdict}</p>"

    def to_dict(self) -> dict[str, object]:
        """Everything as JSON has it; what is not known, such as the mean of an arm never pulled, is
        None."""
        goal = self.goal
        epsilon, delta = (
            (goal.epsilon, goal.delta) if isinstance(goal, FixedConfidence) else (None, None)
        )
        return {
            "algorithm": self.algorithm,
            "n_arms": len(self.arms),
            "k": len(self.top),
            "epsilon": epsilon,
            "delta": delta,
            "budget": goal.budget,
            "seed": self.seed,
            "top": list(self.top),
            "regret_bound": self.regret_bound,
            "confidence": self.confidence,
            "reached": self.reached,
            "pulls": self.pulls,
            "seconds": self.seconds,
            "evidence": _plain(self.evidence),
            "arms": [asdict(arm) for arm in self.arms],
        }

    def to_json(self) -> str:
        """`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    @property
    def _title(self) -> str:
        return (
            f"{len(self.top):,} of {len(self.arms):,} arms, chosen by {self.algorithm} with"
            f" {self.pulls:,} pulls"
        )

    def _rows(self, chosen: bool) -> Iterator[tuple[str, str, str]]:
        """The best of the arms chosen or not chosen, in words, and how many are left out."""
        limit = CHOSEN_SHOWN if chosen else OTHERS_SHOWN
        known = {arm.label: arm for arm in self.arms}
        others = (arm for arm in self.arms if not arm.chosen)
        arms = [known[label] for label in self.top] if chosen else sorted(others, key=_by_mean)
        for arm in arms[:limit]:
            yield str(arm.label), f"{arm.pulls:,}", "-" if arm.mean is None else f"{arm.mean:.4g}"
        if len(arms) > limit:
            yield f"... {len(arms) - limit:,} more", "", ""


def _arms(outcome: Outcome, labels: Sequence[Label]) -> Iterator[Arm]:
    chosen = set(outcome.answer.top.tolist())
    for arm, (label, pulls, mean) in enumerate(
        zip(labels, outcome.pulls.tolist(), outcome.means.tolist(), strict=True)
    ):
        yield Arm(label, pulls, None if math.isnan(mean) else mean, arm in chosen)


def _reached(answer: Answer, goal: Goal) -> tuple[bool | None, float | None]:
    """Whether epsilon was reached, and the bound; one that exceeds epsilon only by the rounding of
    units is epsilon."""
    bound = answer.regret_bound
    if not isinstance(goal, FixedConfidence):
        return None, bound
    if bound is None or bound > goal.epsilon * (1 + ROUNDING):
        return False, bound
    return True, min(bound, goal.epsilon)


def _by_mean(arm: Arm) -> float:
    return math.inf if arm.mean is None else -arm.mean


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _plain(value: object) -> object:
    """The same value in what JSON knows: no arrays, no infinities."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)
