"""The search of an experiment, run again from its beginning with the rewards that were told.

A `Replica` is all that one program knows of an experiment: its log, and the search behind it."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from math import inf, isfinite
from typing import Any

import numpy as np

from shortlist.arms import Label, OwnLabel, position_of
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.constraints import Constraint, best_set
from shortlist.driver import Outcome, Run, counted, present_outcome
from shortlist.engine.checks import Checks
from shortlist.engine.eta import MOST_REPLIES, PartialBatch, SearchSnapshot
from shortlist.engine.ledger import MOST_UNDER_WAY, NONE, Ledger, check_news
from shortlist.engine.status import Counted, Status
from shortlist.engine.tickets import (
    FREE,
    Numbering,
    OpenBatches,
    Received,
    State,
    Ticket,
    TicketBlock,
    by_entry,
    draw_seed,
    due_of,
    shared_seed,
)
from shortlist.errors import CannotReplay, StoreDamaged
from shortlist.formatting import plural, printable
from shortlist.interim import Tally, scored
from shortlist.problem import Problem
from shortlist.result import Result
from shortlist.result.arm_results import MetricLift, MetricOfPulls
from shortlist.result.cells import EvaluatedCell
from shortlist.result.result import Ending
from shortlist.reward_models import Undeclared, Unranged
from shortlist.search import NO_PROGRESS, Answer, Dialogue, Progress, Pulls, Rewards, total_before
from shortlist.settings import Settings
from shortlist.stores import Event, Kind, News, RewardRow, Store

PROVED = ("certified",)  # whose bound is about the remaining arms: docs/retired.md


def promised(top: Iterable[int], retired: Collection[int], algorithm: str) -> bool:
    """Whether the bound of this choice holds among the remaining arms."""
    return not retired or (algorithm in PROVED and not set(retired).intersection(top))


def staying(
    outcome: Outcome, retired: Collection[int], problem: Problem, algorithm: str, seed: int
) -> Outcome:
    """The outcome as it is, if no arm that it chose has left and its bound is known to hold then.

    Otherwise nothing is promised, and the best of the others take the places of those that left,
    ties broken at random."""
    top = outcome.answer.top
    if promised(top.tolist(), retired, algorithm):
        return outcome
    kept = np.setdiff1d(top, list(retired))
    others = np.setdiff1d(np.arange(problem.n_arms), [*retired, *kept])
    worth = np.nan_to_num(problem.sign * outcome.means(problem)[others], nan=-np.inf)
    lots = np.random.default_rng(seed).random(problem.n_arms)[others]
    best_first = others[np.lexsort((lots, -worth))]
    if problem.constraint is not None:
        left = np.setdiff1d(np.arange(problem.n_arms), [*kept, *others])
        order = np.concatenate([kept, best_first, left])
        found = _feasible(problem.constraint, order, top.size, left.size)
        return replace(outcome, answer=Answer(found))
    joined = np.concatenate([kept, best_first[: top.size - kept.size]])
    return replace(outcome, answer=Answer(np.sort(joined)))


def _feasible(constraint: Constraint, order: IntArray, k: int, retired: int) -> IntArray:
    """A feasible set that prefers arms that come first in `order`; those at its end retired.

    One retired arm weighs more than all others together can make up for, so that none is in the
    set if a set without them is feasible."""
    weights = np.empty(order.size)
    weights[order] = np.arange(order.size, 0, -1.0)
    weights[order[order.size - retired :]] = -float(k * order.size)
    return np.flatnonzero(best_set(constraint, weights, k))


NO_ARMS = np.empty(0, dtype=np.int64)
NOTHING = Pulls(NO_ARMS, NO_ARMS)
UNDECLARED = "intervals take rewards to lie from 0 to 1, which was not declared"


class Replay:
    """Where the search stands: at batches whose calls have numbers, or at its outcome.

    It is a function of the settings, of the rewards by ticket, whatever the order in which they
    arrived, and of the batch in which each arm left: batches are answered in their order, and the
    rewards of a batch are added up in the order of its tickets."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._single = settings.problem.single_rewards
        self._declared_costs = settings.problem.declared_costs
        self.outcome: Outcome | None = None
        # how many pulls of every arm the search has asked for, those under way included
        self.asked: IntArray = np.zeros(settings.problem.n_arms, dtype=np.int64)
        self.digests: list[str] = []  # of every batch, and of the outcome
        self.spans: list[tuple[int, int]] = []  # first ticket and number of tickets, of the same
        self.history: list[tuple[int, Progress]] = []  # pulls before every batch, and how far it is
        self.replies: list[Rewards] = []  # to the batches before
        self._answered = 0  # batches
        self.checks = Checks(settings.problem, settings.labels)
        self._stream = 0  # the next position in the stream of shared seeds
        self._open: list[Numbering] = []  # batches that are not answered
        self.numbering = OpenBatches([Numbering(NOTHING, 0, self.asked)])
        self._dialogue = Dialogue(self.begin())
        self._take_new()

    def begin(self) -> Run:
        """The search, from its beginning."""
        settings, rng = self._settings, np.random.default_rng(self._settings.seed)
        return counted(settings.searched_by(), settings.problem, rng, **settings.options)

    @property
    def end(self) -> int:
        """The first ticket that the search has not asked for."""
        return self.numbering.end

    @property
    def oldest(self) -> Numbering:
        """The batch that is answered next."""
        return self.numbering.oldest

    @property
    def progress(self) -> Progress:
        """How far the search is; nothing is known once it has ended."""
        return self._dialogue.progress if self._dialogue.result is None else NO_PROGRESS

    @property
    def taken(self) -> float:
        """The first ticket that does not matter any more: of batches asked for ahead when the
        search ended. Infinite before that."""
        return inf if self._dialogue.result is None else self.numbering.first

    @property
    def number(self) -> int:
        """The number of the batch that is answered next, from 1."""
        return self._answered + 1

    def reply(
        self,
        rewards: FloatArray,
        arms: IntArray,
        costs: Mapping[int, float],
        retired: IntArray | None = None,
        void: BoolArray | None = None,
    ) -> None:
        """Answer the oldest batch with the rewards of its tickets, in their order.

        `arms` are those of the log, `costs` the actual costs that differ from the declared ones, by
        ticket, `retired` all arms that have retired by now, `void` the tickets of void seeds."""
        numbering = self.numbering.oldest
        received = Received(numbering, rewards, costs, void)
        if np.isnan(rewards).any() or not np.array_equal(received.places.arms, arms):
            raise CannotReplay(
                f"rewards of tickets {numbering.first} to {numbering.end - 1} are not those asked"
                " for"
            )
        self.checks.take(*received.by_draw(), without=() if retired is None else retired.tolist())
        reply = received.rewards(self._declared_costs, single=self._single)
        reply = replace(reply, retired=retired)
        if len(self.replies) < MOST_REPLIES:
            self.replies.append(reply)
        self._answered += 1
        self._open.pop(0)
        self._dialogue.reply(reply)
        self._take_new()

    def cut(self, outcome: Outcome) -> None:
        """End within a request, with the outcome of what was told."""
        self._end(outcome)

    def _end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        answer = outcome.answer
        self.checks.finish(answer.top, answer.evidence.get("correlation"))

    def _take_new(self) -> None:
        """Number the tickets of new batches, or note the outcome."""
        end = self.end
        for pulls in self._dialogue.new:
            self.history.append((end, pulls.progress))
            self._open.append(Numbering(pulls, end, self.asked, self._stream))
            self._stream = self._open[-1].stream_end
            self.asked = self.asked.copy()
            np.add.at(self.asked, pulls.arms, pulls.times)
            self._record((end, pulls.total), pulls.arms, pulls.times)
            end += pulls.total
        # batches that were asked for ahead stay open: their tickets may be out
        left = self._open or [Numbering(NOTHING, end, self.asked)]
        self.numbering = OpenBatches(left)
        if self._dialogue.result is not None:
            self._end(self._dialogue.result)
            self._record((end, 0), np.sort(self._dialogue.result.answer.top))

    def _record(self, span: tuple[int, int], *arrays: IntArray) -> None:
        content = b"".join(array.astype("<i8").tobytes() for array in arrays)
        self.digests.append(blake2b(content, digest_size=8).hexdigest())
        self.spans.append(span)


STATES = {Ending.EPSILON: State.FINISHED, Ending.BUDGET: State.BUDGET}


class Replica:
    """The log as read so far, and the search as far as the log takes it.

    The invariant of every experiment: a replica changes in one way only, by reading the log.
    A program that has something to record appends it to the log and reads it back like all
    others. So all programs that have read the same log agree, and a program that fails half-way
    has not changed anything: what it did not append never happened."""

    def __init__(self, name: str, settings: Settings, origin: str | None = None) -> None:
        """`origin` is the name it was created with, if it was renamed."""
        self.name = name
        self.settings = settings
        self.identity = _identity(name if origin is None else origin, settings)
        self._forget()

    def _forget(self) -> None:
        """Know nothing of the log."""
        self.replay = self._begin()
        self.ledger = Ledger(self.settings.retries, self.settings.problem.declared_costs)
        self._last_answer: tuple[int, Result] | None = None  # as the log was at that position
        self._gone: set[int] = set()  # arms that the search was told have left
        self._compared = 0  # steps of the search that are those of the log
        self._halfway = False  # in reading

    def _begin(self) -> Replay:
        """The search, before it has read any rewards."""
        return Replay(self.settings)

    def read(self, store: Store) -> None:
        """Take in what is new in the log, and let the search continue as far as it can."""
        if self._halfway:  # an interrupt broke this off the last time, perhaps inside the search
            self._forget()
        news = store.read(self.name, self.ledger.position, hints=True)
        if news.last == self.ledger.position:
            return
        check_news(news, self.ledger, self.settings, f"experiment {self.name!r}")
        self._check_void(news)
        self._halfway = True
        self.ledger.take_in(news)
        self._advance(news)
        self._halfway = False

    def _check_void(self, news: News) -> None:
        """Refuse a seed that is void after the search had its rewards, or that cannot be void."""
        for event in news.events:
            may = self.settings.on_failure == "void" and event.ticket >= self.replay.numbering.first
            if event.kind is Kind.VOID and not may:
                raise StoreDamaged(
                    f"ticket {event.ticket} of experiment {self.name!r} is void, but the search has"
                    " had its reward, or its seed cannot be void"
                )

    def _advance(self, news: News) -> None:  # noqa: ARG002  # the ledger has it
        """Let the search continue as far as the rewards take it."""
        while self.replay.outcome is None and self.ledger.is_complete(self.replay.oldest):
            self._answer(self.replay.oldest)
        self._compare_steps()
        self._check_asked()
        if self.ledger.spent_at is not None and self.replay.outcome is None:
            self.replay.cut(self._outcome_so_far())

    def _answer(self, batch: Numbering) -> None:
        """Send the search the rewards of a batch that is told."""
        ledger, span = self.ledger, slice(batch.first, batch.end)
        self._gone |= ledger.retired_by(self.replay.number, batch)
        retired = np.array(sorted(self._gone), dtype=np.int64) if self._gone else None
        costs = ledger.costs_in(range(batch.first, batch.end))
        void = ledger.void[span]
        self.replay.reply(ledger.rewards[span], ledger.arms[span], costs, retired, void)

    def need_tickets(self, method: str) -> None:
        """Refuse a method of tickets where there are none; here there are."""

    def _compare_steps(self) -> None:
        """Refuse to continue if the search asks for something else than it once did.

        An update may have changed it."""
        both = min(len(self.replay.digests), len(self.ledger.steps))
        for step in range(self._compared, both):
            if self.replay.digests[step] != self.ledger.steps[step]:
                raise CannotReplay(
                    f"experiment {self.name!r} asks for other pulls in step {step + 1} than it did"
                    " the first time: continue it with the shortlist and the numpy that made it, or"
                    " export its rewards"
                )
            self._compared = step + 1

    def _check_asked(self) -> None:
        """Refuse a log in which more was handed out, or more steps were taken, than the search
        asked for."""
        ledger, replay = self.ledger, self.replay
        if ledger.issued > replay.end or len(ledger.steps) > len(replay.digests):
            raise StoreDamaged(
                f"{ledger.issued} tickets in {len(ledger.steps)} steps were handed out in"
                f" experiment {self.name!r}, but its search asked for {replay.end} in"
                f" {len(replay.digests)}"
            )

    def available(self, worker: str, now: float, limit: int) -> IntArray:
        """Up to `limit` tickets that this worker may be handed now."""
        again = self.ledger.available(worker, now)
        if again.size and isinstance(self.settings.on_late, float):
            again = again[~np.isin(again, self.missed(now))]
        end = min(self.replay.end, self.ledger.told + MOST_UNDER_WAY)
        first = self.ledger.issued
        new = np.arange(first, max(first, min(end, first + limit - min(limit, again.size))))
        return np.concatenate([again[:limit], new])

    def missed(self, now: float) -> IntArray:
        """Tickets that count as was agreed for what is late: their lease is over."""
        lapsed = self.ledger.lapsed(now) if isinstance(self.settings.on_late, float) else NONE
        missed: IntArray = lapsed[self.ledger.ends(lapsed) != FREE]
        return missed

    def late_rewards(self, now: float) -> list[RewardRow]:
        """What is to be told of the tickets that were missed."""
        missed = self.missed(now)
        arms = self.replay.numbering.arms(missed).tolist()
        late = float(self.settings.on_late)
        return [(ticket, arm, late, now) for ticket, arm in zip(missed.tolist(), arms, strict=True)]

    def new_steps(self, now: float) -> list[Event]:
        """Batches of the search that are not in the log yet."""
        done = len(self.ledger.steps)
        steps = zip(self.replay.digests[done:], self.replay.spans[done:], strict=True)
        return [Event(Kind.STEP, first, span, digest, now) for digest, (first, span) in steps]

    def tickets(self, ids: IntArray, due: list[float]) -> list[Ticket]:
        """The tickets of these numbers, all of the present request."""
        _, arms, draws = self.replay.numbering.places(ids)
        labels, cells = self.settings.labels, self.settings.cells
        columns = (ids.tolist(), arms.tolist(), draws.tolist(), self._seeds(ids), due)
        rows = zip(*columns, strict=True)
        return [
            Ticket(
                id_,
                labels[arm],
                draw,
                seed,
                expires,
                self.identity,
                None if cells is None else cells.label(arm, draw),
            )
            for id_, arm, draw, seed, expires in rows
        ]

    def _seeds(self, ids: IntArray) -> list[int]:
        """The seeds of tickets: one per pull, or one per position of the stream for all arms."""
        seed, numbering = self.settings.seed, self.replay.numbering
        if self.settings.problem.shared_seeds:
            return [shared_seed(seed, each) for each in numbering.positions(ids).tolist()]
        _, arms, draws = numbering.places(ids)
        both = zip(arms.tolist(), draws.tolist(), strict=True)
        return [draw_seed(seed, *each) for each in both]

    def block(
        self, ids: IntArray, due: list[float], state: State, *, seeded: bool, batch: int | None
    ) -> TicketBlock:
        """The same as columns; `batch` is the most pulls that one call makes, None for any."""
        settings, numbering = self.settings, self.replay.numbering
        _, places, draws = numbering.places(ids)
        calls = None if batch == 1 else numbering.calls(ids, batch).tolist()
        arms, nth = places.tolist(), draws.tolist()
        both = list(zip(arms, nth, strict=True))
        seeds = self._seeds(ids) if seeded else None
        cells = settings.cells
        items = None if cells is None else [cells.label(*each) for each in both]
        labels: list[OwnLabel] = [settings.labels[arm] for arm in arms]
        return TicketBlock(ids.tolist(), labels, nth, due, state, seeds, items, calls)

    def best_so_far(self) -> Label | None:
        """The best arm of the present choice by its mean, drawn to that of all by one pull.

        Never one that retired or is at its limit: if all of the choice are, the best of the
        others, and None if there is none. Only what is counted bears on it: of two arms the one
        whose good rewards are quicker would be preferred by what was told."""
        problem, ledger = self.settings.problem, self.ledger
        tally = scored(problem, self.tally())
        usual = tally.sums.sum() / max(1, tally.pulls.sum())
        good = problem.sign * (tally.sums + usual) / (tally.pulls + 1)
        closed = self.replay.asked >= problem.most_in_all
        closed[list(ledger.retired)] = True
        good[closed] = -np.inf
        chosen = np.zeros_like(closed)
        chosen[self._chosen_so_far()] = True
        best = int(np.lexsort((-good, ~chosen, closed))[0])
        return None if closed[best] else self.settings.labels[best]

    def _chosen_so_far(self) -> IntArray:
        """The present choice among the remaining arms, as `present` has it."""
        settings = self.settings
        how = settings.problem, settings.algorithm, settings.seed
        return staying(self._outcome_so_far(), self.ledger.retired, *how).answer.top

    def state(self, now: float) -> State:
        """Where the experiment stands."""
        if self.replay.outcome is not None:
            return STATES.get(self.answer.ended_by, State.ENDED)
        if self.ledger.stopped is not None:
            return State.STOPPED
        return State.READY if self.available("", now, 1).size else State.PENDING

    def status(self, now: float) -> Callable[..., Status]:
        """Where the experiment stands, as a record, but for what was told of every arm."""
        ledger = self.ledger
        held = ledger.held(now)
        holders = Counter(ledger.holders(held))
        overdue = held[due_of(ledger.ends(held)) <= now]
        late = Counter(ledger.holders(overdue))
        return partial(
            Status,
            name=self.name,
            state=self.state(now),
            trouble=self.trouble(),
            told=ledger.made,
            undrawn=ledger.undrawn,
            held=holders.total(),
            late=ledger.late,
            unused=len(ledger.unused),
            wanted=0 if self.replay.outcome is not None else self._missing - holders.total(),
            failures=ledger.failures.total(),
            workers={worker: count for worker, count in holders.items() if worker},
            progress=self.progress,
            overdue=overdue.size,
            overdue_by={worker: count for worker, count in late.items() if worker},
            spent=ledger.spent,
            budget=self.settings.problem.goal.budget,
            bound=self._bound(),
            warnings=self.replay.checks.warnings,
            notes=self.notes,
            live=self.live(),
            unit=self.settings.unit,
            period=self.period(),
            broken=tuple(said for metric in self.metrics() for said in metric.sentences()),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Unusual rewards, and what intervals rest on where no kind of rewards was declared."""
        rewards = self.ledger.seen(self.settings.problem).rewards
        if not isinstance(rewards, Undeclared) or isinstance(rewards, Unranged):
            return self.replay.checks.notes
        return (UNDECLARED, *self.replay.checks.notes) if self.ledger.made else ()

    @property
    def progress(self) -> Progress:
        """How far the search is; its bound only if that holds among the remaining arms."""
        progress = self.replay.progress
        if promised(progress.top or (), self.ledger.retired, self.settings.algorithm):
            return progress
        return replace(progress, bound=None, top=None)

    def _bound(self) -> float | None:
        """What is proved of the present choice, in the user's units."""
        progress = self.progress
        if self.replay.outcome is not None:
            return self.answer.regret_bound
        if progress.bound is None or progress.top is None:
            return None
        return self.present().regret_bound

    def underway(self) -> SearchSnapshot | None:
        """The search as it is now, to be simulated from here; None once there is an answer."""
        if self.replay.outcome is not None or self.settings.searched_by().guarded:
            return None
        replay, ledger, settings = self.replay, self.ledger, self.settings
        tickets = np.flatnonzero(ledger.counted(replay.numbering))
        problem, tally = ledger.seen(settings.problem), self.tally()
        partly = tuple(self._partly(each, tickets) for each in replay.numbering.batches)
        replies = tuple(replay.replies)
        return SearchSnapshot(
            replay.begin, problem, replies, partly, tally, frozenset(ledger.retired)
        )

    def _partly(self, batch: Numbering, tickets: IntArray) -> PartialBatch:
        """What is counted of an open batch; `tickets` are all that are counted."""
        own = tickets[(tickets >= batch.first) & (tickets < batch.end)]
        return PartialBatch(*by_entry(batch, own, self.ledger.rewards[own]))

    def tally(self) -> Tally:
        """What is counted of every arm, and what waits: all that is shown comes from here."""
        return self.ledger.tally(self.replay.numbering, self.replay.taken)

    def pulls_counted(self) -> tuple[IntArray, FloatArray]:
        """The arms and the rewards of all pulls that are counted, in the order of their tickets."""
        tickets = self._tickets_counted()
        return self.ledger.arms[tickets], self.ledger.rewards[tickets]

    def cells(self, store: Store) -> list[EvaluatedCell]:
        """All cells of a test set that were evaluated and told, in the order of their tickets.

        Those are among them that were asked for ahead and not needed any more."""
        ledger, settings = self.ledger, self.settings
        assert settings.cells is not None
        arms = ledger.arms[: ledger.issued].copy()
        missing = np.flatnonzero(np.isnan(ledger.rewards[: ledger.issued]))
        if missing.size:
            arms[missing] = self.replay.numbering.arms(missing)
        draws = total_before(arms, np.ones_like(arms))
        events = store.read(self.name, 0, ledger.position).events
        infos = {each.ticket: _noted(each) for each in events if each.kind is Kind.INFO}
        cells = []
        for ticket in np.flatnonzero(ledger.drawn[: ledger.issued]).tolist():
            arm, told = int(arms[ticket]), infos.get(ticket, {})
            item = settings.cells.label(arm, int(draws[ticket]))
            figures = (float(ledger.rewards[ticket]), ledger.cost(ticket, arm))
            more = (told.get("seconds"), told.get("info"))
            turn = settings.cells.repetition(arm, int(draws[ticket]))
            cells.append(EvaluatedCell(settings.labels[arm], item, *figures, *more, turn))
        return cells

    def counted(self) -> Counted:
        """What is counted of every arm."""
        ledger, chosen = self.ledger, None
        problem = ledger.seen(self.settings.problem)
        if self.replay.outcome is not None:
            how = problem, self.settings.algorithm, self.settings.seed
            outcome = staying(self.replay.outcome, ledger.retired, *how)
            chosen = frozenset(outcome.answer.top.tolist())
        told = ledger.position, problem, self.tally(), self.replay.asked
        return Counted(*told, chosen, frozenset(ledger.retired))

    @property
    def answer(self) -> Result:
        """The answer; there must be one. Later rewards change only what was spent."""
        outcome, position = self.replay.outcome, self.ledger.position
        assert outcome is not None
        if self._last_answer is None or self._last_answer[0] != position:
            self._last_answer = position, self._result(outcome)
        return self._last_answer[1]

    def present(self) -> Result:
        """What the answer would be if the experiment ended now."""
        return replace(self._result(self._outcome_so_far()), partial=True)

    def _outcome_so_far(self) -> Outcome:
        problem, progress = self.settings.problem, self.replay.progress
        return present_outcome(problem, self.tally(), progress, self.settings.seed)

    def _result(self, outcome: Outcome) -> Result:
        settings = self.settings
        if self.ledger.retired:  # the search was sent rewards that were not drawn
            tally = self.tally()
            pulls, sums, waiting = tally.pulls, tally.sums, tally.waiting
            outcome = replace(outcome, pulls=pulls, sums=sums, waiting=waiting)
        how = settings.problem, settings.algorithm, settings.seed
        outcome = staying(outcome, self.ledger.retired, *how)
        outcome = replace(outcome, spending=self._spending())
        seconds = max(0.0, self.ledger.ended - self.ledger.began)
        problem, algorithm = self.ledger.seen(settings.problem), settings.algorithm
        run = algorithm, settings.seed, seconds, self.ledger.retired
        result = Result.of(outcome, settings.labels, problem, *run)
        items = None if settings.cells is None else len(settings.cells.labels)
        result = replace(
            result,
            control=settings.control,
            unit=settings.unit,
            items=items,
            unused=0 if items is None else self.ledger.paid - result.pulls,
            metrics=self.metrics(),
        )
        return result.doubted(self.replay.checks.warnings, self.notes)

    def _spending(self) -> FloatArray:
        """The cost of the pulls of every arm that were made and told: (n,)."""
        return self.ledger.spending()

    def metric_names(self) -> Collection[str] | None:
        """The metrics that every pull has; None before the first is told, which decides."""
        return self.ledger.metrics.names if self.ledger.made else None

    def metrics(self) -> tuple[MetricLift, ...]:
        """Secondary metrics, compared with the control."""
        settings, told = self.settings, self.ledger.metrics
        control = position_of(settings.control, settings.labels)
        names = dict.fromkeys((*settings.guardrails, *told.names))
        if control is None or not names:
            return ()
        retired = np.isin(np.arange(settings.problem.n_arms), list(self.ledger.retired))
        tickets, in_order = self._tickets_counted(), self.replay.numbering.first
        spans = tickets, tickets[tickets < in_order]
        lifts = []
        for name in names:
            columns = [told.column(name, self.ledger.issued)[each] for each in spans]
            tallies = [self._tallied(each, own) for each, own in zip(spans, columns, strict=True)]
            margin = settings.guardrails.get(name)
            sharing = 1 if margin is None else len(settings.guardrails)
            each = MetricOfPulls(tallies, control, retired, sharing)
            lifts.append(each.lift(name, margin, settings.labels, settings.problem.goal))
        return tuple(replace(each, unit=settings.unit) for each in lifts)

    def _tallied(self, tickets: IntArray, figures: FloatArray) -> tuple[IntArray, FloatArray]:
        """The number of pulls of every arm among these tickets, and the sums of their figures."""
        if np.isnan(figures).any():
            ticket = tickets[np.isnan(figures)][0]
            raise StoreDamaged(f"ticket {ticket} of experiment {self.name!r} has lost its metrics")
        arms, size = self.ledger.arms[tickets], self.settings.problem.n_arms
        pulls = np.bincount(arms, minlength=size).astype(np.int64)
        return pulls, np.bincount(arms, figures, minlength=size).astype(np.float64)

    def _tickets_counted(self) -> IntArray:
        """All tickets that are counted, in order."""
        tickets = np.flatnonzero(self.ledger.counted(self.replay.numbering))
        return tickets[tickets < self.replay.taken]

    def live(self) -> str:
        """The present state of the blocks of a live test; empty for other experiments."""
        return ""

    def period(self) -> tuple[float, float] | None:
        """When the first and the last result so far came, in seconds since 1970."""
        began, ended = self.ledger.began, self.ledger.ended
        return (began, ended) if isfinite(began) and isfinite(ended) else None

    def told_blocks(self) -> list[str]:
        """The names of the blocks of a live test that were passed; none for other experiments."""
        return []

    def opened_blocks(self) -> list[tuple[str, FloatArray]]:
        """The names and shares of the blocks of a live test; none for other experiments."""
        return []

    def trouble(self) -> str:
        """Why the experiment is stopped; empty if it is not."""
        event = self.ledger.stopped
        if event is None:
            return ""
        times = plural(self.ledger.failures[event.ticket], "time")
        return f"ticket {event.ticket} failed {times}, the last time: {printable(event.text)}"

    def missing(self) -> str:
        """A sentence about the pulls that the search waits for."""
        made = self.ledger.made
        were = "was" if made == 1 else "were"
        return (
            f"{plural(made, 'pull')} {were} told, but the search waits for {self._missing:,} more"
        )

    @property
    def _missing(self) -> int:
        """Pulls that the search waits for: none of retired arms."""
        if self.replay.outcome is not None:
            return 0
        missing = self.replay.end - self.ledger.told
        if not self.ledger.retired:
            return missing
        left = list(self.ledger.retired)
        span = slice(self.replay.numbering.first, self.ledger.issued)
        told = ~np.isnan(self.ledger.rewards[span]) & np.isin(self.ledger.arms[span], left)
        batches = [each.pulls for each in self.replay.numbering.batches]
        asked = sum(int(each.times[np.isin(each.arms, left)].sum()) for each in batches)
        return missing - int(asked - told.sum())


def _noted(event: Event) -> dict[str, Any]:
    """What was told with a reward."""
    try:
        noted = json.loads(event.text)
    except (ValueError, RecursionError):
        noted = None
    if not isinstance(noted, dict):
        raise StoreDamaged(f"the info of ticket {event.ticket} is no JSON object")
    return noted


def _identity(name: str, settings: Settings) -> str:
    """What the tickets of an experiment carry; a copy under another name is another experiment."""
    content = f"{name}\n{settings.identity}"
    return blake2b(content.encode(errors="backslashreplace"), digest_size=8).hexdigest()
