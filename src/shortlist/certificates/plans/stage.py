"""One stage of a look: from the states in which arms stopped to a set and its bound.

Arms are decided block by block; the blocks are declared in advance. The first block is charged by
what the pilot says. The rewards of all blocks before say what the means of the next one are like,
where the boundary is, and how many arms it has to accept. No arm influences its own charge, so (*)
of docs/plans.md holds for each of them given those before (Lemma 5).

The score of an arm is its expected mean. Arms with scores above a threshold are accepted, such that
k arms are expected in the end. Tracks aim at slightly different numbers of arms; each track at each
boundary bounds the regret of a set with its own share of delta, and the shares are weights of a
mean (Lemma 4): bounds that are charged about the same cost hardly more than one with all of their
shares. To check (*) takes long, so charges are estimates at first; only checked ones count."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from scipy.special import expit, logsumexp

from shortlist.arrays import BoolArray, FloatArray, IntArray, product
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.belief import Belief, GroupBelief
from shortlist.certificates.plans.bound import NOT_THERE, Boundaries, Stakes
from shortlist.certificates.plans.planning import Plan, above
from shortlist.exploration.posterior import descending


@dataclass(frozen=True, slots=True)
class ArmBlock:
    """Arms of one plan and one block, and the belief about them before their rewards."""

    plan: Plan
    arms: IntArray
    group_belief: GroupBelief
    moving: float | None  # the boundary with which the belief moves, if it does
    state_probabilities: tuple[FloatArray, FloatArray]  # as in `Plan`, if it does not
    scores: FloatArray  # (states,): the expected mean
    places: (
        FloatArray  # (states,): the boundary at which accepting and rejecting are charged the same
    )

    def charged(
        self, ended: IntArray, stakes: Stakes, gap: float, *, roughly: bool
    ) -> tuple[float, FloatArray]:
        """Least total charge of its arms, and their leads.

        Rough charges are not checked: no bound may rest on them."""
        leads = stakes.capped(self.places - stakes.boundary)
        charge = self.plan.rough_charges if roughly else self.plan.charges
        charges = charge(leads, stakes, gap, self._likely(stakes.boundary))
        return float(charges[ended].sum()), leads[ended]

    def _likely(self, boundary: float) -> FloatArray:
        """Believed probability of every state, if the boundary is here."""
        state_probabilities = self.state_probabilities
        if self.moving is not None:
            state_probabilities = self.plan.state_probabilities(
                self.group_belief.moved(self.moving, boundary)
            )
        return state_probabilities[0]


@dataclass(frozen=True, slots=True)
class SetCharges:
    """Charges of all arms: the least total, and the extra charge for rejecting each arm."""

    least: float
    leads: FloatArray  # (arms,)

    def by(self, chosen: IntArray) -> float:
        """Total charge if these arms are accepted and no others."""
        more = self.leads.copy()  # charged where arms are rejected
        more[chosen] = -self.leads[chosen]
        return self.least + float(np.maximum(more, 0.0).sum())


@dataclass(frozen=True, slots=True)
class StoppedArms:
    """All arms with the states in which they stopped, in blocks, on one track."""

    parts: list[ArmBlock]
    ended: IntArray  # (arms,): numbers of states
    boundary: float  # as believed after all blocks but the last
    share: float  # of delta, of the track

    def charged(self, stakes: Stakes, *, roughly: bool = False) -> SetCharges:
        """Charges of all arms at the boundary of these stakes."""
        inexact = tuning.ROUGH_ERROR if roughly else tuning.CHECKED_ERROR
        gap = inexact * stakes.strength * stakes.reach / self.ended.size
        leads = np.zeros(self.ended.size)
        total = 0.0
        for part in self.parts:
            ended = self.ended[part.arms]
            least, leads[part.arms] = part.charged(ended, stakes, gap, roughly=roughly)
            total += least
        return SetCharges(total, leads)

    @property
    def scores(self) -> FloatArray:
        """Expected mean of every arm: (arms,)."""
        scores = np.zeros(self.ended.size)
        for part in self.parts:
            scores[part.arms] = part.scores[self.ended[part.arms]]
        return scores

    def outline(self) -> "StoppedArms":
        """As if all arms of a plan had been in its last block: no bound may rest on that."""
        last = {id(part.plan): part for part in self.parts}
        parts = [replace(part, arms=part.plan.policy.group.arms) for part in last.values()]
        return replace(self, parts=parts)


@dataclass(slots=True)
class TrackBound:
    """Charges of a set on a track at boundary j; an estimate until it is checked."""

    track: StoppedArms
    j: int
    charges: float
    checked: bool = False


class CombinedBounds:
    """Bounds on the regret of one set from several tracks and boundaries, combined by Lemma 4.

    `check` returns the charges of the set on a track at a boundary, for which (*) holds."""

    def __init__(
        self, boundaries: Boundaries, strength: float, check: Callable[[StoppedArms, int], float]
    ) -> None:
        self.boundaries = boundaries
        self.strength = strength
        self.check = check
        self.all: list[TrackBound] = []

    def add(self, track: StoppedArms, at: Sequence[int], about: FloatArray) -> None:
        """Add those of a track at some boundaries, with estimated charges."""
        self.all += [TrackBound(track, j, each) for j, each in zip(at, about.tolist(), strict=True)]

    def bound(self, reach: float) -> float:
        """A bound within the reach that holds, or else about the least possible bound.

        Charges are checked, those that matter most first, until that suffices or cannot any more.
        The error of one estimate is taken for that of the others, too."""
        self.all.sort(key=self._exponent, reverse=True)
        checked = [each for each in self.all if each.checked]
        unchecked = [each for each in self.all if not each.checked]
        while not 0 <= (proved := self.together(checked)) <= reach:
            about = self.together(self.all)
            inexact = tuning.CHECKED_ERROR if checked else tuning.ROUGH_ERROR
            if not unchecked or not about <= (1 + inexact) * reach:
                return beyond(reach, about)
            claim = unchecked.pop(0)
            charges = self.check(claim.track, claim.j)
            off = charges - claim.charges
            for each in unchecked:
                each.charges = each.charges + off if math.isfinite(off) else math.inf
            claim.charges, claim.checked = charges, True
            checked.append(claim)
        return proved

    def together(self, claims: Sequence[TrackBound]) -> float:
        """The bound that follows if all of these charges are right (Lemma 4)."""
        if not claims:
            return math.inf
        exponents = np.array([self._exponent(each) for each in claims])
        return -float(logsumexp(exponents)) / self.strength

    def _exponent(self, claim: TrackBound) -> float:
        """The logarithm of its term in the sum of Lemma 4."""
        share = math.log(claim.track.share) - float(self.boundaries.thresholds[claim.j])
        return share - self.strength * claim.charges


def beyond(reach: float, about: float) -> float:
    """A bound beyond the reach, which is no proof; infinite for NaN."""
    return math.inf if math.isnan(about) else max(about, math.nextafter(reach, math.inf))


SPAN = np.linspace(-12, 12, 97)  # errors of the boundary within which arms begin to be accepted
LEAST_DOUBT = 1e-9  # about a score


@dataclass(frozen=True, slots=True)
class AcceptanceThreshold:
    """The score above which arms are accepted, and its uncertainty."""

    score: float
    doubt: float


@dataclass(slots=True)
class Track:
    """One way to decide all arms: how many it aims to accept, has accepted; share of delta."""

    aim: float
    share: float
    accepted: int = 0
    steps: list[tuple[ArmBlock, AcceptanceThreshold]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AcceptanceCounts:
    """Expected numbers of undecided arms with scores above some thresholds."""

    ahead: list[ArmBlock]
    belief: Belief
    thresholds: FloatArray  # rising
    above: FloatArray  # (thresholds,)

    @classmethod
    def of(cls, ahead: list[ArmBlock], belief: Belief) -> "AcceptanceCounts":
        """The counts that a belief expects of blocks whose rewards it does not know."""
        thresholds = np.clip(belief.boundary + SPAN * belief.error, 0.0, 1.0)
        expected = np.zeros(thresholds.size)
        for part in ahead:
            expected += part.arms.size * above(thresholds, part.scores, part.state_probabilities[1])
        return cls(ahead, belief, thresholds, expected)

    @property
    def best(self) -> float:
        """Expected number of them with means above the boundary."""
        beyond = self.belief.grid > self.belief.boundary
        return sum(
            part.arms.size * float(part.group_belief.sharp[beyond].sum()) for part in self.ahead
        )

    def tracks(self) -> list[Track]:
        """Tracks that aim to accept k arms, or more or fewer by the error of the last block."""
        score = np.array([self.threshold(self.belief.k).score])
        chances = [
            (part, above(score, part.scores, part.state_probabilities[1])[0]) for part in self.ahead
        ]
        variance = sum(part.arms.size * chance * (1 - chance) for part, chance in chances)
        off = math.sqrt(tuning.BLOCKS[-1] * max(float(variance), 0.0))
        return [Track(self.belief.k + times * off, share) for times, share in tuning.TRACKS]

    def threshold(self, wanted: float) -> AcceptanceThreshold:
        """A threshold with about `wanted` arms expected above it.

        It is kept within the cost of moving an arm from the threshold above which as many arms are
        expected as have means above the boundary."""
        usual, filling = np.interp([-self.best, -wanted], -self.above, self.thresholds)
        error = self.belief.error
        deviation = _deviation(self.ahead, float(usual), error)
        price = tuning.MOVING * deviation
        score = float(np.clip(filling, usual - price, usual + price))
        low, high = np.interp(score + error * np.array([-1.0, 1.0]), self.thresholds, self.above)
        share = sum(part.arms.size for part in self.ahead) / self.belief.row.size
        density = max(low - high, 1.0) / (2 * error * share)  # of all arms, by their scores
        doubt = min(tuning.MISCOUNT / density, tuning.MOST_BLUR * deviation)
        return AcceptanceThreshold(score, max(doubt, LEAST_DOUBT))


def _deviation(ahead: Sequence[ArmBlock], score: float, within: float) -> float:
    """Standard deviation of a mean with about this score, by its expected pulls."""
    likely, pulls = 1e-12, 1e-12
    for part in ahead:
        near = np.abs(part.scores - score) < within
        weights = part.arms.size * part.state_probabilities[1][near]
        likely += float(weights.sum())
        pulls += float((weights * part.plan.states.pulls[near]).sum())
    return math.sqrt(score * (1 - score) * likely / pulls)


GOLDEN = (math.sqrt(5) - 1) / 2  # multiples of it, less whole numbers, are spread evenly


def stopped_arms(
    plans: Sequence[Plan], pilot: Belief, pulls: IntArray, successes: IntArray
) -> Iterator[StoppedArms]:
    """These stopped arms on every track, first the one that accepts most nearly k.

    On no track if an arm stopped in a state that was dropped, which is charged infinitely."""
    ended = ended_states(plans, pulls, successes)
    if (ended == NOT_THERE).any():
        return
    block = blocks(plans, pulls.size)
    belief, tracks = pilot, list[Track]()
    for number in range(len(tuning.BLOCKS)):
        before = block < number
        if number:
            belief = pilot.with_rewards(pulls * before, successes * before)
        counts = AcceptanceCounts.of(_ahead(plans, belief, ~before), belief)
        tracks = tracks or counts.tracks()
        moving = None if number else pilot.boundary
        for track in tracks:
            threshold = counts.threshold(track.aim - track.accepted)
            for part in counts.ahead:
                arms = part.arms[block[part.arms] == number]
                track.steps.append((replace(part, arms=arms, moving=moving), threshold))
                track.accepted += int((part.scores[ended[arms]] > threshold.score).sum())
    for track in sorted(tracks, key=lambda each: abs(each.accepted - pilot.k)):
        steps = [(part, threshold) for part, threshold in track.steps if part.arms.size]
        parts = [replace(part, places=places_of(part, threshold)) for part, threshold in steps]
        yield StoppedArms(parts, ended, belief.boundary, track.share)


def ended_states(plans: Sequence[Plan], pulls: IntArray, successes: IntArray) -> IntArray:
    """The number of the state in which every arm stopped: (arms,)."""
    ended = np.zeros(pulls.size, dtype=np.int64)
    for plan in plans:
        arms = plan.policy.group.arms
        ended[arms] = plan.states.find(pulls[arms], successes[arms])
    return ended


def blocks(plans: Sequence[Plan], n_arms: int) -> IntArray:
    """The block of every arm, by the arms alone; few arms of a plan are all in the last one."""
    ends = np.cumsum(tuning.BLOCKS)[:-1]
    block = np.full(n_arms, ends.size, dtype=np.int64)
    for plan in plans:
        arms = plan.policy.group.arms
        if arms.size >= tuning.FEW_ARMS:
            places = (GOLDEN * np.arange(1, arms.size + 1)) % 1.0
            block[arms] = np.searchsorted(ends, places, side="right")
    return block


def _ahead(plans: Sequence[Plan], belief: Belief, unseen: BoolArray) -> list[ArmBlock]:
    """The undecided arms, and the belief about them."""
    parts = []
    for plan in plans:
        arms = plan.policy.group.arms
        arms = arms[unseen[arms]]
        if arms.size:
            group_belief = belief.group_belief(belief.group(arms))
            posterior = group_belief.posterior(plan.states.pulls, plan.states.successes)
            scores = product(posterior, group_belief.grid[:, None])[:, 0]
            parts.append(
                ArmBlock(
                    plan,
                    arms,
                    group_belief,
                    None,
                    plan.state_probabilities(group_belief),
                    scores,
                    scores,
                )
            )
    return parts


def places_of(part: ArmBlock, threshold: AcceptanceThreshold) -> FloatArray:
    """The quantile of the mean at the probability of acceptance, in every state.

    That less the boundary is the lead with the least expected charge (docs/plans.md, "The best
    charges")."""
    away = (part.scores - threshold.score) / threshold.doubt
    chance = np.clip(expit(away), tuning.LEAST_CHANCE, 1 - tuning.LEAST_CHANCE)
    states, group_belief = part.plan.states, part.group_belief
    posterior = group_belief.posterior(states.pulls, states.successes)
    below = np.cumsum(posterior, axis=1) - posterior / 2  # (states, grid)
    after = np.clip((below < chance[:, None]).sum(axis=1), 1, group_belief.grid.size - 1)
    every = np.arange(after.size)
    low, high = below[every, after - 1], below[every, after]
    share = np.clip((chance - low) / np.maximum(high - low, np.finfo(float).tiny), 0.0, 1.0)
    places = group_belief.grid[after - 1] + share * (
        group_belief.grid[after] - group_belief.grid[after - 1]
    )
    return np.where(np.abs(away) > tuning.FAR_SCORE, np.copysign(math.inf, away), places)


def missing_pulls(plans: Sequence[Plan], pulls: IntArray, successes: IntArray) -> IntArray:
    """Pulls of every arm up to the next level of its plan; 0 where it stops."""
    times = np.zeros(pulls.size, dtype=np.int64)  # (arms,)
    for plan in plans:
        arms = plan.policy.group.arms
        times[arms] = plan.missing(pulls[arms], successes[arms])
    return times


@dataclass(frozen=True, slots=True)
class PlanProof:
    """A set and the bound on K R_T that holds for it."""

    chosen: IntArray
    bound: float
    boundary: FloatArray | float  # a price per arm under constraints
    surplus: float = 0.0  # of the prices


@dataclass(frozen=True, slots=True)
class PlanStage:
    """All that is declared before the fresh rewards of a look; it depends on earlier ones alone."""

    plans: list[Plan]
    belief: Belief
    boundaries: Boundaries
    strength: float
    reach: float

    def missing(self, pulls: IntArray, successes: IntArray) -> IntArray:
        """Pulls of every arm up to its next level; 0 where it stops."""
        return missing_pulls(self.plans, pulls, successes)

    def proof(
        self, pulls: IntArray, successes: IntArray, rng: np.random.Generator
    ) -> PlanProof | float:
        """A set whose bound is within the reach, or about the least possible bound.

        The best set of the first track at the cheapest boundary. The other tracks are used only if
        they may make up for what the first one lacks."""
        tracks = stopped_arms(self.plans, self.belief, pulls, successes)
        first = next(tracks, None)
        if first is None:
            return math.inf
        order = descending(first.scores, rng)
        rough = self.rough_charges(first.outline(), order)
        at = self._cheapest(rough, first.boundary)
        chosen = best(self.charged(first, at, roughly=True).leads, order, self.belief.k)
        claims = CombinedBounds(
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
        return PlanProof(chosen, bound, float(self.boundaries.values[at]))

    def charged(self, ended: StoppedArms, j: int, *, roughly: bool = False) -> SetCharges:
        """Charges of all arms at boundary j."""
        stakes = Stakes(float(self.boundaries.values[j]), self.strength, self.reach)
        return ended.charged(stakes, roughly=roughly)

    def rough_charges(self, ended: StoppedArms, order: IntArray) -> Callable[[int], float]:
        """Estimated charges of the best set at every boundary."""

        @cache
        def charges(j: int) -> float:
            charged = self.charged(ended, j, roughly=True)
            return charged.by(best(charged.leads, order, self.belief.k))

        return charges

    def _cheapest(self, charges: Callable[[int], float], believed: float) -> int:
        """The boundary with the least bound by these charges, from the believed one."""
        start = int(np.abs(self.boundaries.values - believed).argmin())
        thresholds = self.boundaries.thresholds / self.strength
        return cheapest(lambda j: charges(j) + float(thresholds[j]), start, thresholds.size - 1)

    def _near(self, at: int) -> range:
        """Boundaries next to this one."""
        last = self.boundaries.values.size - 1
        return range(max(at - tuning.NEIGHBOURS, 0), min(at + tuning.NEIGHBOURS, last) + 1)

    def _about(
        self, track: StoppedArms, chosen: IntArray, near: range, rough: Callable[[int], float]
    ) -> FloatArray:
        """Estimated charges of a set at some boundaries, from every third of them: (near,)."""
        outlined = np.array([rough(j) for j in near])
        known = near[:: tuning.NEIGHBOURS]
        off = [self.charged(track, j, roughly=True).by(chosen) - rough(j) for j in known]
        if not np.isfinite(outlined).all() or not np.isfinite(off).all():
            return np.full(len(near), math.inf)  # a state that is charged infinitely
        return outlined + np.interp(near, known, off)


def cheapest(cost: Callable[[int], float], at: int, last: int) -> int:
    """The minimum of a cost over 0 ... last, downhill from `at` by ever smaller steps."""
    step = tuning.STRIDE
    while step:
        found = min((at, max(at - step, 0), min(at + step, last)), key=cost)
        if found == at:
            step //= 2
        at = found
    return at


def best(leads: FloatArray, order: IntArray, k: int) -> IntArray:
    """The k arms of the largest leads; ties by the order."""
    return np.sort(order[np.argsort(-leads[order], kind="stable")][:k])
