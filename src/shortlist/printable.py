"""The one place that makes text that others wrote fit to be shown.

Labels, names of experiments and of algorithms, and what a program has to say may hold anything. A
terminal would obey their control characters (C0 and C1), characters that turn the direction of
writing would let a line read as another, and a lone surrogate can be written nowhere."""


def printable(text: str, keep: str = "") -> str:
    """A text that leaves a terminal alone: unseen characters are spelt, but for those to keep."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in keep else each.encode("unicode_escape").decode()
        for each in text
    )
