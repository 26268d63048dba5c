"""What it can cost to take an arm, or to leave it out: the loss L(state, mean) of docs/plans.md.

Every state has a *lead*: what is charged more for leaving the arm out than for taking it. The way
that is charged less costs the distance to the boundary if the mean is on the other side of it,
counted up to the reach. The other way costs as much, less the lead.

The boundaries that are declared, each with its share of delta.

They lie around the one that is believed in, evenly spaced at first and then ever wider apart, and
have shares like a Cauchy law: to declare many costs little, to miss the right one costs a look.
What several of them say about the same set is put together (claims.py).

Log-optimal charges: the least that can be expected to be charged under (*) of docs/plans.md.

    maximise  sum over s of p(s) ln q(s)   subject to   A q <= 1,      q = exp(-strength * charge),

where p is how likely every state is believed to be and A(m, s) = p_m(s) exp(strength L(s, m)). The
dual finds weights w of the means that maximise sum p ln(w A) - sum w; then q = p / (w A). Newton's
method finds both, the weights and what the constraints leave, x = 1 - A q: on the central path all
w(m) x(m) are equal, and their sum is the gap to the best. Few means have weight in the end: it
begins with some, and adds those at which the constraint is broken most (cutting planes).

The exponential moment of a plan at *every* mean: the check of (*) in docs/plans.md.

With q = exp(-strength * charge) it is M(m) = sum over s of p_m(s) exp(strength L(s, m)) q(s). Cut
[0, 1] into cells that straddle neither the boundary nor the ends of the reach. In a cell of centre
c and half-width h each ln p_m(s) is concave in m, hence below its tangent at c, of slope(s), and L
is convex in m, hence below its chord. So for |t| <= h

    M(c + t) <= sum over s of p_c(s) q(s) exp(slope(s) t + strength * chord(s, t)).

That is convex in t: the larger of its values at the ends of the cell, where the chord is L, bounds
M in all of it. (Lemma 2) Cells whose bound exceeds the largest moment at any centre are halved,
again and again.

What tracks and boundaries prove for one set together.

A claim is what one track at one boundary says about a set. Each has its share of delta, and their
shares are weights of a mean (docs/plans.md, Lemma 4): claims that are charged about the same cost
hardly more than one that has all their shares. To check (*) takes long, so charges are estimates
at first; only claims that were checked count."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.plans import tuning

NEGLIGIBLE = 1e-280  # probability under the reference mean below which states are left out
UNLIKELY = 1e-16  # probability under every mean, likewise
NOT_THERE = -1  # the number of a state that was left out


@dataclass(frozen=True, slots=True)
class Level:
    """After `pulls` pulls: which numbers of successes, 0 ... pulls, stop the arm."""

    pulls: int
    stops: BoolArray  # (pulls + 1,)


@dataclass(frozen=True, slots=True)
class StopStates:
    """Where a plan can stop: pulls, successes, ln(paths); pulls rise, then successes."""

    pulls: FloatArray  # (states,)
    successes: FloatArray  # (states,)
    log_paths: FloatArray  # (states,)

    def log_probability(self, means: FloatArray) -> FloatArray:
        """Logarithm of p_m(state): (means, states)."""
        column = means[:, None]
        log_path = self.successes * np.log(column)
        log_path += (self.pulls - self.successes) * np.log1p(-column)
        log_path += self.log_paths
        result: FloatArray = log_path
        return result

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
        """The number of every one of these states; NOT_THERE for those that were left out."""
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
        ended = np.flatnonzero(level.stops & (reached > NEGLIGIBLE))
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
    """What a wrong choice weighs: boundary b, strength lambda and reach K epsilon."""

    boundary: float
    strength: float
    reach: float

    def distances(self, means: FloatArray) -> FloatArray:
        """min(|m - b|, reach)."""
        result: FloatArray = np.minimum(np.abs(means - self.boundary), self.reach)
        return result

    def losses(self, means: FloatArray, leads: FloatArray) -> FloatArray:
        """L(s, m): (means, states)."""
        above = (means > self.boundary)[:, None]
        charged = np.where(above, np.maximum(leads, 0.0), np.maximum(-leads, 0.0))
        lost: FloatArray = np.maximum(self.distances(means)[:, None] - charged, 0.0)
        return lost

    def capped(self, leads: FloatArray) -> FloatArray:
        """Leads no larger than what an arm can lose: a larger one would make no loss smaller."""
        out = min(self.boundary, self.reach)
        inside = min(1 - self.boundary, self.reach)
        result: FloatArray = np.clip(leads, -out, inside)
        return result


EDGE = 1e-3  # no boundary is nearer to 0 or 1


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Boundaries, rising, and ln(1 / share) of each; the shares add up to delta."""

    values: FloatArray  # (boundaries,)
    thresholds: FloatArray  # (boundaries,)

    @classmethod
    def around(cls, middle: float, error: float, delta: float) -> "Boundaries":
        """Boundaries around `middle`, which is believed to be off by about `error`."""
        number = np.arange(-tuning.BOUNDARIES, tuning.BOUNDARIES + 1)
        errors = tuning.TURN * np.sinh(number * tuning.SPACE / tuning.TURN)
        values = middle + errors * error
        weights = np.gradient(errors) / (1 + (errors / tuning.WIDTH) ** 2)
        inside = (values > EDGE) & (values < 1 - EDGE)
        shares = weights[inside] / weights[inside].sum()
        return cls(values[inside], -np.log(delta * shares))

    @property
    def least_threshold(self) -> float:
        """Of the boundary with the largest share."""
        return float(self.thresholds.min())

    def left_for_charges(self, stakes: Stakes) -> float:
        """What charges may come to at the boundary with the largest share."""
        return stakes.reach - self.least_threshold / stakes.strength


INSIDE = 0.99  # of the way to where a weight, or what a constraint leaves, would be 0
LEFT = 0.3  # that constraints leave, to begin with


def log_optimal_among(
    matrix: FloatArray, believed: FloatArray, gap: float, every: int
) -> FloatArray:
    """The best q as in `log_optimal`, found with one in so many of the means at first."""
    taken = np.zeros(matrix.shape[0], dtype=np.bool_)
    taken[::every] = True
    taken[-1] = True
    for _ in range(tuning.CUTS):
        q = log_optimal(np.ascontiguousarray(matrix[taken]), believed, gap)
        broken = _peaks(matrix @ q, 1 + gap) & ~taken
        if not broken.any():
            break
        taken |= broken
    return q


def log_optimal(matrix: FloatArray, believed: FloatArray, gap: float) -> FloatArray:
    """The best q for A = `matrix` (means, states), p = `believed`, but for `gap` in sum p ln q."""
    from scipy.linalg.lapack import dposv  # late: few who import us need it, and it is large

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
        centre = tuning.SHRINK * distance / (means * weights)  # what constraints are to leave
        scaled = matrix * (root / mixture)  # (means, states)
        curvature = scaled @ scaled.T
        ratio = left / weights
        curvature.ravel()[:: means + 1] += ratio  # its diagonal
        _, step, failed = dposv(curvature, moments - 1 + centre, overwrite_a=True)
        if failed:  # by rounding: what there is has to do, and is checked
            break
        change = centre - left - ratio * step
        weights = weights + step * _length(step / weights)
        left = left + change * _length(change / left)
    result: FloatArray = believed / (weights @ matrix)
    return result


def _length(relative: FloatArray) -> float:
    """Of a step that leaves everything positive: a whole one, if it does."""
    return min(1.0, INSIDE / max(INSIDE, -float(relative.min())))


def _peaks(moments: FloatArray, above: float) -> BoolArray:
    """Where neighbouring means have no larger moment, and it is too large."""
    padded = np.pad(moments, 1)
    highest = (moments >= padded[:-2]) & (moments >= padded[2:])
    return highest & (moments > above)


ROUNDING = 1e-7  # more than all roundings in a moment, relative
QUARTER = math.pi / 2  # the largest angle: a mean is sin(angle)^2


@dataclass(frozen=True, slots=True)
class Moments:
    """What a moment is made of: states with their leads, q > 0 and stakes."""

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
        with np.errstate(over="ignore"):  # an infinite bound is one, too
            up = np.einsum("cs,s->c", np.exp(log + slopes + right), self.q)
            down = np.einsum("cs,s->c", np.exp(log - slopes + left), self.q)
            inside = np.einsum("cs,s->c", np.exp(log + middle), self.q)
        return np.maximum(down, up), inside

    def _lost(self, means: FloatArray) -> FloatArray:
        """Strength * L(s, m): (means, states)."""
        result: FloatArray = self.stakes.strength * self.stakes.losses(means, self.leads)
        return result

    def _slopes(self, centres: FloatArray) -> FloatArray:
        """Derivative at the centres of ln p_m(s): (cells, states)."""
        means = centres[:, None]
        failures = self.states.pulls - self.states.successes
        slopes: FloatArray = self.states.successes / means - failures / (1 - means)
        return slopes


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
    for _ in range(tuning.HALVINGS):
        bounds, at_centres = moments.in_cells(cells)
        if np.isnan(bounds).any():  # what is not a number bounds nothing
            return math.inf
        largest = max(largest, float(at_centres.max()))
        wide = bounds > (1 + excess) * largest
        worst = max(worst, float(bounds[~wide].max(initial=0.0)))
        if not wide.any():
            return worst * (1 + ROUNDING)
        cells = _halved(cells[wide])
    return max(worst, float(bounds[wide].max())) * (1 + ROUNDING)


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
    near = tuning.CELL / (2 * math.sqrt(pulls))
    further = 1 + np.arange(0.0, 1 + math.log(QUARTER / near) / math.log1p(tuning.WIDER))
    distances = near * np.expm1(further * math.log1p(tuning.WIDER)) / tuning.WIDER
    centre = math.asin(math.sqrt(boundary))
    angles = np.concatenate([centre - distances, centre + distances])
    result: FloatArray = np.sin(angles[(angles > 0) & (angles < QUARTER)]) ** 2
    return result
