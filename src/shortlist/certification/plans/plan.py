"""A plan for a group of arms: where it stops, and what it charges then."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shortlist.arrays import FloatArray, IntArray, product
from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Outlook
from shortlist.certification.plans.charges import log_optimal_among
from shortlist.certification.plans.losses import Stakes
from shortlist.certification.plans.moments import worst_moment
from shortlist.certification.plans.policies import Policy
from shortlist.certification.plans.stop_states import StopStates, stop_states

QUARTER = math.pi / 2  # the largest angle: a mean is sin(angle)^2
LARGEST_EXPONENT = 40.0  # in a charge; `worst_moment` knows no such limit
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
