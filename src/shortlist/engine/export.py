"""Lines of JSON, chained like the entries of a log: each holds a link to all lines before it.

The link is worked out from what a line says, not from how it is spelled: a tool that orders or
indents it otherwise does no harm, and one that rounds a number is found out.

An experiment as lines of JSON: to keep, to send, to read with anything.

The first line holds the settings, then comes a line an event and a line a reward, and the last one
counts them. Each is linked to those before it, so a file that was cut off or damaged is refused.
Nothing is replayed by an export, so an experiment can also be exported by a version of the package
that cannot continue it; what is imported is replayed, if it can be.

Experiments from one store to another, as they are: all that are wanted, or none.

Whether a store is as it was written, all of it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from operator import eq
from typing import Any, NamedTuple

from shortlist.arms import Label
from shortlist.driver import MOST_PULLS
from shortlist.engine.block_replay import OF_BLOCKS
from shortlist.engine.experiment import replica_of
from shortlist.engine.ledger import MOST_UNDER_WAY
from shortlist.engine.locate import Place, checked_name, opened, the_only
from shortlist.engine.log_entries import present_author, told_reward
from shortlist.engine.replay import Replica
from shortlist.errors import (
    CannotReplay,
    InvalidInput,
    StoreDamaged,
    StoreError,
    StoreExists,
    StoreMissing,
)
from shortlist.reward_models import RewardModel
from shortlist.settings import Settings, stored_arms
from shortlist.stores import Event, Kind, News, RewardRow, Store
from shortlist.stores.base import MemoryStore, no_such_experiment, retry
from shortlist.stores.checksums import links_of
from shortlist.stores.sql import SQLStore
from shortlist.validation import number as finite
from shortlist.validation import shown, whole

BEGINNING = 0  # the link before the first line
MOST_CHARACTERS = 2**26  # of a line: it is in memory as a whole
STRETCH = 10_000  # entries of a log that are read at a time
SHOWN = 200  # characters of a line that is refused


class Line(NamedTuple):
    """A line that was read: its number from 1, its text, and what it says but for the link."""

    number: int
    text: str
    entry: dict[str, Any]
    link: object  # as it says; None if it says nothing

    def refused(self, rule: object) -> InvalidInput:
        """The error that names the line, then the rule."""
        return InvalidInput(f"line {self.number} is {quoted(self.text)}, but {rule}")


def linked_lines(entries: Iterable[dict[str, object]]) -> Iterator[str]:
    """Every entry as a line that ends with its link."""
    link = BEGINNING
    for entry in entries:
        (link,) = links_of(link, [_content(entry)])
        yield json.dumps({**entry, "link": _spelled(link)}, ensure_ascii=False, allow_nan=False)


def read_lines(lines: Iterable[str]) -> Iterator[Line]:
    """The lines that are not empty, as JSON objects; whether they are linked is not asked yet."""
    for number, text in enumerate(lines, start=1):
        if len(text) > MOST_CHARACTERS:
            raise InvalidInput(
                f"line {number} is {quoted(text)}, but must have at most {MOST_CHARACTERS:,}"
                " characters"
            )
        if text.strip():
            entry = _object(number, text)
            link = entry.pop("link", None)
            yield Line(number, text, entry, link)


def checked_links(lines: Iterable[Line]) -> Iterator[Line]:
    """The same lines, if each follows from those before it."""
    link = BEGINNING
    for line in lines:
        (link,) = links_of(link, [_content(line.entry)])
        if line.link != _spelled(link):
            raise line.refused(
                f'its link must be "{_spelled(link)}" after the lines before it: one was changed,'
                " lost or moved"
            )
        yield line


def quoted(text: str) -> str:
    """The beginning of a line, as it is quoted."""
    start = text[: SHOWN + 1].strip()
    return repr(start if len(text) <= SHOWN else f"{start[:SHOWN]}…")


def _object(number: int, text: str) -> dict[str, Any]:
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        raise InvalidInput(f"line {number} is {quoted(text)}, but must be a JSON object")
    return entry


def _content(entry: dict[str, object]) -> bytes:
    spelled = json.dumps(entry, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return spelled.encode("utf-8", "surrogatepass")


def _spelled(link: int) -> str:
    return f"{link:08x}"


FORMAT = 1  # of the lines; a file of another one is refused


def export_lines(store: Place, name: str | None = None) -> Iterator[str]:
    """Yield an experiment as lines of JSON.

    Args:
        store: A store, or the name of its file.
        name: Name of the experiment. Default: the only one in the store.

    Returns:
        The lines: settings first, then one per entry of the log.

    Example:
        >>> from shortlist import Experiment, engine
        >>> from shortlist.stores.base import MemoryStore
        >>> store = MemoryStore()
        >>> made = Experiment.create(["a", "b"], k=1, budget=4, store=store)
        >>> copied = MemoryStore()
        >>> engine.import_lines(engine.export_lines(store), copied, name="again")
        'again'"""
    with opened(store, "ro") as source:
        name = the_only(source.names()) if name is None else name
        yield from linked_lines(_entries(source, name))


def _entries(source: Store, name: str) -> Iterator[dict[str, object]]:
    """The settings, then all events, then all rewards.

    The log is read in stretches, twice: memory does not depend on its length."""
    settings = source.settings(name)
    labels, _ = stored_arms(settings, f"experiment {name!r}")
    yield {"experiment": name, "format": FORMAT, "settings": json.loads(settings)}
    end = 0
    for news in _stretches(source, name):
        end = news.last
        for kind, *rest in news.events:
            yield {"event": kind, **dict(zip(Event._fields[1:], rest, strict=True))}
    for news in _stretches(source, name, end):
        for ticket, arm, reward, time in news.told.rows():
            yield {"reward": reward, "ticket": ticket, "arm": labels[arm], "time": time}
    yield {"end": end}


def _stretches(source: Store, name: str, end: int | None = None) -> Iterator[News]:
    """The log up to position `end`, or to where it ends when it is read."""
    position = 0
    while end is None or position < end:
        until = position + STRETCH
        news = source.read(name, position, until if end is None else min(until, end))
        if news.last == position:
            return
        yield news
        position = news.last


def import_lines(lines: Iterable[str], store: Place, name: str | None = None) -> str:
    """Make an experiment from what `export_lines` gave, all of it or nothing.

    What a store could not give back is refused by its line, before there is a file.

    Args:
        lines: The lines of one experiment.
        store: A store, or the name of its file.
        name: Name of the new experiment. Default: the name that it had.

    Returns:
        The name of the new experiment."""
    read = _lines_of_this_format(read_lines(lines))
    head = next(read)
    settings = _stored(json.dumps(head.entry.get("settings"), ensure_ascii=False))
    log = _begun(settings, f"line {head.number}")
    _take_entries(read, log)
    name = _stored(checked_name(head.entry.get("experiment") if name is None else name))
    _check_replay(settings, log)
    with opened(store, "rwc") as target:
        retry(lambda: _put(target, name, settings, log))
    return name


def _put(target: Store, name: str, settings: str, log: "ImportedLog") -> None:
    with target.exclusive():
        target.create(name, settings)
        target.append(name, log.rewards.values(), log.events)


def _lines_of_this_format(lines: Iterator[Line]) -> Iterator[Line]:
    """All lines, if the first one names the format and each is linked to those before it."""
    head = next(lines, None)
    if head is None:
        raise InvalidInput("line 1 is '', but must be a JSON object")
    if head.entry.get("format") != FORMAT:
        rule = f'{{"experiment": ..., "format": {FORMAT}, "settings": ..., "link": ...}}'
        raise head.refused(f"must be {rule}")
    yield from checked_links(chain([head], lines))


def _begun(settings: str, where: str) -> "ImportedLog":
    """An empty log for these settings, if they make sense or another version of the package might
    see one in them."""
    try:
        _replayable(settings, where)
        return ImportedLog(*stored_arms(settings, where))
    except StoreDamaged as error:  # there is no store yet: what was given is wrong
        raise InvalidInput(str(error)) from error


def _replayable(settings: str, where: str) -> Replica | None:
    """A search that has yet to begin; None if only another version of the package has it."""
    try:
        return replica_of(where, Settings.from_json(settings, where))
    except CannotReplay:
        return None


def _take_entries(lines: Iterator[Line], log: "ImportedLog") -> None:
    for line in lines:
        if "end" in line.entry:
            found = len(log.events) + len(log.rewards)
            if line.entry["end"] != found or next(lines, None) is not None:
                raise InvalidInput(
                    f"line {line.number} ends an export of {line.entry['end']} entries, but there"
                    f" are {found} or more"
                )
            return
        try:
            log.take_event(line.entry) if "event" in line.entry else log.take_reward(line.entry)
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            said = f"there is no {error}" if isinstance(error, KeyError) else error
            raise line.refused(f"must be an event or a reward: {said}") from error
    raise InvalidInput("the last line is missing: the export was cut off")


def _check_replay(settings: str, log: "ImportedLog") -> None:
    """Refuse a log with which the search of this version would not continue."""
    log.check_under_way()
    replica, store = _replayable(settings, "the export"), MemoryStore()
    if replica is None:
        return
    store.create("the export", settings)
    with store.exclusive():
        store.append("the export", log.rewards.values(), log.events)
    try:
        replica.read(store)
    except (CannotReplay, StoreDamaged) as error:
        raise InvalidInput(f"the lines are no log of their search: {error}") from error
    spans = [(ticket, span) for kind, ticket, span, *_ in log.events if kind is Kind.STEP]
    if spans != replica.replay.spans[: len(spans)]:
        raise InvalidInput("the lines are no log of their search: it takes other steps")


class ImportedLog:
    """What was read so far. A ticket is asked for, then handed out, then told; one that was not is
    refused."""

    def __init__(self, labels: Sequence[Label], model: RewardModel) -> None:
        self.events: list[Event] = []
        self.rewards: dict[int, RewardRow] = {}
        self._arms = {label: arm for arm, label in enumerate(labels)}
        self._model = model
        self._left: set[int] = set()  # arms
        self._void: set[int] = set()  # tickets
        self._steps = 0  # batches, and the answer
        # the first ticket not asked for, and not handed out
        self._ends = {Kind.STEP: 0, Kind.LEASE: 0}

    def take_event(self, entry: dict[str, Any]) -> None:
        """Add an event."""
        kind, span = Kind(entry["event"]), whole("span", entry["span"], at_least=0, at_most=inf)
        limit = int(MOST_PULLS) if kind is Kind.STEP else self._ends[Kind.STEP]
        if kind in OF_BLOCKS:
            limit = int(MOST_PULLS)
        left = kind is Kind.RETIRE  # it is about an arm and a batch
        ticket = self._batch(entry, span) if left else _ticket(entry, span, limit)
        text, author = _stored(entry["text"]), _stored(entry.get("author", ""))
        self.events.append(Event(kind, ticket, span, text, finite("time", entry["time"]), author))
        if left:
            self._left.add(span)
        if kind is Kind.VOID:
            self._void.update(range(ticket, ticket + span))
        self._steps += kind is Kind.STEP
        if kind in self._ends:
            self._ends[kind] = max(self._ends[kind], ticket + span)

    def _batch(self, entry: dict[str, Any], arm: int) -> int:
        """The oldest batch that was open when an arm retired."""
        if arm >= len(self._arms):
            raise InvalidInput(f"arm {arm} retired, but there are {len(self._arms):,} arms")
        return whole("ticket", entry["ticket"], at_least=0, at_most=max(1, self._steps))

    def check_under_way(self) -> None:
        """Refuse more open tickets than a program could keep in mind."""
        open_ = self._ends[Kind.LEASE] - len(self.rewards)
        if open_ > MOST_UNDER_WAY:
            raise InvalidInput(
                f"{open_} tickets are handed out and not told, but must be at most {MOST_UNDER_WAY}"
            )

    def take_reward(self, entry: dict[str, Any]) -> None:
        """Add a reward."""
        label = entry["arm"]
        if not isinstance(label, str | int) or label not in self._arms:
            raise InvalidInput(f"there is no arm {label!r}")
        # a ticket of a retired arm, or of a void seed, may be told that was not handed out
        left = self._arms[label] in self._left or entry["ticket"] in self._void
        ticket = _ticket(entry, 1, self._ends[Kind.STEP if left else Kind.LEASE])
        if ticket in self.rewards:
            raise InvalidInput("a second reward for a ticket")
        reward = told_reward(entry["reward"], ticket, label, self._model)
        self.rewards[ticket] = (ticket, self._arms[label], reward, finite("time", entry["time"]))


def _ticket(entry: dict[str, Any], span: int, limit: int) -> int:
    """The first of `span` tickets, all of them below the limit."""
    ticket = whole("ticket", entry["ticket"], at_least=0, at_most=inf)
    if ticket + span > limit:
        raise InvalidInput(f"ticket {ticket + span - 1} was never handed out")
    return ticket


def _stored(text: object) -> str:
    """A text that a store can hold: half of a character, which JSON can spell, is none."""
    if not isinstance(text, str):
        raise InvalidInput(f"{shown(text)} is to be stored, but is no text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the text is {shown(text)}, but must be valid Unicode") from error
    return text


@dataclass(frozen=True, slots=True)
class Copied:
    """An experiment that was copied."""

    name: str  #: of the experiment
    rows: int  #: of its log, rewards and events


def copy(
    source: Place, target: Place, name: str | None = None, *, as_name: str | None = None
) -> list[Copied]:
    """Copy the experiment of that name, or all, to a store in which there is none of that name.

    With `as_name` the copy of one experiment has another name: it is another experiment, whose
    tickets are its own.

    What is read is checked against its chain, and what was written is read back and compared. After
    an error nothing was written. A log that this version cannot replay is copied as well; tokens
    are not.

    Args:
        source: The store to read, or the name of its file.
        target: The store to write, or the name of its file.
        name: Name of the experiment. Default: all experiments.
        as_name: Name of the copy of one experiment. Default: the same name.

    Returns:
        What was copied, one entry per experiment."""
    with opened(source, "ro") as old:
        names = _wanted(old, name)
        renamed = {} if as_name is None else {names[0]: checked_name(as_name)}
        if as_name is not None and len(names) > 1:
            raise InvalidInput(
                f"`as_name` is {shown(as_name)}, but {len(names)} experiments would be copied:"
                " name one"
            )
        for each in names:
            old.read(each)  # what is damaged is refused before there is a file
        with opened(target, "rwc") as new:
            copied = retry(lambda: _put_all(old, new, names, renamed))
        with opened(target, "ro") as written:
            for each, made in zip(names, copied, strict=True):
                _compare(old, each, written, made)
    return copied


def _wanted(store: Store, name: str | None) -> list[str]:
    names = [each.name for each in store.listed()]
    if name is not None and name not in names:
        raise StoreMissing(no_such_experiment(name, names, "the source"))
    if not names:
        raise InvalidInput("there is no experiment in the source, but one is needed to copy")
    return names if name is None else [name]


def _put_all(old: Store, new: Store, names: list[str], renamed: dict[str, str]) -> list[Copied]:
    with new.exclusive():
        wanted = [renamed.get(name, name) for name in names]
        there = {each.name for each in new.listed()}.intersection(wanted)
        if there:
            listed = ", ".join(map(repr, sorted(there)))
            raise StoreExists(f"there is {listed} in the target already, and nothing was copied")
        return [_put_copy(old, new, *each) for each in zip(names, wanted, strict=True)]


def _put_copy(old: Store, new: Store, name: str, wanted: str) -> Copied:
    news = old.read(name)
    new.create(wanted, old.settings(name), present_author())
    new.append(wanted, news.told.rows(), news.events)
    return Copied(wanted, news.last)


def _compare(old: Store, name: str, new: Store, copied: Copied) -> None:
    """Refuse a copy that is not what was copied; the source may have grown meanwhile."""
    found, meant = new.read(copied.name), old.read(name)
    same = new.settings(copied.name) == old.settings(name)
    if not (same and found.last == copied.rows and _begins(meant, found)):
        raise StoreDamaged(f"the copy of experiment {copied.name!r} is not what was copied")


def _begins(whole: News, part: News) -> bool:
    """Whether the rewards and the events of `part` are the first of `whole`."""
    if part.told.tickets.size > whole.told.tickets.size:
        return False
    rewards = all(map(eq, whole.told.rows(), part.told.rows()))
    return rewards and list(whole.events[: len(part.events)]) == list(part.events)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of an experiment."""

    name: str  #: of the experiment
    rows: int | None  #: of its log, rewards and events; None if they cannot be read
    damage: str  #: description; empty if there is none
    replay: str  #: why this version of the package cannot continue it; empty if it can


def verify(store: Place) -> list[Verdict]:
    """Read every experiment of a store along its chain, and replay it; nothing is written.

    A store whose list of experiments cannot be trusted raises `StoreDamaged`.

    Args:
        store: A store, or the name of its file.

    Returns:
        A verdict per experiment.

    Example:
        >>> from shortlist import Experiment, engine
        >>> from shortlist.stores.base import MemoryStore
        >>> store = MemoryStore()
        >>> made = Experiment.create(["a", "b"], k=1, budget=4, store=store)
        >>> [verdict.name for verdict in engine.verify(store)]
        ['experiment']"""
    with opened(store, "ro") as source:
        if isinstance(source, SQLStore):
            source.verify()
        source.names()  # raises if the list is damaged
        return [_verdict(source, each.name) for each in source.listed()]


def _verdict(store: Store, name: str) -> Verdict:
    rows = None
    try:
        rows = store.read(name).last
        settings = Settings.from_json(store.settings(name), f"experiment {name!r}")
        replica_of(name, settings).read(store)
    except StoreError as error:
        return Verdict(name, rows, str(error), "")
    except CannotReplay as error:
        return Verdict(name, rows, "", str(error))
    return Verdict(name, rows, "", "")
