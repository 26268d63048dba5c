"""A plan for a group of arms: where it stops, and what it charges then."""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray, IntArray, product
from shortlist.certification.plans import tuning
from shortlist.certification.plans.charges import log_optimal
from shortlist.certification.plans.losses import FREE, IN, Stakes, wrong
from shortlist.certification.plans.moments import worst_moment
from shortlist.certification.plans.policies import Policy
from shortlist.certification.plans.stop_states import StopStates, stop_states

QUARTER = math.pi / 2  # the largest angle: a mean is sin(angle)^2
LARGEST_EXPONENT = 40.0  # in a charge; `worst_moment` knows no such limit
LEAST_LIKELY = 1e-12  # states less likely are charged infinitely
ADDED = 1e-9  # to how likely a state is believed to be
EDGE = 0.02  # least angle of a mean, and least distance from the largest angle
OUTERMOST = 0.99  # of the way to a mean of 0 or 1
_, USUAL_BAND, _ = tuning.WAYS[0]


@dataclass(frozen=True, slots=True)
class Detail:
    """How finely charges are made."""

    width: float  # standard deviations within which successes are charged the same
    apart: float  # of means at which they are made, relative to their distance from the boundary


FINELY = Detail(tuning.BIN, tuning.APART)
ROUGHLY = Detail(tuning.ROUGH_BIN, tuning.ROUGH_APART)


class Plan:
    """The plan that a policy and a threshold make. It knows no rewards."""

    def __init__(self, policy: Policy, threshold: float) -> None:
        self.policy = policy
        self.levels = policy.levels(threshold)
        self.states = stop_states(self.levels, policy.stakes.boundary)
        _, self.likely = self._likely(policy.stakes.boundary)  # (states,)
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

    def _likely(self, boundary: float) -> tuple[FloatArray, FloatArray]:
        """How likely every state is, with doubt and without, if the boundary is here.

        Then the means near it are off by as much as it is."""
        shift = _angle(boundary) - _angle(self.policy.stakes.boundary)
        angles = np.clip(_angle(self.policy.grid) + shift, EDGE, QUARTER - EDGE)
        probability = np.exp(self.states.log_probability(np.sin(angles) ** 2))
        beliefs = np.stack([self.policy.believed, self.policy.group.sharp])
        doubted, undoubted = product(beliefs, probability)
        return doubted, undoubted

    @property
    def size(self) -> int:
        """Arms that follow it."""
        return self.policy.group.arms.size

    @property
    def expected_pulls(self) -> float:
        """Of all its arms."""
        return self.size * float(np.einsum("s,s->", self.likely, self.states.pulls))

    def expected_inside(self, thresholds: FloatArray) -> FloatArray:
        """Arms that labels at these thresholds are expected to put in, of free ones half."""
        labels = self._labels(thresholds, USUAL_BAND)
        inside = (labels == IN) + 0.5 * (labels == FREE)  # (states, thresholds)
        expected: FloatArray = self.size * product(self.likely[None], inside)[0]
        return expected

    def labels(self, threshold: float, band: float = USUAL_BAND) -> IntArray:
        """The label of every state if labels change here."""
        return self._labels(np.array([threshold]), band)[:, 0]

    def _labels(self, thresholds: FloatArray, band: float) -> IntArray:
        at = thresholds, np.full(thresholds.size, band)
        labels, _ = self.policy.labels(self.states.pulls, self.states.successes, *at)
        return labels

    def expected_charges(self, labels: IntArray, stakes: Stakes, gap: float) -> float:
        """Of all its arms, by `gap` / strength an arm too large at most."""
        doubted, likely = self._likely(stakes.boundary)
        q = self._q(labels, stakes, gap, doubted, ROUGHLY)
        used = q > 0
        charges = -np.log(q[used]) / stakes.strength
        return self.size * float(np.einsum("s,s->", likely[used], charges))

    def rough_charges(self, labels: IntArray, stakes: Stakes, gap: float) -> FloatArray:
        """About what every state will be charged: (*) is not checked."""
        doubted, _ = self._likely(stakes.boundary)
        q = self._q(labels, stakes, gap, doubted, ROUGHLY)
        with np.errstate(divide="ignore"):
            charges: FloatArray = -np.log(q) / stakes.strength
        return charges

    def charges(self, labels: IntArray, stakes: Stakes, gap: float) -> FloatArray:
        """The charge of every state: (*) holds at every mean in [0, 1]."""
        doubted, _ = self._likely(stakes.boundary)
        q = self._q(labels, stakes, gap, doubted, FINELY)
        worst = worst_moment(self.states, labels, q, stakes, gap)
        with np.errstate(divide="ignore"):
            charges: FloatArray = (math.log(worst) - np.log(q)) / stakes.strength
        return charges

    def _q(
        self, labels: IntArray, stakes: Stakes, gap: float, likely: FloatArray, detail: Detail
    ) -> FloatArray:
        """exp(-strength * charge), log-optimal; neighbouring states are charged the same."""
        starts, bin_ = _bins(self.states, stakes.boundary, detail.width)
        first, last = self.states.pulls[[0, -1]].tolist()
        means = _support(stakes.boundary, first, last, detail.apart)
        above = means > stakes.boundary
        lost = np.where(above[:, None], wrong(labels, above=True), wrong(labels, above=False))
        exponents = np.minimum(stakes.exponents(means), LARGEST_EXPONENT)
        each = np.exp(self.states.log_probability(means) + exponents[:, None] * lost)
        matrix = np.add.reduceat(each, starts, axis=1)  # (means, bins)
        in_bins = np.add.reduceat(likely, starts)  # (bins,)
        used = in_bins > LEAST_LIKELY
        believed = in_bins[used] + ADDED
        q = np.zeros(in_bins.size)
        columns = np.ascontiguousarray(matrix[:, used])
        q[used] = log_optimal(columns, believed / believed.sum(), gap)
        return q[bin_]


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


def _support(boundary: float, first: float, last: float, apart: float) -> FloatArray:
    """Means at which charges are made, away from the boundary in angles.

    At first geometrically, then evenly, as `first` pulls tell them apart, up to where states are
    one bin, and one at each end."""
    centre = float(_angle(boundary))
    deviation = 1 / (2 * math.sqrt(first))
    distances = [tuning.NEAREST / (2 * math.sqrt(last))]
    while distances[-1] < (tuning.TAIL + 1) * deviation:
        step = apart * min(distances[-1], tuning.EVEN_FROM * deviation)
        distances.append(distances[-1] + step)
    sides = []
    for room in (OUTERMOST * centre, OUTERMOST * (QUARTER - centre)):
        inside = [each for each in distances if each < 0.9 * room]
        sides.append(np.array([*inside, room]))
    angles = np.concatenate([centre - sides[0][::-1], centre + sides[1]])
    means: FloatArray = np.sin(angles) ** 2
    return means


def _angle(mean: FloatArray | float) -> FloatArray:
    angle: FloatArray = np.arcsin(np.sqrt(mean))
    return angle
