"""Evidence from every arm by itself, for many arms of which few are to be chosen.

Arms of the choice are so few that they may be scored on most items. Then what is left to be proved
of an arm outside is a bound on its own mean, and there are K such statements to go wrong, not one
for every pair (docs/items.md, Lemma 5)."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.items import tuning
from shortlist.certification.items.band import Band
from shortlist.certification.items.cells import Cells
from shortlist.problem import Problem


class Single:
    """Bounds on the means of arms: from above outside the choice, from below inside."""

    def __init__(self, problem: Problem, retired: int = 0) -> None:
        """`retired` arms were there at first, besides those of the problem."""
        n, k = problem.n_arms, problem.k
        self.first = tuning.SINGLE_FIRST
        self.gaps: FloatArray = np.array(tuning.SINGLE_GAPS) * problem.epsilon * np.sqrt(k)
        self.weights: FloatArray = np.array(tuning.SINGLE_WEIGHTS)
        # the levels of bounds from above and from below: Lemma 6, or 5 if no arm has retired
        self.above = (k + retired) / (tuning.ABOVE * problem.delta)
        self.below = (n - k + retired) / ((1 - tuning.ABOVE) * problem.delta)
        self.most: FloatArray = np.ones(n)
        self.least: FloatArray = np.zeros(n)
        # items that bounds rest on, from above and from below: (2, arms)
        self.looked: IntArray = np.zeros((2, n), dtype=np.int64)
        self.variance = tuning.SINGLE_VARIANCE  # expected of a score after the first items
        self.out: BoolArray = np.zeros(n, dtype=np.bool_)

    def take(self, cells: Cells, before: IntArray) -> None:
        """Nothing: bounds are worked out when they are looked at."""

    def learn(self, cells: Cells) -> None:
        """Learn the variance of scores when all arms have their first items."""
        if cells.pilot > 1:
            first = cells.scores[:, : cells.pilot]
            self.variance = float(first.var(axis=1, ddof=1).mean())

    def bounds(self, cells: Cells, top: IntArray, outside: IntArray) -> FloatArray:
        """How much better each arm outside can be than one inside: (inside, outside)."""
        arms = outside[self.looked[0, outside] < cells.reached[outside]]
        self.most[arms] = self._upper(cells, arms, self.above, self.most[arms])
        self.looked[0, arms] = cells.reached[arms]
        arms = top[self.looked[1, top] < cells.reached[top]]
        self.least[arms] = self._lower(cells, arms)
        self.looked[1, arms] = cells.reached[arms]
        self.out[outside] |= self.most[outside] < self.least[top].min()
        bounds: FloatArray = self.most[outside][None, :] - self.least[top][:, None]
        return bounds

    def _lower(self, cells: Cells, arms: IntArray) -> FloatArray:
        """Bounds from below: those from above of mirrored scores."""
        return 1 - self._upper(cells, arms, self.below, 1 - self.least[arms], mirror=True)

    def _upper(
        self, cells: Cells, arms: IntArray, level: float, most: FloatArray, *, mirror: bool = False
    ) -> FloatArray:
        if not arms.size:
            return most
        places = np.arange(cells.reached[arms].max())
        known = cells.known[arms]
        scores = 1 - cells.scores[arms] if mirror else cells.scores[arms]
        band = Band(
            scores[:, places],
            (places < cells.reached[arms, None]) & ~known[:, places],
            cells.size,
            known.sum(1),
            np.where(known, scores, 0.0).sum(1),
            # how many items were affordable at first may tell of known cells up to `first`: no
            # stake on these looks at it
            np.where(places < self.first, tuning.SINGLE_VARIANCE, self.variance),
            self.gaps,
        )
        return band.upper(self.weights, level, most)

    def means(self, cells: Cells) -> FloatArray:
        """The mean of what every arm was scored on."""
        seen = np.arange(cells.size) < cells.reached[:, None]
        means: FloatArray = np.where(seen, cells.scores, 0.0).sum(1) / cells.reached
        return means

    def targets(self, doubtful: BoolArray, cells: Cells) -> IntArray:
        """How many items every arm is to have next.

        An item more of an arm that is in many doubtful pairs helps all of them: if bounds fall with
        the number of items t, t proportional to the root of the number of pairs costs least."""
        reached = cells.reached
        worth = np.maximum(doubtful.sum(1), 1) ** tuning.FAVOUR
        pace = np.where(reached < cells.size, reached / worth, np.inf)
        slowest = np.where(doubtful, pace, np.inf).min(1)  # of its opponents
        behind = (doubtful & (pace[:, None] <= pace[None, :])).any(1)
        step = np.maximum(1, (tuning.SINGLE_GROWTH * reached).astype(np.int64))
        catching = np.minimum(slowest * worth, tuning.JUMP * reached).astype(np.int64)
        further = np.minimum(np.maximum(reached + step, catching), cells.size)
        return np.where(behind & (reached < cells.size), further, reached)
