"""What a program knows of a live test: its blocks in place of tickets."""

import time
from calendar import timegm
from dataclasses import replace
from math import inf

import numpy as np

from shortlist.arms import position_of
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.drift.search import BlockTest
from shortlist.driver import Outcome
from shortlist.engine.blocks import Blocks
from shortlist.engine.checks import Checks
from shortlist.engine.replay import NOTHING, STATES, Replay, Replica
from shortlist.engine.tickets import Numbering, OpenBatches, State
from shortlist.engine.trends import trend_notes
from shortlist.errors import InvalidInput
from shortlist.formatting import plural
from shortlist.interim import Tally
from shortlist.result import Result
from shortlist.result.lift import MetricLift
from shortlist.search import Progress
from shortlist.settings import Settings
from shortlist.stores import Kind, News

SECONDS_PER_DAY = 86400.0
OF_BLOCKS = (Kind.OPEN, Kind.COUNTS, Kind.ASSIGN)


class BlockReplay(Replay):
    """Where a live test stands: it asks for no pulls, and is told blocks."""

    def __init__(self, settings: Settings) -> None:
        settings.searched_by().start(  # refuses what cannot be begun
            settings.problem, np.random.default_rng(settings.seed), **settings.options
        )
        self.blocks = Blocks(settings)
        self.outcome: Outcome | None = None
        self.digests: list[str] = []
        self.spans: list[tuple[int, int]] = []
        self.course: list[tuple[int, Progress]] = self.blocks.course
        self.checks = Checks(settings.problem, settings.labels)
        self.asked: IntArray = np.zeros(settings.problem.n_arms, dtype=np.int64)
        self.numbering = OpenBatches([Numbering(NOTHING, 0, self.asked)])
        self.show()

    def show(self) -> None:
        """Be up to date with the blocks."""
        self.outcome = self.blocks.outcome
        tally = self.blocks.tally()
        self.asked = tally.pulls + tally.waiting

    @property
    def progress(self) -> Progress:
        """How far the test is."""
        return self.blocks.test.progress()

    @property
    def taken(self) -> float:
        """There are no tickets."""
        return inf


class BlockReplica(Replica):
    """The log of a live test as read so far."""

    replay: BlockReplay

    def _begin(self) -> BlockReplay:
        return BlockReplay(self.settings)

    def need_tickets(self, method: str) -> None:
        """Refuse a method of tickets."""
        raise InvalidInput(
            f"`{method}` is called, but the experiment was created with `drift` or `per_day`: it"
            " has blocks, not tickets; use `shares` or `assign`, and `tell_counts`"
        )

    @property
    def blocks(self) -> Blocks:
        """The blocks of the test."""
        return self.replay.blocks

    @property
    def test(self) -> BlockTest:
        """The certificate of the test."""
        return self.replay.blocks.test

    def _advance(self, news: News) -> None:
        """Read what the log says about blocks."""
        ledger = self.ledger
        for event in news.events:
            if event.kind in (*OF_BLOCKS, Kind.RETIRE):
                self.blocks.take(event, f"experiment {self.name!r}")
            if event.kind is Kind.OPEN:
                ledger.began = min(ledger.began, event.time)
            if event.kind is Kind.COUNTS:
                ledger.ended = max(ledger.ended, event.time)
        self.replay.show()
        visitors = self.replay.asked
        ledger.told = int(visitors.sum())
        ledger.spent = ledger.declared = float(visitors @ self.settings.problem.prices)

    def tally(self) -> Tally:
        """What is counted of every arm, and what waits for an earlier block."""
        return self.blocks.tally()

    def state(self, now: float) -> State:  # noqa: ARG002  # leases end, blocks do not
        """Whether there is an answer."""
        if self.replay.outcome is not None:
            return STATES.get(self.answer.ended_by, State.ENDED)
        return State.READY

    def period(self) -> tuple[float, float] | None:
        """The days of the blocks, where their names are dates; else when they were opened."""
        dates = [day_of(block.name) for block in self.blocks.all]
        known = [date for date in dates if date is not None]
        if not dates or len(known) < len(dates):
            return super().period()
        return min(known), max(known) + SECONDS_PER_DAY

    def moments(self) -> list[str]:
        """The names of the blocks that were told, in order."""
        return [block.name for block in self.blocks.all[: self.blocks.passed]]

    def missing(self) -> str:
        """What the test waits for, in the error message."""
        counted = plural(self.test.counted, "block")
        waiting = [block for block in self.blocks.all if block.rows is None]
        told = f"{counted} of the test {'counts' if self.test.counted == 1 else 'count'}"
        if waiting:
            return f"{told}, but block {waiting[0].name!r} is open and not told"
        return f"{told}, but more are needed: open the next with `shares`"

    def live(self) -> str:
        """The present state of the blocks, for the status."""
        blocks = self.blocks
        open_ = [block.name for block in blocks.all if block.rows is None]
        facts = [f"{plural(self.test.counted, 'block')} counted"]
        left_out = blocks.passed - self.test.counted
        if left_out:
            facts.append(f"{left_out:,} left out")
        if open_:
            facts.append(f"{len(open_):,} not told yet, the first is {open_[0]!r}")
        return ", ".join(facts)

    def metrics(self) -> tuple[MetricLift, ...]:
        """Secondary metrics over the blocks of the test, compared with the control."""
        lifts = self.blocks.lifts(self.settings.labels)
        return tuple(replace(each, unit=self.settings.unit) for each in lifts)

    def _outcome_so_far(self) -> Outcome:
        return self.blocks.present()

    def _spending(self) -> FloatArray:
        tally = self.blocks.tally()
        return np.asarray((tally.pulls + tally.waiting) * self.settings.problem.prices)

    @property
    def _missing(self) -> int:
        return 0

    def underway(self) -> None:
        """A live test is not simulated from here."""
        return

    def _result(self, outcome: Outcome) -> Result:
        result = super()._result(outcome)
        notes = (*result.notes, *self._notes())
        return replace(
            result, leads=self.blocks.leads(), notes=notes, control_regret=self._control_regret()
        )

    def _control_regret(self) -> float | None:
        """What keeping the control loses at most, in the user's units; None if nothing is
        proved."""
        arm = position_of(self.settings.control, self.settings.labels)
        if arm is None or arm in self.ledger.retired:
            return None
        bound = self.test.bound_of(arm)
        return None if bound is None else bound * self.settings.problem.rewards.scale

    def _notes(self) -> tuple[str, ...]:
        """Leads that change, once there is something to look at."""
        counted = self.blocks.counted
        if not counted:
            return ()
        return trend_notes(counted, self.settings.labels, self.settings.problem)


def day_of(name: str) -> float | None:
    """When the day of this name begins, in seconds since 1970; None if it is no date."""
    try:
        return float(timegm(time.strptime(name, "%Y-%m-%d")))
    except ValueError:
        return None


def replica_of(name: str, settings: Settings, origin: str | None = None) -> Replica:
    """What a program knows of an experiment, before it has read its log."""
    live = settings.problem.traffic is not None
    kind = BlockReplica if live else Replica
    return kind(name, settings, origin)
