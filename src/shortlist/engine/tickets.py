"""A ticket is one pull that a worker was asked to make: its number, its lease and its reward.

Tickets are numbered in one order.

The pulls of a batch are dealt *in proportion*: an arm with two fifths of the pulls gets two of
every five tickets, from the first to the last. So a change in the world while a batch is worked
off, the time of day for one, meets all arms alike. Pull number k of an entry with t pulls is due at
(k + 1/2) / t of the batch, and tickets are in the order of these times. Take arms 7, 4 and 9, to be
pulled 1, 4 and 2 times, with tickets from 10 on:

    due       1/8   1/4   3/8   1/2   5/8   3/4   7/8
    ticket     10    11    12    13    14    15    16
    arm         4     9     4     7     4     9     4

Tickets are looked up, never stored: a large batch is dealt in parts of the same proportions, and
one part at a time is in memory.

A lease reserves a ticket. Its end is a fact about how long an evaluation takes, and so perhaps
about its reward. docs/late.md proves what may follow from it without changing the distribution of
the rewards that count.

Every reward is checked when it comes in. Sums of floats depend on their order, and the answer of a
search must not depend on which worker was quicker: rewards are added up in the order of tickets."""

import json
import logging
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import islice
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from shortlist.arms import Label, OwnLabel
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.errors import InvalidInput, InvalidReward
from shortlist.formatting import given_text
from shortlist.problem import MOST_COST
from shortlist.reward_models import RewardModel
from shortlist.search import Pulls, Rewards, moments_by_entry, total_before
from shortlist.settings import checked_metric
from shortlist.spec import OnLate
from shortlist.validation import number, real, shown, text


@dataclass(frozen=True, slots=True)
class Ticket:
    """Pull `arm` once and tell the reward.

    `draw` counts the pulls of an arm from 0. `seed` depends on nothing but the experiment's seed,
    the arm and the draw: an evaluation that takes its randomness from it gives the same reward
    whichever worker makes it, and however often.

    Example:
        >>> import shortlist
        >>> experiment = shortlist.Experiment.create(["red", "blue"], k=1, budget=20)
        >>> ticket = experiment.ask(1)[0]
        >>> ticket.id, ticket.arm in ("red", "blue"), ticket.draw
        (0, True, 0)"""

    id: int
    """Its number in the experiment, from 0."""
    arm: Label
    """The label of the arm to pull."""
    draw: int
    """Which pull of this arm it is, from 0."""
    seed: int
    """63 bits for the randomness of the evaluation."""
    expires: float
    """When its result is due, in seconds since 1970; what then happens is the experiment's
    `on_late`."""
    experiment: str = field(default="", repr=False)
    """Whose it is: a ticket of another experiment is refused."""
    item: Label | None = None
    """The item to score the arm on, where there is a test set."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of rewards that were told: all of them count but those that are named here."""

    late: tuple[int, ...] = ()
    """Tickets whose reward is discarded because their lease was over: the experiment's `on_late`
    counts instead."""
    unused: tuple[int, ...] = ()
    """Tickets whose reward is not needed: the search has finished, the budget is spent, or the arm
    is retired."""

    def of(self, tickets: Iterable[int]) -> "Receipt":
        """The part of it that is about these tickets."""
        own = set(tickets)
        late = tuple(each for each in self.late if each in own)
        return Receipt(late, tuple(each for each in self.unused if each in own))


class State(StrEnum):
    """Where an experiment stands, or why fewer tickets were handed out than asked for."""

    READY = "ready"
    """There are tickets to hand out."""
    PENDING = "pending"
    """All that the search wants now are out: ask again when some were told."""
    FINISHED = "finished"
    """The answer is there, with the guarantee that was wanted."""
    BUDGET = "budget"
    """The answer is there, because the budget is spent."""
    ENDED = "ended"
    """The answer is there, but without the guarantee that was wanted: limits allow no more pulls,
    an arm left, or the rewards refute the declaration. The verdict of the result says which."""
    STOPPED = "stopped"
    """A ticket failed too often: see status(), then resume()."""


class Handout(list[Ticket]):
    """The tickets that were handed out. If they are fewer than asked for, `state` says why; else it
    is READY.

    If it is PENDING, `meanwhile` is what to serve if you cannot wait for a ticket: the best arm so
    far that did not leave and is not at its limit, None if there is none. What that gives is not
    to be told, and counts nowhere."""

    def __init__(
        self, tickets: Iterable[Ticket], state: State, meanwhile: Label | None = None
    ) -> None:
        super().__init__(tickets)
        self.state = state
        self.meanwhile = meanwhile

    def __repr__(self) -> str:
        return f"Handout({super().__repr__()}, {self.state!r})"


@dataclass(frozen=True, slots=True)
class TicketBlock:
    """Tickets handed out together, as columns: to make a `Ticket` of each takes longer than a short
    evaluation."""

    ids: list[int]
    labels: list[OwnLabel]
    draws: list[int]
    due: list[float]
    state: State
    seeds: list[int] | None = None
    items: list[Any] | None = None
    calls: list[int] | None = None  # tickets with the same number may be made by one call

    def ticket(self, place: int) -> Ticket:
        """One of them on its own."""
        seed = 0 if self.seeds is None else self.seeds[place]
        item = None if self.items is None else self.items[place]
        label: Any = self.labels[place]
        return Ticket(self.ids[place], label, self.draws[place], seed, self.due[place], item=item)


def draw_seed(seed: int, arm: int, draw: int) -> int:
    """The seed of one pull: 63 bits made of the run's seed, the arm's position and the draw."""
    state = np.random.SeedSequence(seed, spawn_key=(arm, draw)).generate_state(1, np.uint64)
    return int(state[0]) >> 1  # many generators and services take a signed 64-bit number


def shared_seed(seed: int, position: int) -> int:
    """The seed of all pulls at one position of the stream: 63 bits made of the run's seed and the
    position."""
    state = np.random.SeedSequence(seed, spawn_key=(position,)).generate_state(1, np.uint64)
    return int(state[0]) >> 1


Tickets = Iterable[int] | IntArray
DEALT_TOGETHER = 50_000  # tickets of a part of a batch, about


class Places(NamedTuple):
    """Where tickets belong, one figure per ticket."""

    entries: IntArray  # of the batch
    arms: IntArray
    draws: IntArray  # which pull of its arm it is, counted over the whole run


class Dealt(NamedTuple):
    """A part of a batch: the tickets from `first` on."""

    first: int
    entries: IntArray  # of each ticket
    nth: IntArray  # which pull of its entry each ticket is


class Numbering:
    """The tickets `first`, `first` + 1, ... of a batch, one for every pull.

    `drawn` says how often each arm was asked for before. `begins` is the position of the batch in
    the stream of shared seeds: every arm takes the positions from there on."""

    def __init__(self, pulls: Pulls, first: int, drawn: IntArray, begins: int = 0) -> None:
        self.pulls = pulls
        self.first = first
        self.begins = begins
        self._drawn = drawn
        times = pulls.times  # (entries,)
        self.total = int(times.sum())
        self._first_draws = drawn[pulls.arms] + total_before(pulls.arms, times)
        self._parts = max(1, -(-self.total // DEALT_TOGETHER))
        self._dealt: tuple[int, Dealt] | None = None  # the part that was needed last

    @property
    def end(self) -> int:
        """The first ticket after these."""
        return self.first + self.total

    @property
    def tickets(self) -> IntArray:
        """All tickets, in order."""
        return np.arange(self.first, self.end)

    def arms(self, tickets: Tickets) -> IntArray:
        """The arm of each of the tickets."""
        entries, _ = self._turns(tickets)
        return self.pulls.arms[entries]

    def places(self, tickets: Tickets) -> Places:
        """Where each of the tickets belongs."""
        entries, nth = self._turns(tickets)
        draws: IntArray = self._first_draws[entries] + nth
        return Places(entries, self.pulls.arms[entries], draws)

    def positions(self, tickets: Tickets) -> IntArray:
        """The position of each of the tickets in the stream of shared seeds."""
        _, arms, draws = self.places(tickets)
        positions: IntArray = self.begins + draws - self._drawn[arms]
        return positions

    @property
    def stream_end(self) -> int:
        """The first position of the stream after this batch."""
        longest = np.bincount(self.pulls.arms, self.pulls.times).max(initial=0)
        return self.begins + int(longest)

    def calls(self, tickets: Tickets, most: int | None) -> IntArray:
        """The number of the call that makes each of the tickets, where a call makes up to `most`
        pulls of an entry; without a limit, all of them."""
        entries, nth = self._turns(tickets)
        size = entries.max(initial=0) + 1
        number: IntArray = entries if most is None else entries + size * (nth // most)
        return number

    def _turns(self, tickets: Tickets) -> tuple[IntArray, IntArray]:
        """The entry of each of the tickets, and which pull of the entry it is."""
        offsets = np.asarray(tickets, dtype=np.int64) - self.first
        if self._parts == 1:
            _, entries, nth = self._part(0)
            return entries[offsets], nth[offsets]
        both = np.empty((2, offsets.size), dtype=np.int64)
        order = np.argsort(offsets, kind="stable")  # quick where they are in order already
        offsets = offsets[order]
        done = 0
        while done < offsets.size:
            first, entries, nth = self._part(self._part_of(int(offsets[done])))
            end = int(np.searchsorted(offsets, first + entries.size))
            own, inside = order[done:end], offsets[done:end] - first
            both[:, own] = entries[inside], nth[inside]
            done = end
        return both[0], both[1]

    def _before(self, part: int) -> IntArray:
        """How many pulls of every entry are in the parts before this one: (entries,)."""
        whole, rest = np.divmod(self.pulls.times, self._parts)  # part * times may overflow
        before: IntArray = part * whole + part * rest // self._parts
        return before

    def _begin_of(self, part: int) -> int:
        return int(self._before(part).sum())

    def _part_of(self, offset: int) -> int:
        """The part with this pull. Mostly it is the one that was dealt last; otherwise, finding it
        takes time in proportion to the number of entries."""
        if self._dealt is not None:
            part, (first, entries, _) = self._dealt
            if first <= offset < first + entries.size:
                return part
        return bisect_right(range(1, self._parts), offset, key=self._begin_of)

    def _part(self, part: int) -> Dealt:
        """The tickets of a part, in the order in which their pulls are due."""
        if self._dealt is None or self._dealt[0] != part:
            before = self._before(part)
            times = self._before(part + 1) - before
            # entries with more pulls come first where pulls are due at the same time
            entries = np.repeat(order := np.argsort(-times, kind="stable"), times[order])
            within = np.arange(entries.size) - np.repeat(
                np.cumsum(times[order]) - times[order], times[order]
            )
            due = np.argsort((2 * within + 1) / times[entries], kind="stable")
            dealt = Dealt(int(before.sum()), entries[due], (within + before[entries])[due])
            self._dealt = part, dealt
        return self._dealt[1]


class OpenBatches:
    """The tickets of all batches that are not answered, oldest first; there is at least one."""

    def __init__(self, batches: Sequence[Numbering]) -> None:
        self.batches = tuple(batches)
        self._starts = np.array([each.first for each in self.batches], dtype=np.int64)

    @property
    def oldest(self) -> Numbering:
        """The batch that is answered next."""
        return self.batches[0]

    @property
    def first(self) -> int:
        """The first of their tickets."""
        return self.batches[0].first

    @property
    def end(self) -> int:
        """The first ticket after theirs."""
        return self.batches[-1].end

    def arms(self, tickets: Tickets) -> IntArray:
        """The arm of each of the tickets."""
        return self.places(tickets).arms

    def places(self, tickets: Tickets) -> Places:
        """Where each of the tickets belongs; entries are those of its own batch."""
        if len(self.batches) == 1:
            return self.oldest.places(tickets)
        ids = np.asarray(tickets, dtype=np.int64)
        found = [np.empty_like(ids) for _ in Places._fields]
        for batch, own in self._by_batch(ids):
            for column, part in zip(found, batch.places(ids[own]), strict=True):
                column[own] = part
        return Places(*found)

    def of_same_seed(self, ticket: int) -> IntArray:
        """All tickets at the position of this one in the stream of shared seeds, in order."""
        (batch,) = (each for each in self.batches if each.first <= ticket < each.end)
        same: IntArray = batch.tickets[
            batch.positions(batch.tickets) == batch.positions([ticket])[0]
        ]
        return same

    def positions(self, tickets: Tickets) -> IntArray:
        """The position of each of the tickets in the stream of shared seeds."""
        ids = np.asarray(tickets, dtype=np.int64)
        positions = np.empty_like(ids)
        for batch, own in self._by_batch(ids):
            positions[own] = batch.positions(ids[own])
        return positions

    def calls(self, tickets: Tickets, most: int | None) -> IntArray:
        """As `Numbering.calls`: no call makes pulls of two batches."""
        ids = np.asarray(tickets, dtype=np.int64)
        numbers = np.empty_like(ids)
        used = 0
        for batch, own in self._by_batch(ids):
            numbers[own] = used + batch.calls(ids[own], most)
            used = int(numbers[own].max()) + 1
        return numbers

    def _by_batch(self, ids: IntArray) -> Iterator[tuple[Numbering, IntArray]]:
        """Every batch that tickets are of, and the places of these tickets among all."""
        place = self._starts.searchsorted(ids, side="right") - 1
        for each, batch in enumerate(self.batches):
            own = np.flatnonzero(place == each)
            if own.size:
                yield batch, own


WAIT: Literal["wait"] = "wait"  # for the result, however long it takes
AGAIN: Literal["again"] = "again"  # hand the ticket out again; the first result counts

FREE = 0.0  # the end of a lease that was given up
# A ticket that is waited for is held this many seconds beyond its due time, for 35,000 years. A
# power of 2, so that the due time comes back from the log as it is on the ticket.
FOREVER = 2.0**40


@dataclass(slots=True)
class Lease:
    """Who was asked last to make a pull, and until when no other worker is."""

    worker: str  # "" for a worker without a name
    end: float

    @property
    def due(self) -> float:
        """When the result is expected; what is waited for has no other end."""
        return self.end - FOREVER if self.endless else self.end

    @property
    def endless(self) -> bool:
        """Whether the result is waited for, however long it takes."""
        return self.end >= FOREVER


def due_of(ends: FloatArray) -> FloatArray:
    """When results are expected whose leases end then; see `Lease.due`."""
    return np.where(ends >= FOREVER, ends - FOREVER, ends)


HOUR = 3600.0  # of a lease, while nothing is known about how long pulls take
MARGIN = 4.0  # times the longest pull so far: a lease that pulls of the same kind do not outlast
NEAR = 0.5  # of its lease: a pull that takes longer is worth a warning
REMEMBERED = 100_000  # tickets under way whose beginning is known; beyond, the oldest is forgotten
NO_LEASE = Lease("", FREE)
logger = logging.getLogger("shortlist.engine")


class Durations:
    """Seconds from `ask` to `tell`, as far as this program knows them."""

    def __init__(self, lease: float | None, on_late: OnLate) -> None:
        self._lease = lease  # that the user chose
        self._on_late = on_late
        self._begun: dict[int, float] = {}  # by ticket, of those that were handed out here
        self.longest = 0.0
        self._warned = False

    def lease(self, wanted: float | None) -> float:
        """The seconds that are wanted, or were chosen, or that are enough by all that is known."""
        if wanted is not None and isinstance(self._on_late, float):
            raise InvalidInput(
                f"`lease` is {shown(wanted)}, but where what is late counts as {self._on_late!r}"
                " all tickets must have the same"
            )
        if wanted is not None:
            return number("lease", wanted, above=0)
        return max(HOUR, MARGIN * self.longest) if self._lease is None else self._lease

    def begin(self, tickets: list[int], renewed: IntArray, now: float) -> None:
        """Note that tickets are handed out; the evaluation of those renewed continues."""
        again = set(renewed.tolist()) & self._begun.keys() if renewed.size else ()
        new = [each for each in tickets if each not in again] if again else tickets
        self._begun.update(dict.fromkeys(new, now))
        for ticket in list(islice(self._begun, max(0, len(self._begun) - REMEMBERED))):
            del self._begun[ticket]

    def end(self, tickets: list[int], lease_of: Callable[[int], Lease | None], now: float) -> None:
        """Note that tickets are told, and say so if that came near the end of their lease."""
        for ticket in tickets:
            begun = self._begun.pop(ticket, None)
            if begun is None or now - begun > self.longest:
                self._take(lease_of(ticket) or NO_LEASE, begun, now)

    def _take(self, lease: Lease, begun: float | None, now: float) -> None:
        """Note one that took longer than all before, or may have."""
        taken = now - (self._guess(lease, now) if begun is None else begun)
        self.longest = max(self.longest, taken)
        if lease.endless or self._on_late != WAIT:  # others are kept alive, however long it takes
            self._warn(taken)

    def _guess(self, lease: Lease, now: float) -> float:
        """When a pull began that another program handed out, most often with the same lease."""
        return now if self._lease is None or lease.end == FREE else lease.due - self._lease

    def _warn(self, taken: float) -> None:
        """Say, once, that a pull came near the end of the lease that the user chose."""
        if self._lease is not None and taken > NEAR * self._lease and not self._warned:
            self._warned = True
            what = "A pull took %.3g s of its lease of %.3g s; a pull that takes longer %s."
            logger.warning(what, taken, self._lease, _consequence(self._on_late))


def _consequence(on_late: OnLate) -> str:
    if on_late == WAIT:
        return "is called overdue, and waited for"
    if on_late == AGAIN:
        return "is made again, which is fair only if slow says nothing about the reward"
    return f"counts as {given_text(on_late)}"


def checked_worker(worker: object) -> str:
    """The name of a worker; None and an empty one stand for a worker without a name."""
    return "" if worker is None else text("worker", worker)


def checked_reward(reward: object, name: str, model: RewardModel) -> float:
    """The reward as a float, if it is a number that keeps to the declaration; if not, `name` it."""
    number = real(reward)
    if not model.admits(number):
        other = (
            "; for other rewards declare `rewards`, such as (0, 100)"
            if math.isfinite(number)
            else ""
        )
        other = "; does the function return it?" if reward is None else other
        raise InvalidReward(f"{name} is {shown(reward)}, but must be {model.rule}{other}")
    return number


def with_cost(value: Any, *, many: bool = False) -> tuple[Any, Any]:
    """What a call returned, and what it says that it cost: None if it does not say.

    A cost is the second of a tuple of two; of rewards that are `many`, the first is their list."""
    if not (isinstance(value, tuple) and len(value) == 2):
        return value, None
    if many and isinstance(value[0], Real):
        return value, None
    return value


def checked_cost(cost: object, name: str) -> float | None:
    """The reported cost of a pull, if it is possible; None if there is none."""
    if cost is None:
        return None
    number = math.nan if isinstance(cost, bool) else real(cost)
    if not 0 <= number <= MOST_COST:
        raise InvalidInput(f"{name} is {shown(cost)}, but must be a number from 0 to {MOST_COST:g}")
    return number


@dataclass(frozen=True, slots=True)
class Score:
    """A reward with what belongs to it: returned by a pull, or told instead of a number.

    Args:
        value: The reward.
        cost: Actual cost of the pull; None for the declared cost.
        info: Anything that JSON can hold, such as the answer of a model, up to 64 KiB. It is
            stored and exported with the reward, and never used by a search.
        metrics: Further figures of the same pull, each from 0 to 1, such as `{"bounce": 1}`. They
            are compared with the `control`, and never used by a search.

    Example:
        >>> import shortlist
        >>> shortlist.Score(1.0, info={"answer": "42"}).value
        1.0
    """

    value: float
    cost: float | None = None
    info: Any = None
    metrics: Mapping[str, float] | None = None


MOST_INFO = 2**16  # bytes of JSON told with a reward
METRICS = "metrics"  # their key next to the info


class Noted(str):
    """An info that was checked, as a store keeps it."""

    __slots__ = ()


def checked_metrics(metrics: object, name: str) -> dict[str, float] | None:
    """The metrics of a pull, each from 0 to 1; None if there are none."""
    if metrics is None:
        return None
    if not isinstance(metrics, Mapping):
        raise InvalidInput(
            f"{name} are {shown(metrics)}, but must be a mapping of names to numbers"
        )
    told = {checked_metric(metric): real(value) for metric, value in metrics.items()}
    for metric, value in told.items():
        if not 0 <= value <= 1:
            figure = shown(metrics[metric])
            raise InvalidInput(f"{name} have {figure} of {metric!r}, but it must be from 0 to 1")
    return told or None


def checked_info(
    info: object,
    name: str,
    seconds: float | None = None,
    metrics: Mapping[str, float] | None = None,
) -> "Noted | None":
    """The info as a store keeps it, with the seconds of the call if known, and with the metrics.

    None if there is neither info nor a metric."""
    if isinstance(info, Noted):
        return info
    if info is None and metrics is None:
        return None
    parts = [] if info is None else [f'"info": {_spelled(info, name)}']
    parts += [] if seconds is None else [f'"seconds": {seconds!r}']
    parts += [] if metrics is None else [f'"{METRICS}": {json.dumps(metrics, ensure_ascii=False)}']
    return Noted(f"{{{', '.join(parts)}}}")


def _spelled(info: object, name: str) -> str:
    """The info as JSON."""
    try:
        spelled = json.dumps(info, ensure_ascii=False, allow_nan=False)
        size = len(spelled.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} is {shown(info)}, but must be JSON: {error}") from error
    if size > MOST_INFO:
        raise InvalidInput(
            f"{name} has {size:,} bytes as JSON, but must have at most {MOST_INFO:,}"
        )
    return spelled


def noted_metrics(noted: str | None) -> dict[str, Any] | None:
    """The metrics in what was told with a reward, as a store keeps it; None without any."""
    if noted is None or METRICS not in noted:
        return None
    found = json.loads(noted)
    return found.get(METRICS) if isinstance(found, dict) else None


def without_infos(value: Any, seconds: float | None, name: str) -> tuple[Any, list[Noted | None]]:
    """What a call returned without its infos, as rewards or (rewards, cost), and its infos.

    It may return a `Score`, or a list of them; their costs add up to that of the call."""
    if isinstance(value, Score):
        plain = value.value if value.cost is None else (value.value, value.cost)
        return plain, [_noted(value, name, seconds)]
    if not (isinstance(value, list | tuple) and any(isinstance(each, Score) for each in value)):
        return value, []
    scores = [each if isinstance(each, Score) else Score(each) for each in value]
    each_took = None if seconds is None else seconds / len(scores)
    infos = [_noted(score, name, each_took) for score in scores]
    values = [score.value for score in scores]
    costs = [score.cost for score in scores if score.cost is not None]
    return (values, math.fsum(costs)) if costs else values, infos


def _noted(score: Score, name: str, seconds: float | None) -> Noted | None:
    """What a call returned with a reward, as a store keeps it."""
    return checked_info(score.info, name, seconds, checked_metrics(score.metrics, name))


def checked_rewards(
    rewards: Any,
    times: int,
    label: object,
    model: RewardModel,
    items: Sequence[Any] | None = None,
) -> FloatArray:
    """The rewards of one call, if they are as many as its pulls and all keep to the declaration.

    Where pulls have items, an error names the item."""
    if isinstance(rewards, str) or not (
        isinstance(rewards, Sequence) or hasattr(rewards, "__array__")
    ):
        raise InvalidReward(
            f"the rewards of arm {shown(label)} are {shown(rewards)}, but must be a list or an"
            " array"
        )
    array = _array(rewards)
    if array.shape[:1] != (times,):
        size = f"{array.shape[0]} numbers" if array.ndim else "a single number"
        raise InvalidReward(
            f"the rewards of arm {shown(label)} are {size}, but it was pulled {times} times"
        )

    def name(place: int) -> str:
        item = "" if items is None else f" on item {shown(items[place])}"
        return f"a reward of arm {shown(label)}{item}"

    if array.ndim > 1 or array.dtype.kind not in "buif":  # None and "1" must not pass for numbers
        each = enumerate(rewards)
        return np.array([checked_reward(reward, name(place), model) for place, reward in each])
    numbers = array.astype(np.float64)
    wrong = np.flatnonzero(~np.asarray(model.admits(numbers)))
    if wrong.size:
        checked_reward(array[wrong[0]], name(int(wrong[0])), model)
    return numbers


def _array(values: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:  # lists of different lengths inside
        return np.asarray(values, dtype=object)


class Received:
    """The rewards of a batch, in the order of its tickets, whenever they came in.

    `costs` are the actual costs by ticket, of those pulls that reported one. A cost of 0 counts as
    declared for the search: pulls that are free would not end."""

    def __init__(
        self,
        numbering: Numbering,
        rewards: FloatArray,
        costs: Mapping[int, float] | None = None,
        void: BoolArray | None = None,
    ) -> None:
        self._numbering = numbering
        self._void = void if void is not None and void.any() else None  # (tickets,)
        self._rewards = rewards
        paid = {} if costs is None else costs
        self._costs = {ticket - numbering.first: cost for ticket, cost in paid.items() if cost}

    @cached_property
    def places(self) -> Places:
        """Where the tickets of the batch belong."""
        return self._numbering.places(self._numbering.tickets)

    def rewards(self, prices: FloatArray, *, single: bool = False) -> Rewards:
        """What the search is sent; on a test set with `single` rewards, too.

        `prices` are the declared costs of the arms, for pulls that reported none."""
        entries, arms, draws = self.places
        size = self._numbering.pulls.arms.size
        counts = slice(None) if self._void is None else ~self._void
        own, rewards = entries[counts], self._rewards[counts]
        sums, squares = moments_by_entry(rewards, own, size)
        marked = (
            self._rewards if self._void is None else np.where(self._void, np.nan, self._rewards)
        )
        each = marked[np.lexsort((draws, entries))] if single else None
        costs = None
        if self._costs:
            paid = prices[arms]  # (tickets,)
            paid[list(self._costs)] = list(self._costs.values())
            costs = np.bincount(entries, paid, size).astype(np.float64)
        void = None if self._void is None else np.bincount(entries[self._void], minlength=size)
        return Rewards(sums, squares, each, costs, void=void)

    def by_draw(self) -> tuple[IntArray, FloatArray]:
        """The arm and the reward of every pull that counts, by arm and draw."""
        _, arms, draws = self.places
        order = np.lexsort((draws, arms))
        order = order if self._void is None else order[~self._void[order]]
        return arms[order], self._rewards[order]


def by_entry(
    numbering: Numbering, tickets: IntArray, rewards: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Pulls, sums and sums of squares of these tickets, by their entry of the batch."""
    entries, _, _ = numbering.places(tickets)
    size = numbering.pulls.arms.size
    pulls = np.bincount(entries, minlength=size).astype(np.int64)
    return pulls, *moments_by_entry(rewards, entries, size)
