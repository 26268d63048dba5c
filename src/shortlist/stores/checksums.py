"""The chain over a log, by which damage is seen: for every store that keeps its entries in a file.

Every entry has a link, the checksum of its content and of the link before it:

    link_i = crc32(entry_i, link_(i-1)),   link_0 = crc32(name and settings)

and a store keeps the last position of a log and its link, its head, beside it. So an entry that is
changed, lost, doubled or moved breaks the chain where it stands, and one that is missing at the
end contradicts the head. Random damage passes for nothing with probability 2^-32. It is no
signature: whoever means to deceive can work out the links anew.

One chain a log: writers of different experiments do not meet in it, and whoever holds the head of
one (a row that a database can lock) may append to it."""

from collections.abc import Iterable, Iterator
from itertools import count
from struct import Struct
from struct import error as StructError  # noqa: N812  # it is the name of a class
from typing import Any, NamedTuple
from zlib import crc32

from shortlist.errors import StoreDamaged
from shortlist.stores.base import Event, Kind, News, RewardRow, Told

REWARD_COLUMNS = 6  # and an event has seven
Linked = tuple[Any, ...]  # a row of a table: position, the reward or the event, link

_pack_reward = Struct("<qqdd").pack
_pack_event = Struct("<qqd").pack


class Head(NamedTuple):
    """Where a log ends: the position of its last entry, from 1, and the link of that."""

    position: int
    link: int


NOBODY = Head(0, 0)  # of the list of experiments while there are none


def enlisted(roll: Head, identity: int, name: str) -> Head:
    """The head of the list of experiments, which is a log too, with one more in it."""
    record = b"%d\0%b" % (identity, name.encode())
    return Head(roll.position + 1, crc32(record, roll.link))


def beginning(name: str, settings: str) -> Head:
    """The head of an empty log."""
    return Head(0, crc32(settings.encode(), crc32(name.encode())))


def follow(link: int, records: Iterable[bytes]) -> list[int]:
    """The links of these records, one after the other."""
    links = []
    for record in records:
        link = crc32(record, link)
        links.append(link)
    return links


def chained(
    head: Head, told: Iterable[RewardRow], events: Iterable[Event]
) -> tuple[list[Linked], list[Linked], Head]:
    """New rewards and events with their positions and links, and where the log ends with them."""
    rewards, others = list(told), list(events)
    links = follow(head.link, [*map(reward_record, rewards), *map(event_record, others)])
    entries = zip(count(head.position + 1), (*rewards, *others), links, strict=False)
    linked: list[Linked] = [(position, *row, link) for position, row, link in entries]
    end = Head(head.position + len(links), [head.link, *links][-1])
    return linked[: len(rewards)], linked[len(rewards) :], end


def reward_record(row: RewardRow) -> bytes:
    """A reward as the chain sees it. -0.0 is 0.0, as some databases have it."""
    ticket, arm, reward, time = row
    return _pack_reward(ticket, arm, reward + 0.0, time + 0.0)


def event_record(event: Event) -> bytes:
    """An event as the chain sees it."""
    kind, ticket, span, text, time = event
    return b"%b\0%b%b" % (kind.encode(), _pack_event(ticket, span, time + 0.0), text.encode())


def checked(
    before: Head, head: Head, rewards: Iterable[Linked], events: Iterable[Linked], where: str
) -> News:
    """The entries between two heads, if they are those that were written; each table is in its
    order."""
    happened: list[Event] = []
    rows = _along(before, head, _in_order(rewards, iter(events)), where)
    return News(Told.of(_sorted_out(rows, happened)), happened, head.position)


def news_of(rewards: Iterable[Linked], events: Iterable[Linked], head: Head) -> News:
    """The same of entries that were only just chained."""
    return News(Told.of(row[1:-1] for row in rewards), [*map(_event, events)], head.position)


def _in_order(rewards: Iterable[Linked], events: Iterator[Linked]) -> Iterator[Linked]:
    """The rows of both tables by their positions."""
    event = next(events, None)
    for row in rewards:
        while event is not None and event[0] < row[0]:
            yield event
            event = next(events, None)
        yield row
    if event is not None:
        yield event
    yield from events


def _along(before: Head, head: Head, rows: Iterable[Linked], where: str) -> Iterator[Linked]:
    """Every row, if its position and its link are those that follow, and all are there."""
    position, link = before
    try:
        for row in rows:
            position += 1
            link = crc32(_record(row), link)
            if row[0] != position or row[-1] != link:
                raise _damaged(where, position, "it does not follow from the row before")
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
    _, kind, ticket, span, text, time, _ = row
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is no text")
    return Event(Kind(kind), ticket, span, text, time)


def _sorted_out(rows: Iterable[Linked], happened: list[Event]) -> Iterator[RewardRow]:
    """The rewards among the rows; the events are put where they belong."""
    for row in rows:
        if len(row) == REWARD_COLUMNS:
            yield row[1:-1]
        else:
            happened.append(_event(row))


def _damaged(where: str, position: int, reason: str) -> StoreDamaged:
    return StoreDamaged(f"row {position} of {where} is not as it was written: {reason}")
