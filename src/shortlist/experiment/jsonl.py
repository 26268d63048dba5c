"""An experiment as lines of JSON: to keep, to send, to read with anything.

The first line holds the settings, then comes a line an event and a line a reward, and the last one counts them: a file
that was cut off is refused. Nothing is replayed, so an experiment can also be exported by a version of the package that
cannot continue it."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from shortlist.errors import InvalidInput, StoreDamaged
from shortlist.evaluation import Label
from shortlist.experiment.place import Place, opened, the_only
from shortlist.question import labels_of
from shortlist.storage import Event, Kind, RewardRow

FORMAT = 1


def export_lines(store: Place, name: str | None = None) -> Iterator[str]:
    """The experiment of that name, line by line; the name may be left out where there is only one."""
    with opened(store, "ro") as source:
        name = the_only(source.names()) if name is None else name
        settings, news = source.settings(name), source.read(name, everything=True)
    labels = _labels(settings, f"experiment {name!r}")
    yield _line({"experiment": name, "format": FORMAT, "settings": json.loads(settings)})
    for kind, *rest in news.events:
        yield _line({"event": kind, **dict(zip(Event._fields[1:], rest, strict=True))})
    for ticket, arm, reward, time in news.told.rows():
        yield _line({"reward": reward, "ticket": ticket, "arm": labels[arm], "time": time})
    yield _line({"end": len(news.events) + news.told.tickets.size})


def import_lines(lines: Iterable[str], store: Place, name: str | None = None) -> str:
    """Make an experiment from what `export_lines` gave, all of it or nothing; return its name."""
    numbered = enumerate((line for line in lines if line.strip()), start=1)
    head = _object(*next(numbered, (1, "")))
    if head.get("format") != FORMAT or not isinstance(head.get("experiment"), str):
        raise InvalidInput(
            f'line 1 is {head!r}, but must be {{"experiment": ..., "format": {FORMAT}, "settings": ...}}'
        )
    settings = json.dumps(head.get("settings"), ensure_ascii=False)
    labels = _labels(settings, "line 1")
    events, rewards = _entries(numbered, {label: arm for arm, label in enumerate(labels)})
    name = str(head["experiment"]) if name is None else name
    with opened(store, "rwc") as target, target.exclusive():
        target.create(name, settings)
        target.append(name, rewards, events)
    return name


def _entries(numbered: Iterator[tuple[int, str]], arms: dict[Label, int]) -> tuple[list[Event], list[RewardRow]]:
    events: list[Event] = []
    rewards: dict[int, RewardRow] = {}
    for number, line in numbered:
        entry = _object(number, line)
        if "end" in entry:
            _check_complete(number, entry["end"], len(events) + len(rewards), next(numbered, None))
            return events, list(rewards.values())
        try:
            if "event" in entry:
                text, time = str(entry["text"]), float(entry["time"])
                events.append(Event(Kind(entry["event"]), int(entry["ticket"]), int(entry["span"]), text, time))
            else:
                row = (int(entry["ticket"]), arms[entry["arm"]], float(entry["reward"]), float(entry["time"]))
                if rewards.setdefault(row[0], row) is not row:
                    raise ValueError("a second reward for a ticket")
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"line {number} is {line.strip()!r}, but must be an event or a reward: {error}"
            ) from error
    raise InvalidInput("the last line is missing: the export was cut off")


def _check_complete(number: int, promised: object, found: int, more: object) -> None:
    if promised != found or more is not None:
        raise InvalidInput(f"line {number} ends an export of {promised} entries, but there are {found} or more")


def _labels(settings: str, where: str) -> tuple[Label, ...]:
    try:
        return labels_of(json.loads(settings)["arms"])
    except (ValueError, LookupError, TypeError) as error:
        raise StoreDamaged(f"the settings of {where} cannot be read: {error!r}") from error


def _object(number: int, line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    if not isinstance(entry, dict):
        raise InvalidInput(f"line {number} is {line.strip()!r}, but must be a JSON object")
    return entry


def _line(entry: dict[str, object]) -> str:
    return json.dumps(entry, ensure_ascii=False, allow_nan=False)
