"""The cells of a test set that were scored: every arm on the first items of its order."""

from copy import copy

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.items import Items


class Cells:
    """Scores by position in the order; `reached` says how far every arm has come."""

    def __init__(self, items: Items, n_arms: int) -> None:
        self.size = items.size
        self.scores: FloatArray = items.by_position(n_arms)  # (arms, items), NaN where not seen
        self.known: BoolArray = ~np.isnan(self.scores)  # before anything was asked for
        self.reached: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.pilot = 0  # items that all arms were scored on at first

    def among(self, arms: IntArray) -> "Cells":
        """The cells of these arms only."""
        some = copy(self)
        some.scores, some.known = self.scores[arms], self.known[arms]
        some.reached = self.reached[arms]
        return some

    def missing(self, targets: IntArray) -> IntArray:
        """Cells that are to be scored for arms to reach these numbers of items: (arms,)."""
        return np.asarray(self._new(targets).sum(1), dtype=np.int64)

    def take(self, targets: IntArray, scores: FloatArray) -> None:
        """Take in the missing cells, arm by arm in the order of items."""
        self.scores[self._new(targets)] = scores
        first = not self.reached.any()
        self.reached = np.maximum(self.reached, targets)
        if first:
            self.pilot = int(self.reached.min())

    def _new(self, targets: IntArray) -> BoolArray:
        places = np.arange(self.size)
        ahead = (places >= self.reached[:, None]) & (places < targets[:, None])
        new: BoolArray = ahead & ~self.known
        return new

    def certain(self, top: IntArray, outside: IntArray) -> FloatArray:
        """How much better arms outside can be if they win all that was not seen of both."""
        seen = self.known | (np.arange(self.size) < self.reached[:, None])
        filled = np.where(seen, self.scores, 0.0)
        inner, outer = seen[top].astype(np.float64), seen[outside].astype(np.float64)
        gained = inner @ filled[outside].T - filled[top] @ outer.T
        certain: FloatArray = (gained + self.size - inner @ outer.T) / self.size
        return certain
