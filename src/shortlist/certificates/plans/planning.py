"""Plans for groups of arms: when they stop, what they charge, and what they are expected to cost.

An arm continues while the smaller of its two expected exponential losses, by the root of its pulls,
exceeds a threshold. Exponential, since (*) of docs/plans.md charges that; under a blunt belief,
since the pilot is no proof: where it is sure, fresh rewards have to confirm it.

Charges are log-optimal, the least expected ones under (*):

    maximise  sum over s of p(s) ln q(s)   subject to   A q <= 1,      q = exp(-strength * charge),

with p the believed probability of every state and A(m, s) = p_m(s) exp(strength L(s, m)). The dual
finds weights w of the means that maximise sum p ln(w A) - sum w; then q = p / (w A). Newton's
method finds both, the weights and the slack of the constraints, x = 1 - A q: on the central path
all w(m) x(m) are equal, and their sum is the duality gap. Few means have weight in the end: it
begins with some, and adds those at which the constraint is violated most (cutting planes).

For every group several thresholds are tried, and their pulls and charges are forecast. Choosing one
per group is a knapsack, as in the split certificate. The strength trades the cost of delta,
ln(1/delta) / strength, against charges, which grow with it: slowly where many arms are close to the
boundary, fast where all are far away. No guarantee rests on any of this."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, product
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.belief import ArmGroup, Belief, GroupBelief, angle, chances
from shortlist.certificates.plans.bound import (
    RIGHT_ANGLE,
    Boundaries,
    Level,
    Stakes,
    StopStates,
    stop_states,
    worst_moment,
)
from shortlist.certificates.split.planning import Knapsack

LARGEST_EXPONENT = 40.0
BOUNDARY_VARIANCE = 0.02  # of a reward at the boundary, where the width of bands is concerned

Nodes = list[tuple[float, float]]  # boundaries, and how much each of them counts


class Policy:
    """Levels for a group of arms."""

    def __init__(self, group: ArmGroup, belief: Belief, stakes: Stakes, nodes: Nodes) -> None:
        self.group = group
        self.stakes = stakes
        self.group_belief = belief.group_belief(group).smoothed(tuning.SMOOTHED * belief.deviation)
        self.nodes = nodes
        self._losses = self._exponential_losses()
        self._bands: list[_LevelBand] = []

    def levels(self, threshold: float) -> list[Level]:
        """The levels up to the one at which all arms stop."""
        levels: list[Level] = []
        while not levels or not levels[-1].stops.all():
            if len(levels) == len(self._bands):
                self._bands.append(self._next_band())
            levels.append(self._bands[len(levels)].level(threshold))
        return [each for each in levels if each.stops.any()]  # the others are no levels

    def _next_band(self) -> "_LevelBand":
        """The band of successes at the next level in which arms may continue."""
        pulls = max(tuning.FIRST_LEVEL, int(tuning.FIRST_LEVEL_SHARE * self.group.pulls))
        if self._bands:
            last = self._bands[-1].pulls
            ratio = (
                tuning.LEVEL_RATIO
                if self._in_doubt(last) > tuning.FEW_IN_DOUBT
                else tuning.FAR_LEVEL_RATIO
            )
            pulls = min(max(last + 1, math.ceil(ratio * last)), tuning.MOST_PLAN_PULLS)
        b = self.stakes.boundary
        deviation = math.sqrt(pulls * max(b * (1 - b), BOUNDARY_VARIANCE))
        low = max(0, math.floor(pulls * b - tuning.BAND_WIDTH * deviation - 1))
        high = min(pulls, math.ceil(pulls * b + tuning.BAND_WIDTH * deviation + 1))
        width = max(1, int(tuning.BIN * deviation))
        middles = np.minimum(np.arange(low, high + 1, width) + (width - 1) / 2, pulls)
        losses = self._least_loss(np.full(middles.size, float(pulls)), middles)
        losses /= (min(tuning.BLUNT, self.group.pulls) + pulls) ** tuning.PER_PULL
        both = np.stack([losses, self._likely(pulls, middles)])
        return _LevelBand(pulls, low, *np.repeat(both, width, axis=1)[:, : high + 1 - low])

    def _in_doubt(self, pulls: int) -> float:
        """Probability that a mean is within two standard deviations of the boundary."""
        b = self.stakes.boundary
        deviation = math.sqrt(max(b * (1 - b), BOUNDARY_VARIANCE) / pulls)
        close = np.abs(self.group_belief.grid - b) < 2 * deviation
        return float(self.group_belief.believed[close].sum())

    def _likely(self, pulls: int, successes: FloatArray) -> FloatArray:
        """Believed probability of numbers of successes after this many pulls."""
        by_mean = chances(pulls, successes, self.group_belief.grid)
        return product(by_mean, self.group_belief.believed[:, None])[:, 0]

    def _least_loss(self, pulls: FloatArray, successes: FloatArray) -> FloatArray:
        """The smaller expected exponential loss, of accepting or rejecting, in every state.

        On average over the boundaries that plans are made for."""
        losses = product(self.group_belief.posterior(pulls, successes), self._losses)
        both_ways = losses.reshape(pulls.size, len(self.nodes), 2)
        weights = np.array([weight for _, weight in self.nodes])
        return product(both_ways.min(axis=2), weights[:, None])[:, 0]

    def _exponential_losses(self) -> FloatArray:
        """Losses of rejecting and accepting at every such boundary: (grid, boundaries * 2)."""
        grid, columns = self.group_belief.grid, []
        for boundary, _ in self.nodes:
            stakes = replace(self.stakes, boundary=boundary)
            exponents = np.minimum(stakes.strength * stakes.distances(grid), LARGEST_EXPONENT)
            losses = np.expm1(exponents) / stakes.strength
            above = grid > boundary
            columns += [losses * above, losses * ~above]
        return np.stack(columns, axis=1)


class _LevelBand:
    """Successes at a level for which an arm may continue: expected loss and probability."""

    def __init__(self, pulls: int, low: int, loss: FloatArray, likely: FloatArray) -> None:
        self.pulls = pulls
        self.low = low
        self.loss = loss
        self.likely = likely

    def level(self, threshold: float) -> Level:
        """The level and its stops; none if stops are rare. A lower threshold stops fewer arms."""
        stops = np.ones(self.pulls + 1, dtype=np.bool_)
        continues = self.loss > threshold
        if self.pulls >= tuning.MOST_PLAN_PULLS or not continues.any():
            return Level(self.pulls, stops)
        if math.fsum(self.likely[continues]) > 1 - tuning.RARE:  # exact, hence monotone
            return Level(self.pulls, np.zeros_like(stops))
        stops[self.low : self.low + continues.size] = ~continues
        return Level(self.pulls, stops)


INSIDE = 0.99  # of the way to where a weight, or what a constraint leaves, would be 0
LEFT = 0.3  # that constraints leave, to begin with


def log_optimal_among(
    matrix: FloatArray, believed: FloatArray, gap: float, every: int
) -> FloatArray:
    """The best q as in `log_optimal`, with one in `every` means as constraints at first."""
    used = np.zeros(matrix.shape[0], dtype=np.bool_)
    used[::every] = True
    used[-1] = True
    for _ in range(tuning.CUTS):
        q = log_optimal(np.ascontiguousarray(matrix[used]), believed, gap)
        broken = _peaks(matrix @ q, 1 + gap) & ~used
        if not broken.any():
            break
        used |= broken
    return q


def log_optimal(matrix: FloatArray, believed: FloatArray, gap: float) -> FloatArray:
    """The best q for A = `matrix` (means, states), p = `believed`, but for `gap` in sum p ln q."""
    from scipy.linalg.lapack import dposv  # late: slow to import, and few searches need it

    means = matrix.shape[0]
    weights = np.full(means, 1 / means)
    left = np.full(means, LEFT)
    root = np.sqrt(believed)
    for _ in range(tuning.NEWTON_STEPS):
        mixture = weights @ matrix
        moments = matrix @ (believed / mixture)
        distance = float(weights @ left)
        if distance <= gap and float((moments - 1 + left).max()) <= gap / 4:
            break
        centre = tuning.SHRINK * distance / (means * weights)  # slack to aim at
        scaled = matrix * (root / mixture)  # (means, states)
        curvature = scaled @ scaled.T
        ratio = left / weights
        curvature.ravel()[:: means + 1] += ratio  # its diagonal
        _, step, failed = dposv(curvature, moments - 1 + centre, overwrite_a=True)
        if failed:  # by rounding: the present q has to do, and is checked
            break
        change = centre - left - ratio * step
        weights = weights + step * _length(step / weights)
        left = left + change * _length(change / left)
    return believed / (weights @ matrix)


def _length(relative: FloatArray) -> float:
    """Length of a step that leaves everything positive, at most 1."""
    return min(1.0, INSIDE / max(INSIDE, -float(relative.min())))


def _peaks(moments: FloatArray, above: float) -> BoolArray:
    """Local maxima of the moments that are too large."""
    padded = np.pad(moments, 1)
    highest = (moments >= padded[:-2]) & (moments >= padded[2:])
    return highest & (moments > above)


LEAST_LIKELY = 1e-12  # states less likely are charged infinitely
ADDED = 1e-9  # to how likely a state is believed to be
OUTERMOST_SHARE = 0.99  # of the way to a mean of 0 or 1
CLOSE_TO_OUTERMOST = 0.97  # of the way there: no other mean is closer to it


@dataclass(frozen=True, slots=True)
class Detail:
    """How finely charges are made."""

    width: float  # standard deviations within which successes are charged the same
    apart: float  # of means at which they are made, relative to their distance from the boundary
    every: int  # one in this many of these means is a constraint at first


FINELY = Detail(tuning.BIN, tuning.APART, tuning.EVERY)
ROUGHLY = Detail(tuning.ROUGH_BIN, tuning.ROUGH_APART, 1)


class Plan:
    """The plan of a policy at a threshold; it does not depend on fresh rewards."""

    def __init__(self, policy: Policy, threshold: float) -> None:
        self.policy = policy
        self.levels = policy.levels(threshold)
        self.states = stop_states(self.levels, policy.stakes.boundary)
        _, self.likely = self.state_probabilities(policy.group_belief)  # (states,)
        self.ends: IntArray = np.array([each.pulls for each in self.levels])  # (levels,)
        self.stops = np.concatenate([each.stops for each in self.levels])

    def missing(self, pulls: IntArray, successes: IntArray) -> IntArray:
        """Pulls of arms in these states up to the next level; 0 if they stop."""
        level = np.searchsorted(self.ends, pulls)  # the one that they stand at or go to
        first = np.concatenate([[0], np.cumsum(self.ends + 1)])  # in `stops`, of every level
        at_one = self.ends[level] == pulls
        stopped = at_one & self.stops[first[level] + np.where(at_one, successes, 0)]
        return np.where(stopped, 0, self.ends[level + (at_one & ~stopped)] - pulls)

    def state_probabilities(self, group_belief: GroupBelief) -> tuple[FloatArray, FloatArray]:
        """Believed probability of every state, with doubt and without: (states,) each."""
        probability = np.exp(self.states.log_probability(group_belief.grid))
        doubted, undoubted = product(
            np.stack([group_belief.believed, group_belief.sharp]), probability
        )
        return doubted, undoubted

    @property
    def size(self) -> int:
        """Number of arms that follow the plan."""
        return self.policy.group.arms.size

    @property
    def expected_pulls(self) -> float:
        """Expected pulls of all its arms."""
        return self.size * float(np.einsum("s,s->", self.likely, self.states.pulls))

    @cached_property
    def scores(self) -> FloatArray:
        """Expected mean of an arm that stops in a state: (states,)."""
        posterior = self.policy.group_belief.posterior(self.states.pulls, self.states.successes)
        return product(posterior, self.policy.group_belief.grid[:, None])[:, 0]

    def expected_inside(self, thresholds: FloatArray) -> FloatArray:
        """Expected number of arms with scores above these thresholds."""
        return self.size * above(thresholds, self.scores, self.likely)

    def expected_charges(self, changing: float, stakes: Stakes, gap: float) -> float:
        """Expected charges of all its arms, at most `gap` / strength per arm too large.

        Arms with scores above `changing` are accepted. If the boundary of the stakes is another one
        than planned for, all means are off by as much."""
        group_belief = self.policy.group_belief.moved(self.policy.stakes.boundary, stakes.boundary)
        doubted, likely = self.state_probabilities(group_belief)
        leads = stakes.capped(np.where(self.scores > changing, math.inf, -math.inf))
        q = self._q(leads, stakes, gap, doubted, ROUGHLY)
        used = q > 0
        charges = -np.log(q[used]) / stakes.strength
        return self.size * float(np.einsum("s,s->", likely[used], charges))

    def rough_charges(
        self, leads: FloatArray, stakes: Stakes, gap: float, likely: FloatArray
    ) -> FloatArray:
        """Estimated charge of every state: (*) is not checked."""
        q = self._q(leads, stakes, gap, likely, ROUGHLY)
        with np.errstate(divide="ignore"):
            charges: FloatArray = -np.log(q) / stakes.strength
        return charges

    def charges(
        self, leads: FloatArray, stakes: Stakes, gap: float, likely: FloatArray
    ) -> FloatArray:
        """The charge of every state: (*) holds at every mean in [0, 1]."""
        q = self._q(leads, stakes, gap, likely, FINELY)
        q = np.where(q > 0, q, 0.0)  # NaN is charged infinitely
        worst = worst_moment(self.states, leads, q, stakes, gap)
        with np.errstate(divide="ignore"):
            charges: FloatArray = (math.log(worst) - np.log(q)) / stakes.strength
        return charges

    def _q(
        self, leads: FloatArray, stakes: Stakes, gap: float, likely: FloatArray, detail: Detail
    ) -> FloatArray:
        """exp(-strength * charge), log-optimal; neighbouring states are charged the same."""
        starts, bin_ = _bins(self.states, stakes.boundary, detail.width)
        first, last = self.states.pulls[[0, -1]].tolist()
        means = _support(stakes, first, last, detail.apart)
        exponents = np.minimum(stakes.strength * stakes.losses(means, leads), LARGEST_EXPONENT)
        each = np.exp(self.states.log_probability(means) + exponents)
        matrix = np.add.reduceat(each, starts, axis=1)  # (means, bins)
        in_bins = np.add.reduceat(likely, starts)  # (bins,)
        used = in_bins > LEAST_LIKELY
        believed = in_bins[used] + ADDED
        q = np.zeros(in_bins.size)
        share = believed / believed.sum()
        q[used] = log_optimal_among(matrix[:, used], share, gap, detail.every)
        return q[bin_]


def above(thresholds: FloatArray, scores: FloatArray, likely: FloatArray) -> FloatArray:
    """Probability that a score is above each of these thresholds."""
    order = np.argsort(scores, kind="stable")
    at_most = np.concatenate([[0.0], np.cumsum(likely[order])])
    below = at_most[np.searchsorted(scores[order], thresholds, side="right")]
    result: FloatArray = at_most[-1] - below
    return result


def _bins(states: StopStates, boundary: float, width: float) -> tuple[IntArray, IntArray]:
    """Neighbours, `width` standard deviations apart: first states, bin of every state.

    Far from the boundary all successes of a level are one bin."""
    pulls = states.pulls
    widths = np.maximum(1, np.floor(width * np.sqrt(pulls) / 2))
    place = np.floor(states.successes / widths)
    deviations = angle(states.successes / pulls) - angle(boundary)
    deviations *= 2 * np.sqrt(pulls)
    place[deviations < -tuning.TAIL] = -1
    place[deviations > tuning.TAIL] = math.inf
    new = np.append(True, (pulls[1:] != pulls[:-1]) | (place[1:] != place[:-1]))
    return np.flatnonzero(new), np.cumsum(new) - 1


def _support(stakes: Stakes, first: float, last: float, apart: float) -> FloatArray:
    """Means at which charges may be made, away from the boundary in angles.

    At first geometrically, then evenly at the resolution of `first` pulls, up to where states are
    one bin, and one at each end; and those at the ends of the reach, where losses are largest."""
    centre = float(angle(stakes.boundary))
    deviation = 1 / (2 * math.sqrt(first))
    distances = [tuning.NEAREST / (2 * math.sqrt(last))]
    while distances[-1] < (tuning.TAIL + 1) * deviation:
        step = apart * min(distances[-1], tuning.EVEN_FROM * deviation)
        distances.append(distances[-1] + step)
    sides = []
    for room in (OUTERMOST_SHARE * centre, OUTERMOST_SHARE * (RIGHT_ANGLE - centre)):
        inside = [each for each in distances if each < CLOSE_TO_OUTERMOST * room]
        sides.append(np.array([*inside, room]))
    angles = np.concatenate([centre - sides[0], centre + sides[1]])
    corners = stakes.boundary + stakes.reach * np.array([-1.0, 1.0])
    return np.union1d(np.sin(angles) ** 2, corners[(corners > 0) & (corners < 1)])


SHIFTS = np.linspace(-10, 6, 17)  # tried, of the score from which on arms are accepted, in errors
MOST_WORTH = 12.0  # common logarithm of the most pulls that a unit of charge is worth


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """Plans for all groups, with their expected pulls and charges."""

    plans: list[Plan]
    pulls: FloatArray  # (groups,)
    charges: FloatArray  # (groups,)


class PlanDrafts:
    """Expected cost of every threshold for every group; larger numbers, smaller thresholds.

    A rough one has fewer groups, one boundary, every other threshold and one stage only. Arms that
    share a price have a belief of their own; without constraints all arms share one."""

    def __init__(
        self,
        *beliefs: Belief,
        stakes: Stakes,
        charges: float,
        rough: bool = False,
        members: Sequence[IntArray] | None = None,
    ) -> None:
        """`members` are the arms of every belief, by their numbers among all; default: all arms."""
        self.stakes = stakes
        self.rough = rough
        self.n_arms = sum(belief.row.size for belief in beliefs)
        self.policies: list[Policy] = []
        self.parts: list[tuple[Belief, range]] = []  # beliefs, and the policies of each
        for number, belief in enumerate(beliefs):
            first = len(self.policies)
            arms = None if members is None else members[number]
            self.policies += self._made_policies(belief, arms)
            self.parts.append((belief, range(first, len(self.policies))))
        self.tried: dict[int, PlanDraft] = {}
        self._try_until(
            (1.0 if rough else tuning.STAGE_CHARGES) * charges, many=tuning.MANY_CHARGES * charges
        )

    def _made_policies(self, belief: Belief, arms: IntArray | None) -> list[Policy]:
        """A policy for every group of arms of a belief."""
        nodes = [(belief.boundary, 1.0)] if self.rough else belief.nodes
        groups = belief.groups(math.inf if self.rough else tuning.ALIKE_PULLS)
        stakes = replace(self.stakes, boundary=belief.boundary)
        if arms is not None:
            groups = [replace(group, arms=arms[group.arms]) for group in groups]
        return [Policy(group, belief, stakes, nodes) for group in groups]

    def expected_pulls(self, aim: float) -> float:
        """Expected pulls with one threshold for all groups that makes charges about `aim`."""
        pulls = np.array([each.pulls.sum() for each in self.drafts])
        charges = np.array([each.charges.sum() for each in self.drafts])  # falling
        if charges[-1] > aim:
            return math.inf
        falling = -np.log(np.maximum(charges, 1e-12))
        return float(np.exp(np.interp(-math.log(aim), falling, np.log(pulls))))

    def stages(self, aim: float) -> Iterator[PlanDraft]:
        """Drafts with the least pulls for expected charges of `aim`, then ever smaller charges.

        No group has a larger threshold than in the stage before. No draft if no charges are that
        small. Many looks need no second stage: smaller thresholds are tried when it is needed."""
        choice = np.zeros(len(self.policies), dtype=np.int64)
        for number, (part, _) in enumerate(tuning.STAGE_AIMS):
            if number == 1:
                self._try_until(tuning.FEW_CHARGES * aim)
            cheapest = self.knapsack.cheapest(part * aim)
            if cheapest is None:
                break
            choice = np.maximum(choice, cheapest)
            yield self._mixed(choice)

    def _mixed(self, choice: IntArray) -> PlanDraft:
        """The draft in which every group takes its plan from the one of this number."""
        every = np.arange(choice.size)
        plans = [self.drafts[number].plans[group] for group, number in enumerate(choice)]
        pulls, charges = self.knapsack.pulls, self.knapsack.charge
        return PlanDraft(plans, pulls[every, choice], charges[every, choice])

    def _try_until(self, few: float, *, many: float = 0.0) -> None:
        """Try thresholds with charges from `many`, or from the first, down to `few`.

        A rough one tries every other of them."""
        first = last = 0
        while self._charges(first) < many and first > -tuning.MOST_TRIES:
            first -= 2
        while self._charges(last) > few and last < tuning.MOST_TRIES:
            last += 2
        for odd in () if self.rough else range(first + 1, last, 2):
            self._charges(odd)
        self.drafts = [self.tried[number] for number in sorted(self.tried)]
        pulls = np.stack([each.pulls for each in self.drafts], axis=1)  # (groups, thresholds)
        charged = np.stack([each.charges for each in self.drafts], axis=1)
        self.knapsack = Knapsack(np.ones(len(pulls)), pulls, charged, MOST_WORTH)

    def _charges(self, number: int) -> float:
        """The charges of all arms at threshold `number`."""
        if number not in self.tried:
            self.tried[number] = self._drafted(
                math.exp(tuning.FIRST_THRESHOLD - tuning.THRESHOLD_STEP * number)
            )
        return float(self.tried[number].charges.sum())

    def _drafted(self, threshold: float) -> PlanDraft:
        plans = [Plan(policy, threshold) for policy in self.policies]
        pulls = np.array([plan.expected_pulls for plan in plans])
        charges = np.empty(len(plans))
        for belief, numbers in self.parts:
            some = [plans[number] for number in numbers]
            shift = 0.0 if self.rough else _shift(some, belief)
            charges[numbers] = [self._expected_charges(plan, shift) for plan in some]
        return PlanDraft(plans, pulls, charges)

    def _expected_charges(self, plan: Plan, shift: float) -> float:
        """On average over the boundaries that plans are made for."""
        gap = tuning.ROUGH_ERROR * self.stakes.strength * self.stakes.reach / self.n_arms
        charges = 0.0
        for boundary, weight in plan.policy.nodes:
            stakes = replace(self.stakes, boundary=boundary)
            charges += weight * plan.expected_charges(boundary - shift, stakes, gap)
        return charges


def _shift(plans: list[Plan], belief: Belief) -> float:
    """Distance of scores below the boundary at which k arms are expected to be accepted."""
    thresholds = np.clip(belief.boundary + SHIFTS * belief.error, 0.0, 1.0)
    inside = np.sum([plan.expected_inside(thresholds) for plan in plans], axis=0)
    return belief.boundary - float(np.interp(-belief.k, -inside, thresholds))


@dataclass(frozen=True, slots=True)
class CostPrediction:
    """Stakes, and the predicted number of fresh pulls of plans with them."""

    stakes: Stakes
    pulls: float


def predict_cost(
    belief: Belief, reach: float, delta: float, *, usual: bool = False
) -> CostPrediction:
    """The cheapest of some strengths, from the weakest on until it gets worse; or the weakest."""
    first = Boundaries.around(belief.boundary, belief.error, delta * tuning.STAGE_AIMS[0][1])
    return cheapest_strength([belief], first.least_threshold, reach, usual=usual)


def cheapest_strength(
    beliefs: Sequence[Belief], threshold: float, reach: float, *, usual: bool
) -> CostPrediction:
    """As `predict_cost`, for a bound that pays this threshold, ln(1/delta)."""

    def prediction(strength: float) -> CostPrediction:
        stakes = Stakes(beliefs[0].boundary, strength * threshold / reach, reach)
        charges = reach - threshold / stakes.strength - (1 - tuning.AIMED_SHARE) * reach
        drafts = PlanDrafts(*beliefs, stakes=stakes, charges=charges, rough=True)
        return CostPrediction(stakes, drafts.expected_pulls(charges))

    weakest, *stronger = tuning.STRENGTHS_TRIED
    best = prediction(weakest)
    for strength in () if usual else stronger:
        other = prediction(strength)
        if other.pulls >= best.pulls:
            break
        best = other
    return best
