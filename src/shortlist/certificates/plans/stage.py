"""All arms where they stopped, in parts that are believed and charged alike, and what they pay.

From which score on arms are taken, so that there are k of them in the end.

The score of an arm is the mean that is expected of it. What is expected of arms that are not
settled yet says how many of them will have scores above any threshold.

Arms are settled block by block: what one is charged may depend on the arms before it.

All arms have stopped. The blocks are declared in advance. The first is charged by what the pilot
says; the rewards of all blocks before say what the means of the next one are like, where the
boundary is, and how many arms it has to take. No arm has a say in what it is charged itself, so (*)
of docs/plans.md holds for each of them given those before. (Lemma 5) What several tracks say about
the same set is put together, as with boundaries: each of them has its own share of delta.

One stage of a look: plans for all arms, and what the states in which they stopped prove."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from scipy.special import expit, logsumexp

from shortlist.arrays import BoolArray, FloatArray, IntArray, product
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.belief import Belief, Outlook
from shortlist.certificates.plans.bound import NOT_THERE, Boundaries, Stakes
from shortlist.certificates.plans.planning import Plan, above
from shortlist.exploration.sharing import descending


@dataclass(frozen=True, slots=True)
class Part:
    """Arms of one plan and one block, and what is believed about them before they are seen."""

    plan: Plan
    arms: IntArray
    outlook: Outlook
    moving: float | None  # the boundary with which what is believed moves, if it does
    laws: tuple[FloatArray, FloatArray]  # as in `Plan.laws`, if it does not
    scores: FloatArray  # (states,): the expected mean
    places: FloatArray  # (states,): the boundary at which taking and leaving are charged the same

    def charged(
        self, ended: IntArray, stakes: Stakes, gap: float, *, roughly: bool
    ) -> tuple[float, FloatArray]:
        """What its arms are charged at least, in all, and their leads.

        Roughly, charges are not checked: no claim may rest on them."""
        leads = stakes.capped(self.places - stakes.boundary)
        charge = self.plan.rough_charges if roughly else self.plan.charges
        charges = charge(leads, stakes, gap, self._likely(stakes.boundary))
        return float(charges[ended].sum()), leads[ended]

    def _likely(self, boundary: float) -> FloatArray:
        """How likely every state is believed to be, if the boundary is here."""
        laws = self.laws
        if self.moving is not None:
            laws = self.plan.laws(self.outlook.moved(self.moving, boundary))
        return laws[0]


@dataclass(frozen=True, slots=True)
class Charged:
    """What all arms are charged: at least, in all, and more for leaving each than for taking it."""

    least: float
    leads: FloatArray  # (arms,)

    def by(self, chosen: IntArray) -> float:
        """If these arms are taken and no others."""
        more = self.leads.copy()  # to be paid where they are left out
        more[chosen] = -self.leads[chosen]
        return self.least + float(np.maximum(more, 0.0).sum())


@dataclass(frozen=True, slots=True)
class Settled:
    """All arms where they stopped, in parts."""

    parts: list[Part]
    ended: IntArray  # (arms,): numbers of states
    boundary: float  # where it is believed to be after all blocks but the last
    share: float  # of delta, that the track has on which they were settled

    def charged(self, stakes: Stakes, *, roughly: bool = False) -> Charged:
        """What all arms are charged at the boundary of these stakes."""
        inexact = tuning.ROUGH if roughly else tuning.EXACT
        gap = inexact * stakes.strength * stakes.reach / self.ended.size
        leads = np.zeros(self.ended.size)
        total = 0.0
        for part in self.parts:
            ended = self.ended[part.arms]
            least, leads[part.arms] = part.charged(ended, stakes, gap, roughly=roughly)
            total += least
        return Charged(total, leads)

    @property
    def scores(self) -> FloatArray:
        """The mean that is expected of every arm: (arms,)."""
        scores = np.zeros(self.ended.size)
        for part in self.parts:
            scores[part.arms] = part.scores[self.ended[part.arms]]
        return scores

    def outline(self) -> "Settled":
        """As if all arms of a plan had been in its last block: no claim may rest on that."""
        last = {id(part.plan): part for part in self.parts}
        parts = [replace(part, arms=part.plan.policy.group.arms) for part in last.values()]
        return replace(self, parts=parts)


@dataclass(slots=True)
class Claim:
    """What a track at boundary j charges a set; an estimate until it is checked."""

    track: Settled
    j: int
    charges: float
    checked: bool = False


class Claims:
    """Claims about one set, of strength lambda at some boundaries.

    `check` has the charges of the set on a track at a boundary, for which (*) holds."""

    def __init__(
        self, boundaries: Boundaries, strength: float, check: Callable[[Settled, int], float]
    ) -> None:
        self.boundaries = boundaries
        self.strength = strength
        self.check = check
        self.all: list[Claim] = []

    def add(self, track: Settled, at: Sequence[int], about: FloatArray) -> None:
        """Those of a track at some boundaries, and about what is charged there."""
        self.all += [Claim(track, j, each) for j, each in zip(at, about.tolist(), strict=True)]

    def bound(self, reach: float) -> float:
        """One that holds and is within the reach, or else about the least that there is.

        Claims are checked, those that matter most first, until that suffices or cannot any more.
        What one estimate was off by, the others are taken to be, too."""
        self.all.sort(key=self._exponent, reverse=True)
        checked = [each for each in self.all if each.checked]
        unchecked = [each for each in self.all if not each.checked]
        while not 0 <= (proved := self.together(checked)) <= reach:
            about = self.together(self.all)
            inexact = tuning.EXACT if checked else tuning.ROUGH
            if not unchecked or not about <= (1 + inexact) * reach:
                return _beyond(reach, about)
            claim = unchecked.pop(0)
            charges = self.check(claim.track, claim.j)
            off = charges - claim.charges
            for each in unchecked:
                each.charges = each.charges + off if math.isfinite(off) else math.inf
            claim.charges, claim.checked = charges, True
            checked.append(claim)
        return proved

    def together(self, claims: Sequence[Claim]) -> float:
        """The bound that claims prove if they are all right. (Lemma 4)"""
        if not claims:
            return math.inf
        exponents = np.array([self._exponent(each) for each in claims])
        return -float(logsumexp(exponents)) / self.strength

    def _exponent(self, claim: Claim) -> float:
        """The logarithm of what it adds to the sum of Lemma 4."""
        share = math.log(claim.track.share) - float(self.boundaries.thresholds[claim.j])
        return share - self.strength * claim.charges


def _beyond(reach: float, about: float) -> float:
    """A bound that is no proof, whatever `about` is: if it is not a number, the largest."""
    return math.inf if math.isnan(about) else max(about, math.nextafter(reach, math.inf))


SPAN = np.linspace(-12, 12, 97)  # errors of the boundary within which arms begin to be taken
LEAST_DOUBT = 1e-9  # about a score


@dataclass(frozen=True, slots=True)
class Threshold:
    """The score from which on arms are to be taken, and the doubt about it."""

    score: float
    doubt: float


@dataclass(slots=True)
class Track:
    """One way to settle all arms: how many it aims to take, and has taken; its share of delta."""

    aim: float
    share: float
    taken: int = 0
    steps: list[tuple[Part, Threshold]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many of the arms ahead are expected to have scores above some thresholds."""

    ahead: list[Part]
    belief: Belief
    thresholds: FloatArray  # rising
    above: FloatArray  # (thresholds,)

    @classmethod
    def of(cls, ahead: list[Part], belief: Belief) -> "Counts":
        """The counts that a belief expects of parts which it knows no rewards of."""
        thresholds = np.clip(belief.boundary + SPAN * belief.error, 0.0, 1.0)
        expected = np.zeros(thresholds.size)
        for part in ahead:
            expected += part.arms.size * above(thresholds, part.scores, part.laws[1])
        return cls(ahead, belief, thresholds, expected)

    @property
    def best(self) -> float:
        """How many of them are expected to have means above the boundary."""
        beyond = self.belief.grid > self.belief.boundary
        return sum(part.arms.size * float(part.outlook.sharp[beyond].sum()) for part in self.ahead)

    def tracks(self) -> list[Track]:
        """Some that aim to take k arms, or as many more or fewer as the last block may be off."""
        score = np.array([self.threshold(self.belief.k).score])
        chances = [(part, above(score, part.scores, part.laws[1])[0]) for part in self.ahead]
        variance = sum(part.arms.size * chance * (1 - chance) for part, chance in chances)
        off = math.sqrt(tuning.BLOCKS[-1] * max(float(variance), 0.0))
        return [Track(self.belief.k + times * off, share) for times, share in tuning.TRACKS]

    def threshold(self, wanted: float) -> Threshold:
        """Such that so many arms are expected above.

        If that were farther than moving an arm costs from where as many are expected above as have
        means above the boundary, arms are rather moved."""
        usual, filling = np.interp([-self.best, -wanted], -self.above, self.thresholds)
        error = self.belief.error
        deviation = _deviation(self.ahead, float(usual), error)
        price = tuning.MOVING * deviation
        score = float(np.clip(filling, usual - price, usual + price))
        low, high = np.interp(score + error * np.array([-1.0, 1.0]), self.thresholds, self.above)
        share = sum(part.arms.size for part in self.ahead) / self.belief.row.size
        density = max(low - high, 1.0) / (2 * error * share)  # of all arms, by their scores
        doubt = min(tuning.MISCOUNT / density, tuning.BLUR * deviation)
        return Threshold(score, max(doubt, LEAST_DOUBT))


def _deviation(ahead: Sequence[Part], score: float, within: float) -> float:
    """Of a mean about which fresh rewards make this score expected, by how often it is pulled."""
    likely, pulls = 1e-12, 1e-12
    for part in ahead:
        near = np.abs(part.scores - score) < within
        weights = part.arms.size * part.laws[1][near]
        likely += float(weights.sum())
        pulls += float((weights * part.plan.states.pulls[near]).sum())
    return math.sqrt(score * (1 - score) * likely / pulls)


GOLDEN = (math.sqrt(5) - 1) / 2  # multiples of it, less whole numbers, are spread evenly


def settled(
    plans: Sequence[Plan], pilot: Belief, pulls: IntArray, successes: IntArray
) -> Iterator[Settled]:
    """Arms that have stopped like this, on every track, the one first that takes most nearly k.

    On none if one of them stopped where states were left out, which is charged infinitely."""
    ended = _ended(plans, pulls, successes)
    if (ended == NOT_THERE).any():
        return
    block = blocks(plans, pulls.size)
    belief, tracks = pilot, list[Track]()
    for number in range(len(tuning.BLOCKS)):
        before = block < number
        if number:
            belief = pilot.with_rewards(pulls * before, successes * before)
        counts = Counts.of(_ahead(plans, belief, ~before), belief)
        tracks = tracks or counts.tracks()
        moving = None if number else pilot.boundary
        for track in tracks:
            threshold = counts.threshold(track.aim - track.taken)
            for part in counts.ahead:
                arms = part.arms[block[part.arms] == number]
                track.steps.append((replace(part, arms=arms, moving=moving), threshold))
                track.taken += int((part.scores[ended[arms]] > threshold.score).sum())
    for track in sorted(tracks, key=lambda each: abs(each.taken - pilot.k)):
        steps = [(part, threshold) for part, threshold in track.steps if part.arms.size]
        parts = [replace(part, places=_places(part, threshold)) for part, threshold in steps]
        yield Settled(parts, ended, belief.boundary, track.share)


def _ended(plans: Sequence[Plan], pulls: IntArray, successes: IntArray) -> IntArray:
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


def _ahead(plans: Sequence[Plan], belief: Belief, unseen: BoolArray) -> list[Part]:
    """The arms that are not settled yet, and what is believed about them."""
    parts = []
    for plan in plans:
        arms = plan.policy.group.arms
        arms = arms[unseen[arms]]
        if arms.size:
            outlook = belief.outlook(belief.group(arms))
            posterior = outlook.posterior(plan.states.pulls, plan.states.successes)
            scores = product(posterior, outlook.grid[:, None])[:, 0]
            parts.append(Part(plan, arms, outlook, None, plan.laws(outlook), scores, scores))
    return parts


def _places(part: Part, threshold: Threshold) -> FloatArray:
    """The quantile of the mean at how likely an arm is to be taken, in every state.

    That less the boundary is the lead with which the least is expected to be charged
    (docs/plans.md, "The best charges")."""
    away = (part.scores - threshold.score) / threshold.doubt
    taken = np.clip(expit(away), tuning.HARDLY, 1 - tuning.HARDLY)
    states, outlook = part.plan.states, part.outlook
    posterior = outlook.posterior(states.pulls, states.successes)
    below = np.cumsum(posterior, axis=1) - posterior / 2  # (states, grid)
    after = np.clip((below < taken[:, None]).sum(axis=1), 1, outlook.grid.size - 1)
    every = np.arange(after.size)
    low, high = below[every, after - 1], below[every, after]
    share = np.clip((taken - low) / np.maximum(high - low, np.finfo(float).tiny), 0.0, 1.0)
    places = outlook.grid[after - 1] + share * (outlook.grid[after] - outlook.grid[after - 1])
    result: FloatArray = np.where(np.abs(away) > tuning.NEVER, np.copysign(math.inf, away), places)
    return result


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
