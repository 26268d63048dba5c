"""A plan for a group of arms: where it stops, and what it charges then."""

import math

import numpy as np

from shortlist.arrays import FloatArray, IntArray, product
from shortlist.certification.plans import tuning
from shortlist.certification.plans.charges import log_optimal
from shortlist.certification.plans.losses import FREE, IN, Stakes, wrong
from shortlist.certification.plans.moments import worst_moment
from shortlist.certification.plans.policies import Policy
from shortlist.certification.plans.stop_states import stop_states

QUARTER = math.pi / 2  # the largest angle: a mean is sin(angle)^2
LARGEST_EXPONENT = 40.0  # in a charge; `worst_moment` knows no such limit
LEAST_LIKELY = 1e-12  # states less likely are charged infinitely
ADDED = 1e-9  # to how likely a state is believed to be
OUTERMOST = 0.99  # of the way to a mean of 0 or 1


class Plan:
    """The plan that a policy and a threshold make. It knows no rewards."""

    def __init__(self, policy: Policy, threshold: float) -> None:
        self.policy = policy
        self.levels = policy.levels(threshold)
        self.states = stop_states(self.levels, policy.stakes.boundary)
        probability = np.exp(self.states.log_probability(policy.grid))
        self.likely = product(policy.believed[None], probability)[0]  # (states,)

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
        band, _ = tuning.FREE_BANDS[0]
        labels, _ = self.policy.labels(self.states.pulls, self.states.successes, thresholds, band)
        inside = (labels == IN) + 0.5 * (labels == FREE)  # (states, thresholds)
        expected: FloatArray = self.size * product(self.likely[None], inside)[0]
        return expected

    def labels(self, threshold: float, band: int = 0) -> IntArray:
        """The label of every state, for free band number `band`."""
        width, _ = tuning.FREE_BANDS[band]
        at = np.array([threshold])
        labels, _ = self.policy.labels(self.states.pulls, self.states.successes, at, width)
        return labels[:, 0]

    def expected_charges(self, labels: IntArray, stakes: Stakes, gap: float) -> float:
        """Of all its arms, by `gap` / strength an arm too large at most."""
        q = self._q(labels, stakes, gap, tuning.ROUGH_BIN)
        used = q > 0
        charges = -np.log(q[used]) / stakes.strength
        return self.size * float(np.einsum("s,s->", self.likely[used], charges))

    def charges(self, labels: IntArray, stakes: Stakes, gap: float) -> FloatArray:
        """The charge of every state: (*) holds at every mean in [0, 1]."""
        q = self._q(labels, stakes, gap, tuning.BIN)
        worst = worst_moment(self.states, labels, q, stakes, gap)
        with np.errstate(divide="ignore"):
            charges: FloatArray = (math.log(worst) - np.log(q)) / stakes.strength
        return charges

    def _q(self, labels: IntArray, stakes: Stakes, gap: float, width: float) -> FloatArray:
        """exp(-strength * charge), log-optimal; neighbouring states are charged the same."""
        starts, bin_ = _bins(self.states.pulls, self.states.successes, width)
        means = _support(stakes.boundary, float(self.states.pulls.max()))
        above = means > stakes.boundary
        lost = np.where(above[:, None], wrong(labels, above=True), wrong(labels, above=False))
        exponents = np.minimum(stakes.exponents(means), LARGEST_EXPONENT)
        each = np.exp(self.states.log_probability(means) + exponents[:, None] * lost)
        matrix = np.add.reduceat(each, starts, axis=1)  # (means, bins)
        likely = np.add.reduceat(self.likely, starts)  # (bins,)
        used = likely > LEAST_LIKELY
        believed = likely[used] + ADDED
        q = np.zeros(likely.size)
        columns = np.ascontiguousarray(matrix[:, used])
        q[used] = log_optimal(columns, believed / believed.sum(), gap)
        return q[bin_]


def _bins(pulls: FloatArray, successes: FloatArray, width: float) -> tuple[IntArray, IntArray]:
    """Neighbours, `width` standard deviations apart: first states, bin of every state."""
    widths = np.maximum(1, np.floor(width * np.sqrt(pulls) / 2))
    place = np.floor(successes / widths)
    new = np.append(True, (pulls[1:] != pulls[:-1]) | (place[1:] != place[:-1]))
    return np.flatnonzero(new), np.cumsum(new) - 1


def _support(boundary: float, pulls: float) -> FloatArray:
    """Means at which charges are made, geometrically away from the boundary in angles."""
    centre = math.asin(math.sqrt(boundary))
    nearest = tuning.NEAREST / (2 * math.sqrt(pulls))
    sides = []
    for room in (OUTERMOST * centre, OUTERMOST * (QUARTER - centre)):
        sides.append(np.geomspace(min(nearest, room / 4), room, tuning.SUPPORT))
    angles = np.concatenate([centre - sides[0][::-1], centre + sides[1]])
    means: FloatArray = np.sin(angles) ** 2
    return means
