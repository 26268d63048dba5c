"""One stage of a look: plans for all arms, and what the states in which they stopped prove."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.boundaries import Boundaries
from shortlist.certification.plans.losses import FREE, IN, Stakes
from shortlist.certification.plans.plan import Plan
from shortlist.certification.plans.stop_states import NOT_THERE
from shortlist.exploration.sharing import descending
from shortlist.grouping import grouped_by


@dataclass(frozen=True, slots=True)
class Proof:
    """A set and the bound on K R_T that holds for it."""

    chosen: IntArray
    bound: float
    boundary: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A boundary and a way to label, and about the bound that they prove."""

    way: int
    j: int
    rough: float


@dataclass(frozen=True, slots=True)
class Stage:
    """What is declared before the fresh rewards of a look: it depends on those before alone."""

    plans: list[Plan]
    shift: float  # boundary less where labels change, if not aside
    boundaries: Boundaries
    strength: float
    reach: float

    def missing(self, pulls: IntArray, successes: IntArray) -> IntArray:
        """Pulls of every arm up to its next level; 0 where it stops."""
        times = np.zeros(pulls.size, dtype=np.int64)  # (arms,)
        for plan in self.plans:
            arms = plan.policy.group.arms
            times[arms] = plan.missing(pulls[arms], successes[arms])
        return times

    def candidates(self, pulls: IntArray, successes: IntArray, k: int) -> list[Candidate]:
        """For every way to label the boundary that should cost least, the least bounds first."""
        extra = self._extra(pulls, successes, k)
        farther = tuning.FARTHER * self.reach * np.abs(self.boundaries.errors)
        found = []
        for way, j in enumerate((extra + farther).argmin(axis=1).tolist()):
            rough = float(extra[way, j]) + self.charges(way, j, pulls, successes, roughly=True)
            found.append(Candidate(way, j, rough))
        return sorted(found, key=lambda each: each.rough)

    def proof(
        self,
        found: Sequence[Candidate],
        pulls: IntArray,
        successes: IntArray,
        k: int,
        rng: np.random.Generator,
    ) -> Proof | float:
        """A set whose bound is within the reach, or about the least bound that there is.

        Candidates that come near the reach are settled."""
        least = math.inf
        for each in found:
            if each.rough > (1 + tuning.ROUGH) * self.reach:
                return min(least, each.rough)
            labels, scores = self._labels(each, pulls, successes)
            bound = self._bound(each, labels, pulls, successes, k)
            if bound <= self.reach:
                boundary = float(self.boundaries.values[each.j])
                return Proof(chosen_by(labels, scores, k, rng), bound, boundary)
            least = min(least, bound)
        return least

    def _bound(
        self, found: Candidate, labels: IntArray, pulls: IntArray, successes: IntArray, k: int
    ) -> float:
        """Charges, ln(1/delta) / strength, and what arms lose that T has against these labels."""
        counts = [np.array([np.count_nonzero(labels == each)], float) for each in (IN, FREE)]
        against = moved(counts[0], counts[1], k, self.boundaries.values[[found.j]])
        threshold = float(self.boundaries.thresholds[found.way, found.j])
        charges = self.charges(found.way, found.j, pulls, successes)
        return charges + threshold / self.strength + float(against[0])

    def charges(
        self, way: int, j: int, pulls: IntArray, successes: IntArray, *, roughly: bool = False
    ) -> float:
        """Of all arms, at boundary j with this way to label.

        Roughly, they are not checked: no claim may rest on them."""
        boundary = float(self.boundaries.values[j])
        stakes = Stakes(boundary, self.strength, self.reach)
        gap = (tuning.ROUGH if roughly else tuning.EXACT) * self.strength * self.reach / pulls.size
        changing = float(self._changing()[way, j])
        band = float(self.boundaries.bands[way])
        total = 0.0
        for plan in self.plans:
            arms = plan.policy.group.arms
            labels = plan.labels(changing, band)
            charges = (plan.rough_charges if roughly else plan.charges)(labels, stakes, gap)
            ended = plan.states.find(pulls[arms], successes[arms])
            if (ended == NOT_THERE).any():
                return math.inf
            total += float(charges[ended].sum())
        return total

    def _extra(self, pulls: IntArray, successes: IntArray, k: int) -> FloatArray:
        """ln(1/delta) / strength, and what arms lose against labels: (ways, boundaries)."""
        inside, free = self._counts(pulls, successes)
        result: FloatArray = self.boundaries.thresholds / self.strength
        return result + moved(inside, free, k, self.boundaries.values)

    def _changing(self) -> FloatArray:
        """Where labels change: (ways, boundaries)."""
        result: FloatArray = self.boundaries.asides[:, None] + self.boundaries.values - self.shift
        return result

    def _counts(self, pulls: IntArray, successes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Arms that are IN, and FREE, for all ways to label: (ways, boundaries) each."""
        at = self._changing()
        bands = np.repeat(self.boundaries.bands, at.shape[1])
        counts = np.zeros((2, at.size))
        for plan in self.plans:
            arms = plan.policy.group.arms
            states, state = grouped_by(pulls[arms], successes[arms])
            labels, _ = plan.policy.labels(*_floats(*states), at.ravel(), bands)
            sizes = np.bincount(state).astype(np.float64)
            counts += np.stack([sizes @ (labels == IN), sizes @ (labels == FREE)])
        inside, free = counts.reshape(2, *at.shape)
        return inside, free

    def _labels(
        self, found: Candidate, pulls: IntArray, successes: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """Labels of all arms, and by how much IN is better: (arms,) each."""
        at = self._changing()[found.way, [found.j]]
        band = self.boundaries.bands[[found.way]]
        labels = np.zeros(pulls.size, dtype=np.int64)
        scores = np.zeros(pulls.size)
        for plan in self.plans:
            arms = plan.policy.group.arms
            of_plan = plan.policy.labels(*_floats(pulls[arms], successes[arms]), at, band)
            labels[arms], scores[arms] = (each[:, 0] for each in of_plan)
        return labels, scores


def moved(inside: FloatArray, free: FloatArray, k: int, boundary: FloatArray) -> FloatArray:
    """What arms lose at most that a set of k has against their labels. (Lemma 4)

    One that is moved out is at most 1 - b above the boundary b, one that is moved in b below it."""
    out = np.maximum(inside - k, 0.0) * (1 - boundary)
    total: FloatArray = out + np.maximum(k - inside - free, 0.0) * boundary
    return total


def _floats(pulls: IntArray, successes: IntArray) -> tuple[FloatArray, FloatArray]:
    return pulls.astype(np.float64), successes.astype(np.float64)


def chosen_by(labels: IntArray, scores: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """The best arms that are in, then the best of the free ones, then the best that are out."""
    order = descending(scores, rng)
    rank = np.select([labels == IN, labels == FREE], [0, 1], 2)  # (arms,)
    first = order[np.argsort(rank[order], kind="stable")]
    return np.sort(first[:k])
