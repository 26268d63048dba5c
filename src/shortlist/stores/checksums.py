"""Checksums of a log, by which a store that keeps its entries in a file detects damage.

Every entry has a link, the checksum of its content and of the link before it:

    link_i = crc32(entry_i, link_(i-1)),   link_0 = crc32(name and settings)

The store keeps the head of a log, its last position and link, in a separate row. So an entry that
is changed, lost, doubled or moved breaks the chain at its position, and one that is missing at the
end contradicts the head. Random damage goes undetected with probability 2^-32. The checksums are no
signature: they do not protect against deliberate forgery.

Every log has its own chain, so writers of different experiments do not wait for each other.

*Checkpoints* are stretches of a log in compact form, next to the log. Reading a log row by row,
with its checksums, takes two seconds per million rows. A checkpoint has the same entries as arrays.
It is a hint and can be thrown away at any time. It is believed only if

- its digest matches its content, positions and links (random damage passes it with probability
  2^-128),
- it begins with the position and link at which the one before it, or the log, begins, and
- the log itself has the link at its end.

Otherwise the log is read instead. `verify`, `copy` and `export` always read the log."""

import json
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import count
from struct import Struct
from struct import error as StructError  # noqa: N812  # it is the name of a class
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from shortlist.arrays import IntArray
from shortlist.errors import StoreDamaged
from shortlist.stores.base import Event, Kind, News, RewardRow, Told

REWARD_COLUMNS = 6  # an event has eight
Linked = tuple[Any, ...]  # a row of a table: position, reward or event, link

_pack_reward = Struct("<qqdd").pack
_pack_event = Struct("<qqd").pack


class Head(NamedTuple):
    """The end of a log: position of the last entry, from 1, and its link."""

    position: int
    link: int


EMPTY = Head(0, 0)  # of an empty list of experiments


def first_head(name: str, settings: str) -> Head:
    """The head of an empty log."""
    return Head(0, crc32(settings.encode(), crc32(name.encode())))


def links_of(link: int, records: Iterable[bytes]) -> list[int]:
    """The links of these records, which follow the entry with this link."""
    links = []
    for record in records:
        link = crc32(record, link)
        links.append(link)
    return links


def with_links(
    head: Head, told: Iterable[RewardRow], events: Iterable[Event]
) -> tuple[list[Linked], list[Linked], Head]:
    """New rewards and events with positions and links, and the head of the log after them."""
    rewards, others = list(told), list(events)
    links = links_of(head.link, [*map(reward_record, rewards), *map(event_record, others)])
    entries = zip(count(head.position + 1), (*rewards, *others), links, strict=False)
    linked: list[Linked] = [(position, *row, link) for position, row, link in entries]
    end = Head(head.position + len(links), [head.link, *links][-1])
    return linked[: len(rewards)], linked[len(rewards) :], end


def reward_record(row: RewardRow) -> bytes:
    """The bytes of a reward; -0.0 counts as 0.0, since some databases store it so."""
    ticket, arm, reward, time = row
    return _pack_reward(ticket, arm, reward + 0.0, time + 0.0)


def event_record(event: Event) -> bytes:
    """The bytes of an event."""
    kind, ticket, span, text, time, author = event
    numbers = _pack_event(ticket, span, time + 0.0)
    return b"%b\0%b%b\0%b" % (kind.encode(), numbers, author.encode(), text.encode())


def verified(
    before: Head, head: Head, rewards: Iterable[Linked], events: Iterable[Linked], where: str
) -> News:
    """The entries between two heads; raise `StoreDamaged` if a link is wrong.

    Rewards and events are sorted by position."""
    found: list[Event] = []
    rows = _verified(before, head, _merged(rewards, iter(events)), where)
    return News(Told.of(_rewards(rows, found)), found, head.position)


def news_of(rewards: Iterable[Linked], events: Iterable[Linked], head: Head) -> News:
    """The same for entries whose links were just computed."""
    return News(Told.of(row[1:-1] for row in rewards), [*map(_event, events)], head.position)


def _merged(rewards: Iterable[Linked], events: Iterator[Linked]) -> Iterator[Linked]:
    """The rows of both tables, by position."""
    event = next(events, None)
    for row in rewards:
        while event is not None and event[0] < row[0]:
            yield event
            event = next(events, None)
        yield row
    if event is not None:
        yield event
    yield from events


def _verified(before: Head, head: Head, rows: Iterable[Linked], where: str) -> Iterator[Linked]:
    """The rows; raise `StoreDamaged` at the first wrong position or link, or if one is missing."""
    position, link = before
    try:
        for row in rows:
            position += 1
            link = crc32(_record(row), link)
            if row[0] != position or row[-1] != link:
                raise _damaged(where, position, "its checksum does not match the row before")
            yield row
    except (TypeError, ValueError, OverflowError, StructError) as error:
        raise _damaged(where, position, str(error)) from error
    if (position, link) != head:
        raise _damaged(where, head.position, f"the log ends after row {position}")


def _record(row: Linked) -> bytes:
    if len(row) == REWARD_COLUMNS:
        _, ticket, arm, reward, time, _ = row
        return _pack_reward(ticket, arm, reward + 0.0, time + 0.0)
    return event_record(_event(row))


def _event(row: Linked) -> Event:
    _, kind, ticket, span, text, time, author, _ = row
    for value in (text, author):
        if not isinstance(value, str):
            raise TypeError(f"{value!r} is not a text")
    return Event(Kind(kind), ticket, span, text, time, author)


def _rewards(rows: Iterable[Linked], events: list[Event]) -> Iterator[RewardRow]:
    """The rewards among the rows; appends the others to `events`."""
    for row in rows:
        if len(row) == REWARD_COLUMNS:
            yield row[1:-1]
        else:
            events.append(_event(row))


def _damaged(where: str, position: int, reason: str) -> StoreDamaged:
    return StoreDamaged(f"row {position} of {where} was changed or lost: {reason}")


ROWS = 20_000  # entries of a log in one checkpoint
DIGEST = 16  # bytes
LENGTH = 8  # bytes of the length of the first part


def packed(news: News, before: Head, head: Head) -> bytes:
    """The entries between two heads as a checkpoint."""
    told = news.told
    size = len(told)
    row = bool(size) and bool((np.diff(told.tickets) == 1).all())
    starts = np.flatnonzero(np.diff(told.times, prepend=np.nan) != 0)  # of equal times
    facts = {
        "size": size,
        "first": int(told.tickets[0]) if row else None,
        "runs": starts.size,
        "events": [list(event) for event in news.events],
    }
    text = json.dumps(facts, ensure_ascii=False).encode()
    columns = [
        *([] if row else [told.tickets.astype("<i8")]),
        told.arms.astype("<i4"),
        told.rewards.astype("<f8"),
        starts.astype("<i4"),
        told.times[starts].astype("<f8"),
    ]
    content = b"".join([len(text).to_bytes(LENGTH, "little"), text, *map(_bytes, columns)])
    return _digest(content, before, head) + content


def unpacked(raw: object, before: Head, head: Head) -> News | None:
    """The entries of a checkpoint between these heads; None if it cannot be believed."""
    if not isinstance(raw, bytes):
        return None
    content = raw[DIGEST:]
    if raw[:DIGEST] != _digest(content, before, head):
        return None
    end = LENGTH + int.from_bytes(content[:LENGTH], "little")
    facts: dict[str, Any] = json.loads(content[LENGTH:end])
    size, runs = facts["size"], facts["runs"]
    kinds = [("<i4", size), ("<f8", size), ("<i4", runs), ("<f8", runs)]
    if facts["first"] is None:
        kinds.insert(0, ("<i8", size))
    columns = []
    for kind, length in kinds:
        columns.append(np.frombuffer(content, kind, length, end))
        end += columns[-1].nbytes
    *tickets, arms, rewards, starts, times = columns
    first = facts["first"]
    numbers: IntArray = tickets[0] if first is None else np.arange(first, first + size)
    lengths = np.diff(starts, append=size)
    told = Told(numbers, arms.astype(np.int64), rewards, np.repeat(times, lengths))
    events = [Event(Kind(kind), *rest) for kind, *rest in facts["events"]]
    return News(told, events, head.position)


def joined(parts: list[News]) -> News:
    """Stretches that follow each other as one."""
    told = Told.joined([part.told for part in parts if len(part.told)])
    return News(told, [event for part in parts for event in part.events], parts[-1].last)


def _bytes(column: Any) -> bytes:
    raw: bytes = column.tobytes()
    return raw


def _digest(content: bytes, before: Head, head: Head) -> bytes:
    digest = blake2b(b"%d %d %d %d\n" % (*before, *head), digest_size=DIGEST)
    digest.update(content)
    return digest.digest()
