"""What a program knows of a live test: its blocks in place of tickets, and leads that change.

A novelty that fades, or a page that slowly breaks, is a lead that changes. The bound is then about
the average over the test (docs/drift.md). For every arm, the lead over the arms that were in play
in all of its blocks is fitted by a straight line; a steep slope is noted. A chosen arm that was a
novelty is the expensive mistake, so its lead is also fitted by an exponential decay, and noted
sooner. This is a hint and no test: a search that ends when leads are clear ends when they look
large, and leads that looked too large at first seem to fall. No guarantee rests on it."""

import time
from calendar import timegm
from collections.abc import Collection, Sequence
from dataclasses import replace
from math import floor, inf, log10
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from shortlist.arms import Label, position_of, shown_label
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.drift.block_test import BlockTest
from shortlist.driver import Outcome
from shortlist.engine.blocks import Blocks, TestBlock
from shortlist.engine.checks import Checks
from shortlist.engine.replay import NOTHING, STATES, Replay, Replica
from shortlist.engine.tickets import Numbering, OpenBatches, State
from shortlist.errors import InvalidInput
from shortlist.formatting import RAW, Unit, difference_text, plural, printable, readable, unit_of
from shortlist.interim import Tally
from shortlist.problem import Problem
from shortlist.result import Result
from shortlist.result.arm_results import MetricLift
from shortlist.search import Progress
from shortlist.settings import Settings
from shortlist.stores import Kind, News

SECONDS_PER_DAY = 86400.0
OF_BLOCKS = (Kind.OPEN, Kind.COUNTS, Kind.ASSIGN)
FEWEST = 3  # blocks that a line is fitted to
ENOUGH = 14  # blocks, two weeks of days, from which on it is not mentioned what cannot be seen
POWER = 0.8  # with which a change that "would mostly be seen" is seen
UNLIKELY = 0.05  # probability below which the slope of an arm is noted, for all arms together
FADING = 0.1  # the same for a lead of the choice that fades, for all chosen arms together
HALVINGS = 4  # of a lead that fades, over the test


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
        self.history: list[tuple[int, Progress]] = self.blocks.history
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

    @property
    def number(self) -> int:
        """There are no batches."""
        return 0


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
        ledger.spent = ledger.declared = float(visitors @ self.settings.problem.declared_costs)

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

    def told_blocks(self) -> list[str]:
        """The names of the blocks that were told, in order."""
        return [block.name for block in self.blocks.all[: self.blocks.passed]]

    def opened_blocks(self) -> list[tuple[str, FloatArray]]:
        """The names and shares of all blocks; last, without a name, those of the answer."""
        opened = [(block.name, block.terms.shares) for block in self.blocks.all]
        if self.replay.outcome is None:
            return opened
        chosen = np.isin(np.arange(self.settings.problem.n_arms), self.test.top)
        return [*opened, ("", chosen / chosen.sum())]

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
        void = [block.name for block in blocks.all if block.void is not None]
        if left_out:
            facts.append(f"{left_out:,} left out")
        if void:
            facts.append(f"{len(void):,} void, the first is {void[0]!r}")
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
        return np.asarray((tally.pulls + tally.waiting) * self.settings.problem.declared_costs)

    @property
    def _missing(self) -> int:
        return 0

    def underway(self) -> None:
        """A live test is not simulated from here."""
        return

    def _result(self, outcome: Outcome) -> Result:
        result = super()._result(outcome)
        chosen = [arm for arm, each in enumerate(result.arms) if each.chosen]
        notes = (*result.notes, *self._notes(chosen))
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

    def _notes(self, chosen: Collection[int]) -> tuple[str, ...]:
        """Void and refused blocks, and leads that change, once there is something to look at."""
        blocks = self.blocks.all
        void = [
            f"block {block.name!r} is void, so nothing of it counts: {printable(block.void)}"
            for block in blocks
            if block.void is not None
        ]
        void += [
            f"block {block.name!r} was refused, so nothing of it counts: its numbers of visitors do"
            " not agree with its shares"
            for block in blocks[: self.blocks.passed]
            if block.refused and block.void is None
        ]
        counted = self.blocks.counted
        if not counted:
            return tuple(void)
        given = counted, self.settings.labels, self.settings.problem, chosen
        return (*void, *trend_notes(*given, unit_of(self.settings.unit)))


def day_of(name: str) -> float | None:
    """When the day of this name begins, in seconds since 1970; None if it is no date."""
    try:
        return float(timegm(time.strptime(name, "%Y-%m-%d")))
    except ValueError:
        return None


class TrendLine(NamedTuple):
    """The lead of an arm over the others, fitted by a line in time, or in a function of time."""

    first: float  # at the first block
    last: float  # at the last block
    fall: float  # the difference between both, in standard errors
    error: float  # standard error of that difference

    @property
    def chance(self) -> float:
        """Of a slope as steep in a fixed number of blocks with a constant lead."""
        return float(2 * ndtr(-abs(self.fall)))

    def ends_text(self, scale: float, unit: Unit) -> str:
        """Both ends in a sentence, with as many digits as their difference has."""
        digits = 1 - floor(log10(self.error * scale))
        first, last = (round(each * scale, digits) + 0.0 for each in (self.first, self.last))
        return f"from {readable(first * 10**unit.power)} to {difference_text(last, unit)}"


def trend_notes(
    blocks: Sequence[TestBlock],
    labels: Sequence[Label],
    problem: Problem,
    chosen: Collection[int] = (),
    unit: Unit = RAW,
) -> tuple[str, ...]:
    """A note for every arm whose lead seems to change, and one if there are too few blocks to see
    that."""
    looked_at = range(len(labels))
    if len(labels) == 2:  # the lead of one is that of the other, turned round
        looked_at = range(1, 2) if 1 in chosen or not chosen else range(1)
    lines = {arm: line_of(blocks, arm, problem) for arm in looked_at}
    fitted = {arm: line for arm, line in lines.items() if line is not None}
    allowed = UNLIKELY / max(1, len(fitted))
    scale = problem.rewards.scale
    seen = {arm: line for arm, line in fitted.items() if line.chance < allowed}
    for arm in chosen:
        decay = line_of(blocks, arm, problem, halvings=HALVINGS)
        if decay is not None and ndtr(-decay.fall) < FADING / len(chosen):
            seen.setdefault(arm, decay)
    changes = tuple(
        f"the lead of {shown_label(labels[arm])} over the other arms seems to have changed,"
        f" {line.ends_text(scale, unit)} by a line fitted to the blocks: look at the days"
        for arm, line in sorted(seen.items())
    )
    if len(blocks) >= ENOUGH:
        return changes
    many = "1 block counts" if len(blocks) == 1 else f"{plural(len(blocks), 'block')} count"
    hidden = _hidden([line.error for line in fitted.values()], allowed, scale, unit)
    return (
        *changes,
        f"{many}, which is too few to see {hidden}, as novelties do: `min_blocks` asks for"
        " whole weeks, `skip_blocks` for a later start",
    )


def _hidden(errors: Sequence[float], allowed: float, scale: float, unit: Unit) -> str:
    """What would mostly go unnoticed: changes of a lead below this size."""
    if not errors:
        return "whether leads change over time"
    least = float(ndtri(1 - allowed / 2) + ndtri(POWER)) * max(errors) * scale
    return f"whether a lead changes by less than {difference_text(least, unit)} over them"


def line_of(
    blocks: Sequence[TestBlock], arm: int, problem: Problem, halvings: float = 0.0
) -> TrendLine | None:
    """The fitted line of an arm, on the scale of rewards from 0 to 1; None with too few blocks.

    With `halvings`, an exponential curve whose excess is halved as often from the first block to
    the last."""
    told = [block.told(problem).times for block in blocks if _shown(block, arm, problem)]
    always = np.all([times > 0 for times in told], axis=0) if told else np.array([], dtype=np.bool_)
    leads = [_lead(block, arm, always, problem) for block in blocks]
    known = [(place, *lead) for place, lead in enumerate(leads) if lead is not None]
    if len(known) < FEWEST:
        return None
    times, values, variances = np.array(known).T
    if halvings:
        times = -(0.5 ** (halvings * (times - times[0]) / (times[-1] - times[0])))
    return _fitted(times, values, 1 / variances)


def _shown(block: TestBlock, arm: int, problem: Problem) -> bool:
    """Whether an arm has visitors of its own in a block."""
    return arm not in block.retired and bool(block.told(problem).times[arm])


def _lead(
    block: TestBlock, arm: int, always: BoolArray, problem: Problem
) -> tuple[float, float] | None:
    """The lead of an arm in a block over those that `always` had visitors where it had, and its
    variance; None if nothing can be compared."""
    if not _shown(block, arm, problem):
        return None
    told = block.told(problem)
    rest = always.copy()
    rest[arm] = False
    own, others = told.times[arm], told.times[rest].sum()
    if not others:
        return None
    won, theirs = told.sums[arm], told.sums[rest].sum()
    rate = (won + theirs + 0.5) / (own + others + 1)
    return float(won / own - theirs / others), float(rate * (1 - rate) * (1 / own + 1 / others))


def _fitted(times: FloatArray, values: FloatArray, weights: FloatArray) -> TrendLine:
    """Weighted least squares."""
    centre = np.average(times, weights=weights)
    level = np.average(values, weights=weights)
    spread = weights @ (times - centre) ** 2
    slope = weights @ ((times - centre) * values) / spread
    ends = level + slope * (np.array([times[0], times[-1]]) - centre)
    error = (times[-1] - times[0]) / np.sqrt(spread)
    fall = -slope * np.sqrt(spread)
    return TrendLine(float(ends[0]), float(ends[1]), float(fall), float(error))
