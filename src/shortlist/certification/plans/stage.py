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
        """A set whose bound is within the reach, or about the least bound that there is."""
        ended = settled(self.plans, self.belief, pulls, successes)
        if ended is None:
            return math.inf
        order = descending(ended.scores, rng)
        rough = self.rough_charges(ended.outline(), order)
        start = int(np.abs(self.boundaries.values - ended.boundary).argmin())
        last = self.boundaries.values.size - 1
        at = cheapest(lambda j: rough(j) + self._threshold(j), start, last)
        more = self.rough_charges(ended, order)(at) - rough(at)
        near = self._near(at)
        about = self._mixed(ended, near, np.array([rough(j) + more for j in near.tolist()]))
        if not about <= (1 + tuning.ROUGH) * self.reach:
            return about
        return self._settle(ended, near, order)

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

    def _settle(self, ended: Settled, near: IntArray, order: IntArray) -> Proof | float:
        """The best set at the first of these boundaries, and what they prove for it together.

        Boundaries are added until that suffices, or the others cannot make up for what it lacks."""
        charged = self.charged(ended, int(near[0]))
        chosen = best(charged.leads, order, self.belief.k)
        charges = [charged.by(chosen)]
        bound = self._mixed(ended, near[:1], np.array(charges))
        while not 0 <= bound <= self.reach:
            gained = math.log(near.size / len(charges)) / self.strength
            if len(charges) == near.size or bound - gained > self.reach:
                return bound
            charges.append(self.charged(ended, int(near[len(charges)])).by(chosen))
            bound = self._mixed(ended, near[: len(charges)], np.array(charges))
        return Proof(chosen, bound, float(self.boundaries.values[near[0]]))

    def _near(self, at: int) -> IntArray:
        """Boundaries next to this one, the nearest first."""
        every = np.arange(self.boundaries.values.size)
        nearest = np.argsort(np.abs(every - at), kind="stable")
        result: IntArray = nearest[: 2 * tuning.NEIGHBOURS + 1]
        return result

    def _threshold(self, j: int) -> float:
        return float(self.boundaries.thresholds[j]) / self.strength

    def _mixed(self, ended: Settled, at: IntArray, charges: FloatArray) -> float:
        """What these boundaries prove together, on a track with this share of delta."""
        of_track = -math.log(ended.share) / self.strength
        return self.boundaries.mixed(at, charges, self.strength) + of_track


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
