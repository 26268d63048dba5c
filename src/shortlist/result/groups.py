"""Which quotas bind, and what they cost by the estimated means."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.constraints import Quotas
from shortlist.formatting import TextTable, readable

HEADER = ("group", "arms", "chosen", "quota", "price (estimate)")


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
