"""The bound of a declared plan: stopping states, losses, boundaries and the check of moments.

A plan has levels, cumulative numbers of pulls N_1 < N_2 < ...; at each of them some numbers of
successes stop the arm. A state is (pulls, successes). All paths to a state are equally likely:

    p_m(state) = paths * m^successes * (1 - m)^(pulls - successes)        for every mean m,

so that one forward recursion serves all means. It adds and multiplies positive numbers only: its
relative error is that of a few roundings. States whose probability underflows are dropped. An arm
that ends in one of them is charged infinitely, which adds nothing to its exponential moment.

Every state has a *lead*: the extra charge for rejecting the arm rather than accepting it. The
decision that is charged less costs the distance to the boundary if the mean is on the other side,
up to the reach. The other one costs as much, less the lead. That is the loss L(state, mean).

(*) With q = exp(-strength * charge) the moment M(m) = sum over s of p_m(s) exp(strength L(s, m))
q(s) must be at most 1 at *every* mean. Cut [0, 1] into cells that straddle neither the boundary nor
the ends of the reach. In a cell of centre c and half-width h each ln p_m(s) is concave in m, hence
below its tangent at c, of slope(s), and L is convex in m, hence below its chord. So for |t| <= h

    M(c + t) <= sum over s of p_c(s) q(s) exp(slope(s) t + strength * chord(s, t)).

That is convex in t: the larger of its values at the ends of the cell, where the chord is L, bounds
M in all of it (Lemma 2). Cells whose bound exceeds the largest moment at any centre are halved,
again and again. docs/plans.md has the proofs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.plans import tuning

NEGLIGIBLE_STATE = 1e-280  # probability under the reference mean below which states are dropped
UNLIKELY = 1e-16  # probability under every mean, likewise
NOT_THERE = -1  # the number of a state that was dropped
MOMENT_ROUNDING = 1e-7  # more than all roundings in a moment, relative
RIGHT_ANGLE = math.pi / 2  # the largest angle: a mean is sin(angle)^2


@dataclass(frozen=True, slots=True)
class Level:
    """After `pulls` pulls: which numbers of successes, 0 ... pulls, stop the arm."""

    pulls: int
    stops: BoolArray  # (pulls + 1,)


@dataclass(frozen=True, slots=True)
class StopStates:
    """States in which a plan can stop: pulls, successes, ln(paths); by pulls, then successes."""

    pulls: FloatArray  # (states,)
    successes: FloatArray  # (states,)
    log_paths: FloatArray  # (states,)

    def log_probability(self, means: FloatArray) -> FloatArray:
        """Logarithm of p_m(state): (means, states)."""
        column = means[:, None]
        log_path = self.successes * np.log(column)
        log_path += (self.pulls - self.successes) * np.log1p(-column)
        log_path += self.log_paths
        return log_path

    def log_likeliest(self) -> FloatArray:
        """Logarithm of the largest p_m(state) for any m, the one at m = successes / pulls."""
        share = self.successes / self.pulls
        result: FloatArray = xlogy(self.successes, share) + self.log_paths
        result += xlog1py(self.pulls - self.successes, -share)
        return result

    def only(self, kept: BoolArray) -> "StopStates":
        """Some of the states."""
        return StopStates(self.pulls[kept], self.successes[kept], self.log_paths[kept])

    def find(self, pulls: IntArray, successes: IntArray) -> IntArray:
        """The number of every one of these states; NOT_THERE for those that were dropped."""
        base = float(self.pulls.max()) + 1
        keys = self.pulls * base + self.successes
        wanted = pulls * base + successes
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        return np.where(keys[at] == wanted, at, NOT_THERE)


def stop_states(levels: Sequence[Level], reference: float) -> StopStates:
    """All states in which the plan can stop, by forward recursion under the mean `reference`."""
    running = np.ones(1)  # (pulls + 1,): probability of successes, not stopped yet
    before = 0
    parts: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    for level in levels:
        reached = np.convolve(running, binomial(level.pulls - before, reference))
        ended = np.flatnonzero(level.stops & (reached > NEGLIGIBLE_STATE))
        pulls = np.full(ended.size, float(level.pulls))
        parts.append((pulls, ended.astype(np.float64), reached[ended]))
        running = np.where(level.stops, 0.0, reached)
        before = level.pulls
    pulls, successes, probability = (np.concatenate(each) for each in zip(*parts, strict=True))
    log_path = xlogy(successes, reference) + xlog1py(pulls - successes, -reference)
    states = StopStates(pulls, successes, np.log(probability) - log_path)
    return states.only(states.log_likeliest() > math.log(UNLIKELY))


def binomial(pulls: int, mean: float) -> FloatArray:
    """Probability of 0 ... `pulls` successes."""
    successes = np.arange(pulls + 1)
    log_factorial = gammaln(successes + 1.0)
    log_paths = log_factorial[-1] - log_factorial - log_factorial[::-1]
    log_path = successes * np.log(mean) + successes[::-1] * np.log1p(-mean)
    result: FloatArray = np.exp(log_paths + log_path)
    return result


@dataclass(frozen=True, slots=True)
class Stakes:
    """The weight of a wrong choice: boundary b, strength lambda and reach K epsilon."""

    boundary: float
    strength: float
    reach: float

    def distances(self, means: FloatArray) -> FloatArray:
        """min(|m - b|, reach)."""
        return np.minimum(np.abs(means - self.boundary), self.reach)

    def losses(self, means: FloatArray, leads: FloatArray) -> FloatArray:
        """L(s, m): (means, states)."""
        above = (means > self.boundary)[:, None]
        charged = np.where(above, np.maximum(leads, 0.0), np.maximum(-leads, 0.0))
        return np.maximum(self.distances(means)[:, None] - charged, 0.0)

    def capped(self, leads: FloatArray) -> FloatArray:
        """Leads no larger than the loss of an arm: a larger one would make no loss smaller."""
        out = min(self.boundary, self.reach)
        inside = min(1 - self.boundary, self.reach)
        return np.clip(leads, -out, inside)


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Boundaries, rising, and ln(1 / share) of each; the shares add up to delta.

    They lie around the believed one, evenly spaced at first and then ever wider apart, with shares
    like a Cauchy distribution: to declare many costs little, to miss the right one costs a look."""

    values: FloatArray  # (boundaries,)
    thresholds: FloatArray  # (boundaries,)

    @classmethod
    def around(cls, middle: float, error: float, delta: float) -> "Boundaries":
        """Boundaries around `middle`, the error of which is about `error`."""
        number = np.arange(-tuning.BOUNDARIES, tuning.BOUNDARIES + 1)
        errors = tuning.EVEN_ERRORS * np.sinh(number * tuning.BOUNDARY_SPACE / tuning.EVEN_ERRORS)
        values = middle + errors * error
        weights = np.gradient(errors) / (1 + (errors / tuning.CAUCHY_WIDTH) ** 2)
        inside = (values > 1e-3) & (values < 1 - 1e-3)
        shares = weights[inside] / weights[inside].sum()
        return cls(values[inside], -np.log(delta * shares))

    @property
    def least_threshold(self) -> float:
        """The threshold of the boundary with the largest share."""
        return float(self.thresholds.min())

    def left_for_charges(self, stakes: Stakes) -> float:
        """The largest total charge at the boundary with the largest share."""
        return stakes.reach - self.least_threshold / stakes.strength


@dataclass(frozen=True, slots=True)
class Moments:
    """The parts of a moment: states with their leads, q > 0 and stakes."""

    states: StopStates
    leads: FloatArray  # (states,)
    q: FloatArray  # (states,)
    stakes: Stakes

    def in_cells(self, cells: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds on M in cells, (cells, 2), that L is convex on, and M at their centres."""
        centres = cells.mean(axis=1)  # (cells,)
        half = (cells[:, 1:] - cells[:, :1]) / 2  # (cells, 1)
        log = self.states.log_probability(centres)
        left, middle, right = (self._lost(each) for each in (cells[:, 0], centres, cells[:, 1]))
        slopes = self._slopes(centres) * half  # (cells, states)
        with np.errstate(over="ignore"):  # an infinite bound is a bound, too
            up = np.einsum("cs,s->c", np.exp(log + slopes + right), self.q)
            down = np.einsum("cs,s->c", np.exp(log - slopes + left), self.q)
            inside = np.einsum("cs,s->c", np.exp(log + middle), self.q)
        return np.maximum(down, up), inside

    def _lost(self, means: FloatArray) -> FloatArray:
        """Strength * L(s, m): (means, states)."""
        return self.stakes.strength * self.stakes.losses(means, self.leads)

    def _slopes(self, centres: FloatArray) -> FloatArray:
        """Derivative at the centres of ln p_m(s): (cells, states)."""
        means = centres[:, None]
        failures = self.states.pulls - self.states.successes
        return self.states.successes / means - failures / (1 - means)


def worst_moment(
    states: StopStates, leads: FloatArray, q: FloatArray, stakes: Stakes, excess: float
) -> float:
    """A bound on M at all means in [0, 1], rounded up.

    Cells are halved until it exceeds the largest moment by `excess` at most, relative."""
    charged = q > 0  # the others add nothing
    if not charged.any():
        return math.inf
    moments = Moments(states.only(charged), leads[charged], q[charged], stakes)
    cells = _cells(stakes, float(states.pulls.max()))
    worst, largest = 0.0, 0.0
    for _ in range(tuning.CELL_HALVINGS):
        bounds, at_centres = moments.in_cells(cells)
        if np.isnan(bounds).any():  # NaN bounds nothing
            return math.inf
        largest = max(largest, float(at_centres.max()))
        wide = bounds > (1 + excess) * largest
        worst = max(worst, float(bounds[~wide].max(initial=0.0)))
        if not wide.any():
            return worst * (1 + MOMENT_ROUNDING)
        cells = _halved(cells[wide])
    return max(worst, float(bounds[wide].max())) * (1 + MOMENT_ROUNDING)


def _halved(cells: FloatArray) -> FloatArray:
    """Both halves of every cell: (2 cells, 2)."""
    middle = cells.mean(axis=1)
    left = np.stack([cells[:, 0], middle], axis=1)
    right = np.stack([middle, cells[:, 1]], axis=1)
    return np.concatenate([left, right])


def _cells(stakes: Stakes, pulls: float) -> FloatArray:
    """Cells that cover [0, 1] and straddle neither the boundary nor the ends of the reach."""
    b = stakes.boundary
    corners = np.clip([0.0, b - stakes.reach, b, b + stakes.reach, 1.0], 0.0, 1.0)
    edges = np.unique(np.concatenate([corners, _edges(b, pulls)]))
    return np.stack([edges[:-1], edges[1:]], axis=1)


def _edges(boundary: float, pulls: float) -> FloatArray:
    """Means between 0 and 1, geometrically away from the boundary in angles.

    The first is some standard deviations away, of which one is 1 / (2 sqrt(N)) after N pulls."""
    near = tuning.CELL_WIDTH / (2 * math.sqrt(pulls))
    further = 1 + np.arange(0.0, 1 + math.log(RIGHT_ANGLE / near) / math.log1p(tuning.CELL_GROWTH))
    distances = near * np.expm1(further * math.log1p(tuning.CELL_GROWTH)) / tuning.CELL_GROWTH
    centre = math.asin(math.sqrt(boundary))
    angles = np.concatenate([centre - distances, centre + distances])
    result: FloatArray = np.sin(angles[(angles > 0) & (angles < RIGHT_ANGLE)]) ** 2
    return result
