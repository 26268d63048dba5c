"""Lines of JSON, chained like the entries of a log: each holds a link to all lines before it.

The link is worked out from what a line says, not from how it is spelled: a tool that orders or
indents it otherwise does no harm, and one that rounds a number is found out."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from shortlist.errors import InvalidInput
from shortlist.storage.chain import follow

BEGINNING = 0  # the link before the first line
MOST_CHARACTERS = 2**26  # of a line: it is in memory as a whole
SHOWN = 200  # characters of a line that is refused


class Line(NamedTuple):
    """A line that was read: its number from 1, its text, and what it says but for the link."""

    number: int
    text: str
    entry: dict[str, Any]
    link: object  # as it says; None if it says nothing

    def refused(self, rule: object) -> InvalidInput:
        """The error that names the line, then the rule."""
        return InvalidInput(f"line {self.number} is {shown(self.text)}, but {rule}")


def linked_lines(entries: Iterable[dict[str, object]]) -> Iterator[str]:
    """Every entry as a line that ends with its link."""
    link = BEGINNING
    for entry in entries:
        (link,) = follow(link, [_content(entry)])
        yield json.dumps({**entry, "link": _spelled(link)}, ensure_ascii=False, allow_nan=False)


def read_lines(lines: Iterable[str]) -> Iterator[Line]:
    """The lines that are not empty, as JSON objects; whether they are linked is not asked yet."""
    for number, text in enumerate(lines, start=1):
        if len(text) > MOST_CHARACTERS:
            raise InvalidInput(
                f"line {number} is {shown(text)}, but must have at most {MOST_CHARACTERS:,}"
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
        (link,) = follow(link, [_content(line.entry)])
        if line.link != _spelled(link):
            raise line.refused(
                f'its link must be "{_spelled(link)}" after the lines before it: one was changed,'
                " lost or moved"
            )
        yield line


def shown(text: str) -> str:
    """The beginning of a line, as it is quoted."""
    start = text[: SHOWN + 1].strip()
    return repr(start if len(text) <= SHOWN else f"{start[:SHOWN]}…")


def _object(number: int, text: str) -> dict[str, Any]:
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        raise InvalidInput(f"line {number} is {shown(text)}, but must be a JSON object")
    return entry


def _content(entry: dict[str, object]) -> bytes:
    spelled = json.dumps(entry, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return spelled.encode("utf-8", "surrogatepass")


def _spelled(link: int) -> str:
    return f"{link:08x}"
