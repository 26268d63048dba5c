"""Plans with prices: where not every set of k arms may be chosen (docs/prices.md, Theorem 3).

Arms with the same price form a class, with a belief of their own about where the best of them
begin. Every arm follows a plan around its price. The chosen set is the best one for weights price +
lead: one call of the family's `best`. Leads and charges of an arm depend on the pilot and its own
state alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import IntArray, grouped, product
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.belief import Belief
from shortlist.certificates.plans.bound import NOT_THERE, Stakes
from shortlist.certificates.plans.planning import Plan, above
from shortlist.certificates.plans.stage import (
    AcceptanceCounts,
    AcceptanceThreshold,
    ArmBlock,
    PlanProof,
    SetCharges,
    beyond,
    ended_states,
    missing_pulls,
    places_of,
)
from shortlist.certificates.prices import surplus
from shortlist.constraints import Constraint, best_set
from shortlist.exploration.priced import PricedPosterior
from shortlist.exploration.prices import Prices

TIE = 1e-12  # by which ties between weights are broken at random
LEAST_BLUR = 1e-4  # of the score above which arms of a class are accepted


@dataclass(frozen=True, slots=True)
class PriceClass:
    """Arms that share a price, and the belief about them."""

    arms: IntArray
    belief: Belief


@dataclass(frozen=True, slots=True)
class PricedBelief:
    """All classes, and the price of every arm."""

    classes: list[PriceClass]
    constraint: Constraint
    k: int

    @classmethod
    def of(
        cls, posterior: PricedPosterior, rng: np.random.Generator, *, sharpen: bool
    ) -> "PricedBelief":
        """Classes of equal prices in exploration; the belief moves the price of each."""
        chosen, prices = posterior.priced(rng)
        values, of_arm = grouped(prices.of_arms)
        classes = []
        for number, guess in enumerate(values.tolist()):
            arms = np.flatnonzero(of_arm == number)
            inside = int(chosen[arms].sum())
            given = posterior.pulls[arms], posterior.sums[arms], inside, guess
            some = sharpen and 0 < inside < arms.size
            classes.append(PriceClass(arms, Belief(*given, sharpen=some)))
        return cls(classes, posterior.constraint, posterior.k)

    @property
    def many_share(self) -> bool:
        """Whether enough arms share a price that the numbers above it average out."""
        return self.n_arms >= tuning.FEWEST_SHARING * len(self.classes)

    @property
    def n_arms(self) -> int:
        """Number of arms in all."""
        return sum(each.arms.size for each in self.classes)

    @property
    def edge(self) -> float:
        """A factor that grows as fewer arms are to be chosen, or rejected."""
        result: float = (self.n_arms / min(self.k, self.n_arms - self.k)) ** tuning.EDGE_POWER
        return result

    @property
    def beliefs(self) -> list[Belief]:
        """The belief of every class."""
        return [each.belief for each in self.classes]

    @property
    def members(self) -> list[IntArray]:
        """The arms of every class."""
        return [each.arms for each in self.classes]


@dataclass(frozen=True, slots=True)
class PricedStage:
    """All that is declared before the fresh rewards of a look; it depends on earlier ones alone."""

    plans: list[Plan]
    belief: PricedBelief
    threshold: float  # ln(1/delta) of the stage
    strength: float
    reach: float

    def missing(self, pulls: IntArray, successes: IntArray) -> IntArray:
        """Pulls of every arm up to its next level; 0 where it stops."""
        return missing_pulls(self.plans, pulls, successes)

    def proof(
        self, pulls: IntArray, successes: IntArray, rng: np.random.Generator
    ) -> PlanProof | float:
        """A set whose bound is within the reach, or about the least possible bound."""
        ended = ended_states(self.plans, pulls, successes)
        if (ended == NOT_THERE).any():
            return math.inf
        parts = self._parts()
        rough = self._charged(parts, ended, roughly=True)
        prices = np.zeros(ended.size)
        for part in parts:
            prices[part.arms] = part.plan.policy.stakes.boundary
        ties = TIE * rng.permutation(ended.size)
        chosen = best_set(self.belief.constraint, prices + rough.leads + ties, self.belief.k)
        top = np.flatnonzero(chosen)
        exceeded = surplus(self.belief.constraint, chosen, Prices(prices))
        rest = exceeded + self.threshold / self.strength
        about = rough.by(top) + rest
        if not about <= (1 + tuning.ROUGH_ERROR) * self.reach:
            return beyond(self.reach, about)
        bound = self._charged(parts, ended, roughly=False).by(top) + rest
        if not 0 <= bound <= self.reach:
            return beyond(self.reach, bound)
        return PlanProof(top, bound, prices, exceeded)

    def _parts(self) -> list[ArmBlock]:
        """The arms of every plan, with the quantile of the mean that leads are made of."""
        parts = []
        for each in self.belief.classes:
            place = {arm: number for number, arm in enumerate(each.arms.tolist())}
            ahead = []
            for plan in self.plans:
                arms = plan.policy.group.arms
                if int(arms[0]) in place:
                    local = np.array([place[arm] for arm in arms.tolist()])
                    ahead.append(block_of(plan, arms, each.belief, local))
            threshold = class_threshold(ahead, each.belief)
            parts += [replace(part, places=places_of(part, threshold)) for part in ahead]
        return parts

    def _charged(self, parts: Sequence[ArmBlock], ended: IntArray, *, roughly: bool) -> SetCharges:
        """Charges of all arms, each around the price of its class."""
        inexact = tuning.ROUGH_ERROR if roughly else tuning.CHECKED_ERROR
        gap = inexact * self.strength * self.reach / ended.size
        leads = np.zeros(ended.size)
        total = 0.0
        for part in parts:
            stakes = Stakes(part.plan.policy.stakes.boundary, self.strength, self.reach)
            least, leads[part.arms] = part.charged(ended[part.arms], stakes, gap, roughly=roughly)
            total += least
        return SetCharges(total, leads)


def class_threshold(ahead: list[ArmBlock], belief: Belief) -> AcceptanceThreshold:
    """The score with k arms of a class expected above, and its uncertainty.

    As many arms more or fewer as their number varies by would move it by so much."""
    counts = AcceptanceCounts.of(ahead, belief)
    score = float(np.interp(-belief.k, -counts.above, counts.thresholds))
    variance = 0.0
    for part in ahead:
        chance = float(above(np.array([score]), part.scores, part.state_probabilities[1])[0])
        variance += part.arms.size * chance * (1 - chance)
    off = max(math.sqrt(max(variance, 0.0)), 1.0)
    wanted = np.array([-belief.k - off, -belief.k + off])
    low, high = np.interp(wanted, -counts.above, counts.thresholds).tolist()
    return AcceptanceThreshold(score, max(tuning.CLASS_BLUR * abs(high - low), LEAST_BLUR))


def block_of(plan: Plan, arms: IntArray, belief: Belief, local: IntArray) -> ArmBlock:
    """Arms of one plan, which a belief knows by these numbers.

    They are accepted by all that the pilot says: it is larger than without constraints."""
    group_belief = belief.group_belief(belief.group(local))
    prior = (1 - tuning.CLASS_SOFT) * group_belief.sharp + tuning.CLASS_SOFT * belief.all_arms
    group_belief = replace(group_belief, prior=prior)
    posterior = group_belief.posterior(plan.states.pulls, plan.states.successes)
    scores = product(posterior, group_belief.grid[:, None])[:, 0]
    likely = plan.state_probabilities(group_belief)
    return ArmBlock(plan, arms, group_belief, None, likely, scores, scores)
