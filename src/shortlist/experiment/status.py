"""Where an experiment stands, as a record."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite

import numpy as np

from shortlist.arms import Label
from shortlist.arrays import FloatArray, IntArray
from shortlist.confidence import intervals, places
from shortlist.display import plural
from shortlist.experiment.ledger import Ledger
from shortlist.experiment.replay import Replay
from shortlist.experiment.settings import Settings
from shortlist.experiment.staying import staying
from shortlist.experiment.ticket import State
from shortlist.search import Progress
from shortlist.tables import Tabular, TextTable
from shortlist.validation import whole

SHOWN = 40  # arms in a table
DECIDED = {"in": "chosen", "out": "not chosen"}  # places of arms where there is an answer


@dataclass(frozen=True, slots=True)
class ArmsTold:
    """What was told of every arm, in the order of the labels.

    With probability 1 - delta all means lie between `low` and `high`, of all arms and whenever one
    looks."""

    labels: tuple[Label, ...]  #: as they are kept
    pulls: IntArray = field(repr=False)  #: (n,) rewards told
    means: FloatArray = field(repr=False)  #: (n,) NaN for an arm of which nothing was told
    low: FloatArray = field(repr=False)  #: (n,) lower ends of the intervals
    high: FloatArray = field(repr=False)  #: (n,) upper ends of the intervals
    places: tuple[str, ...] = field(repr=False)  #: "in", "out", "undecided" or "retired"
    to_go: IntArray = field(repr=False)  #: (n,) pulls that the search waits for
    minimize: bool = False  #: whether small rewards are the good ones

    def rows(self) -> Iterator[dict[str, object]]:
        """Every arm as a record, in the order of the labels; None for what is not known."""
        names = ("arm", "pulls", "mean", "low", "high", "place", "to_go")
        arrays = (self.pulls, self.means, self.low, self.high)
        columns = [self.labels, *(array.tolist() for array in arrays), self.places]
        for row in zip(*columns, self.to_go.tolist(), strict=True):
            yield dict(zip(names, map(_known, row), strict=True))

    def cells(self, arm: int, *, decided: bool = False) -> tuple[str, ...]:
        """One arm as a row of a table; once it is `decided`, whether it was chosen."""
        place = self.places[arm]
        return (
            str(self.labels[arm]),
            f"{self.pulls[arm]:,}",
            _figure(self.means[arm]),
            f"{_figure(self.low[arm])} … {_figure(self.high[arm])}",
            DECIDED[place] if decided else place,
            f"{self.to_go[arm]:,}",
        )


@dataclass(frozen=True, slots=True)
class Status(Tabular):
    """How far an experiment is."""

    name: str  #: of the experiment
    state: State  #: whether there are tickets, an answer, or trouble
    trouble: str  #: why it is stopped, in words; empty if it is not
    told: int  #: rewards told
    held: int  #: tickets that somebody works on
    wanted: int  #: tickets that the search waits for and nobody works on
    failures: int  #: evaluations that failed since the experiment was resumed last
    workers: Mapping[str, int]  #: tickets held by everybody who gave a name
    progress: Progress  #: as the search sees it
    arms: ArmsTold = field(repr=False)  #: what was told of every arm
    overdue: int = 0  #: tickets held for longer than their lease, and waited for

    def summary(self) -> dict[str, object]:
        """The figures of the command line's JSON."""
        return {
            "name": self.name,
            "state": self.state.value,
            "trouble": self.trouble or None,
            "told": self.told,
            "held": self.held,
            "overdue": self.overdue,
            "wanted": self.wanted,
            "failures": self.failures,
            "workers": dict(self.workers),
            "arms": list(self.arms.rows()),
        }

    def table(self, rows: int = SHOWN) -> TextTable:
        """The best arms by their means, at most so many."""
        # an arm of which nothing was told comes after all others
        worth = -self.arms.means if self.arms.minimize else self.arms.means
        best_first = np.argsort(-np.nan_to_num(worth, nan=-inf), kind="stable")
        decided = self.state in (State.FINISHED, State.BUDGET)
        left_out = best_first.size - whole("rows", rows, at_least=0)
        return TextTable(
            ("arm", "pulls", "mean", "interval", "place", "to go"),
            [self.arms.cells(arm, decided=decided) for arm in best_first[:rows].tolist()],
            title=self._headline(),
            verdict=plural(left_out, "more arm") if left_out > 0 else "",
        )

    def tables(self) -> tuple[TextTable]:
        """The table of the best arms."""
        return (self.table(),)

    def _headline(self) -> str:
        waiting = f"waits for {self.held + self.wanted:,} more, {self.held:,} of them under way"
        if self.overdue:
            waiting += f" and {self.overdue:,} of those overdue"
        told, failures = plural(self.told, "pull"), plural(self.failures, "failure")
        line = f"{self.name}: {self.state.value}, {told} told, {waiting}, {failures}"
        return f"{line}\n{self.trouble}" if self.trouble else line


def arms_told(ledger: Ledger, settings: Settings, replay: Replay) -> ArmsTold:
    """What the ledger says of every arm."""
    problem, labels = ledger.seen(settings.problem), settings.labels
    tally = ledger.tally(problem.n_arms)
    pulls, sums = tally.pulls, tally.sums
    means = np.divide(sums, pulls, out=np.full(problem.n_arms, np.nan), where=pulls > 0)
    low, high = intervals(problem, pulls, means)
    where = places(-high, -low, problem.k) if problem.minimize else places(low, high, problem.k)
    if replay.outcome is not None:
        outcome = staying(replay.outcome, ledger.retired, problem, settings.algorithm)
        chosen = set(outcome.answer.top.tolist())
        where = tuple("in" if arm in chosen else "out" for arm in range(problem.n_arms))
    where = tuple("retired" if arm in ledger.retired else each for arm, each in enumerate(where))
    return ArmsTold(labels, pulls, means, low, high, where, replay.asked - pulls, problem.minimize)


def _known(value: object) -> object:
    return None if isinstance(value, float) and not isfinite(value) else value


def _figure(value: float) -> str:
    return f"{value:.3f}" if isfinite(value) else "-"
