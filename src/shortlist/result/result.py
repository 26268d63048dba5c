"""Figures in what JSON knows.

Why a search ended.

What a search learned about one arm.

What `select` returns: the choice, what it may cost, and what it rests on.

An error that ends a selection carries what was found by then: nothing paid is lost."""

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from shortlist.arms import OwnLabel, plain_label, position_of, shown_label
from shortlist.confidence import places
from shortlist.driver import Outcome
from shortlist.errors import InvalidInput, ShortlistError, UnknownName
from shortlist.formatting import (
    Tabular,
    TextTable,
    amount_text,
    bound_text,
    confidence_text,
    given_text,
    interval_text,
    known_before,
    mean_text,
    plain,
    plural,
    readable,
)
from shortlist.problem import FixedConfidence, Goal, Problem
from shortlist.regret import ROUNDING
from shortlist.result.arm_result import ArmResult, arms_of, spending_of, waiting_of
from shortlist.result.lift import Lift, lift_of
from shortlist.result.plots import frame_of
from shortlist.reward_models import RewardModel, Unranged
from shortlist.search import Answer
from shortlist.validation import shown


class Ending(StrEnum):
    """Why a search ended."""

    EPSILON = "epsilon"
    """The regret bound is as low as the epsilon asked for."""
    BUDGET = "budget"
    """The budget was spent first."""
    LIMITS = "limits"
    """The limits of arms allow no more pulls."""
    RETIRED = "retired"
    """It ended by itself, but arms left and it proves nothing about the others."""
    REFUTED = "refuted"
    """It reached epsilon, but the rewards refute the declaration that the bound rests on."""
    SEARCH = "search"
    """It ended by itself without a bound as low as epsilon."""


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHOSEN_SHOWN, OTHERS_SHOWN = 30, 5  # arms in a table
NAMED = 10  # arms at their limits that are named
NEARLY = 0.9  # of its limit: an arm pulled so often has no more to tell
HEADER = ("arm", "pulls", "mean", "interval")
ENDED = {
    Ending.BUDGET: "The budget ended",
    Ending.LIMITS: "Limits ended the search",
    Ending.SEARCH: "The search ended",
}


@dataclass(frozen=True)
class Result(Tabular):
    """The arms chosen and what is known about them.

    With probability at least `confidence`, the mean reward of `top`, averaged over its arms, is at
    most `regret_bound` below that of the best set of its size; both are None where nothing is
    guaranteed. If arms left, the best set is that of the arms that stay. `reached` is True if that
    bound is the epsilon asked for, False if the search ended before, and None if no epsilon was
    asked for or if the rewards refute the declaration: see `warnings`."""

    top: tuple[OwnLabel, ...]  #: the arms chosen, best first by mean reward
    regret_bound: float | None  #: what the choice loses at most, in units of the rewards
    confidence: float | None  #: the probability with which `regret_bound` holds
    reached: bool | None  #: whether the bound is as low as the epsilon asked for
    pulls: int  #: evaluations made
    goal: Goal  #: what was asked for
    algorithm: str  #: the name of the algorithm that chose
    seed: int  #: what all randomness of the search came from
    # equal seeds give equal results, however long they took
    seconds: float = field(compare=False)  #: from the first evaluation to the last
    arms: tuple[ArmResult, ...] = field(repr=False)  #: all arms, in the order they were given
    rewards: RewardModel = field(repr=False)  #: what was declared about the rewards
    minimize: bool = field(repr=False)  #: whether small rewards are the good ones
    #: what the bound rests on; its names depend on the algorithm
    evidence: Mapping[str, object] = field(repr=False, hash=False)
    partial: bool = False  #: whether the search had not ended: the choice may still change
    spent: float = 0.0  #: what the evaluations cost, in the unit of the costs; else their number
    #: the arm that all others are compared with, if one was named
    control: OwnLabel | None = field(default=None, repr=False)
    #: why the guarantee does not hold: the rewards refute the declaration
    warnings: tuple[str, ...] = ()
    notes: tuple[
        str, ...
    ] = ()  #: why it may not hold: the rewards are unusual, which can be chance
    #: whether all pulls of the last batch are counted; then intervals of `lift` are narrower
    complete: bool = field(default=True, repr=False)
    items: int | None = field(default=None, repr=False)  #: how many the test set has, if any

    @classmethod
    def of(
        cls,
        outcome: Outcome,
        labels: Sequence[OwnLabel],
        problem: Problem,
        algorithm: str,
        seed: int,
        seconds: float,
        retired: Collection[int] = (),
    ) -> "Result":
        """The outcome of a run, in labels; the `retired` arms left before its end."""
        answer = outcome.answer
        means = outcome.means(problem)[answer.top]
        best_first = answer.top[np.argsort(-problem.sign * means, kind="stable")]
        reached, bound = _reached(answer, problem.goal)
        return cls(
            top=tuple(labels[arm] for arm in best_first),
            regret_bound=bound,
            confidence=answer.confidence,
            reached=reached,
            pulls=int((outcome.pulls + waiting_of(outcome)).sum()),
            goal=problem.goal,
            algorithm=algorithm,
            seed=seed,
            seconds=seconds,
            arms=tuple(arms_of(outcome, labels, problem, retired)),
            rewards=problem.rewards,
            minimize=problem.minimize,
            evidence=answer.evidence,
            spent=float(spending_of(outcome, problem).sum()),
            complete=outcome.complete,
            items=None if problem.items is None else problem.items.size,
        )

    @property
    def verdict(self) -> str:
        """What may be lost, in a sentence."""
        lost = self._lost()
        if self.partial:
            return f"The search has not ended, and the choice may still change. {lost}"
        if self.ended_by is Ending.RETIRED:
            return f"Arms left, and {self.algorithm} proves nothing about the others. {lost}"
        if self.reached is False and isinstance(self.goal, FixedConfidence):
            ended = ENDED[self.ended_by]
            return f"{ended} before epsilon = {given_text(self.goal.epsilon)} was reached. {lost}"
        return lost

    def _lost(self) -> str:
        if self.regret_bound is None or self.confidence is None:
            return "Nothing is guaranteed about what this choice loses."
        at_most = f"t most {bound_text(self.regret_bound)} of mean reward"
        among = " among the arms that stay" if any(arm.left for arm in self.arms) else ""
        sure = f"with {confidence_text(self.confidence)} confidence"
        if not self.warnings:
            return f"A{at_most} is lost{among}, {sure}."
        return (
            "Nothing is guaranteed: the rewards refute the declaration. If it were true, a"
            f"{at_most} would be lost{among}, {sure}."
        )

    @property
    def ended_by(self) -> Ending:
        """Why the search ended."""
        if self.reached:
            return Ending.EPSILON
        if self.reached is None and self.warnings and self._within_epsilon:
            return Ending.REFUTED
        if self._broke:
            return Ending.BUDGET
        retired = any(arm.left for arm in self.arms)
        if isinstance(self.goal, FixedConfidence) and self.regret_bound is None and retired:
            return Ending.RETIRED
        # pulls that nobody made of arms that left count in a budget, too
        if self.unresolved or (self._at_limit and not (retired and self.goal.budget)):
            return Ending.LIMITS
        return Ending.SEARCH if self.goal.budget is None else Ending.BUDGET

    @property
    def _within_epsilon(self) -> bool:
        epsilon = self.goal.epsilon if isinstance(self.goal, FixedConfidence) else -1.0
        return self.regret_bound is not None and self.regret_bound <= epsilon

    @property
    def _at_limit(self) -> bool:
        """Whether an arm is pulled as often as its limit allows, or nearly."""
        limited = (arm for arm in self.arms if arm.limit is not None and not arm.left)
        return any(arm.pulls >= NEARLY * (arm.limit or 0) for arm in limited)

    @property
    def _broke(self) -> bool:
        """Whether the budget does not pay for a pull of every arm any more."""
        budget, dearest = self.goal.budget, max((arm.cost for arm in self.arms), default=0.0)
        return budget is not None and self.spent + dearest > budget

    def doubted(self, warnings: Sequence[str], notes: Sequence[str]) -> "Result":
        """The same with what tests of the rewards found; `reached` is None if they refute."""
        reached = None if warnings else self.reached
        return replace(self, reached=reached, warnings=tuple(warnings), notes=tuple(notes))

    @property
    def unresolved(self) -> tuple[OwnLabel, ...]:
        """The arms pulled as often as their limits allow, or nearly, that are in doubt.

        Their intervals put them neither among the best nor among the others. None if epsilon was
        reached, for then nothing is missing."""
        if self.reached:
            return ()
        stayed = [arm for arm in self.arms if not arm.left]
        low, high = (np.array([getattr(arm, end) for arm in stayed]) for end in ("low", "high"))
        low, high = (-high, -low) if self.minimize else (low, high)
        where = places(low, high, len(self.top))
        return tuple(
            arm.label
            for arm, place in zip(stayed, where, strict=True)
            if place == "undecided" and arm.limit is not None and arm.pulls >= NEARLY * arm.limit
        )

    @property
    def table(self) -> TextTable:
        """The chosen arms, best first, and below them the best of the others."""
        chosen, others = self._best_first()
        return TextTable(HEADER, _rows(chosen, CHOSEN_SHOWN), _rows(others, OTHERS_SHOWN))

    def tables(self) -> tuple[TextTable, ...]:
        """The table, with what it is of above and what may be lost below; then the lift if there is
        a control."""
        doubts = (f"Warning: {message}" for message in self.warnings)
        lines = (self.verdict, self._uncounted(), self._limits(), self._gone(), self._oddity())
        known = known_before(sum(arm.known for arm in self.arms))
        said = (*doubts, *lines, *known, *(f"Note: {message}" for message in self.notes))
        below = "\n".join(filter(None, said))
        arms = replace(self.table, title=self._title, verdict=below)
        if self.control is None:
            return (arms,)
        return replace(arms, verdict=f"{below}\n"), *self.lift().tables()

    def lift(self, control: OwnLabel | None = None) -> Lift:
        """How much better or worse every arm is than the arm `control`, with intervals.

        It may be left out where the selection was told of one."""
        labels = tuple(arm.label for arm in self.arms)
        control = self.control if control is None else control
        against = position_of(control, labels)
        if against is None:
            raise UnknownName(f"`control` is {shown(control)}, but must be one of the arms")
        if self.items is not None:
            raise InvalidInput(
                "`lift` is asked for, but its intervals are for independent rewards and not for"
                " scores on items"
            )
        if isinstance(self.rewards, Unranged):
            raise InvalidInput(
                "`lift` is asked for, but its intervals need rewards that were declared: say"
                " `rewards`"
            )
        problem = Problem(len(labels), len(self.top), self.goal, self.rewards, self.minimize)
        pulls = np.array([arm.pulls for arm in self.arms])
        means = np.array([math.nan if arm.mean is None else arm.mean for arm in self.arms])
        left = np.array([arm.left for arm in self.arms])
        in_step = ~left if self.complete and not left[against] else np.zeros_like(left)
        return lift_of(labels, problem, pulls, means, against, in_step)

    def to_frame(self, library: str | None = None) -> Any:
        """All arms as a data frame of pandas, or of polars if only that is installed."""
        return frame_of(self.arms, library)

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw the chosen arms against the rest, with intervals, into `ax` or a new figure."""
        from shortlist.result.plots import draw

        chosen, others = self._best_first()
        return draw([*chosen, *others], self._title, "mean reward", ax)

    def _best_first(self) -> tuple[list[ArmResult], list[ArmResult]]:
        """The chosen arms and the others, each from best to worst."""
        ordered = sorted(self.arms, key=self._rank)
        chosen = [arm for arm in ordered if arm.chosen]
        return chosen, [arm for arm in ordered if not arm.chosen]

    def _rank(self, arm: ArmResult) -> float:
        """Small for the best; arms never pulled come last."""
        if arm.mean is None:
            return math.inf
        return arm.mean if self.minimize else -arm.mean

    def _limits(self) -> str:
        """What could not be resolved because of limits, if anything."""
        listed = _listed(self.unresolved)
        return f"In doubt, and at or near the limit of their pulls: {listed}." if listed else ""

    def _uncounted(self) -> str:
        """How many rewards are not counted, and why, if any."""
        waiting = sum(arm.waiting for arm in self.arms)
        if not waiting:
            return ""
        are = "is" if waiting == 1 else "are"
        return (
            f"{plural(waiting, 'reward')} {are} not counted: an earlier pull of the same arm is"
            " missing."
        )

    def _gone(self) -> str:
        """Who left before the end, if anybody did."""
        shown = _listed([arm.label for arm in self.arms if arm.left and arm.pulls])
        others = _listed([arm.label for arm in self.arms if arm.left and not arm.pulls])
        said = [f"Left before the end, and shown as told until then: {shown}."] if shown else []
        said += [f"Left before the end, with no counted pull: {others}."] if others else []
        return " ".join(said)

    def _oddity(self) -> str:
        """Why an arm that was left out looks better than one that was chosen, if one does."""
        chosen, others = self._best_first()
        others = [arm for arm in others if not arm.left]
        if not others or self._rank(others[0]) >= self._rank(chosen[-1]):
            return ""
        left_out, last = others[0], chosen[-1]
        bounded = "" if self.regret_bound is None else ", and what that can lose is in the bound"
        return (
            f"{shown_label(left_out.label)} looks better than {shown_label(last.label)}, but was"
            f" left out: the pulls do not tell them apart{bounded}."
        )

    def to_dict(self) -> dict[str, object]:
        """Everything as JSON has it; None for what is not known, as a mean without pulls.

        Where there is a control, `lift` is there, too."""
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
            "top": [plain_label(label) for label in self.top],
            "regret_bound": self.regret_bound,
            "confidence": self.confidence,
            "reached": self.reached,
            "partial": self.partial,
            "verdict": self.verdict,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "pulls": self.pulls,
            "spent": self.spent,
            "seconds": self.seconds,
            "unresolved": [plain_label(label) for label in self.unresolved],
            "evidence": plain(self.evidence),
            "minimize": self.minimize,
            "complete": self.complete,
            "items": self.items,
            "arms": plain([asdict(arm) | {"label": plain_label(arm.label)} for arm in self.arms]),
            **({} if self.control is None else {"lift": self.lift().to_dict()}),
        }

    def to_json(self) -> str:
        """`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    @property
    def _title(self) -> str:
        return (
            f"{len(self.top):,} of {len(self.arms):,} arms,"
            f" chosen {'so far ' * self.partial}by {self.algorithm} with"
            f" {self.pulls:,} pulls{self._cost}"
        )

    @property
    def _cost(self) -> str:
        """What the pulls cost, in words; nothing where each of them cost 1."""
        return "" if self.spent == self.pulls else f" that cost {amount_text(self.spent)}"


def _reached(answer: Answer, goal: Goal) -> tuple[bool | None, float | None]:
    """Whether epsilon was reached, and the bound, less what the rounding of units added to it."""
    bound = answer.regret_bound
    if not isinstance(goal, FixedConfidence):
        return None, bound
    if bound is None or bound > goal.epsilon * (1 + ROUNDING):
        return False, bound
    return True, min(bound, goal.epsilon)


def _listed(labels: Sequence[OwnLabel]) -> str:
    """The first of some arms by their names, and how many more there are."""
    more = f" and {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
    return ", ".join(shown_label(label) for label in labels[:NAMED]) + more


def _rows(arms: Sequence[ArmResult], limit: int) -> list[tuple[str, ...]]:
    """The first arms in words, and how many are left out."""
    rows = [arm_cells(arm) for arm in arms[:limit]]
    if len(arms) > limit:
        rows.append((f"... {len(arms) - limit:,} more", "", "", ""))
    return rows


def arm_cells(arm: ArmResult) -> tuple[str, ...]:
    """An arm in words, under `HEADER`."""
    mean = mean_text(arm.mean, arm.low, arm.high)
    return shown_label(arm.label), readable(arm.pulls), mean, interval_text(arm.low, arm.high)


@contextmanager
def carrying(partial: Callable[[], Result]) -> Iterator[None]:
    """Give every error, an interrupt too, an attribute `partial`, if anything was pulled."""
    try:
        yield
    except BaseException as error:
        with suppress(ShortlistError):  # a store that cannot be read has nothing to add
            _carry(error, partial())
        raise


def _carry(error: BaseException, result: Result) -> None:
    if result.pulls:
        vars(error)["partial"] = result  # some errors refuse to have an attribute set
        error.add_note(
            f"`partial` of this error is the result after {plural(result.pulls, 'pull')}"
        )
