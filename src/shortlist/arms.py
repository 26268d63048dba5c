"""The names of the arms."""

from collections import Counter
from collections.abc import Iterable, Mapping
from numbers import Integral

from shortlist.errors import InvalidInput
from shortlist.validation import whole

Label = str | int
Arms = int | Iterable[Label]


def labels_of(arms: object) -> tuple[Label, ...]:
    """The names of the arms: those given, or numbers from 0 if only their number is."""
    if isinstance(arms, Integral):
        return tuple(range(whole("arms", arms, at_least=2)))
    if isinstance(arms, str | bytes | Mapping) or not isinstance(arms, Iterable):
        raise InvalidInput(f"`arms` is {arms!r}, but must be a number of arms or a list of labels")
    labels = tuple(_label(arm) for arm in arms)
    if len(set(labels)) < len(labels):
        double, _ = Counter(labels).most_common(1)[0]
        raise InvalidInput(f"two arms are called {double!r}, but labels must differ")
    if len(labels) < 2:
        raise InvalidInput(f"`arms` is {list(labels)!r}, but must be at least 2 labels")
    return labels


def _label(arm: object) -> Label:
    """A label as plain text or a plain int, whatever it was in an array."""
    if isinstance(arm, str):
        return str(arm)
    if isinstance(arm, Integral) and not isinstance(arm, bool):
        return int(arm)
    raise InvalidInput(f"an arm is called {arm!r}, but a label must be a text or a whole number")
