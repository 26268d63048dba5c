"""An experiment as lines of JSON: to keep, to send, to read with anything.

The first line holds the settings, then comes a line an event and a line a reward, and the last one
counts them. Each is linked to those before it, so a file that was cut off or damaged is refused.
Nothing is replayed by an export, so an experiment can also be exported by a version of the package
that cannot continue it; what is imported is replayed, if it can be."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import inf
from typing import Any

from shortlist.arms import Label
from shortlist.driver import MOST_PULLS
from shortlist.errors import CannotReplay, InvalidInput, StoreDamaged
from shortlist.experiment.lines import Line, checked_links, linked_lines, read_lines
from shortlist.experiment.news import MOST_UNDER_WAY
from shortlist.experiment.place import Place, checked_name, opened, the_only
from shortlist.experiment.replica import Replica
from shortlist.experiment.settings import Settings, declared
from shortlist.experiment.telling import told_reward
from shortlist.reward_models import RewardModel
from shortlist.storage import Event, Kind, RewardRow, Store
from shortlist.storage.insist import insist
from shortlist.storage.memory import MemoryStore
from shortlist.validation import number as finite
from shortlist.validation import shown, whole

FORMAT = 1  # of the lines; a file of another one is refused


def export_lines(store: Place, name: str | None = None) -> Iterator[str]:
    """The experiment of that name, line by line; the name may be left out where there is only
    one."""
    with opened(store, "ro") as source:
        name = the_only(source.names()) if name is None else name
        settings, news = source.settings(name), source.read(name)
    labels, _ = declared(settings, f"experiment {name!r}")

    def entries() -> Iterator[dict[str, object]]:
        yield {"experiment": name, "format": FORMAT, "settings": json.loads(settings)}
        for kind, *rest in news.events:
            yield {"event": kind, **dict(zip(Event._fields[1:], rest, strict=True))}
        for ticket, arm, reward, time in news.told.rows():
            yield {"reward": reward, "ticket": ticket, "arm": labels[arm], "time": time}
        yield {"end": len(news.events) + news.told.tickets.size}

    yield from linked_lines(entries())


def import_lines(lines: Iterable[str], store: Place, name: str | None = None) -> str:
    """Make an experiment from what `export_lines` gave, all of it or nothing; return its name.

    What a store could not give back is refused by its line, before there is a file."""
    read = _lines_of_this_format(read_lines(lines))
    head = next(read)
    settings = _stored(json.dumps(head.entry.get("settings"), ensure_ascii=False))
    log = _begun(settings, f"line {head.number}")
    _take_entries(read, log)
    name = _stored(checked_name(head.entry.get("experiment") if name is None else name))
    _check_replay(settings, log)
    with opened(store, "rwc") as target:
        insist(lambda: _put(target, name, settings, log))
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
        return ImportedLog(*declared(settings, where))
    except StoreDamaged as error:  # there is no store yet: what was given is wrong
        raise InvalidInput(str(error)) from error


def _replayable(settings: str, where: str) -> Replica | None:
    """A search that has yet to begin; None if only another version of the package has it."""
    try:
        return Replica(where, Settings.from_json(settings, where))
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
    """Refuse a log with which the search of this version would not go on."""
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
        # the first ticket not asked for, and not handed out
        self._ends = {Kind.STEP: 0, Kind.LEASE: 0}

    def take_event(self, entry: dict[str, Any]) -> None:
        """Add an event."""
        kind, span = Kind(entry["event"]), whole("span", entry["span"], at_least=0, at_most=inf)
        limit = int(MOST_PULLS) if kind is Kind.STEP else self._ends[Kind.STEP]
        limit = len(self._arms) - 1 if kind is Kind.RETIRE else limit  # it is about an arm
        ticket = _ticket(entry, span, limit)
        self.events.append(
            Event(kind, ticket, span, _stored(entry["text"]), finite("time", entry["time"]))
        )
        if kind is Kind.RETIRE:
            self._left.add(span)
        if kind in self._ends:
            self._ends[kind] = max(self._ends[kind], ticket + span)

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
        # what was not handed out of an arm that left has the worst reward
        left = self._arms[label] in self._left
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
        raise InvalidInput(f"{shown(text)} is to be stored, but is no valid text") from error
    return text
