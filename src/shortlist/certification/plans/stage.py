"""One stage of a look: plans for all arms, and what the states in which they stopped prove."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Belief
from shortlist.certification.plans.boundaries import Boundaries
from shortlist.certification.plans.claims import Claims
from shortlist.certification.plans.losses import Stakes
from shortlist.certification.plans.parts import Charged, Settled
from shortlist.certification.plans.plan import Plan
from shortlist.certification.plans.settling import settled
from shortlist.exploration.sharing import descending


@dataclass(frozen=True, slots=True)
class Proof:
    """A set and the bound on K R_T that holds for it."""

    chosen: IntArray
    bound: float
    boundary: float


@dataclass(frozen=True, slots=True)
class Stage:
    """What is declared before the fresh rewards of a look: it depends on those before alone."""

    plans: list[Plan]
    belief: Belief
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

    def proof(
        self, pulls: IntArray, successes: IntArray, rng: np.random.Generator
    ) -> Proof | float:
        """A set whose bound is within the reach, or about the least bound that there is.

        The best set of the first track at the cheapest boundary. The other tracks are asked only if
        they may make up for what the first one lacks."""
        tracks = settled(self.plans, self.belief, pulls, successes)
        first = next(tracks, None)
        if first is None:
            return math.inf
        order = descending(first.scores, rng)
        rough = self.rough_charges(first.outline(), order)
        at = self._cheapest(rough, first.boundary)
        chosen = best(self.charged(first, at, roughly=True).leads, order, self.belief.k)
        claims = Claims(
            self.boundaries, self.strength, lambda track, j: self.charged(track, j).by(chosen)
        )
        near = self._near(at)
        about = self._about(first, chosen, near, rough)
        claims.add(first, near, about)
        bound = claims.bound(self.reach)
        if bound > self.reach + tuning.TOGETHER / self.strength:
            return bound - tuning.USUALLY / self.strength
        if bound > self.reach:
            for track in tracks:
                more = self.charged(track, at, roughly=True).by(chosen) - about[near.index(at)]
                claims.add(track, near, about + more)
            bound = claims.bound(self.reach)
        if not 0 <= bound <= self.reach:
            return bound
        return Proof(chosen, bound, float(self.boundaries.values[at]))

    def charged(self, ended: Settled, j: int, *, roughly: bool = False) -> Charged:
        """What all arms are charged at boundary j."""
        stakes = Stakes(float(self.boundaries.values[j]), self.strength, self.reach)
        return ended.charged(stakes, roughly=roughly)

    def rough_charges(self, ended: Settled, order: IntArray) -> Callable[[int], float]:
        """About what the best set is charged at every boundary."""

        @cache
        def charges(j: int) -> float:
            charged = self.charged(ended, j, roughly=True)
            return charged.by(best(charged.leads, order, self.belief.k))

        return charges

    def _cheapest(self, charges: Callable[[int], float], believed: float) -> int:
        """The boundary at which these charges prove the most, from the one believed in."""
        start = int(np.abs(self.boundaries.values - believed).argmin())
        thresholds = self.boundaries.thresholds / self.strength
        return cheapest(lambda j: charges(j) + float(thresholds[j]), start, thresholds.size - 1)

    def _near(self, at: int) -> range:
        """Boundaries next to this one."""
        last = self.boundaries.values.size - 1
        return range(max(at - tuning.NEIGHBOURS, 0), min(at + tuning.NEIGHBOURS, last) + 1)

    def _about(
        self, track: Settled, chosen: IntArray, near: range, rough: Callable[[int], float]
    ) -> FloatArray:
        """About what a set is charged at some boundaries, as at every third of them: (near,)."""
        outlined = np.array([rough(j) for j in near])
        known = near[:: tuning.NEIGHBOURS]
        off = [self.charged(track, j, roughly=True).by(chosen) - rough(j) for j in known]
        if not np.isfinite(outlined).all() or not np.isfinite(off).all():
            return np.full(len(near), math.inf)  # a state that is charged infinitely
        return outlined + np.interp(near, known, off)


def cheapest(cost: Callable[[int], float], at: int, last: int) -> int:
    """Where a cost is least, of 0 ... last, going downhill from `at` by ever smaller steps."""
    step = tuning.STRIDE
    while step:
        found = min((at, max(at - step, 0), min(at + step, last)), key=cost)
        if found == at:
            step //= 2
        at = found
    return at


def best(leads: FloatArray, order: IntArray, k: int) -> IntArray:
    """The k arms of the largest leads; of equal ones those that are first in the order."""
    return np.sort(order[np.argsort(-leads[order], kind="stable")][:k])
