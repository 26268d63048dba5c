"""The result of a search: the chosen arms, the regret bound, the evidence, and how it is shown."""

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from shortlist.arms import OwnLabel, plain_label, position_of, shown_label, unknown_arm
from shortlist.arrays import FloatArray, IntArray
from shortlist.confidence import estimates, places, separations
from shortlist.constraints import Constraint, Quotas
from shortlist.driver import Outcome
from shortlist.errors import InvalidInput, ShortlistError
from shortlist.formatting import (
    RAW,
    Tabular,
    TextTable,
    Unit,
    amount_text,
    bound_text,
    confidence_text,
    given_text,
    interval_text,
    known_before,
    mean_text,
    plain,
    plural,
    range_of,
    readable,
    unit_of,
)
from shortlist.problem import FixedConfidence, Goal, Problem
from shortlist.quotas import GroupResult, groups_of, table_of
from shortlist.regret import ROUNDING
from shortlist.result.arm_results import ArmResult, BlockLeads, LabelT, Lift, MetricLift, lift_of
from shortlist.result.cells import EvaluatedCells
from shortlist.result.plots import frame_of
from shortlist.reward_models import RewardModel, Undeclared, check_spread
from shortlist.search import Answer, Tiers


class Ending(StrEnum):
    """Why a search ended."""

    EPSILON = "epsilon"
    """The regret bound reached the epsilon asked for."""
    BUDGET = "budget"
    """The budget was spent first."""
    LIMITS = "limits"
    """The limits of the arms allow no more pulls."""
    RETIRED = "retired"
    """The search ended; arms were retired and it has no bound for the others."""
    REFUTED = "refuted"
    """The bound reached epsilon, but the rewards refute the declaration that it rests on."""
    SEARCH = "search"
    """The search ended without a bound as low as epsilon."""


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHOSEN_SHOWN, OTHERS_SHOWN = 30, 5  # arms in a table
NAMED = 10  # arms at their limits that are named
NEAR_LIMIT = 0.9  # share of its limit from which on an arm counts as exhausted
HEADER = ("arm", "pulls", "mean", "interval")
ENDED = {
    Ending.BUDGET: "The budget ended",
    Ending.LIMITS: "Limits ended the search",
    Ending.SEARCH: "The search ended",
}


@dataclass(frozen=True)
class Result(Tabular, Generic[LabelT]):
    """The chosen arms and their guarantee; generic in the label type. Printed, it is a table.

    With probability at least `confidence`, the mean reward of `top`, averaged over its arms, is at
    most `regret_bound` below that of the best set of the same size, or under `quotas` or a
    `constraint` the best set that is allowed. Both are None without a guarantee. If arms were
    retired, the best set is that of the remaining arms.

    Example:
        >>> import random, shortlist
        >>> rates = {"grey": 0.1, "red": 0.8, "blue": 0.9}
        >>> def click(arm): return random.random() < rates[arm]
        >>> result = shortlist.select(click, arms=list(rates), k=2, budget=300)
        >>> sorted(result.top)
        ['blue', 'red']
        >>> result.pulls <= 300
        True"""

    top: tuple[LabelT, ...]  #: labels of the chosen arms, best mean first
    regret_bound: float | None  #: proved regret bound, in units of the rewards
    confidence: float | None  #: probability with which `regret_bound` holds
    #: whether the bound reached epsilon; None without epsilon, or if the rewards refute the
    #: declaration (see `warnings`)
    reached: bool | None
    pulls: int  #: number of pulls
    goal: Goal  #: epsilon and delta, or the budget
    algorithm: str  #: name of the algorithm
    seed: int  #: random seed of the search
    # not compared: equal seeds give equal results
    seconds: float = field(compare=False)  #: seconds from the first pull to the last
    arms: tuple[ArmResult[LabelT], ...] = field(repr=False)  #: all arms, in the order given
    rewards: RewardModel = field(repr=False)  #: declared reward model
    minimize: bool = field(repr=False)  #: whether small rewards are good
    #: what the bound rests on; the keys depend on the algorithm
    evidence: Mapping[str, object] = field(repr=False, hash=False)
    partial: bool = False  #: whether the search had not finished, so `top` may still change
    spent: float = 0.0  #: total cost of the pulls; their number if no costs are declared
    control: LabelT | None = field(default=None, repr=False)  #: label of the control, if given
    unit: str | None = field(default=None, repr=False)  #: unit of tables; figures are raw
    warnings: tuple[str, ...] = ()  #: how the rewards refute the declaration: no guarantee holds
    notes: tuple[str, ...] = ()  #: unusual rewards, which can be chance; what intervals rest on
    #: secondary metrics that were told, compared with the control; `broken` of each names the arms
    #: that surely break a guardrail
    metrics: tuple[MetricLift[LabelT], ...] = field(default=(), repr=False)
    #: whether all pulls of the last batch count; then the intervals of `lift` are narrower
    complete: bool = field(default=True, repr=False)
    items: int | None = field(default=None, repr=False)  #: number of items of the test set, if any
    #: cells that were asked for ahead and not needed: `spent` has their cost, `pulls` does not
    #: count them
    unused: int = field(default=0, repr=False)
    #: whether all arms were run on the same seeds: then they are not independent
    shared_seeds: bool = field(default=False, repr=False)
    #: leads within the blocks of a live test; None for other experiments
    leads: BlockLeads | None = field(default=None, repr=False)
    #: what keeping the control loses at most, in a live test for one arm; None if not proved
    control_regret: float | None = field(default=None, repr=False)
    #: every group with a quota: chosen arms, quota, and the estimated price of the quota
    groups: tuple[GroupResult, ...] = field(default=(), repr=False)
    #: the sets that may be chosen; None: all sets of k arms
    constraint: Constraint | None = field(default=None, repr=False, compare=False)
    #: "in": among the k best; "out": not among them; "tied": not known. They hold together with
    #: `regret_bound` at `confidence`. None where nothing is proved of single arms: without a
    #: guarantee, by the certificates split, plans, linear and drift, under a constraint, if arms
    #: were retired, and in partial results
    tiers: Mapping[str, tuple[LabelT, ...]] | None = field(default=None, repr=False, hash=False)
    #: the evaluated cells of a test set, with cost, seconds and info; None without items
    cells: EvaluatedCells | None = field(default=None, repr=False, compare=False)
    #: library of the data frames that were given ("pandas", "polars"): that of `to_frame`, too
    frames: str | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        outcome: Outcome,
        labels: Sequence[LabelT],
        problem: Problem,
        algorithm: str,
        seed: int,
        seconds: float,
        retired: Collection[int] = (),
    ) -> "Result[LabelT]":
        """Make a result of the outcome of a run; `retired` are numbers of arms.

        Args:
            outcome: What the search answered.
            labels: Labels of all arms.
            problem: The problem.
            algorithm: Name of the algorithm.
            seed: Seed of the run.
            seconds: Duration of the run.
            retired: Numbers of retired arms.

        Returns:
            The result, in labels and in the unit of the rewards."""
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
            groups=_groups(outcome, problem),
            constraint=problem.constraint,
            shared_seeds=problem.shared_seeds,
            tiers=None if retired or answer.tiers is None else by_tier(labels, answer.tiers),
        )

    @property
    def separates_at(self) -> tuple[int, ...]:
        """Every K at which the K best arms are above all others, by the intervals of `arms`.

        With probability 1 - delta all of these are right. It is a statement of its own, next to
        that of `regret_bound` and `tiers`."""
        arms = [arm for arm in self.arms if not arm.retired]
        low, high = (np.array([getattr(arm, end) for arm in arms]) for end in ("low", "high"))
        terms = max((arm.pulls + arm.known for arm in arms), default=0)
        low, high = (-high, -low) if self.minimize else (low, high)
        return separations(low, high, terms)

    @property
    def verdict(self) -> str:
        """The guarantee in one sentence."""
        lost = self._lost()
        if self.partial:
            return f"The search has not ended, and the choice may still change. {lost}"
        if self.ended_by is Ending.RETIRED:
            return f"Arms were retired, and {self.algorithm} has no bound for the others. {lost}"
        if self.reached is False and isinstance(self.goal, FixedConfidence):
            ended = ENDED[self.ended_by]
            wanted = given_text(self.goal.epsilon, unit_of(self.unit))
            return f"{ended} before epsilon = {wanted} was reached. {lost}"
        return lost

    def _lost(self) -> str:
        if self.regret_bound is None or self.confidence is None:
            return "Nothing is guaranteed about what this choice loses."
        at_most = f"t most {bound_text(self.regret_bound, unit=unit_of(self.unit))} of mean reward"
        among = " among the remaining arms" if any(arm.retired for arm in self.arms) else ""
        among += "" if self.leads is None else " on average over the blocks of the test"
        sure = f"with {confidence_text(self.confidence)} confidence"
        if not self.warnings:
            kept = f" {self.kept()}" if self.kept() else ""
            is_ = "is" if self.unit is None else "are"
            return f"A{at_most} {is_} lost{among}, {sure}.{kept}"
        return (
            "Nothing is guaranteed: the rewards refute the declaration. If it were true, a"
            f"{at_most} would be lost{among}, {sure}."
        )

    @property
    def keep_control(self) -> bool:
        """Whether it is proved that no arm is better than the control by more than epsilon.

        It holds together with `regret_bound`, with probability `confidence`."""
        return self._kept_within() is not None

    def _kept_within(self) -> float | None:
        """The most by which any arm is better than the control, if that is at most epsilon."""
        if self.control is None or self.warnings or self.confidence is None:
            return None
        within = self.control_regret
        if within is None and not self.partial and self.top == (self.control,):
            within = self.regret_bound
        epsilon = self.goal.epsilon if isinstance(self.goal, FixedConfidence) else math.inf
        return within if within is not None and within <= epsilon * (1 + ROUNDING) else None

    def kept(self) -> str:
        """The verdict on the control in a sentence; empty if nothing better is ruled out."""
        within = self._kept_within()
        if within is None or self.control is None:
            return ""
        keep = "keep it" if self.top == (self.control,) else "you can keep it"
        among = "remaining" if any(arm.retired for arm in self.arms) else "other"
        return (
            f"No {among} arm is better than {shown_label(self.control)} by more than"
            f" {bound_text(within, unit=unit_of(self.unit))}: {keep}."
        )

    @property
    def ended_by(self) -> Ending:
        """Why the search ended."""
        if self.reached:
            return Ending.EPSILON
        if self.reached is None and self.warnings and self._within_epsilon:
            return Ending.REFUTED
        if self._budget_spent:
            return Ending.BUDGET
        retired = any(arm.retired for arm in self.arms)
        if isinstance(self.goal, FixedConfidence) and self.regret_bound is None and retired:
            return Ending.RETIRED
        # a budget also counts pulls of retired arms that were not made
        if self.unresolved or (self._at_limit and not (retired and self.goal.budget)):
            return Ending.LIMITS
        return Ending.SEARCH if self.goal.budget is None else Ending.BUDGET

    @property
    def _within_epsilon(self) -> bool:
        epsilon = self.goal.epsilon if isinstance(self.goal, FixedConfidence) else -1.0
        return self.regret_bound is not None and self.regret_bound <= epsilon

    @property
    def _at_limit(self) -> bool:
        """Whether an arm is at or near its limit."""
        limited = (arm for arm in self.arms if arm.limit is not None and not arm.retired)
        return any(arm.pulls >= NEAR_LIMIT * (arm.limit or 0) for arm in limited)

    @property
    def _budget_spent(self) -> bool:
        """Whether the rest of the budget does not cover one pull of every arm."""
        budget, highest = self.goal.budget, max((arm.cost for arm in self.arms), default=0.0)
        return budget is not None and self.spent + highest > budget

    def doubted(self, warnings: Sequence[str], notes: Sequence[str]) -> "Result[LabelT]":
        """Return a copy with the findings of the tests of the rewards.

        Args:
            warnings: Refuted declarations.
            notes: Unusual observations.

        Returns:
            The copy."""
        reached = None if warnings else self.reached
        return replace(self, reached=reached, warnings=tuple(warnings), notes=tuple(notes))

    @property
    def unresolved(self) -> tuple[LabelT, ...]:
        """Labels of undecided arms at or near their limits; empty if epsilon was reached."""
        if self.reached:
            return ()
        remaining = [arm for arm in self.arms if not arm.retired]
        low, high = (np.array([getattr(arm, end) for arm in remaining]) for end in ("low", "high"))
        low, high = (-high, -low) if self.minimize else (low, high)
        if self.constraint is None:
            where = places(low, high, len(self.top))
        else:  # which arms matter is not known
            where = ("undecided",) * len(remaining)
        return tuple(
            arm.label
            for arm, place in zip(remaining, where, strict=True)
            if place == "undecided"
            and arm.limit is not None
            and arm.pulls >= NEAR_LIMIT * arm.limit
        )

    @property
    def table(self) -> TextTable:
        """The chosen arms, best first, and the best of the others."""
        chosen, others = self._best_first()
        among = range_of(arm.mean for arm in self.arms)
        unit = unit_of(self.unit)
        shown = _rows(chosen, CHOSEN_SHOWN, among, unit)
        rest = _rows(others, OTHERS_SHOWN, among, unit)
        return TextTable(HEADER, shown, rest)

    def tables(self) -> tuple[TextTable, ...]:
        """Return the table with title and verdict; with a control, also the table of the lift."""
        warnings = (f"Warning: {message}" for message in self.warnings)
        lines = (
            self.verdict,
            self._linear(),
            self._uncounted(),
            self._limits(),
            self._retired(),
            self._oddity(),
        )
        known = known_before(sum(arm.known for arm in self.arms))
        broken = (f"Warning: {said}." for metric in self.metrics for said in metric.sentences())
        notes = (f"Note: {message}" for message in self.notes)
        below = "\n".join(filter(None, (*warnings, *lines, *known, *broken, *notes)))
        arms = replace(self.table, title=self._title, verdict=below)
        more = [table_of(self.groups)] if self.groups else []
        more += [] if self.control is None else self.lift().tables()
        more += [table for metric in self.metrics for table in metric.tables()]
        every = [arms, *more]  # with an empty line between two
        return (*(replace(each, verdict=f"{each.verdict}\n") for each in every[:-1]), every[-1])

    def _linear(self) -> str:
        """The test of means that were declared linear, in a sentence; "" without a declaration."""
        if "lack of fit" not in self.evidence:
            return ""
        p_value, arms = self.evidence["lack of fit"], self.evidence["arms tested"]
        test = "no test of lack of fit, as too few arms have five pulls"
        if isinstance(p_value, float):
            test = f"test of lack of fit on {arms} arms: p = {p_value:.2g}"
        if "way back" not in self.evidence:
            return f"This rests on means that are linear in the features, as declared; {test}."
        if self.evidence["way back"] == "lack of fit":
            return f"Means are not linear in the features ({test}); the bound does not rest on it."
        return f"The bound does not rest on means that are linear in the features; {test}."

    def lift(self, control: LabelT | None = None) -> Lift[LabelT]:
        """Compare every arm with a control: differences and ratios with simultaneous intervals.

        Args:
            control: Label of the control; by default the `control` of the selection.

        Returns:
            The lift of every other arm.

        Raises:
            UnknownName: `control` is not an arm.
            InvalidInput: The rewards are scores on items, arms were run on shared seeds, or no
                reward model was declared.

        Example:
            >>> import random, shortlist
            >>> rates = {"grey": 0.1, "red": 0.9}
            >>> def click(arm): return random.random() < rates[arm]
            >>> result = shortlist.select(
            ...     click, arms=list(rates), k=1, budget=200, rewards="binary"
            ... )
            >>> (red,) = result.lift("grey").arms
            >>> red.label, red.difference_low < red.difference < red.difference_high
            ('red', True)"""
        labels = tuple(arm.label for arm in self.arms)
        control = self.control if control is None else control
        against = position_of(control, labels)
        if against is None:
            raise unknown_arm("control", control, labels)
        return replace(self._lift(labels, against), unit=self.unit)

    def _lift(self, labels: tuple[LabelT, ...], against: int) -> Lift[LabelT]:
        if self.leads is not None:
            return self.leads.lift(labels, against, self.goal)
        if self.items is not None:
            raise InvalidInput("`lift` needs independent rewards, but these are scores on items")
        if self.shared_seeds:
            raise InvalidInput("`lift` needs independent arms, but these were run on shared seeds")
        if isinstance(self.rewards, Undeclared):
            raise InvalidInput(
                "`lift` needs a declared reward model, but there is none: give `rewards`"
            )
        check_spread(self.rewards, "`lift`")
        problem = Problem(len(labels), len(self.top), self.goal, self.rewards, self.minimize)
        pulls = np.array([arm.pulls for arm in self.arms])
        means = np.array([math.nan if arm.mean is None else arm.mean for arm in self.arms])
        retired = np.array([arm.retired for arm in self.arms])
        in_step = ~retired if self.complete and not retired[against] else np.zeros_like(retired)
        return lift_of(labels, problem, pulls, means, against, in_step)

    def to_frame(self, library: str | None = None) -> Any:
        """Return all arms as a data frame, one row per arm.

        Args:
            library: "pandas" or "polars". Default: that of the data frame of arms, scores or
                features that was given, else the first that is installed.

        Returns:
            The data frame.

        Raises:
            UnknownName: `library` is another name.
            InvalidInput: The library is not installed.

        Example:
            >>> import shortlist
            >>> result = shortlist.select({"a": 0, "b": 1}.get, arms=["a", "b"], k=1, budget=10)
            >>> list(result.to_frame("pandas")["arm"])
            ['a', 'b']"""
        return frame_of(self.arms, library or self.frames)

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw the means and intervals of all arms, best first.

        Args:
            ax: Axes of matplotlib to draw into; by default those of a new figure.

        Returns:
            The figure.

        Raises:
            InvalidInput: matplotlib is not installed.

        Example:
            >>> import shortlist
            >>> result = shortlist.select({"a": 0, "b": 1}.get, arms=["a", "b"], k=1, budget=10)
            >>> result.plot().savefig("arms.png")"""
        from shortlist.result.plots import draw

        chosen, others = self._best_first()
        return draw([*chosen, *others], self._title, "mean reward", ax)

    def _best_first(self) -> tuple[list[ArmResult[LabelT]], list[ArmResult[LabelT]]]:
        """The chosen arms and the others, each from best to worst."""
        ordered = sorted(self.arms, key=self._rank)
        chosen = [arm for arm in ordered if arm.chosen]
        return chosen, [arm for arm in ordered if not arm.chosen]

    def _rank(self, arm: ArmResult) -> float:
        """Sort key: best mean first, arms without pulls last."""
        if arm.mean is None:
            return math.inf
        return arm.mean if self.minimize else -arm.mean

    def _limits(self) -> str:
        """Undecided arms at their limits."""
        listed = _listed(self.unresolved)
        return f"Undecided, and at or near their limit: {listed}." if listed else ""

    def _uncounted(self) -> str:
        """Number of rewards that do not count, and why."""
        waiting = sum(arm.waiting for arm in self.arms)
        if not waiting:
            return ""
        are = "is" if waiting == 1 else "are"
        missing = "an earlier pull of the same arm is missing"
        if self.leads is not None:
            missing = "an earlier block is open and not told"
        return f"{plural(waiting, 'reward')} {are} not counted: {missing}."

    def _retired(self) -> str:
        """Retired arms."""
        retired = [arm for arm in self.arms if arm.retired]
        pulled = _listed([arm.label for arm in retired if arm.pulls])
        others = _listed([arm.label for arm in retired if not arm.pulls])
        lines = [f"Retired, shown with its pulls until then: {pulled}."] if pulled else []
        lines += [f"Retired without a counted pull: {others}."] if others else []
        return " ".join(lines)

    def _oddity(self) -> str:
        """Why an arm with a better mean than a chosen one is not chosen."""
        if self.constraint is not None:  # it may be for the constraint alone
            return ""
        chosen, others = self._best_first()
        others = [arm for arm in others if not arm.retired]
        if not others or self._rank(others[0]) >= self._rank(chosen[-1]):
            return ""
        left_out, last = others[0], chosen[-1]
        bounded = "" if self.regret_bound is None else "; the bound includes that loss"
        apart = left_out.low > last.high or left_out.high < last.low
        why = "" if apart else ": the pulls do not separate them"
        return (
            f"{shown_label(left_out.label)} has a better mean than {shown_label(last.label)}, but"
            f" is not chosen{why}{bounded}."
        )

    def to_dict(self) -> dict[str, object]:
        """Return all fields as JSON types; None for unknown values, such as a mean without pulls.

        With a control, `lift` is included."""
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
            "tiers": plain_tiers(self.tiers),
            "separates_at": list(self.separates_at),
            "pulls": self.pulls,
            "spent": self.spent,
            "seconds": self.seconds,
            "unresolved": [plain_label(label) for label in self.unresolved],
            "evidence": plain(self.evidence),
            "minimize": self.minimize,
            "complete": self.complete,
            "items": self.items,
            "unused": self.unused,
            "unit": self.unit,
            "control_regret": self.control_regret,
            "keep_control": self.keep_control,
            "arms": plain([asdict(arm) | {"label": plain_label(arm.label)} for arm in self.arms]),
            **({"quotas": [asdict(each) for each in self.groups]} if self.groups else {}),
            **({} if self.control is None else {"lift": self.lift().to_dict()}),
            **({"metrics": [each.to_dict() for each in self.metrics]} if self.metrics else {}),
            **({} if self.leads is None else {"leads": asdict(self.leads)}),
            **({"seeds": "shared"} if self.shared_seeds else {}),
        }

    def to_json(self) -> str:
        """Return `to_dict` as one line of JSON.

        Example:
            >>> import json, shortlist
            >>> result = shortlist.select({"a": 0, "b": 1}.get, arms=["a", "b"], k=1, budget=10)
            >>> json.loads(result.to_json())["top"]
            ['b']"""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    @property
    def _title(self) -> str:
        return (
            f"{len(self.top):,} of {len(self.arms):,} arms,"
            f" chosen {'so far ' * self.partial}by {self.algorithm} with"
            f" {self.pulls:,} pulls{self._cost}{self._ahead}"
        )

    @property
    def _cost(self) -> str:
        """The total cost as text; empty if each pull cost 1."""
        free = self.spent == self.pulls + self.unused  # of costs that are worth a word
        return "" if free else f" that cost {amount_text(self.spent)}"

    @property
    def _ahead(self) -> str:
        """Cells that were not needed, as text; empty without any."""
        return f" ({plural(self.unused, 'more cell')} asked for ahead)" * bool(self.unused)


TIERS = ("in", "out", "tied")


def by_tier(labels: Sequence[LabelT], tiers: Tiers) -> dict[str, tuple[LabelT, ...]]:
    """The labels of every tier, in the order of the arms."""
    own = np.where(tiers.inside, "in", np.where(tiers.outside, "out", "tied")).tolist()
    return {
        name: tuple(label for label, tier in zip(labels, own, strict=True) if tier == name)
        for name in TIERS
    }


def plain_tiers(tiers: Mapping[str, Sequence[Any]] | None) -> dict[str, list[object]] | None:
    """Tiers as JSON types."""
    if tiers is None:
        return None
    return {name: [plain_label(label) for label in labels] for name, labels in tiers.items()}


def _groups(outcome: Outcome, problem: Problem) -> tuple[GroupResult, ...]:
    """What quotas say of the choice, if there are any."""
    if not isinstance(problem.constraint, Quotas):
        return ()
    means = problem.sign * outcome.means(problem)
    return groups_of(problem.constraint, outcome.answer.top, means)


def _reached(answer: Answer, goal: Goal) -> tuple[bool | None, float | None]:
    """Whether epsilon was reached, and the bound without the rounding of units."""
    bound = answer.regret_bound
    if not isinstance(goal, FixedConfidence):
        return None, bound
    if bound is None or bound > goal.epsilon * (1 + ROUNDING):
        return False, bound
    return True, min(bound, goal.epsilon)


def _listed(labels: Sequence[OwnLabel]) -> str:
    """The first labels, and how many more there are."""
    more = f" and {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
    return ", ".join(shown_label(label) for label in labels[:NAMED]) + more


def _rows(
    arms: Sequence[ArmResult], limit: int, among: tuple[float, float], unit: Unit
) -> list[tuple[str, ...]]:
    """The cells of the first arms, and how many more there are."""
    rows = [arm_cells(arm, among, unit) for arm in arms[:limit]]
    if len(arms) > limit:
        rows.append((f"... {len(arms) - limit:,} more", "", "", ""))
    return rows


def arm_cells(
    arm: ArmResult, among: tuple[float, float] | None = None, unit: Unit = RAW
) -> tuple[str, ...]:
    """The cells of an arm, under `HEADER`; all means are `among` these."""
    mean = mean_text(arm.mean, arm.low, arm.high, among=among, unit=unit)
    interval = interval_text(arm.low, arm.high, unit=unit)
    return shown_label(arm.label), readable(arm.pulls), mean, interval


@contextmanager
def carrying(partial: Callable[[], Result]) -> Iterator[None]:
    """Attach the result so far to any error, also an interrupt, as attribute `partial`."""
    try:
        yield
    except BaseException as error:
        with suppress(ShortlistError):  # the store cannot be read
            _carry(error, partial())
        raise


def _carry(error: BaseException, result: Result) -> None:
    vars(error)["partial"] = result  # some errors refuse to have an attribute set
    if result.pulls:
        error.add_note(
            f"`partial` of this error is the result after {plural(result.pulls, 'pull')}"
        )


def arms_of(
    outcome: Outcome,
    labels: Sequence[OwnLabel],
    problem: Problem,
    retired: Collection[int] = (),
) -> Iterator[ArmResult]:
    """Yield the results of all arms, in the order in which they were given."""
    chosen = set(outcome.answer.top.tolist())
    means, low, high = estimates(problem, outcome.pulls, outcome.sums)
    columns = [column.tolist() for column in (outcome.pulls, means, low, high)]
    limits = problem.limits or (None,) * problem.n_arms
    costs = [column.tolist() for column in (problem.declared_costs, spending_of(outcome, problem))]
    more = waiting_of(outcome).tolist(), problem.known_scores.counts.tolist()
    rows = zip(labels, *columns, limits, *costs, *more, strict=True)
    for arm, (label, pulls, mean, low_, high_, limit, cost, spent, *others) in enumerate(rows):
        shown = None if math.isnan(mean) else mean
        terms = limit, cost, spent, arm in retired, *others
        yield ArmResult(label, pulls, shown, low_, high_, arm in chosen, *terms)


def waiting_of(outcome: Outcome) -> IntArray:
    """(n,) Number of rewards per arm that do not count."""
    return np.zeros_like(outcome.pulls) if outcome.waiting is None else outcome.waiting


def spending_of(outcome: Outcome, problem: Problem) -> FloatArray:
    """(n,) Total cost of the pulls per arm."""
    if outcome.spending is not None:
        return outcome.spending
    result: FloatArray = outcome.pulls * problem.declared_costs
    return result
