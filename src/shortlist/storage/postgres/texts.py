"""Texts as PostgreSQL can hold them: it has no room for the character 0.

U+0000 is kept as U+E000 0, and U+E000, which means nothing by itself, as U+E000 1."""

ESCAPE = "\ue000"


def kept(text: str) -> str:
    """A text as it is kept; all but very few are kept as they are."""
    return text.replace(ESCAPE, f"{ESCAPE}1").replace("\0", f"{ESCAPE}0")


def given(text: str) -> str:
    """The text that is kept so."""
    return text.replace(f"{ESCAPE}0", "\0").replace(f"{ESCAPE}1", ESCAPE)
