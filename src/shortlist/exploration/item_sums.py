"""The cells of a test set that were seen, and all that is used of their scores: sums."""

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.items import Items


class ItemSums:
    """Which cells were seen, and sums over arms and items, kept up to date cell by cell."""

    def __init__(self, items: Items, n_arms: int) -> None:
        scores = items.by_position(n_arms)
        unseen = np.isnan(scores)
        self.seen: FloatArray = (~unseen).astype(np.float64)  # (arms, items): 1 where seen, else 0
        self.counts: FloatArray = self.seen.sum(1)  # (arms,)
        self.seers: FloatArray = self.seen.sum(0)  # (items,)
        filled = np.where(unseen, 0.0, scores)
        self.by_arm: FloatArray = filled.sum(1)
        self.by_item: FloatArray = filled.sum(0)
        self.squares = float((filled**2).sum())
        # of every arm the places that were not seen, in their order, before all others
        self._places: IntArray = np.argsort(~unseen, axis=1, kind="stable")
        self._asked: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.missing: IntArray = unseen.sum(1)  # (arms,)

    def missing_among(self, first: int) -> IntArray:
        """How many of the first items every arm was not scored on: (arms,)."""
        missing: IntArray = first - self.seen[:, :first].sum(1).astype(np.int64)
        return missing

    def take(self, times: IntArray, scores: FloatArray) -> None:
        """Take in scores on so many further items of every arm, arm by arm."""
        arms = np.repeat(np.arange(times.size), times)
        turn = np.arange(arms.size) - np.repeat(np.cumsum(times) - times, times)
        places = self._places[arms, self._asked[arms] + turn]
        self._asked += times
        self.missing = self.missing - times
        self.seen[arms, places] = 1.0
        self.counts = self.counts + times
        self.seers += np.bincount(places, minlength=self.seers.size)
        self.by_arm += np.bincount(arms, scores, minlength=times.size)
        self.by_item += np.bincount(places, scores, minlength=self.seers.size)
        self.squares += float(scores @ scores)
