"""Arms: their labels, costs and limits."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MappingView, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from math import isnan
from numbers import Integral
from typing import Any

from shortlist.errors import InvalidInput, UnknownName
from shortlist.validation import (
    LEGIBLE,
    MOST_ARMS,
    collected,
    encodable,
    number,
    plain,
    reals,
    shown,
    whole,
)

Name = str | int | Enum
Label = str | int  # as a store has it
OwnLabel = Any  # as given by the user, of any type

LISTED = "must be a number of arms or a list of labels"
RULE = "must be a text or a whole number, a tuple of these, or a member of an Enum"
NAME_IT = "; for other values give each a name, arms = {'name': value}, and use arms[name]"


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm: its label, the cost of a pull, the most pulls, its group and its features.

    Args:
        label: A text or a whole number, a tuple of these, or a member of an Enum.
        cost: Cost of a pull, above 0, in the unit of the budget. Default 1.
        limit: The most pulls, at least 1. Default None: no limit.
        group: Name of its group, for `quotas`. Default None: it is in no group.
        features: Known features, numbers in the same order for all arms. Default None: none.

    Raises:
        InvalidInput: If a value breaks its rule.

    Example:
        >>> import shortlist
        >>> shortlist.Arm("large", cost=4.0, limit=100)
        Arm(label='large', cost=4.0, limit=100)
    """

    label: OwnLabel  #: its name
    cost: float = 1.0  #: of a pull, in the unit of the budget
    limit: int | None = None  #: the most pulls; None if there is no limit
    group: str | None = field(default=None, repr=False)  #: for quotas; None if it is in none
    features: Sequence[float] | None = field(default=None, repr=False)  #: known of the arm

    def __post_init__(self) -> None:
        plain(self, label=_label(self.label))
        plain(self, cost=number(f"cost of {shown(self.label)}", self.cost, above=0))
        if self.limit is not None:
            plain(self, limit=whole(f"limit of {shown(self.label)}", self.limit, at_least=1))
        if self.group is not None:
            plain(self, group=group_name(self.group))
        if self.features is not None:
            plain(self, features=_features(self.label, self.features))


def _features(label: OwnLabel, features: object) -> tuple[float, ...]:
    values = reals(f"features of {shown(label)}", features)
    return tuple(values.tolist())


Arms = int | Iterable[Arm | Name | tuple[Name, ...]]


def arms_of(arms: object) -> tuple[Arm, ...] | None:
    """Arms from a list with an `Arm` in it or from a data frame; None if there are only labels."""
    if hasattr(arms, "columns"):
        return tuple(_rows(arms))
    if not isinstance(arms, list | tuple) or not any(isinstance(arm, Arm) for arm in arms):
        return None
    return tuple(arm if isinstance(arm, Arm) else Arm(arm) for arm in arms)


def _rows(frame: Any) -> Iterator[Arm]:
    """The arms of a data frame: columns `arm`, and `cost`, `limit` and `group` if present."""
    names = [str(name) for name in frame.columns]
    if "arm" not in names:
        raise InvalidInput(
            f"`arms` has the columns {', '.join(names)}, but must have one that is called `arm`"
        )
    known = [name for name in ("cost", "limit", "group") if name in names]
    for label, *terms in zip(*(list(frame[name]) for name in ("arm", *known)), strict=True):
        given = dict(zip(known, terms, strict=True))
        if "limit" in given:
            given["limit"] = _limit(given["limit"])
        if "group" in given:
            given["group"] = _group(given["group"])
        yield Arm(label, **given)


def _limit(value: Any) -> Any:
    """A limit in a data frame: NaN is none, and in a column with NaN 40 is 40.0."""
    if isinstance(value, float) and (isnan(value) or value.is_integer()):
        return None if isnan(value) else int(value)
    return value


def _group(value: Any) -> Any:
    """A group in a data frame: NaN is none."""
    return None if isinstance(value, float) and isnan(value) else value


def group_name(group: object) -> str:
    """The name of a group as a text; whole numbers are taken for their digits."""
    if isinstance(group, Integral) and not isinstance(group, bool):
        return str(int(group))
    if not isinstance(group, str) or not group.strip() or not encodable(group):
        raise InvalidInput(
            f"a group is called {shown(group)}, but must be a text or a whole number"
        )
    return str(group)


def labels_of(arms: object) -> tuple[OwnLabel, ...]:
    """The names of the arms: those given, or numbers from 0 if only their number is.

    The labels of a mapping are its keys, those of an Enum its members. A tuple or a member stays
    the very object that was given."""
    if isinstance(arms, Integral):
        return tuple(range(whole("arms", arms, at_least=2, at_most=MOST_ARMS)))
    if isinstance(arms, Set) and not isinstance(arms, MappingView):
        raise InvalidInput(f"`arms` is {shown(arms)}, which has no order, but {LISTED}")
    if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
        raise InvalidInput(f"`arms` is {shown(arms)}, but {LISTED}")
    labels = tuple(map(_label, collected("arms", arms, at_most=MOST_ARMS)))
    if len(set(labels)) < len(labels):
        double, _ = Counter(labels).most_common(1)[0]
        raise InvalidInput(f"two arms are called {double!r}, but labels must differ")
    if len(labels) < 2:
        raise InvalidInput(f"`arms` is {list(labels)!r}, but must be at least 2 labels")
    return labels


def position_of(label: object, labels: Sequence[OwnLabel]) -> int | None:
    """Where a label stands among these, if it does.

    Only what may be a label is compared: arrays do not say whether they are equal."""
    try:
        wanted = _label(label)
    except InvalidInput:
        return None
    return labels.index(wanted) if wanted in labels else None


NAMED = 10  # labels that an error message lists


def unknown_arm(name: str, label: object, labels: Sequence[OwnLabel]) -> UnknownName:
    """The error that the value of `name` is none of these labels, and which there are."""
    listed = ", ".join(map(shown, labels[:NAMED]))
    others = f", ... {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
    rule = f"must be one of the arms: {listed}{others}"
    return UnknownName(f"`{name}` is {shown(label)}, but {rule}")


def shown_label(label: OwnLabel) -> str:
    """A label in a table: a tuple without its brackets and quotes."""
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def plain_label(label: OwnLabel) -> Label:
    """A label as JSON has it: a text or a whole number as it is, anything else as it is shown."""
    kept = _equal_and_plain(label)
    return shown_label(label) if kept is None else kept


def labels_to_keep(labels: Iterable[OwnLabel], what: str = "an arm") -> tuple[Label, ...]:
    """Labels for a store, which has texts and whole numbers only.

    A member of a StrEnum or an IntEnum is equal to its value, which is kept. What would come back
    as something else, such as a tuple, is refused."""
    kept = []
    for label in labels:
        plain = _equal_and_plain(label)
        if plain is None:
            cure = "; give every item an 'id'" if isinstance(label, Mapping) else ""
            raise InvalidInput(
                f"{what} is called {label!r}, but a label that is kept must be a text or a whole"
                f" number (or equal to one, as the members of a StrEnum are){cure}"
            )
        kept.append(plain)
    return tuple(kept)


def _equal_and_plain(label: OwnLabel) -> Label | None:
    """The text or the number that a label is, or is equal to; None if there is none."""
    value = label.value if isinstance(label, Enum) else label
    return value if isinstance(value, str | int) and value == label else None


def _label(arm: object) -> OwnLabel:
    """A label as it was given, but for texts and numbers of an array, which become plain ones."""
    if isinstance(arm, tuple) and arm:
        for part in arm:
            _name(part)
        return arm
    return _name(arm)


def _name(arm: object) -> Name:
    if isinstance(arm, Enum):  # before the others, for it may also be a text or a number
        _check_digits(arm.value)
        return arm
    if isinstance(arm, str):
        if not encodable(arm):
            raise InvalidInput(
                f"an arm is called {shown(arm)}, but UTF-8 must have all its characters"
            )
        return str(arm)
    if isinstance(arm, Integral) and not isinstance(arm, bool):
        _check_digits(arm)
        return int(arm)
    raise InvalidInput(f"an arm is called {shown(arm)}, but a label {RULE}{NAME_IT}")


def _check_digits(value: object) -> None:
    """Refuse a number that cannot be shown wherever its arm is."""
    if isinstance(value, Integral) and abs(int(value)) >= 10**LEGIBLE:
        raise InvalidInput(
            f"an arm is called {shown(value)}, but a number must have at most {LEGIBLE:,} digits"
        )
