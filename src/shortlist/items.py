"""A test set as a search sees it: so many items, in a random order that all arms go through.

Which item stands where in the order is the driver's affair. A search asks for further pulls of an
arm, and pull t of an arm is its score on the t-th item of the order that is not known yet."""

from dataclasses import dataclass
from os import PathLike
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput, UnknownName
from shortlist.validation import plain, text, whole

# a row an arm and a column an item, NaN where nothing is known; or the file they are in
ScoresGiven = npt.ArrayLike | PathLike[str]
ORDERS = ("shared", "independent")  # one random order of the items for all arms, or one an arm


class KnownScores(NamedTuple):
    """How many scores of every arm were known before, and their sums: (n,) each."""

    counts: IntArray
    sums: FloatArray


@dataclass(frozen=True, eq=False, slots=True)
class Items:
    """`size` items, every arm is scored on each at most once; its mean over all is what counts.

    `known` are scores that were there before, by the position in the order: (arms, size), NaN where
    there is none. The search takes them up when it comes to their position."""

    size: int
    known: FloatArray | None = None

    def __post_init__(self) -> None:
        plain(self, size=whole("items", self.size, at_least=1))

    def by_position(self, n_arms: int) -> FloatArray:
        """The known scores, to be filled in: (arms, size)."""
        if self.known is None:
            return np.full((n_arms, self.size), np.nan)
        return self.known.copy()

    def cells(self, n_arms: int) -> int:
        """How many scores there are to be asked for."""
        known = 0 if self.known is None else int((~np.isnan(self.known)).sum())
        return n_arms * self.size - known

    def known_scores(self, n_arms: int) -> KnownScores:
        """What was known of every arm before the first pull."""
        if self.known is None:
            return KnownScores(np.zeros(n_arms, dtype=np.int64), np.zeros(n_arms))
        counts: IntArray = (~np.isnan(self.known)).sum(1, dtype=np.int64)
        return KnownScores(counts, np.nansum(self.known, 1))

    def means(self, pulls: IntArray, sums: FloatArray) -> FloatArray:
        """An estimate of every arm's mean over all items: (n,), NaN where nothing is known.

        With K scores known, of sum S, and N items, it is (S + (N - K) x) / N, x the mean of the
        pulls. These are a random sample of the unknown cells, so the estimate is unbiased for any
        fixed number of them. The mean of all scores would not be: the known cells are no random
        sample. Without pulls x is the mean of the known scores. Once every cell has its score, this
        is the exact mean."""
        known = self.known_scores(pulls.size)
        rest = self.size - known.counts
        drawn = np.full(pulls.size, np.nan)
        np.divide(known.sums, known.counts, out=drawn, where=known.counts > 0)
        np.divide(sums, pulls, out=drawn, where=pulls > 0)
        filled = np.where(pulls == rest, sums, rest * drawn)
        return np.where(known.counts > 0, (known.sums + filled) / self.size, drawn)

    def worth(self, pulls: IntArray) -> IntArray:
        """How many independent rewards tell as much of every mean as all its scores do: (n,).

        The estimate of `means` has ((N - K) / N)^2 times the variance that the mean of the pulls
        has. An arm without pulls counts as if it had one; never more than the number of items."""
        known = self.known_scores(pulls.size).counts
        share = np.maximum(1, self.size - known) / self.size
        worth = np.minimum(self.size, np.maximum(1, pulls) / share**2).astype(np.int64)
        return np.where(known > 0, worth, pulls)

    def squared(self) -> "Items":
        """The same items with the squares of the known scores."""
        return self if self.known is None else Items(self.size, self.known**2)

    def unit(self, shift: float, scale: float) -> "Items":
        """The same items with scores on the unit scale."""
        if self.known is None:
            return self
        return Items(self.size, (self.known - shift) / scale)

    def among(self, arms: IntArray) -> "Items":
        """The same items if there are these arms only."""
        return self if self.known is None else Items(self.size, self.known[arms])

    def check(self, n_arms: int) -> None:
        """Refuse known scores that are not of these arms and items."""
        if self.known is not None and self.known.shape != (n_arms, self.size):
            raise InvalidInput(
                f"known scores are of shape {self.known.shape}, but must be of {n_arms} arms and"
                f" {self.size} items"
            )


def checked_order(order: object) -> str:
    """Return the name of an order, if there is such a one."""
    name = text("order", order)
    if name not in ORDERS:
        raise UnknownName(f"`order` is {name!r}, but must be one of {', '.join(ORDERS)}")
    return name
