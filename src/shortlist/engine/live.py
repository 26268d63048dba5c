"""The methods of an experiment that is a live test: shares, assignments and counts (docs/drift.md).

A test that was created with `drift` is told as counts per block; it has no tickets."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime
from math import isclose, isfinite
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from shortlist.arms import Label, position_of, unknown_arm
from shortlist.certificates.drift.planning import FEW_IN_PLAY, MANY_PARTS, PARTS
from shortlist.engine.block_replay import BlockReplica
from shortlist.engine.blocks import (
    NO_VISITORS,
    Assignment,
    Blocks,
    CountsReceipt,
    CountsRow,
    Shares,
    TestBlock,
    assigned_arm,
    counting,
    doubt_refused,
    opening,
    voiding,
)
from shortlist.engine.replay import Replica
from shortlist.errors import ConflictingReward, InvalidInput, UnknownName, caution
from shortlist.formatting import given_text
from shortlist.problem import Problem
from shortlist.reading.counts import block_counts
from shortlist.settings import MOST_METRICS, Settings, checked_metric
from shortlist.stores import Event, Kind, Store
from shortlist.stores.base import retried
from shortlist.validation import named, real, shown, text, whole

LONGEST_NAME = 200  # characters of the name of a block, and of a visitor
CountsGiven = Mapping[Any, Sequence[float]] | Any  # or a data frame
MANY_VISITORS = 100  # from which on a sum below 1 looks like a rate
MetricsGiven = Mapping[str, Mapping[Any, float]]  # per metric, the sum of every arm
DAY = "%Y-%m-%d"


class Live:
    """The methods of a live test. `Experiment` has them."""

    name: str
    settings: Settings
    _store: Store
    _known: Replica

    def _writing(self) -> AbstractContextManager[float]:
        raise NotImplementedError

    def _catch_up(self) -> None:
        raise NotImplementedError

    @retried
    def shares(self, block: str | None = None) -> Shares:
        """Open a block, or repeat the shares of one that exists.

        The shares of a block never change. Visitors belong to the block that was open at their
        first visit; open the next one before its first visitor comes.

        Args:
            block: Name of the block. Default: the date, so that every day is a block: in UTC, or
                in the `timezone` of the test.

        Returns:
            The name of the block, and the share of every arm in percent. Once the test has ended,
            the chosen arms share all visitors, and the name is empty.

        Raises:
            InvalidInput: The experiment was not created with `drift` or `per_day`, or its blocks
                have names of yours and none is given.

        Example:
            >>> import shortlist
            >>> test = shortlist.Experiment.create(["a", "b"], 1, epsilon=0.01, per_day=1000)
            >>> test.shares("monday").percent
            {'a': 50, 'b': 50}
        """
        wanted = None if block is None else checked_block(block)
        with self._writing() as now:
            known = live_replica(self._known, "shares")
            if known.replay.outcome is not None:
                return _final_shares(known)
            return _shares_of(self._opened(known, wanted, now), self.settings.labels)

    def _opened(self, known: BlockReplica, wanted: str | None, now: float) -> TestBlock:
        """The block of this name, opened now if there is none."""
        name = _name_now(known, now) if wanted is None else wanted
        if name not in known.blocks.by_name:
            terms = known.test.terms()
            many = int(terms.in_play.sum()) > FEW_IN_PLAY
            whole_parts = MANY_PARTS if many else PARTS
            parts = np.round(terms.shares * whole_parts).astype(np.int64).tolist()
            event = opening(known.blocks, name, terms, parts, now)
            self._store.append(self.name, events=[event])
            self._catch_up()
        return known.blocks.by_name[name]

    @retried
    def assign(self, visitor: str, block: str | None = None) -> Assignment:
        """Assign a visitor to an arm: the same visitor gets the same arm at every visit.

        The first assignment is kept in the log, as a hash of `visitor`. Only the first visit
        counts, in the block that it names, whenever the result comes.

        Args:
            visitor: Identifier of the visitor, such as a cookie; hashed with one key per test.
            block: Name of the block, as in `shares`.

        Returns:
            The arm to show, the block that the results of this visitor belong to, and whether this
            is the first visit.

        Raises:
            InvalidInput: The experiment was not created with `drift` or `per_day`.

        Example:
            >>> import shortlist
            >>> test = shortlist.Experiment.create(["a", "b"], 1, epsilon=0.01, per_day=1000)
            >>> first = test.assign("cookie 17", "monday")
            >>> again = test.assign("cookie 17", "tuesday")
            >>> first.arm == again.arm, again.block, again.first
            (True, 'monday', False)
        """
        who = checked_block(visitor, "visitor")
        wanted = None if block is None else checked_block(block)
        with self._writing() as now:
            known = live_replica(self._known, "assign")
            blocks, labels = known.blocks, self.settings.labels
            digest = blocks.visitor_key(who)
            place = blocks.visitors.get(digest.hex())
            if place is not None:
                number, arm = place
                return Assignment(labels[_served(known, arm)], blocks.all[number].name, False)
            if known.replay.outcome is not None:
                chosen = np.isin(np.arange(len(labels)), known.test.top) / known.test.top.size
                return Assignment(labels[assigned_arm(digest, chosen)], "", False)
            opened = self._opened(known, wanted, now)
            if opened.rows is not None:
                raise InvalidInput(f"`block` is {opened.name!r}, but was told: open the next one")
            arm = assigned_arm(digest, opened.terms.shares)
            event = Event(Kind.ASSIGN, opened.number, arm, digest.hex(), now)
            self._store.append(self.name, events=[event])
            return Assignment(labels[_served(known, arm)], opened.name, True)

    def tell_counts(
        self, block: str, counts: CountsGiven, *, metrics: MetricsGiven | None = None
    ) -> CountsReceipt:
        """Tell a block, once and completely: visitors and sum of rewards of every arm in play.

        Telling the same again changes nothing; other counts for the same block are refused, and the
        first stay. Blocks count in the order in which they were opened. A visitor counts once in
        the whole test, in the block of the first visit.

        Args:
            block: Name of the block, as `shares` gave it.
            counts: Per arm `(visitors, sum)` or `(visitors, sum, squares)`, or a data frame with
                columns arm, visitors, and sum or conversions. With 0/1 rewards the sum is the
                number of conversions. Squares help if rewards vary little.
            metrics: Further figures of the same visitors, per metric the sum of every arm, such as
                `{"bounce": {"a": 120, "b": 131}}`. A visitor has between 0 and 1 of each. Every
                block has the same metrics; those of `guardrails` are among them.

        Returns:
            Whether the block counts, waits for an earlier one, was skipped, refused or is void.

        Raises:
            UnknownName: There is no such block or arm.
            InvalidInput: An arm in play is missing, an arm that is not in play has visitors, the
                numbers contradict the declared rewards or the assignments, or a metric is missing
                or new.
            ConflictingReward: The block was told before, with other counts.

        Example:
            >>> import shortlist
            >>> test = shortlist.Experiment.create(["a", "b"], 1, epsilon=0.01, per_day=1000)
            >>> _ = test.shares("monday")
            >>> test.tell_counts("monday", {"a": (495, 12), "b": (505, 14)}).state
            'counted'
        """
        given = named("metrics", metrics)
        receipt = self._tell_counts(checked_block(block), _collected(counts), given)
        doubt_refused(receipt)
        return receipt

    @retried
    def _tell_counts(
        self, name: str, counts: dict[Any, Any], metrics: dict[str, Any]
    ) -> CountsReceipt:
        with self._writing() as now:
            known = live_replica(self._known, "tell_counts")
            block = known.blocks.by_name.get(name)
            if block is None and known.replay.outcome is not None:
                return CountsReceipt(name, "unused")  # the test has ended: shares opened no block
            if block is None:
                raise _unknown_block(name, known.blocks)
            if block.void is not None:
                return known.blocks.state_of(block)
            rows = checked_rows(block, counts, self.settings)
            sums = checked_metrics(block, metrics, rows, known.blocks, self.settings)
            if block.rows is not None:
                _check_same(block, rows, sums, self.settings)
                return known.blocks.state_of(block)
            _check_assigned(block, rows, self.settings)
            if known.replay.outcome is not None:
                return CountsReceipt(name, "unused")
            _caution_rates(block, rows, sums)
            self._store.append(self.name, events=[counting(block, rows, sums, now)])
            self._catch_up()
            return known.blocks.state_of(block)

    @retried
    def void_block(self, block: str, reason: str) -> CountsReceipt:
        """Leave out a block whose data were lost, so that later blocks can count.

        Nothing of a void block counts, nor do its visitors later. Void a block only if its data are
        lost or spoilt for a reason that has nothing to do with who was assigned to which arm, and
        nothing with results of this block or later ones; decide without looking at any of them
        (docs/drift.md). It cannot be undone, and a block that was told cannot be voided.

        Args:
            block: Name of the block.
            reason: What happened; it is shown with the result.

        Returns:
            The state "void", or "unused" once the test has ended.

        Raises:
            UnknownName: There is no such block.
            InvalidInput: The block was told, or the reason is empty.

        Example:
            >>> import shortlist
            >>> test = shortlist.Experiment.create(["a", "b"], 1, epsilon=0.01, per_day=1000)
            >>> _ = test.shares("monday")
            >>> test.void_block("monday", "the warehouse lost the day").state
            'void'
        """
        name, why = checked_block(block), checked_block(reason, "reason")
        with self._writing() as now:
            known = live_replica(self._known, "void_block")
            found = known.blocks.by_name.get(name)
            if found is None:
                raise _unknown_block(name, known.blocks)
            if found.rows is not None and found.void is None:
                raise InvalidInput(
                    f"`block` is {name!r}, but was told: a block whose counts are known cannot be"
                    " left out, for that would choose by results"
                )
            if found.void is None and known.replay.outcome is None:
                self._store.append(self.name, events=[voiding(found, why, now)])
                self._catch_up()
            if found.void is None:
                return CountsReceipt(name, "unused")
            return known.blocks.state_of(found)


def live_replica(known: Replica, method: str) -> BlockReplica:
    """The replica of a live test; another experiment is refused."""
    if not isinstance(known, BlockReplica):
        raise InvalidInput(
            f"`{method}` is called, but the experiment was created without `drift` or `per_day`:"
            " it has tickets, not blocks"
        )
    return known


def checked_block(value: object, name: str = "block") -> str:
    """A name that is not empty and not too long."""
    if isinstance(value, date):
        raise InvalidInput(f"`{name}` is {shown(value)}, but must be a text: {str(value)!r}")
    given = text(name, value)
    if not given or len(given) > LONGEST_NAME:
        rule = f"must be a text of 1 to {LONGEST_NAME} characters"
        raise InvalidInput(f"`{name}` is {shown(given[:50])}, but {rule}")
    return given


def _name_now(known: BlockReplica, now: float) -> str:
    """The date, if the blocks so far are days as well."""
    blocks = known.blocks.all
    zone = known.settings.timezone
    if blocks and blocks[-1].name != day_at(blocks[-1].opened, zone):
        raise InvalidInput(
            "`block` is not given, but the blocks of this test have names: the last one is"
            f" {blocks[-1].name!r}"
        )
    return day_at(now, zone)


def day_at(now: float, zone: str | None) -> str:
    """The date at this moment, in seconds since 1970, in a time zone; in UTC by default."""
    return datetime.fromtimestamp(now, UTC if zone is None else ZoneInfo(zone)).strftime(DAY)


def _shares_of(block: TestBlock, labels: Sequence[Label]) -> Shares:
    percent = [_percent(share) for share in block.terms.shares.tolist()]
    return Shares(block.name, dict(zip(labels, percent, strict=True)))


def _percent(share: float) -> float:
    percent = round(share * 100, 6)
    return int(percent) if float(percent).is_integer() else percent


def _unknown_block(name: str, blocks: Blocks) -> UnknownName:
    """The error that no block is called so, and the name of the first that waits for counts."""
    waiting = next((block.name for block in blocks.all if block.rows is None), None)
    hint = "`shares` opens one" if waiting is None else f"{waiting!r} waits for counts"
    return UnknownName(f"`block` is {name!r}, but no block of that name was opened: {hint}")


def _final_shares(known: BlockReplica) -> Shares:
    """All visitors to the chosen arms, once the test has ended."""
    labels = known.settings.labels
    chosen = set(known.test.top.tolist())
    share = _percent(1 / len(chosen))
    return Shares("", {label: share if arm in chosen else 0 for arm, label in enumerate(labels)})


def _served(known: BlockReplica, arm: int) -> int:
    """The arm to show: another one than a retired arm, and nothing changes in the counts."""
    return int(known.test.top[0]) if arm in known.ledger.retired else arm


def _collected(counts: object) -> dict[Any, Any]:
    counts = block_counts(counts) if hasattr(counts, "columns") else counts
    if not isinstance(counts, Mapping):
        rule = "must be a mapping of arms to (visitors, sum) or (visitors, sum, squares)"
        raise InvalidInput(f"`counts` is {shown(counts)}, but {rule}")
    return dict(counts)


def checked_rows(
    block: TestBlock, counts: Mapping[Any, Any], settings: Settings
) -> list[CountsRow]:
    """A row per arm, if the counts are complete and make sense."""
    labels, in_play = settings.labels, block.terms.in_play
    rows: dict[int, CountsRow] = {}
    for label, given in counts.items():
        arm = position_of(label, labels)
        if arm is None:
            raise unknown_arm("arm", label, labels)
        rows[arm] = _checked_row(given, label, settings.problem)
        if not in_play[arm] and rows[arm][0]:
            raise InvalidInput(
                f"block {block.name!r} has {rows[arm][0]:,} visitors of {shown(label)}, but this"
                " arm is not in play in it"
            )
    missing = [labels[arm] for arm in np.flatnonzero(in_play).tolist() if arm not in rows]
    if missing:
        raise InvalidInput(
            f"block {block.name!r} is told without {shown(missing[0])}, but a block is told"
            " completely: every arm in play, also one without visitors"
        )
    return [rows.get(arm, NO_VISITORS) for arm in range(len(labels))]


def _checked_row(given: object, label: object, problem: Problem) -> CountsRow:
    where = f"the counts of {shown(label)}"
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        rule = "must be (visitors, sum) or (visitors, sum, squares)"
        raise InvalidInput(f"{where} are {shown(given)}, but {rule}")
    visitors = whole("visitors", given[0], at_least=0)
    low, high = problem.rewards.support
    total = _finite(given[1], where)
    slack = 1e-9 * max(abs(low), abs(high)) * max(visitors, 1)
    if not low * visitors - slack <= total <= high * visitors + slack:
        ends = f"{given_text(low * visitors)} and {given_text(high * visitors)}"
        raise InvalidInput(
            f"{where} have the sum {given_text(total)}, but with {visitors:,} visitors and rewards"
            f" from {given_text(low)} to {given_text(high)} it must be between {ends}"
        )
    if problem.rewards.is_binary and not total.is_integer():
        raise InvalidInput(
            f"{where} have the sum {given_text(total)}, but 0/1 rewards have a whole sum: declare"
            " `rewards=(0, 1)` for others"
        )
    squares = None if len(given) == 2 else _finite(given[2], where)
    if squares is not None:
        _check_squares(visitors, total, squares, problem, where)
    return visitors, total, squares


def _check_squares(
    visitors: int, total: float, squares: float, problem: Problem, where: str
) -> None:
    """Refuse a sum of squares that rewards in their range cannot have."""
    low, high = problem.rewards.support
    least = total**2 / visitors if visitors else 0.0
    most = (low + high) * total - visitors * low * high  # (x - low)(high - x) >= 0
    slack = 1e-9 * max(1.0, abs(least), abs(most))
    if problem.rewards.is_binary:
        least = most
    if not least - slack <= squares <= most + slack:
        rule = given_text(most)
        if not isclose(least, most):
            rule = f"between {given_text(least)} and {rule}"
        raise InvalidInput(
            f"{where} have the sum of squares {given_text(squares)}, but it must be {rule}"
        )


def checked_metrics(
    block: TestBlock,
    metrics: Mapping[str, Any],
    rows: Sequence[CountsRow],
    blocks: Blocks,
    settings: Settings,
) -> dict[str, tuple[float, ...]]:
    """The sum of every arm, per metric, if every block has the same metrics."""
    given = {checked_metric(name): sums for name, sums in metrics.items()}
    _check_names(block, given, blocks, settings)
    return {name: _checked_sums(block, name, sums, rows, settings) for name, sums in given.items()}


def _check_names(
    block: TestBlock, given: Mapping[str, Any], blocks: Blocks, settings: Settings
) -> None:
    """Refuse a metric that other blocks do not have, and the lack of one that they have."""
    if given and settings.control is None:
        rule = "metrics are compared with a control: create the test with `control`"
        raise InvalidInput(f"`metrics` are {shown(sorted(given))}, but {rule}")
    wanted = blocks.guardrails if blocks.measured is None else blocks.measured
    missing = [name for name in wanted if name not in given]
    if missing:
        raise InvalidInput(
            f"block {block.name!r} is told without the metric {missing[0]!r}, but every block has"
            " the same metrics, those of `guardrails` included"
        )
    new = [name for name in given if name not in wanted]
    if new and blocks.measured is not None:
        raise InvalidInput(
            f"block {block.name!r} is told with the metric {new[0]!r}, but the first block was told"
            " without it: a metric is told from the first block on"
        )
    if len(given) > MOST_METRICS:
        rule = f"there may be at most {MOST_METRICS}"
        raise InvalidInput(f"{len(given)} `metrics` are given, but {rule}")


def _checked_sums(
    block: TestBlock, name: str, sums: object, rows: Sequence[CountsRow], settings: Settings
) -> tuple[float, ...]:
    """The sum of a metric of every arm: 0 for those that are not in play."""
    if not isinstance(sums, Mapping):
        rule = "must be a mapping of arms to sums"
        raise InvalidInput(f"the metric {name!r} is {shown(sums)}, but {rule}")
    labels, told = settings.labels, dict[int, float]()
    for label, value in sums.items():
        arm = position_of(label, labels)
        if arm is None:
            raise unknown_arm("arm", label, labels)
        where, most = f"the metric {name!r} of {shown(label)}", rows[arm][0]
        told[arm] = _finite(value, where)
        if not 0 <= told[arm] <= most:
            rule = f"must be between 0 and the number of visitors, {most:,}"
            raise InvalidInput(f"{where} has the sum {given_text(told[arm])}, but {rule}")
    missing = [labels[arm] for arm in np.flatnonzero(block.terms.in_play) if arm not in told]
    if missing:
        rule = "every arm in play needs a sum"
        raise InvalidInput(f"the metric {name!r} is told without {missing[0]!r}, but {rule}")
    return tuple(told.get(arm, 0.0) for arm in range(len(labels)))


def _caution_rates(
    block: TestBlock, rows: Sequence[CountsRow], metrics: Mapping[str, Sequence[float]]
) -> None:
    """Warn of sums that look like rates: below 1 for every arm, with many visitors each."""
    told = {"the rewards": [total for _, total, _ in rows]}
    told |= {f"the metric {name!r}": list(sums) for name, sums in metrics.items()}
    often = [arm for arm, (visitors, _, _) in enumerate(rows) if visitors >= MANY_VISITORS]
    for what, sums in told.items():
        if any(sums) and often and all(0 < sums[arm] < 1 for arm in often):
            caution(
                f"block {block.name!r} has sums below 1 for {what}, {shown(sums)}: they look like"
                " rates, but must be sums over all visitors; the first counts of a block stay"
            )


def _finite(value: object, where: str) -> float:
    number = real(value)
    if not isfinite(number):
        raise InvalidInput(f"{where} have {shown(value)}, but must be finite numbers")
    return number


def _check_same(
    block: TestBlock,
    rows: Sequence[CountsRow],
    metrics: Mapping[str, Sequence[float]],
    settings: Settings,
) -> None:
    """Refuse other counts than those that were told first."""
    assert block.rows is not None
    for arm, (first, now) in enumerate(zip(block.rows, rows, strict=True)):
        if first != now:
            raise ConflictingReward(
                f"block {block.name!r} is told {_listed(now)} for arm {settings.labels[arm]!r}, but"
                f" was told {_listed(first)} before, which stays: leave this block out"
            )
    for name, sums in metrics.items():
        if block.metrics[name] != sums:
            raise ConflictingReward(
                f"block {block.name!r} is told {name!r} {shown(sums)}, but was told"
                f" {shown(block.metrics[name])} before, which stays: leave this block out"
            )


def _listed(row: CountsRow) -> str:
    return str(tuple(each for each in row if each is not None))


def _check_assigned(block: TestBlock, rows: Sequence[CountsRow], settings: Settings) -> None:
    """Refuse other numbers of visitors than those whom `assign` assigned for the first time."""
    if not block.assigned:
        return
    for arm, (visitors, _, _) in enumerate(rows):
        if visitors != block.assigned[arm]:
            raise InvalidInput(
                f"block {block.name!r} is told {visitors:,} visitors of"
                f" {shown(settings.labels[arm])}, but {block.assigned[arm]:,} were assigned for the"
                " first time in it: a visitor counts once, in the block of the first visit"
            )
