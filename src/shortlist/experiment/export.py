"""An experiment as lines of JSON: to keep, to send, to read with anything.

The first line holds the settings, then comes a line an event and a line a reward, and the last one
counts them: a file that was cut off is refused. Nothing is replayed, so an experiment can also be
exported by a version of the package that cannot continue it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from math import inf
from typing import Any

from shortlist.arms import Label
from shortlist.driver import MOST_PULLS
from shortlist.errors import CannotReplay, InvalidInput, StoreDamaged
from shortlist.experiment.place import Place, checked_name, opened, the_only
from shortlist.experiment.replay import Replay
from shortlist.experiment.settings import Settings, declared
from shortlist.experiment.telling import told_reward
from shortlist.reward_models import RewardModel
from shortlist.storage import Event, Kind, RewardRow
from shortlist.validation import number as finite
from shortlist.validation import whole

FORMAT = 1
SHOWN = 200  # characters of a line that is refused


def export_lines(store: Place, name: str | None = None) -> Iterator[str]:
    """The experiment of that name, line by line; the name may be left out where there is only
    one."""
    with opened(store, "ro") as source:
        name = the_only(source.names()) if name is None else name
        settings, news = source.settings(name), source.read(name, everything=True)
    labels, _ = declared(settings, f"experiment {name!r}")
    yield _line({"experiment": name, "format": FORMAT, "settings": json.loads(settings)})
    for kind, *rest in news.events:
        yield _line({"event": kind, **dict(zip(Event._fields[1:], rest, strict=True))})
    for ticket, arm, reward, time in news.told.rows():
        yield _line({"reward": reward, "ticket": ticket, "arm": labels[arm], "time": time})
    yield _line({"end": len(news.events) + news.told.tickets.size})


def import_lines(lines: Iterable[str], store: Place, name: str | None = None) -> str:
    """Make an experiment from what `export_lines` gave, all of it or nothing; return its name.

    What a store could not give back is refused by its line, before there is a file."""
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    number, line = next(numbered, (1, ""))
    head = _object(number, line)
    if head.get("format") != FORMAT or not isinstance(head.get("experiment"), str):
        rule = f'must be {{"experiment": ..., "format": {FORMAT}, "settings": ...}}'
        raise InvalidInput(f"line {number} is {_shown(line)}, but {rule}")
    settings = json.dumps(head.get("settings"), ensure_ascii=False)
    events, rewards = _entries(numbered, _begun(settings, f"line {number}"))
    name = _stored(checked_name(head["experiment"] if name is None else name))
    with opened(store, "rwc") as target, target.exclusive():
        target.create(name, settings)
        target.append(name, rewards, events)
    return name


def _begun(settings: str, where: str) -> "ImportedLog":
    """An empty log for these settings, if a search can begin with them or another version of the
    package might."""
    try:
        with suppress(CannotReplay):
            Replay(Settings.from_json(settings, where))
        return ImportedLog(*declared(_stored(settings), where))
    except StoreDamaged as error:  # there is no store yet: what was given is wrong
        raise InvalidInput(str(error)) from error


def _entries(
    numbered: Iterator[tuple[int, str]], log: "ImportedLog"
) -> tuple[list[Event], list[RewardRow]]:
    for number, line in numbered:
        entry = _object(number, line)
        if "end" in entry:
            found = len(log.events) + len(log.rewards)
            if entry["end"] != found or next(numbered, None) is not None:
                raise InvalidInput(
                    f"line {number} ends an export of {entry['end']} entries, but there are {found}"
                    " or more"
                )
            return log.events, list(log.rewards.values())
        try:
            log.take_event(entry) if "event" in entry else log.take_reward(entry)
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            said = f"there is no {error}" if isinstance(error, KeyError) else error
            raise InvalidInput(
                f"line {number} is {_shown(line)}, but must be an event or a reward: {said}"
            ) from error
    raise InvalidInput("the last line is missing: the export was cut off")


class ImportedLog:
    """What was read so far. A ticket is asked for, then handed out, then told; one that was not is
    refused."""

    def __init__(self, labels: Sequence[Label], model: RewardModel) -> None:
        self.events: list[Event] = []
        self.rewards: dict[int, RewardRow] = {}
        self._arms = {label: arm for arm, label in enumerate(labels)}
        self._model = model
        # the first ticket not asked for, and not handed out
        self._ends = {Kind.STEP: 0, Kind.LEASE: 0}

    def take_event(self, entry: dict[str, Any]) -> None:
        """Add an event."""
        kind, span = Kind(entry["event"]), whole("span", entry["span"], at_least=0, at_most=inf)
        limit = int(MOST_PULLS) if kind is Kind.STEP else self._ends[Kind.STEP]
        ticket = _ticket(entry, span, limit)
        self.events.append(
            Event(kind, ticket, span, _stored(str(entry["text"])), finite("time", entry["time"]))
        )
        if kind in self._ends:
            self._ends[kind] = max(self._ends[kind], ticket + span)

    def take_reward(self, entry: dict[str, Any]) -> None:
        """Add a reward."""
        ticket, label = _ticket(entry, 1, self._ends[Kind.LEASE]), entry["arm"]
        if label not in self._arms:
            raise InvalidInput(f"there is no arm {label!r}")
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


def _stored(text: str) -> str:
    """A text that a store can hold: half of a character, which JSON can spell, is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{text!r} is to be stored, but is no valid text") from error
    return text


def _object(number: int, line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        raise InvalidInput(f"line {number} is {_shown(line)}, but must be a JSON object")
    return entry


def _shown(line: str) -> str:
    text = line.strip()
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")


def _line(entry: dict[str, object]) -> str:
    return json.dumps(entry, ensure_ascii=False, allow_nan=False)
