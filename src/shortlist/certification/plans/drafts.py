"""Plans for every group of arms, chosen such that few pulls are expected to lead to few charges.

For every group some thresholds of its policy are tried, and what they cost in pulls and charges is
forecast. Which one each group takes is a knapsack, as in the split certificate."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Belief
from shortlist.certification.plans.losses import Stakes
from shortlist.certification.plans.plan import Plan
from shortlist.certification.plans.policies import Policy
from shortlist.certification.split.knapsack import Knapsack

SHIFTS = np.linspace(-10, 6, 17)  # of the score from which on arms are taken, in errors
TINY = 1e-12  # stands in for no charges at all
DEAREST = 12.0  # common logarithm of the pulls that a unit of charge is worth at most


@dataclass(frozen=True, slots=True)
class Draft:
    """Plans for all groups, and what is expected of them."""

    plans: list[Plan]
    pulls: FloatArray  # (groups,)
    charges: FloatArray  # (groups,)


class Drafts:
    """What every threshold is expected to cost every group; larger numbers, smaller thresholds.

    A sketch knows fewer groups, one boundary, every other threshold, and no more than one stage."""

    def __init__(
        self, belief: Belief, stakes: Stakes, charges: float, *, sketchy: bool = False
    ) -> None:
        self.belief = belief
        self.stakes = stakes
        self.sketchy = sketchy
        self.nodes = [(belief.boundary, 1.0)] if sketchy else belief.nodes
        groups = belief.groups(math.inf if sketchy else tuning.ALIKE_PULLS)
        self.policies = [Policy(group, belief, stakes, self.nodes) for group in groups]
        self.tried: dict[int, Draft] = {}
        self._try_until((1.0 if sketchy else tuning.SOON) * charges, many=tuning.MANY * charges)

    def expected_pulls(self, aim: float) -> float:
        """With one threshold for all groups such that charges are expected to be `aim`, about."""
        pulls = np.array([each.pulls.sum() for each in self.drafts])
        charges = np.array([each.charges.sum() for each in self.drafts])  # falling
        if charges[-1] > aim:
            return math.inf
        falling = -np.log(np.maximum(charges, TINY))
        return float(np.exp(np.interp(-math.log(aim), falling, np.log(pulls))))

    def stages(self, aim: float) -> Iterator[Draft]:
        """The least pulls for which charges are expected to be `aim`, then ever fewer charges.

        No group has a larger threshold than in the stage before. None if no charges are so small.
        Many looks need no second one: smaller thresholds are tried when it is asked for."""
        choice = np.zeros(len(self.policies), dtype=np.int64)
        for number, (part, _) in enumerate(tuning.STAGES):
            if number == 1:
                self._try_until(tuning.FEW * aim)
            cheapest = self.knapsack.cheapest(part * aim)
            if cheapest is None:
                break
            choice = np.maximum(choice, cheapest)
            yield self._mixed(choice)

    def _mixed(self, choice: IntArray) -> Draft:
        """The draft in which every group takes its plan from the one of this number."""
        every = np.arange(choice.size)
        plans = [self.drafts[number].plans[group] for group, number in enumerate(choice)]
        pulls, charges = self.knapsack.price, self.knapsack.charge
        return Draft(plans, pulls[every, choice], charges[every, choice])

    def _try_until(self, few: float, *, many: float = 0.0) -> None:
        """Try thresholds from where charges are `many`, or from the first, to where they are `few`.

        A sketch tries every other one of them."""
        first = last = 0
        while self._charges(first) < many and first > -tuning.MOST_TRIES:
            first -= 2
        while self._charges(last) > few and last < tuning.MOST_TRIES:
            last += 2
        for odd in () if self.sketchy else range(first + 1, last, 2):
            self._charges(odd)
        self.drafts = [self.tried[number] for number in sorted(self.tried)]
        pulls = np.stack([each.pulls for each in self.drafts], axis=1)  # (groups, thresholds)
        charged = np.stack([each.charges for each in self.drafts], axis=1)
        self.knapsack = Knapsack(np.ones(len(pulls)), pulls, charged, DEAREST)

    def _charges(self, number: int) -> float:
        """The charges of all arms at threshold `number`."""
        if number not in self.tried:
            self.tried[number] = self._drafted(math.exp(tuning.THRESHOLD - tuning.STEP * number))
        return float(self.tried[number].charges.sum())

    def _drafted(self, threshold: float) -> Draft:
        plans = [Plan(policy, threshold) for policy in self.policies]
        shift = 0.0 if self.sketchy else self._shift(plans)
        pulls = np.array([plan.expected_pulls for plan in plans])
        charges = np.array([self._expected_charges(plan, shift) for plan in plans])
        return Draft(plans, pulls, charges)

    def _expected_charges(self, plan: Plan, shift: float) -> float:
        """On average over the boundaries that plans are made for."""
        gap = tuning.ROUGH * self.stakes.strength * self.stakes.reach / self.belief.row.size
        charges = 0.0
        for boundary, weight in self.nodes:
            stakes = replace(self.stakes, boundary=boundary)
            charges += weight * plan.expected_charges(boundary - shift, stakes, gap)
        return charges

    def _shift(self, plans: list[Plan]) -> float:
        """How far below the boundary scores must be taken for k arms to be expected inside."""
        boundary = self.belief.boundary
        thresholds = np.clip(boundary + SHIFTS * self.belief.error, 0.0, 1.0)
        inside = np.sum([plan.expected_inside(thresholds) for plan in plans], axis=0)
        return boundary - float(np.interp(-self.belief.k, -inside, thresholds))
