"""Groups, quotas and constraints as they are given at every door: the family that they describe.

`given_family` makes the family of sets of what was given, or refuses it with the reason.
`constraint_record` and `family_of` write and read the families that JSON can hold."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shortlist.arms import group_name
from shortlist.constraints import Constraint, Laminar, Matching, Quotas
from shortlist.errors import InvalidInput
from shortlist.spec import ConstraintRecord
from shortlist.validation import MOST_ARMS, collected, shown, whole

QuotasGiven = Mapping[Any, tuple[int, int]]  # of a group: least and most chosen arms
GroupsGiven = Iterable[Any]  # the group of every arm, None: no group
ConstraintGiven = Constraint | Mapping[str, Any]
FORM = "must be (least, most), as in {'meta': (1, 3)}"


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
