"""Where an experiment stands, as a record."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import NamedTuple

import numpy as np

from shortlist.arms import Label
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.confidence import estimates, feasible_places, places
from shortlist.driver import unit_tally
from shortlist.engine.tickets import State
from shortlist.formatting import (
    RAW,
    Tabular,
    TextTable,
    Unit,
    amount_text,
    bound_text,
    chance_text,
    day_text,
    days_text,
    interval_text,
    known_before,
    mean_text,
    plural,
    printable,
    range_of,
    unit_of,
)
from shortlist.interim import Tally, chances
from shortlist.problem import Problem
from shortlist.search import Progress
from shortlist.validation import whole

SHOWN = 40  # arms in a table
HOLDERS = 5  # workers that are named
DECIDING = (State.FINISHED, State.BUDGET, State.ENDED)  # states in which there is an answer
DECIDED = {"in": "chosen", "out": "not chosen"}  # places of arms where there is an answer


@dataclass(frozen=True, slots=True)
class ArmsTold:
    """What is counted of every arm, in the order of the labels.

    With probability 1 - delta all means lie between `low` and `high`, of all arms and whenever one
    looks, also where results are late because of their values: rewards of an arm are counted in the
    order of its pulls, up to the first that is missing."""

    labels: tuple[Label, ...]  #: as they are kept
    pulls: IntArray = field(repr=False)  #: (n,) rewards that are counted
    #: (n,) rewards told that are not counted: an earlier pull of the same arm is missing
    waiting: IntArray = field(repr=False)
    #: (n,) of these rewards; on a test set that over all items, estimated; NaN if unknown
    means: FloatArray = field(repr=False)
    low: FloatArray = field(repr=False)  #: (n,) lower ends of the intervals
    high: FloatArray = field(repr=False)  #: (n,) upper ends of the intervals
    places: tuple[str, ...] = field(repr=False)  #: "in", "out", "undecided" or "retired"
    to_go: IntArray = field(repr=False)  #: (n,) pulls that the search waits for
    #: (n,) how likely it is one of the k best: for a ranking, no guarantee; NaN if not known
    chances: FloatArray = field(repr=False)
    known: IntArray = field(repr=False)  #: (n,) scores of a test set known before the first pull
    minimize: bool = False  #: whether small rewards are the good ones

    def rows(self) -> Iterator[dict[str, object]]:
        """Every arm as a record, in the order of the labels; None for what is not known."""
        names = ("arm", "pulls", "waiting", "mean", "low", "high", "place")
        arrays = (self.pulls, self.waiting, self.means, self.low, self.high)
        columns = [self.labels, *(array.tolist() for array in arrays), self.places]
        last = (array.tolist() for array in (self.to_go, self.chances, self.known))
        for row in zip(*columns, *last, strict=True):
            yield dict(zip((*names, "to_go", "chance", "known"), map(_known, row), strict=True))

    def cells(self, arm: int, *, decided: bool = False, unit: Unit = RAW) -> tuple[str, ...]:
        """One arm as a row of a table; once it is `decided`, whether it was chosen."""
        place = self.places[arm]
        ends = float(self.low[arm]), float(self.high[arm])
        return (
            str(self.labels[arm]),
            f"{self.pulls[arm]:,}",
            mean_text(
                float(self.means[arm]), *ends, among=range_of(self.means.tolist()), unit=unit
            ),
            interval_text(*ends, unit=unit),
            DECIDED.get(place, place) if decided else place,
            "" if decided else chance_text(float(self.chances[arm])),
            f"{self.to_go[arm]:,}",
        )


@dataclass(frozen=True, slots=True)
class Status(Tabular):
    """How far an experiment is.

    Example:
        >>> import shortlist
        >>> experiment = shortlist.Experiment.create(["red", "blue"], k=1, budget=20)
        >>> experiment.status().told
        0"""

    name: str  #: of the experiment
    state: State  #: whether there are tickets, an answer, or trouble
    trouble: str  #: why it is stopped; empty if it is not
    told: int  #: pulls that were made and whose reward counts
    held: int  #: tickets that are held
    wanted: int  #: tickets that the search waits for and that are not held
    failures: int  #: evaluations that failed since the experiment was resumed last
    workers: Mapping[str, int]  #: number of tickets per worker with a name
    progress: Progress  #: as the search sees it
    arms: ArmsTold = field(repr=False)  #: what was told of every arm
    overdue: int = 0  #: tickets held for longer than their lease, and waited for
    spent: float = 0.0  #: what the pulls cost, in the unit of the costs; else their number
    budget: float | None = None  #: the most that may be spent, if there is a limit
    #: what the present choice loses at most, as far as it is proved; None if nothing is
    bound: float | None = None
    #: why the guarantee does not hold: the rewards refute the declaration
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  #: unusual rewards, which can be chance, and what intervals rest on
    #: pulls that were not made, of retired arms, which the search counts as the worst reward, or on
    #: void seeds, which it does not count
    undrawn: int = 0
    #: pulls that were made and told after their arm left or their seed was void: they cost, their
    #: reward is not used
    unused: int = 0
    late: int = 0  #: tickets whose lease was over: each counts as the experiment's `on_late`
    unit: str | None = None  #: unit of tables; figures are raw
    #: when the first and the last result so far came, in seconds since 1970; None before
    period: tuple[float, float] | None = None
    #: a sentence for every arm that surely breaks a guardrail
    broken: tuple[str, ...] = ()
    live: str = ""  #: state of the blocks of a live test; empty for other experiments
    #: number of overdue tickets per worker with a name: it may have quit
    overdue_by: Mapping[str, int] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        """Rewards told that are not counted: an earlier pull of the same arm is missing."""
        return int(self.arms.waiting.sum())

    @property
    def never_counted(self) -> int:
        """Those of them that will not be: their arm left, or the search has ended."""
        if self._decided:
            return self.waiting
        left = np.array([place == "retired" for place in self.arms.places])
        return int(self.arms.waiting[left].sum())

    @property
    def sent(self) -> int:
        """Rewards that the search has, made-up ones included."""
        return self.told + self.late + self.unused + self.undrawn

    @property
    def _decided(self) -> bool:
        """Whether there is an answer."""
        return self.state in DECIDING

    @property
    def among(self) -> int:
        """The number of arms that `bound` is about: those that did not retire."""
        return len(self.arms.places) - self.arms.places.count("retired")

    def summary(self) -> dict[str, object]:
        """The figures of the command line's JSON."""
        return {
            "name": self.name,
            "state": self.state.value,
            "trouble": self.trouble or None,
            "told": self.told,
            "waiting": self.waiting,
            "late": self.late,
            "unused": self.unused,
            "undrawn": self.undrawn,
            "held": self.held,
            "overdue": self.overdue,
            "overdue_by": dict(self.overdue_by),
            "wanted": self.wanted,
            "spent": self.spent,
            "budget": self.budget,
            "failures": self.failures,
            "workers": dict(self.workers),
            "bound": self.bound,
            "among": self.among,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "broken": list(self.broken),
            "live": self.live,
            "unit": self.unit,
            "period": None if self.period is None else list(self.period),
            "arms": list(self.arms.rows()),
        }

    def table(self, rows: int = SHOWN) -> TextTable:
        """The arms most likely to be the best, and then by their means, at most this many.

        Args:
            rows: Maximum number of arms in it.

        Returns:
            The table."""
        worth = -self.arms.means if self.arms.minimize else self.arms.means
        unknown = np.isnan(worth)  # they come after all others
        likely = np.round(np.nan_to_num(self.arms.chances), 2)
        best_first = np.lexsort((-np.nan_to_num(worth), -likely, unknown))
        decided, unit = self._decided, unit_of(self.unit)
        left_out = best_first.size - whole("rows", rows, at_least=0)
        more = [plural(left_out, "more arm")] if left_out > 0 else []
        doubts = [f"Warning: {message}" for message in self.warnings]
        doubts += [f"Warning: {message}" for message in self.broken]
        doubts += [f"Note: {message}" for message in self.notes]
        return TextTable(
            ("arm", "pulls", "mean", "interval", "place", "chance", "to go"),
            [
                self.arms.cells(arm, decided=decided, unit=unit)
                for arm in best_first[:rows].tolist()
            ],
            title=self._headline(),
            verdict="\n".join([*more, *known_before(int(self.arms.known.sum())), *doubts]),
        )

    def tables(self) -> tuple[TextTable]:
        """The table of the best arms."""
        return (self.table(),)

    def _headline(self) -> str:
        decided = self._decided
        failures = plural(self.failures, "failure")
        facts = [
            self.state.value,
            *self._since,
            *self._told,
            *([] if decided else [self._waiting]),
            failures,
        ]
        if self.bound is not None:
            most = bound_text(self.bound, 3, unit_of(self.unit))
            verb = "would be" if self.warnings else "is" if self.unit is None else "are"
            lost = f"at most {most} {verb} lost"
            if self.among < len(self.arms.labels):
                lost += " among the remaining arms"
            facts.append(lost if decided else f"{lost} so far")
        if self.warnings:
            facts.append("but the rewards refute the declaration: nothing is guaranteed")
        line = f"{self.name}: {', '.join(facts)}"
        return f"{line}\n{self.trouble}" if self.trouble else line

    @property
    def _since(self) -> list[str]:
        """The day on which a live test began, and its days so far."""
        if self.period is None or not self.live:
            return []
        return [f"since {day_text(self.period[0])}, {days_text(self.period)}"]

    @property
    def _told(self) -> list[str]:
        """What was told, and what else was paid for."""
        never = self.never_counted
        uncounted = [(self.waiting - never, "not counted yet"), (never, "not counted")]
        listed = ", ".join(f"{count:,} {how}" for count, how in uncounted if count)
        unused = "not used, as the arm has retired or the seed is void"
        more = [(self.late, "counted as late"), (self.unused, unused)]
        others = [f"{count:,} {how}" for count, how in more if count]
        told, cost = f"{plural(self.told, 'pull')} told", self._cost
        if self.spent != self.told + self.late + self.unused:
            told, others = (
                (told, [*others, f"cost {cost}"]) if others else (f"{told} that cost {cost}", [])
            )
        return [told + (f" ({listed})" if listed else ""), *others]

    @property
    def _waiting(self) -> str:
        """What the search waits for."""
        if self.live:
            return self.live
        waiting = f"waits for {self.held + self.wanted:,} more, {self.held:,} of them under way"
        waiting += f" and {self.overdue:,} of those overdue" if self.overdue else ""
        waiting += f", held by {self._holders}" if self.workers else ""
        if self.overdue_by:
            waiting += f"; late: {_named(self.overdue_by)}; release the tickets of those who quit"
        return waiting

    @property
    def _holders(self) -> str:
        """Who holds tickets, and how many are held without a name."""
        unnamed = self.held - sum(self.workers.values())
        return _named(self.workers) + (f" and without a name ({unnamed:,})" if unnamed > 0 else "")

    @property
    def _cost(self) -> str:
        """What was spent, and of how much."""
        of_all = "" if self.budget is None else f" of {amount_text(self.budget)}"
        return f"{amount_text(self.spent)}{of_all}"


def _named(workers: Mapping[str, int]) -> str:
    """The workers with the most tickets, and how many others there are."""
    most = sorted(workers.items(), key=lambda each: -each[1])
    who = [f"{printable(worker)} ({count:,})" for worker, count in most[:HOLDERS]]
    others = len(most) - len(who)
    return ", ".join([*who, *([f"{others:,} other workers"] if others else [])])


class Vitals(NamedTuple):
    """State and counts of an experiment; None where they are not known without opening it."""

    state: State
    told: int
    held: int | None = None
    overdue: int | None = None
    failures: int | None = None
    bound: float | None = None  # what the search has proved


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted of every arm at one moment, before anything is worked out from it."""

    position: int  # in the log
    problem: Problem
    tally: Tally
    asked: IntArray
    chosen: frozenset[int] | None  # once there is an answer
    retired: frozenset[int]


def arms_told(counted: Counted, labels: tuple[Label, ...]) -> ArmsTold:
    """What that says of every arm; it takes a while if there are many."""
    problem, tally = counted.problem, counted.tally
    pulls, sums, waiting = tally.pulls, tally.sums, tally.waiting
    means, low, high = estimates(problem, pulls, sums)
    known = problem.known_scores.counts
    stay = np.array([arm not in counted.retired for arm in range(problem.n_arms)])
    where = _places(counted, low, high, stay)
    likely = _chances(counted, stay)
    to_go = np.zeros_like(pulls)
    if counted.chosen is None:
        to_go[stay] = (counted.asked - pulls - waiting)[stay]
    for shared in (pulls, waiting, means, low, high, to_go, likely, known):
        shared.flags.writeable = False  # by all who ask before there is news
    figures = pulls, waiting, means, low, high
    return ArmsTold(labels, *figures, where, to_go, likely, known, problem.minimize)


def _places(
    counted: Counted, low: FloatArray, high: FloatArray, stay: BoolArray
) -> tuple[str, ...]:
    """Where the intervals put every arm among those that stay; once that is decided, who is in."""
    k, chosen = counted.problem.k, counted.chosen
    where = np.full(low.size, "retired", dtype=object)
    if chosen is not None:
        where[stay] = ["in" if arm in chosen else "out" for arm in np.flatnonzero(stay).tolist()]
        return tuple(where.tolist())
    if counted.problem.minimize:
        low, high = -high, -low
    if counted.problem.constraint is not None:
        where[stay] = feasible_places(counted.problem, low, high, stay)
    else:
        where[stay] = places(low[stay], high[stay], k)
    return tuple(where.tolist())


def _chances(counted: Counted, stay: BoolArray) -> FloatArray:
    """The chance of every arm; of those that left 0, and what was decided is certain."""
    problem, chosen = counted.problem, counted.chosen
    if chosen is not None:
        return np.array([float(arm in chosen) for arm in range(problem.n_arms)])
    return chances(problem.unit(), unit_tally(problem, counted.tally), stay)


def _known(value: object) -> object:
    return None if isinstance(value, float) and not isfinite(value) else value
