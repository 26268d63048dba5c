"""Checkpoints: stretches of a log in compact form, next to the log.

Reading a log row by row, with its checksums, takes two seconds per million rows. A checkpoint has
the same entries as arrays. It is a hint and can be thrown away at any time. It is believed only if

- its digest matches its content, positions and links (random damage passes it with probability
  2^-128),
- it begins with the position and link at which the one before it, or the log, begins, and
- the log itself has the link at its end.

Otherwise the log is read instead. `verify`, `copy` and `export` always read the log."""

import json
from hashlib import blake2b
from typing import Any

import numpy as np

from shortlist.arrays import IntArray
from shortlist.stores.base import Event, Kind, News, Told
from shortlist.stores.checksums import Head

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
    for kind, count in kinds:
        columns.append(np.frombuffer(content, kind, count, end))
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
