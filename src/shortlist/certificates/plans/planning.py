"""The states in which a declared plan stops, with the exact number of paths to each.

A plan has levels, cumulative numbers of pulls N_1 < N_2 < ...; at each of them some numbers of
successes stop the arm. A state is (pulls, successes). All paths to a state are equally likely:

    p_m(state) = paths * m^successes * (1 - m)^(pulls - successes)        for every mean m,

so that one forward recursion serves all means. It adds and multiplies positive numbers only: its
relative error is that of a few roundings. States whose probability underflows are left out. An arm
that ends in one of them is charged infinitely, which adds nothing to its exponential moment.

When a plan stops an arm: by expected loss under a blunt belief.

An arm goes on while the smaller of its two expected exponential losses, by the root of its pulls,
exceeds a threshold. Exponential, since that is what (*) of docs/plans.md charges; blunt, since what
the pilot says is no proof: where it is sure, fresh rewards have to say it again.

A plan for a group of arms: where it stops, and what it charges then.

Plans for every group of arms, chosen such that few pulls are expected to lead to few charges.

For every group some thresholds of its policy are tried, and what they cost in pulls and charges is
forecast. Which one each group takes is a knapsack, as in the split certificate.

How strong a look should be, and what it is expected to take: forecasts without detail.

The strength trades what delta costs, ln(1/delta) / strength, against charges, which grow with it:
slowly where many arms are close to the boundary, fast where all are far away."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shortlist.arrays import FloatArray, IntArray, product
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.belief import Belief, Group, Outlook, chances
from shortlist.certificates.plans.bound import (
    Boundaries,
    Level,
    Stakes,
    StopStates,
    log_optimal_among,
    stop_states,
    worst_moment,
)
from shortlist.certificates.split.planning import Knapsack

LARGEST_EXPONENT = 40.0
LEAST_VARIANCE = 0.02  # of a reward at the boundary, where the width of bands is concerned

Nodes = list[tuple[float, float]]  # boundaries, and how much each of them counts


class Policy:
    """Levels for a group of arms."""

    def __init__(self, group: Group, belief: Belief, stakes: Stakes, nodes: Nodes) -> None:
        self.group = group
        self.stakes = stakes
        self.outlook = belief.outlook(group).smoothed(tuning.SMOOTHED * belief.deviation)
        self.nodes = nodes
        self._losses = self._exponential_losses()
        self._bands: list[_Band] = []

    def levels(self, threshold: float) -> list[Level]:
        """The levels up to the one at which all arms stop."""
        levels: list[Level] = []
        while not levels or not levels[-1].stops.all():
            if len(levels) == len(self._bands):
                self._bands.append(self._next_band())
            levels.append(self._bands[len(levels)].level(threshold))
        return [each for each in levels if each.stops.any()]  # the others are no levels

    def _next_band(self) -> "_Band":
        """Where arms may go on at the next level, and what speaks for it."""
        pulls = max(tuning.FIRST_LEVEL, int(tuning.FIRST_PART * self.group.pulls))
        if self._bands:
            last = self._bands[-1].pulls
            ratio = tuning.RATIO if self._in_doubt(last) > tuning.FEW_IN_DOUBT else tuning.FAR_RATIO
            pulls = min(max(last + 1, math.ceil(ratio * last)), tuning.MOST_PULLS)
        b = self.stakes.boundary
        deviation = math.sqrt(pulls * max(b * (1 - b), LEAST_VARIANCE))
        low = max(0, math.floor(pulls * b - tuning.BAND * deviation - 1))
        high = min(pulls, math.ceil(pulls * b + tuning.BAND * deviation + 1))
        width = max(1, int(tuning.BIN * deviation))
        middles = np.minimum(np.arange(low, high + 1, width) + (width - 1) / 2, pulls)
        losses = self._least_loss(np.full(middles.size, float(pulls)), middles)
        losses /= (min(tuning.BLUNT, self.group.pulls) + pulls) ** tuning.PER_PULL
        both = np.stack([losses, self._likely(pulls, middles)])
        return _Band(pulls, low, *np.repeat(both, width, axis=1)[:, : high + 1 - low])

    def _in_doubt(self, pulls: int) -> float:
        """How likely a mean is within two standard deviations of the boundary after so many."""
        b = self.stakes.boundary
        deviation = math.sqrt(max(b * (1 - b), LEAST_VARIANCE) / pulls)
        close = np.abs(self.outlook.grid - b) < 2 * deviation
        return float(self.outlook.believed[close].sum())

    def _likely(self, pulls: int, successes: FloatArray) -> FloatArray:
        """How likely numbers of successes after so many pulls are believed to be."""
        by_mean = chances(pulls, successes, self.outlook.grid)
        likely: FloatArray = product(by_mean, self.outlook.believed[:, None])[:, 0]
        return likely

    def _least_loss(self, pulls: FloatArray, successes: FloatArray) -> FloatArray:
        """The smaller of the expected exponential losses of taking and leaving, in every state.

        On average over the boundaries that plans are made for."""
        losses = product(self.outlook.posterior(pulls, successes), self._losses)
        both_ways = losses.reshape(pulls.size, len(self.nodes), 2)
        weights = np.array([weight for _, weight in self.nodes])
        least: FloatArray = product(both_ways.min(axis=2), weights[:, None])[:, 0]
        return least

    def _exponential_losses(self) -> FloatArray:
        """Of leaving and of taking at every boundary plans are made for: (grid, boundaries * 2)."""
        grid, columns = self.outlook.grid, []
        for boundary, _ in self.nodes:
            stakes = replace(self.stakes, boundary=boundary)
            exponents = np.minimum(stakes.strength * stakes.distances(grid), LARGEST_EXPONENT)
            losses = np.expm1(exponents) / stakes.strength
            above = grid > boundary
            columns += [losses * above, losses * ~above]
        return np.stack(columns, axis=1)


class _Band:
    """Successes at a level for which an arm may go on: what speaks for it, how likely they are."""

    def __init__(self, pulls: int, low: int, loss: FloatArray, likely: FloatArray) -> None:
        self.pulls = pulls
        self.low = low
        self.loss = loss
        self.likely = likely

    def level(self, threshold: float) -> Level:
        """Where arms stop: nowhere, if they rarely would. Ever fewer stop, the less may be lost."""
        stops = np.ones(self.pulls + 1, dtype=np.bool_)
        goes_on = self.loss > threshold
        if self.pulls >= tuning.MOST_PULLS or not goes_on.any():
            return Level(self.pulls, stops)
        if math.fsum(self.likely[goes_on]) > 1 - tuning.RARE:  # exact: it grows with `goes_on`
            return Level(self.pulls, np.zeros_like(stops))
        stops[self.low : self.low + goes_on.size] = ~goes_on
        return Level(self.pulls, stops)


QUARTER = math.pi / 2  # the largest angle: a mean is sin(angle)^2
LEAST_LIKELY = 1e-12  # states less likely are charged infinitely
ADDED = 1e-9  # to how likely a state is believed to be
OUTERMOST = 0.99  # of the way to a mean of 0 or 1
CLOSE_TO_OUTERMOST = 0.97  # of the way there: no other mean is closer to it


@dataclass(frozen=True, slots=True)
class Detail:
    """How finely charges are made."""

    width: float  # standard deviations within which successes are charged the same
    apart: float  # of means at which they are made, relative to their distance from the boundary
    every: int  # of which one in so many is taken at first


FINELY = Detail(tuning.BIN, tuning.APART, tuning.EVERY)
ROUGHLY = Detail(tuning.ROUGH_BIN, tuning.ROUGH_APART, 1)


class Plan:
    """The plan that a policy and a threshold make. It knows no rewards."""

    def __init__(self, policy: Policy, threshold: float) -> None:
        self.policy = policy
        self.levels = policy.levels(threshold)
        self.states = stop_states(self.levels, policy.stakes.boundary)
        _, self.likely = self.laws(policy.outlook)  # (states,)
        self.ends: IntArray = np.array([each.pulls for each in self.levels])  # (levels,)
        self.stops = np.concatenate([each.stops for each in self.levels])

    def missing(self, pulls: IntArray, successes: IntArray) -> IntArray:
        """Pulls of arms in these states up to the next level; 0 where they stop."""
        level = np.searchsorted(self.ends, pulls)  # the one that they stand at or go to
        first = np.concatenate([[0], np.cumsum(self.ends + 1)])  # in `stops`, of every level
        at_one = self.ends[level] == pulls
        stopped = at_one & self.stops[first[level] + np.where(at_one, successes, 0)]
        times: IntArray = np.where(stopped, 0, self.ends[level + (at_one & ~stopped)] - pulls)
        return times

    def laws(self, outlook: Outlook) -> tuple[FloatArray, FloatArray]:
        """How likely every state is believed to be, with doubt and without: (states,) each."""
        probability = np.exp(self.states.log_probability(outlook.grid))
        doubted, undoubted = product(np.stack([outlook.believed, outlook.sharp]), probability)
        return doubted, undoubted

    @property
    def size(self) -> int:
        """Arms that follow it."""
        return self.policy.group.arms.size

    @property
    def expected_pulls(self) -> float:
        """Of all its arms."""
        return self.size * float(np.einsum("s,s->", self.likely, self.states.pulls))

    @cached_property
    def scores(self) -> FloatArray:
        """The mean that is expected of an arm which stops in a state: (states,)."""
        posterior = self.policy.outlook.posterior(self.states.pulls, self.states.successes)
        return product(posterior, self.policy.outlook.grid[:, None])[:, 0]

    def expected_inside(self, thresholds: FloatArray) -> FloatArray:
        """Arms whose scores are expected to be above these thresholds."""
        return self.size * above(thresholds, self.scores, self.likely)

    def expected_charges(self, changing: float, stakes: Stakes, gap: float) -> float:
        """Of all its arms, by `gap` / strength an arm too large at most.

        If arms are taken whose scores are above `changing`, and the boundary is where the stakes
        have it: then the means near it are off by as much as it is."""
        outlook = self.policy.outlook.moved(self.policy.stakes.boundary, stakes.boundary)
        doubted, likely = self.laws(outlook)
        leads = stakes.capped(np.where(self.scores > changing, math.inf, -math.inf))
        q = self._q(leads, stakes, gap, doubted, ROUGHLY)
        used = q > 0
        charges = -np.log(q[used]) / stakes.strength
        return self.size * float(np.einsum("s,s->", likely[used], charges))

    def rough_charges(
        self, leads: FloatArray, stakes: Stakes, gap: float, likely: FloatArray
    ) -> FloatArray:
        """About what every state will be charged: (*) is not checked."""
        q = self._q(leads, stakes, gap, likely, ROUGHLY)
        with np.errstate(divide="ignore"):
            charges: FloatArray = -np.log(q) / stakes.strength
        return charges

    def charges(
        self, leads: FloatArray, stakes: Stakes, gap: float, likely: FloatArray
    ) -> FloatArray:
        """The charge of every state: (*) holds at every mean in [0, 1]."""
        q = self._q(leads, stakes, gap, likely, FINELY)
        q = np.where(q > 0, q, 0.0)  # what is not a number is charged infinitely
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
    """How likely a score is to be above every one of these thresholds."""
    order = np.argsort(scores, kind="stable")
    at_most = np.concatenate([[0.0], np.cumsum(likely[order])])
    below = at_most[np.searchsorted(scores[order], thresholds, side="right")]
    result: FloatArray = at_most[-1] - below
    return result


def _bins(states: StopStates, boundary: float, width: float) -> tuple[IntArray, IntArray]:
    """Neighbours, `width` standard deviations apart: first states, bin of every state.

    Far from the boundary all successes of a level are one bin: there is nothing to tell apart."""
    pulls = states.pulls
    widths = np.maximum(1, np.floor(width * np.sqrt(pulls) / 2))
    place = np.floor(states.successes / widths)
    deviations = _angle(states.successes / pulls) - _angle(boundary)
    deviations *= 2 * np.sqrt(pulls)
    place[deviations < -tuning.TAIL] = -1
    place[deviations > tuning.TAIL] = math.inf
    new = np.append(True, (pulls[1:] != pulls[:-1]) | (place[1:] != place[:-1]))
    return np.flatnonzero(new), np.cumsum(new) - 1


def _support(stakes: Stakes, first: float, last: float, apart: float) -> FloatArray:
    """Means at which charges may be made, away from the boundary in angles.

    At first geometrically, then evenly, as `first` pulls tell them apart, up to where states are
    one bin, and one at each end; and those at the ends of the reach, where losses are largest."""
    centre = float(_angle(stakes.boundary))
    deviation = 1 / (2 * math.sqrt(first))
    distances = [tuning.NEAREST / (2 * math.sqrt(last))]
    while distances[-1] < (tuning.TAIL + 1) * deviation:
        step = apart * min(distances[-1], tuning.EVEN_FROM * deviation)
        distances.append(distances[-1] + step)
    sides = []
    for room in (OUTERMOST * centre, OUTERMOST * (QUARTER - centre)):
        inside = [each for each in distances if each < CLOSE_TO_OUTERMOST * room]
        sides.append(np.array([*inside, room]))
    angles = np.concatenate([centre - sides[0], centre + sides[1]])
    corners = stakes.boundary + stakes.reach * np.array([-1.0, 1.0])
    means: FloatArray = np.union1d(np.sin(angles) ** 2, corners[(corners > 0) & (corners < 1)])
    return means


def _angle(mean: FloatArray | float) -> FloatArray:
    angle: FloatArray = np.arcsin(np.sqrt(mean))
    return angle


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


@dataclass(frozen=True, slots=True)
class Sketch:
    """Stakes, and about the fresh pulls that plans with them are expected to take."""

    stakes: Stakes
    pulls: float


def sketched(belief: Belief, reach: float, delta: float, *, usual: bool = False) -> Sketch:
    """The best of some strengths, from the weakest on as long as it gets better, or that one."""
    first = Boundaries.around(belief.boundary, belief.error, delta * tuning.STAGES[0][1])

    def sketch(strength: float) -> Sketch:
        stakes = Stakes(belief.boundary, strength * first.least_threshold / reach, reach)
        charges = first.left_for_charges(stakes) - (1 - tuning.SAFE) * reach
        drafts = Drafts(belief, stakes, charges, sketchy=True)
        return Sketch(stakes, drafts.expected_pulls(charges))

    weakest, *stronger = tuning.STRENGTHS
    best = sketch(weakest)
    for strength in () if usual else stronger:
        other = sketch(strength)
        if other.pulls >= best.pulls:
            break
        best = other
    return best
