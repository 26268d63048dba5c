"""Groups, quotas and constraints as they are given at every door: the family that they describe.

`given_family` makes the family of sets of what was given, or refuses it with the reason.
`constraint_record` and `family_of` write and read the families that JSON can hold. `groups_of`
tells which quotas bind, and what they cost by the estimated means."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.arms import group_name
from shortlist.arrays import FloatArray, IntArray
from shortlist.constraints import Constraint, Laminar, Matching, Quotas
from shortlist.errors import InvalidInput
from shortlist.formatting import TextTable, readable
from shortlist.spec import ConstraintRecord
from shortlist.validation import MOST_ARMS, collected, shown, whole

QuotasGiven = Mapping[Any, tuple[int, int]]  # of a group: least and most chosen arms
GroupsGiven = Iterable[Any]  # the group of every arm, None: no group
ConstraintGiven = Constraint | Mapping[str, Any]
FORM = "must be (least, most), as in {'meta': (1, 3)}"
HEADER = ("group", "arms", "chosen", "quota", "price (estimate)")


def group_names(groups: GroupsGiven) -> tuple[str | None, ...]:
    """The group of every arm; None where an arm has none."""
    if isinstance(groups, str | bytes | Mapping) or not isinstance(groups, Iterable):
        raise InvalidInput(f"`groups` is {shown(groups)}, but must be a list, one group per arm")
    given = collected("groups", groups, at_most=MOST_ARMS)
    return tuple(None if group is None else group_name(group) for group in given)


def checked_quotas(quotas: object) -> dict[str, tuple[int, int]]:
    """Least and most chosen arms of every group that is named."""
    if not isinstance(quotas, Mapping):
        raise InvalidInput(f"`quotas` is {shown(quotas)}, but must be a mapping: {FORM}")
    found = {group_name(name): _limits(name, limits) for name, limits in quotas.items()}
    if len(found) < len(quotas):
        raise InvalidInput(f"`quotas` is {shown(quotas)}, but names a group twice")
    return found


def _limits(name: object, limits: object) -> tuple[int, int]:
    if not (isinstance(limits, tuple | list) and len(limits) == 2):
        raise InvalidInput(f"the quota of group {shown(name)} is {shown(limits)}, but {FORM}")
    least = whole(f"least quota of group {shown(name)}", limits[0], at_least=0)
    return least, whole(f"most quota of group {shown(name)}", limits[1], at_least=least)


def given_family(
    groups: Sequence[str | None] | None, quotas: object, constraint: object, k: int
) -> Any:
    """The family of sets that may be chosen; None if all may.

    Args:
        groups: The group of every arm, None where it has none; None if arms have no groups.
        quotas: Name of a group and (least, most), or None.
        constraint: A family, or the record of one, or None.
        k: Number of arms to choose.

    Returns:
        The family, which the problem checks further.

    Raises:
        InvalidInput: If quotas and a constraint are given, quotas name no group, or no set of k
            arms keeps to them."""
    if quotas is not None and constraint is not None:
        raise InvalidInput("`quotas` and `constraint` are given, but only one of them can be")
    if quotas is None:
        return family_of(constraint, k) if isinstance(constraint, Mapping) else constraint
    limits = checked_quotas(quotas)
    if groups is None or set(groups) == {None}:
        raise InvalidInput("`quotas` are given, but no arm has a group: say Arm(label, group=)")
    return Quotas(groups, limits, k=k)


def family_in_order(
    groups: GroupsGiven | None, quotas: object, constraint: object, k: int
) -> Constraint | None:
    """The family of sets, where arms have their groups in order; groups serve quotas alone."""
    named = None if groups is None else group_names(groups)
    if groups is not None and quotas is None:
        raise InvalidInput(f"`groups` is {shown(groups)}, but only goes with `quotas`")
    family: Constraint | None = given_family(named, quotas, constraint, k)
    return family


def constraint_record(constraint: Constraint | None) -> ConstraintRecord | None:
    """The record of a constraint that JSON can hold; refuses any other."""
    if constraint is None:
        return None
    if isinstance(constraint, Quotas):
        names = _plain_names(constraint.group_of)
        groups = tuple(None if name is None else str(name) for name in names)
        return ConstraintRecord("quotas", groups=groups, quotas=_plain_limits(constraint))
    if isinstance(constraint, Laminar):
        names = _plain_names(constraint.groups)
        members = zip(names, constraint.groups.values(), strict=True)
        arms = {str(name): tuple(sorted(each)) for name, each in members}
        limits, n_arms = _plain_limits(constraint), constraint.n_arms
        return ConstraintRecord("laminar", groups=arms, quotas=limits, n_arms=n_arms)
    if isinstance(constraint, Matching):
        rows, columns = tuple(_plain_names(constraint.rows)), _plain_names(constraint.columns)
        return ConstraintRecord("matching", rows=rows, columns=tuple(columns))
    raise InvalidInput(
        f"`constraint` is {shown(constraint)}, but an experiment keeps its settings as text: it"
        " takes `quotas`, Quotas, Laminar or Matching; `select` without a store takes any"
    )


def _plain_names(names: Iterable[object]) -> list[str | int | None]:
    """Names that come back from JSON as they were; refuses others."""
    kept: list[str | int | None] = []
    for name in names:
        if not (name is None or isinstance(name, str | int)) or isinstance(name, bool):
            raise InvalidInput(
                f"`constraint` has the name {shown(name)}, but a name that is kept must be a text"
                " or a whole number"
            )
        kept.append(name)
    return kept


def _plain_limits(family: Laminar) -> dict[str, tuple[int, int]]:
    names = _plain_names(family.limits)
    if len(set(map(str, names))) < len(names):
        raise InvalidInput("`constraint` has two groups whose names are the same text")
    pairs = zip(names, family.limits.values(), strict=True)
    return {str(name): limits for name, limits in pairs if name is not None}


def family_of(record: Mapping[str, Any], k: int) -> Constraint:
    """The constraint that a record describes."""
    given = dict(record)
    kind = given.pop("kind", None)
    known = {
        "quotas": ("groups", "quotas"),
        "laminar": ("groups", "quotas", "n_arms"),
        "matching": ("rows", "columns"),
    }
    if not isinstance(kind, str) or kind not in known:
        raise InvalidInput(
            f"`constraint` is {shown(record)}, but its `kind` must be one of {', '.join(known)}"
        )
    parts = {name: value for name, value in given.items() if value is not None}
    if set(parts) != set(known[kind]):
        wanted = ", ".join(f"`{name}`" for name in known[kind])
        raise InvalidInput(f"`constraint` is {shown(record)}, but {kind} has {wanted}")
    if kind == "matching":
        return Matching(parts["rows"], parts["columns"], k=k)
    quotas = checked_quotas(parts["quotas"])
    if kind == "quotas":
        return Quotas(group_names(parts["groups"]), quotas, k=k)
    return Laminar(parts["groups"], quotas, n_arms=parts["n_arms"], k=k)


@dataclass(frozen=True, slots=True)
class GroupResult:
    """A group of arms: how many are chosen, its quota, and the price of the quota.

    The price is an estimate, without any guarantee: how much the mean reward of the best choice
    would gain, by the estimated means, if one more arm of the group were allowed where it has its
    most, or one fewer required where it has its least."""

    group: str  #: its name
    arms: int  #: number of its arms
    chosen: int  #: number of them that are chosen
    least: int  #: least number that may be chosen
    most: int  #: most that may be chosen
    price: float  #: estimated gain in mean reward if the quota were one wider

    @property
    def binds(self) -> bool:
        """Whether the choice is at an end of the quota that it could leave."""
        return self.chosen in (self.least, self.most) and self.price > 0

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table, under `HEADER`."""
        quota = f"{self.least} to {self.most}" if self.least < self.most else str(self.most)
        price = readable(float(f"{self.price:.2g}")) if self.price > 0 else ""
        return self.group, str(self.arms), str(self.chosen), quota, price


def groups_of(family: Quotas, top: IntArray, means: FloatArray) -> tuple[GroupResult, ...]:
    """Every group that a quota is about, in the order in which it is first named.

    `means` are those of all arms, large ones good, NaN where nothing is known."""
    known = np.where(np.isnan(means), np.nanmin(means, initial=0.0), means)
    at_best = _total(family, known)
    chosen = [family.group_of[arm] for arm in top.tolist()]
    return tuple(
        GroupResult(
            str(name),
            len(arms),
            chosen.count(name),
            *family.limits[name],
            max(0.0, (_total(_wider(family, name, chosen), known) - at_best) / family.k),
        )
        for name, arms in family.groups.items()
        if family.limits[name] != (0, len(arms))
    )


def _total(family: Quotas, means: FloatArray) -> float:
    return float(means[family.best(means)].sum())


def _wider(family: Quotas, name: Hashable, chosen: Sequence[Hashable]) -> Quotas:
    """The same quotas, but for one of one arm more: at the end where the choice is."""
    least, most = family.limits[name]
    number = chosen.count(name)
    low = max(0, least - 1) if number == least else least
    high = min(len(family.groups[name]), most + 1) if number == most else most
    return Quotas(family.group_of, {**family.limits, name: (low, high)}, k=family.k)


def table_of(groups: Sequence[GroupResult]) -> TextTable:
    """The groups as a table."""
    return TextTable(HEADER, [group.cells for group in groups])
