"""Blocks of a live test, as the log of an experiment has them (docs/drift.md).

A block is opened with its terms, which are in the log and never change. It is told once, as counts
per arm. Blocks count in the order in which they were opened: one told early waits."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from shortlist.arms import Label, position_of
from shortlist.arrays import WRITTEN, FloatArray, IntArray, confidence_of
from shortlist.certificates.drift.block_test import BlockTest
from shortlist.certificates.drift.bound import BlockTerms, is_plausible
from shortlist.certificates.drift.secondary_metrics import MetricTest
from shortlist.certificates.pairs.bound import StageRewards
from shortlist.confidence import delta_of
from shortlist.driver import Outcome, to_unit_scale, to_user_scale
from shortlist.errors import ShortlistError, StoreDamaged, caution
from shortlist.interim import Tally
from shortlist.problem import Problem, Traffic
from shortlist.result.arm_results import BlockLeads, MetricLift, metric_lift
from shortlist.search import Progress, Pulls, Rewards
from shortlist.settings import MOST_METRICS, Settings
from shortlist.stores import Event, Kind

CountsRow = tuple[int, float, float | None]  # visitors, sum and sum of squares of an arm
NO_VISITORS: CountsRow = (0, 0.0, None)


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of a block: with which probability a visitor is assigned to each arm.

    They are those of the block for good. Once the test has ended, all visitors get a chosen arm,
    and `block` is empty: nothing is to be told any more."""

    block: str  #: name of the block; empty once the test has ended
    percent: Mapping[Label, float]  #: share of every arm; 0 for arms that are not in play


@dataclass(frozen=True, slots=True)
class Assignment:
    """The arm of a visitor."""

    arm: Label  #: to be shown, now and at every later visit
    #: of the first visit, which the results of this visitor belong to; empty if they count nowhere
    block: str
    first: bool  #: whether this is the first visit


@dataclass(frozen=True, slots=True)
class CountsReceipt:
    """What became of the counts of a block."""

    block: str  #: name of the block
    #: "counted", "waiting" for an earlier block, "skipped", "refused", "void", or "unused" after
    #: the end
    state: str
    reason: str = ""  #: why it waits, was refused or is void


def doubt_refused(receipt: CountsReceipt) -> None:
    """Warn of a block that was refused."""
    if receipt.state == "refused":
        caution(f"block {receipt.block!r} does not count: {receipt.reason}")


@dataclass(slots=True)
class TestBlock:
    """A block as it was opened, and what was told of it."""

    number: int
    name: str
    terms: BlockTerms
    opened: float  # seconds since 1970
    rows: tuple[CountsRow, ...] | None = None  # one per arm, once it is told
    refused: bool = False
    void: str | None = None  # why, if its data were lost and nothing of it counts
    assigned: Counter[int] = field(default_factory=Counter)  # visitors of every arm, by `assign`
    retired: set[int] = field(default_factory=set)  # arms that retired while it was open
    # of every metric: its terms, if it was known when the block was opened, and its sum per arm
    metric_terms: dict[str, BlockTerms] = field(default_factory=dict)
    metrics: dict[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def times(self) -> IntArray:
        """Visitors of every arm: (n,)."""
        return np.array([visitors for visitors, _, _ in self.rows or ()], dtype=np.int64)

    @property
    def sums(self) -> FloatArray:
        """Sums of the rewards of every arm, in the user's units: (n,)."""
        return np.array([total for _, total, _ in self.rows or ()])

    def squares(self, problem: Problem) -> FloatArray:
        """Sums of the squares of the rewards of every arm, in the user's units: (n,).

        Those that were not told are as large as can be: a square lies below the chord over the
        range of the rewards."""
        low, high = problem.rewards.support
        most = (low + high) * self.sums - low * high * self.times
        told = np.array([np.nan if each is None else each for _, _, each in self.rows or ()])
        return np.where(np.isnan(told), most, told)

    def told(self, problem: Problem) -> StageRewards:
        """What was told, on the unit scale; squares that were not told are bounded by the sums."""
        everything = Pulls(np.arange(problem.n_arms), self.times)
        given = np.array([0.0 if each is None else each for _, _, each in self.rows or ()])
        missing = np.array([each is None for _, _, each in self.rows or ()])
        unit = to_unit_scale(Rewards(self.sums, given), everything, problem)
        sums = np.clip(unit.sums, 0.0, self.times)  # they may be off by rounding
        written = WRITTEN * problem.rewards.distance**2 * self.times  # they may have ten digits
        squares = np.where(missing, sums, np.clip(unit.squares + written, 0.0, sums))
        return StageRewards(self.times, sums, squares)


class Blocks:
    """All blocks of a test, read from its log, and the test as far as they take it."""

    def __init__(self, settings: Settings) -> None:
        self._problem = settings.problem
        self._key = settings.identity.encode()
        self._n_arms = settings.problem.n_arms
        self._control = position_of(settings.control, settings.labels)
        rng = np.random.default_rng(settings.seed)
        self.test = BlockTest(settings.problem.unit(), rng, self._control)
        self.all: list[TestBlock] = []  # in the order of their opening
        self.by_name: dict[str, TestBlock] = {}
        self.visitors: dict[str, tuple[int, int]] = {}  # block and arm of the first visit
        self.passed = 0  # blocks that were told, in order
        self.measured: tuple[str, ...] | None = None  # metrics, once a block is told
        self.outcome: Outcome | None = None
        self.guardrails = settings.guardrails
        self.metrics: dict[str, MetricTest] = {}
        self._follow(self.guardrails)
        self.history: list[tuple[int, Progress]] = [(0, self.test.progress())]

    def _follow(self, names: Collection[str]) -> None:
        """Compare these metrics with the control, all guardrails together at one confidence."""
        traffic, delta = self._problem.traffic or Traffic(), delta_of(self._problem.goal)
        coming = None if traffic.per_day is None else traffic.per_day * (traffic.delay + 1.0)
        for name in names:
            if self._control is None or len(self.metrics) >= MOST_METRICS:
                raise ValueError(f"the metric {name!r} cannot be compared")
            share = delta / len(self.guardrails) if name in self.guardrails else delta
            test = MetricTest(self._n_arms, self._control, share, coming)
            self.metrics[name] = test

    def take(self, event: Event, where: str) -> None:
        """Read an entry of the log."""
        try:
            self._take(event)
        except (ValueError, LookupError, TypeError, ShortlistError) as error:
            raise StoreDamaged(
                f"{event.kind} of block {event.ticket} is in {where}, but makes no sense: {error}"
            ) from error

    def _take(self, event: Event) -> None:
        if event.kind is Kind.OPEN:
            self._open(event)
        elif event.kind is Kind.COUNTS:
            self._count(event)
        elif event.kind is Kind.ASSIGN:
            block = self.all[event.ticket]
            if not block.terms.in_play[event.span]:
                raise ValueError(f"arm {event.span} is not in play")
            if event.text not in self.visitors:
                self.visitors[event.text] = event.ticket, event.span
                block.assigned[event.span] += 1
        elif event.kind is Kind.RETIRE and self.outcome is None:
            self.test.retire(event.span)
            for metric in self.metrics.values():
                metric.retire(event.span)
            for block in self.all:
                if block.rows is None:
                    block.retired.add(event.span)

    def _open(self, event: Event) -> None:
        data = json.loads(event.text)
        parts = np.array(data["shares"], dtype=np.float64)
        if parts.shape != (self._n_arms,) or event.ticket != len(self.all):
            raise ValueError("blocks are numbered in order, with a share per arm")
        terms = BlockTerms(parts / parts.sum(), float(data["step"]), float(data["centre"]))
        block = TestBlock(event.ticket, str(data["name"]), terms, event.time)
        for name, (step, centre) in data.get("metrics", {}).items():
            block.metric_terms[name] = BlockTerms(terms.shares, float(step), float(centre))
        if block.name in self.by_name:
            raise ValueError(f"there are two blocks {block.name!r}")
        self.all.append(block)
        self.by_name[block.name] = block

    def _count(self, event: Event) -> None:
        block = self.all[event.ticket]
        if block.rows is not None:
            raise ValueError("it was told before")
        data = json.loads(event.text)
        rows = tuple(_row(each) for each in data["counts"])
        if len(rows) != self._n_arms:
            raise ValueError("it needs a row per arm")
        block.rows = rows
        block.void = None if data.get("void") is None else str(data["void"])
        if block.void is None:  # a void block has no metrics, whatever others have
            self._measure(block, data.get("metrics", {}))
        block.refused = bool(data.get("refused", False)) or block.void is not None
        self._pass()

    def _measure(self, block: TestBlock, data: Mapping[str, Sequence[float]]) -> None:
        """Read the metrics of a block; the first block that is told decides which there are."""
        if self.measured is None:
            self._follow([name for name in data if name not in self.metrics])
            self.measured = tuple(self.metrics)
        if set(data) != set(self.measured):
            raise ValueError(f"its metrics are {sorted(data)}, and not {sorted(self.measured)}")
        for name, sums in data.items():
            told = tuple(map(float, sums))
            in_range = (0 <= each <= most for each, most in zip(told, block.times, strict=True))
            if not all(in_range):
                raise ValueError(f"the sums of {name!r} are {told}")
            block.metrics[name] = told

    def _pass(self) -> None:
        """Count blocks in the order of their opening, up to the first that is not told."""
        while self.outcome is None and self.passed < len(self.all):
            block = self.all[self.passed]
            if block.rows is None:
                return
            self._compare(block, left_out=block.refused or self.test.skipping)
            if block.refused:
                self.test.refuse()
            else:
                self.test.take(block.terms, block.told(self._problem))
            self.passed += 1
            self.history.append(
                (self.history[-1][0] + int(block.times.sum()), self.test.progress())
            )
            if self.test.done:
                self.outcome = self.present()

    def _compare(self, block: TestBlock, *, left_out: bool) -> None:
        """Count the metrics of the next block in order, unless it counts nothing."""
        for name, test in self.metrics.items():
            if left_out:
                test.leave_out()
                continue
            sums = np.array(block.metrics[name])
            # one that was not known then has the terms of a metric of which nothing is known
            terms = block.metric_terms.get(name) or test.first_terms(block.terms.shares)
            test.take(terms, StageRewards(block.times, sums, sums))

    @property
    def counted(self) -> list[TestBlock]:
        """The blocks that count, in order."""
        traffic = self._problem.traffic
        skipped = 0 if traffic is None else traffic.skip_blocks
        return [block for block in self.all[skipped : self.passed] if not block.refused]

    def tally(self) -> Tally:
        """What is counted of every arm, and what waits for an earlier block."""
        tally = Tally(self._n_arms)
        for block in self.counted:
            shown = ~np.isin(np.arange(self._n_arms), list(block.retired))  # others saw other arms
            tally.pulls += block.times * shown
            tally.sums += block.sums * shown
            tally.squares += block.squares(self._problem) * shown
        for block in self.all[self.passed :]:
            if block.rows is not None:
                tally.waiting += block.times
        return tally

    def present(self) -> Outcome:
        """The outcome if the test ended now."""
        tally = self.tally()
        answer = to_user_scale(self.test.answer(), self._problem)
        done = self.test.done
        return Outcome(
            answer, tally.pulls, tally.sums, self.passed, waiting=tally.waiting, complete=done
        )

    def leads(self) -> BlockLeads:
        """Estimates of all leads, and bounds that hold for all pairs at once, in the user's
        units."""
        scale, sign = self._problem.rewards.scale, self._problem.sign
        effects, bounds = self.test.leads()
        matrix = (effects[None, :] - effects[:, None]) * scale
        high = bounds * scale
        low = -high.T
        if sign < 0:  # small rewards are good: a lead on the unit scale is a difference below 0
            matrix, low, high = -matrix, -high, -low
        return BlockLeads(*(tuple(map(tuple, each.tolist())) for each in (matrix, low, high)))

    def lifts(self, labels: Sequence[Label]) -> tuple[MetricLift, ...]:
        """Every metric of all arms against the control."""
        lifts, sure = [], confidence_of(delta_of(self._problem.goal))
        for name, test in self.metrics.items():
            found = test.compared()
            figures, margin = (found.lead, found.low, found.high), self.guardrails.get(name)
            lifts.append(metric_lift(name, margin, tuple(labels), test.control, figures, sure))
        return tuple(lifts)

    def state_of(self, block: TestBlock) -> CountsReceipt:
        """What became of a block that was told."""
        traffic = self._problem.traffic
        if block.void is not None:
            return CountsReceipt(block.name, "void", block.void)
        if block.refused:
            return CountsReceipt(block.name, "refused", MISMATCH)
        if block.number >= self.passed:
            return self._not_counted(block)
        skipped = traffic is not None and block.number < traffic.skip_blocks
        return CountsReceipt(block.name, "skipped" if skipped else "counted")

    def _not_counted(self, block: TestBlock) -> CountsReceipt:
        """Of a block after the end of the test, or behind one that is not told."""
        if self.outcome is not None:
            return CountsReceipt(block.name, "unused")
        first = self.all[self.passed].name
        return CountsReceipt(block.name, "waiting", f"block {first!r} is open and not told")

    def visitor_key(self, visitor: str) -> bytes:
        """The keyed hash of a visitor: one key per test, so that tests are independent."""
        return blake2b(visitor.encode(), digest_size=16, key=self._key[:64]).digest()


MISMATCH = (
    "the numbers of visitors do not agree with the shares: a sound test has such numbers with"
    " probability 1e-6 at most. Look for lost visitors, an arm that crashed, or bots"
)


def opening(
    blocks: Blocks, name: str, terms: BlockTerms, parts: Sequence[int], now: float
) -> Event:
    """The entry of the log that opens a block."""
    data = {"name": name, "shares": list(parts), "step": terms.step, "centre": terms.centre}
    of_metrics = {each: test.terms(terms.shares) for each, test in blocks.metrics.items()}
    if of_metrics:
        data["metrics"] = {each: [own.step, own.centre] for each, own in of_metrics.items()}
    return Event(Kind.OPEN, len(blocks.all), 0, json.dumps(data, separators=(",", ":")), now)


def counting(
    block: TestBlock, rows: Sequence[CountsRow], metrics: Mapping[str, Sequence[float]], now: float
) -> Event:
    """The entry of the log that tells a block; it is refused if its numbers are implausible."""
    times = np.array([visitors for visitors, _, _ in rows], dtype=np.int64)
    data: dict[str, Any] = {"counts": [_plain(row) for row in rows]}
    if metrics:
        data["metrics"] = {name: [_short(each) for each in sums] for name, sums in metrics.items()}
    if not is_plausible(times, block.terms.shares):
        data["refused"] = True
    return Event(Kind.COUNTS, block.number, 0, json.dumps(data, separators=(",", ":")), now)


def voiding(block: TestBlock, reason: str, now: float) -> Event:
    """The entry of the log that leaves out a block whose data were lost."""
    counts = [_plain(NO_VISITORS)] * block.terms.shares.size
    data = {"counts": counts, "refused": True, "void": reason}
    return Event(Kind.COUNTS, block.number, 0, json.dumps(data, separators=(",", ":")), now)


def assigned_arm(digest: bytes, shares: FloatArray) -> int:
    """The arm that the hash of a visitor is assigned to, with these shares."""
    place = int.from_bytes(digest[:8], "big") / 2**64
    cumulative = np.cumsum(shares)
    arm = int(np.searchsorted(cumulative, place * cumulative[-1], side="right"))
    return min(arm, int(np.flatnonzero(shares)[-1]))


def _plain(row: CountsRow) -> list[float]:
    visitors, total, squares = row
    return [visitors, _short(total)] if squares is None else [visitors, _short(total), squares]


def _short(value: float) -> float:
    return int(value) if float(value).is_integer() else value


def _row(values: Any) -> CountsRow:
    visitors, total, *more = values
    if not isinstance(visitors, int) or visitors < 0:
        raise ValueError(f"{visitors!r} visitors")
    return visitors, float(total), float(more[0]) if more else None
