"""Whole numbers in text: Python reads any digits there are, and refuses to read very many."""

import re

_WHOLE = re.compile(r"\s*[0-9]{1,18}\s*")  # as many digits as can be counted in 64 bits


def whole_number(text: str) -> int | None:
    """The number that a text is; None if it is none, or larger than anything is counted."""
    return int(text) if _WHOLE.fullmatch(text) else None
