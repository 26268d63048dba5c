"""One stage of a look: plans for all arms, and what the states in which they stopped prove."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.boundaries import Boundaries
from shortlist.certification.plans.losses import FREE, IN, Stakes
from shortlist.certification.plans.plan import Plan
from shortlist.certification.plans.stop_states import NOT_THERE
from shortlist.exploration.sharing import descending


@dataclass(frozen=True, slots=True)
class Proof:
    """A set and the bound on K R_T that holds for it."""

    chosen: IntArray
    bound: float
    boundary: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A boundary and a free band for which some set of k arms exists; about what it would prove."""

    band: int
    j: int
    labels: IntArray  # (arms,)
    scores: FloatArray  # (arms,): by how much IN is better
    rough: float  # bound


@dataclass(frozen=True, slots=True)
class Stage:
    """What is declared before the fresh rewards of a look: it depends on those before alone."""

    plans: list[Plan]
    shift: float  # boundary less the threshold of labels
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
        """Some boundaries of every free band, those with the least bounds first."""
        found = []
        for band in range(len(tuning.FREE_BANDS)):
            labels, scores = self._labels(band, pulls, successes)
            inside = (labels == IN).sum(axis=0)
            free = (labels == FREE).sum(axis=0)
            possible = (inside <= k) & (k <= inside + free)  # the T exist
            for j in self._likeliest(possible, np.abs(inside + free / 2 - k)).tolist():
                rough = self.bound(band, j, pulls, successes, roughly=True)
                found.append(Candidate(band, j, labels[:, j], scores[:, j], rough))
        return sorted(found, key=lambda each: each.rough)

    def proof(
        self,
        found: Sequence[Candidate],
        pulls: IntArray,
        successes: IntArray,
        k: int,
        rng: np.random.Generator,
    ) -> Proof | None:
        """A set whose bound is within the reach, at one of the candidates that come near it."""
        for each in found:
            if each.rough > (1 + tuning.ROUGH) * self.reach:
                break
            bound = self.bound(each.band, each.j, pulls, successes)
            if bound <= self.reach:
                chosen = chosen_by(each.labels, each.scores, k, rng)
                return Proof(chosen, bound, float(self.boundaries.values[each.j]))
        return None

    def bound(
        self, band: int, j: int, pulls: IntArray, successes: IntArray, *, roughly: bool = False
    ) -> float:
        """The charges of all arms and ln(1/delta_j) / strength, at boundary number j.

        Roughly, charges are not checked: no claim may rest on them."""
        boundary = float(self.boundaries.values[j])
        stakes = Stakes(boundary, self.strength, self.reach)
        gap = (tuning.ROUGH if roughly else tuning.EXACT) * self.strength * self.reach / pulls.size
        bound = float(self.boundaries.thresholds[band, j]) / self.strength
        for plan in self.plans:
            arms = plan.policy.group.arms
            labels = plan.labels(boundary - self.shift, band)
            charges = (plan.rough_charges if roughly else plan.charges)(labels, stakes, gap)
            ended = plan.states.find(pulls[arms], successes[arms])
            if (ended == NOT_THERE).any():
                return math.inf
            bound += float(charges[ended].sum())
        return bound

    def _labels(
        self, band: int, pulls: IntArray, successes: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """Labels of all arms at all boundaries, and by how much IN is better."""
        width, _ = tuning.FREE_BANDS[band]
        at = self.boundaries.values - self.shift
        labels = np.zeros((pulls.size, at.size), dtype=np.int64)
        scores = np.zeros((pulls.size, at.size))
        for plan in self.plans:
            arms = plan.policy.group.arms
            ended = (pulls[arms].astype(np.float64), successes[arms].astype(np.float64))
            labels[arms], scores[arms] = plan.policy.labels(*ended, at, width)
        return labels, scores

    def _likeliest(self, possible: BoolArray, mismatch: FloatArray) -> IntArray:
        """Boundaries to settle: few arms to move, and near the middle one."""
        order = np.argsort(mismatch + np.abs(self.boundaries.errors), kind="stable")
        return order[possible[order]][: tuning.CANDIDATES]


def chosen_by(labels: IntArray, scores: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """All arms that are in, and the best of the free ones."""
    inside = np.flatnonzero(labels == IN)
    free = np.flatnonzero(labels == FREE)
    best = free[descending(scores[free], rng)]
    return np.sort(np.concatenate([inside, best[: k - inside.size]]))
