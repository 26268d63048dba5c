"""Checksums of a log, by which a store that keeps its entries in a file detects damage.

Every entry has a link, the checksum of its content and of the link before it:

    link_i = crc32(entry_i, link_(i-1)),   link_0 = crc32(name and settings)

The store keeps the head of a log, its last position and link, in a separate row. So an entry that
is changed, lost, doubled or moved breaks the chain at its position, and one that is missing at the
end contradicts the head. Random damage goes undetected with probability 2^-32. The checksums are no
signature: they do not protect against deliberate forgery.

Every log has its own chain, so writers of different experiments do not wait for each other."""

from collections.abc import Iterable, Iterator
from itertools import count
from struct import Struct
from struct import error as StructError  # noqa: N812  # it is the name of a class
from typing import Any, NamedTuple
from zlib import crc32

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
