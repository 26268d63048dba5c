"""The least offsets that make a charge right: inequality (1) of the proof.

All of them are for arms outside the set; an arm inside is the mirror image, 1 - x and 1 - b. For
rewards without a range, and for rewards in [0, 1], they have a closed form.

0/1 rewards allow a start. Let S be the successes of an arm outside the set in its N pulls, m its
mean and g = m - b >= 0. It is charged nothing for S <= start and max(0, slope (S/N - b) + offset) /
strength above. Its moment

    M(m) = E[exp(-strength * charge)] <= A(m) + exp(-offset) B(m),
    A(m) = P(S <= start),        B(m) = E[exp(-slope (S/N - b)); S > start],

must not exceed the allowed one, exp(-strength g), at any g in [0, reach]. It is checked at the
points of a grid. Between two neighbours, a step apart, either of two facts suffices:

1. M falls with m, so M at the left end may be compared with the allowed moment at the right end;
2. M exceeds its chord by step^2 / 8 times a bound on |M''| at most, and the allowed moment is below
   its chord by step^2 / 8 * strength^2 at most: both ends must keep the sum of the two as a margin.

Beyond the last point A is negligible and B has the closed form of `bounded_offset`.

Rounding: a mean of the grid is b + g but for its last digit, and g is taken as the larger. An
incomplete beta function of N pulls has a relative error of ROUNDED * N, as its arguments are
rounded, and of BETA_ERROR at most: A, B and margins are taken three times that much too large,
which also covers the error of the allowed moment."""

import numpy as np
from scipy.special import betainc

from shortlist.arrays import ROUNDED, FloatArray, IntArray
from shortlist.reward_models import RewardModel

# These cost pulls or time; no bound rests on them.
CHECKS = 64  # steps of the grid on which a 0/1 moment is checked, ...
MORE_CHECKS = 16  # ... more for every e-folding of the allowed moment, ...
MOST_CHECKS = 256  # ... and at most
RETREATS = 4  # times that a start may be lowered ...
RETREAT = 0.1  # ... by this many square roots of the pulls

# stands in for what is too small for a float, so that a logarithm stays a number
TINY = 1e-300


def subgaussian_offset(
    pulls: FloatArray, strength: float, reach: FloatArray | float, slope: FloatArray
) -> FloatArray:
    """The least offset for rewards with sigma = 1/2: slope^2 / 8N + (strength - slope) reach.

    The first term is the logarithm of the moment E[exp(-slope (x - m))]; the second is what a slope
    below the strength falls short of at the farthest mean."""
    with np.errstate(invalid="ignore", over="ignore"):  # 0 times an infinite reach
        shortfall = np.where(slope < strength, (strength - slope) * reach, 0.0)
        offset: FloatArray = slope**2 / (8 * pulls) + shortfall
    return offset


def bounded_offset(
    pulls: FloatArray,
    boundary: FloatArray | float,
    low: FloatArray | float,
    strength: float,
    reach: FloatArray | float,
    slope: FloatArray,
) -> FloatArray:
    """The largest N ln(1 - m u) + slope b + strength (m - b) for m in [low, boundary + reach].

    Rewards in [0, 1] have E[exp(-slope x)] <= (1 - m u)^N at mean m, with u = 1 - exp(-slope/N),
    because exp(-tilt x) lies below its chord on [0, 1]. The expression is concave in m.
    It is off by ROUNDED * strength at most (docs/certificate.md, "Rounding")."""
    tilt = slope / pulls
    u = -np.expm1(-tilt)
    stationary = 1 / u - pulls / strength
    worst = np.minimum(np.maximum(stationary, low), boundary + reach)
    log_moment = pulls * log_shrink(worst, tilt)
    # Where the tilt is large the worst mean may be nearer to 1 than floats tell: 1 - m u tells.
    steep = tilt >= 1
    rest = np.minimum(
        np.maximum(u * pulls / strength, _rest(boundary + reach, tilt)), _rest(low, tilt)
    )
    worst = np.where(steep, (1 - rest) / u, worst)
    log_moment = np.where(steep, pulls * _log_rest(rest, tilt), log_moment)
    return log_moment + slope * boundary + strength * (worst - boundary)


def log_shrink(mean: FloatArray, tilt: FloatArray) -> FloatArray:
    """ln(1 - m (1 - exp(-tilt))), without cancellation for small and large tilts.

    It is the logarithm of E[exp(-tilt X)] for one 0/1 reward X of mean m."""
    near = np.log1p(mean * np.expm1(-np.minimum(tilt, 1)))
    return np.where(tilt < 1, near, _log_rest(_rest(mean, tilt), tilt))


def _rest(mean: FloatArray | float, tilt: FloatArray) -> FloatArray:
    """1 - m (1 - exp(-tilt)), for large tilts."""
    return (1 - mean) + mean * np.exp(-tilt)


def _log_rest(rest: FloatArray, tilt: FloatArray) -> FloatArray:
    """The logarithm of `_rest`: that underflows at a mean of 1 only, where it is -tilt."""
    return np.where(rest > TINY, np.log(np.maximum(rest, TINY)), -tilt)


# A is at most exp(-NEGLIGIBLE_EXPONENT) of what is allowed where the grid ends (Chernoff's bound,
# as if normal); were it more, the tail would only ask for a larger offset
NEGLIGIBLE_EXPONENT = 12
MOST_EXACT = 2**30  # pulls up to which incomplete beta functions are trusted
BETA_ERROR = 1e-8  # relative, of the incomplete beta function itself, where it is trusted


def binary_offset(
    pulls: FloatArray,
    boundary: FloatArray | float,
    strength: float,
    reach: FloatArray | float,
    *,
    slope: FloatArray,
    start: FloatArray,
    checks: int | None = None,
) -> FloatArray:
    """The least offset that keeps A + exp(-offset) B below what is allowed; of every candidate.

    It is infinite where A alone is too large, and where there are too many pulls to trust A and B.
    Boundary and reach may differ by candidate. `checks` is the number of steps of the grid."""
    start = np.clip(np.floor(start), -1, pulls)[:, None]  # (candidates, 1)
    boundary = _column(boundary, pulls.size)
    reach = _column(reach, pulls.size)
    pulls = pulls[:, None]  # (candidates, 1)
    slope = slope[:, None]  # (candidates, 1)
    checks = checks or usual_checks(strength * float(reach.max()))
    gap = _checked_gaps(pulls, boundary, strength, reach, start, checks)  # (candidates, checks + 1)
    mean = boundary + gap
    gap = np.maximum(gap, np.nextafter(mean - boundary, np.inf))  # less is allowed there
    free, log_charged = _binary_moments(pulls, slope, start, mean, boundary)
    error = 3 * (BETA_ERROR + ROUNDED * pulls)  # of A, of B and of what is allowed
    free = (1 + error) * free
    curvature = (1 + error) * _curvature(pulls, mean) + error * strength**2
    inner = _inner_offset(gap, free, log_charged, strength, curvature)
    tail = _tail_offset(pulls, boundary, mean[:, -1:], free[:, -1:], strength, reach, slope)
    return np.where(pulls[:, 0] <= MOST_EXACT, np.maximum(inner, tail) + error[:, 0], np.inf)


def _column(values: FloatArray | float, size: int) -> FloatArray:
    """One value per candidate: (candidates, 1)."""
    column: FloatArray = np.broadcast_to(np.asarray(values, dtype=np.float64), (size,))[:, None]
    return column


def usual_checks(exponent: float) -> int:
    """Steps of the grid: the more, the more of e-foldings of what is allowed there are."""
    return int(min(CHECKS + MORE_CHECKS * exponent, MOST_CHECKS))


def _checked_gaps(
    pulls: FloatArray,
    boundary: FloatArray | float,
    strength: float,
    reach: FloatArray | float,
    start: FloatArray,
    checks: int,
) -> FloatArray:
    """The gaps of the grid, evenly from 0 to where A is negligible: (candidates, checks + 1)."""
    # the largest beyond b
    variance = np.where(np.less(boundary, 0.5), 0.25, boundary * (1 - boundary))
    deviations = np.sqrt(2 * (strength * reach + NEGLIGIBLE_EXPONENT))
    first_charged = np.maximum(0, start / pulls - boundary)
    last = np.minimum(reach, first_charged + deviations * np.sqrt(variance / pulls))
    gaps: FloatArray = last * np.linspace(0, 1, checks + 1)
    return gaps


def _binary_moments(
    pulls: FloatArray,
    slope: FloatArray,
    start: FloatArray,
    mean: FloatArray,
    boundary: FloatArray | float,
) -> tuple[FloatArray, FloatArray]:
    """A and ln B at every mean; an exponentially tilted binomial is a binomial of another mean."""
    tilt = slope / pulls
    log_moment = log_shrink(mean, tilt)  # of one reward
    tilted = np.minimum(mean * np.exp(-tilt - log_moment), 1)
    some = np.maximum(start, 0)
    # P(S <= start). `betaincc` of the mean itself is ten times slower, and differs by 1e-16 times
    # the pulls at most.
    free = np.where(start < 0, 0.0, betainc(pulls - some, some + 1, 1 - mean))
    # P(S > start) under the tilted distribution
    above = np.where(start < 0, 1.0, betainc(some + 1, pulls - some, tilted))
    never = start >= pulls  # no charge; not all versions of scipy know these beta functions
    free = np.where(never, 1.0, free)
    above = np.where(never, 0.0, above)
    log_charged = pulls * log_moment + slope * boundary + np.log(np.maximum(above, TINY))
    return free, log_charged


def _inner_offset(
    gap: FloatArray,
    free: FloatArray,
    log_charged: FloatArray,
    strength: float,
    curvature: FloatArray,
) -> FloatArray:
    """Least offset for all means between the first and the last point of the grid: (candidates,).

    Every argument that is an array has the shape (candidates, points)."""
    checks = gap.shape[1] - 1
    allowed = np.exp(-strength * gap)
    by_monotony = _least_offset(allowed[:, 1:] - free[:, :-1], log_charged[:, :-1])  # fact 1
    step = gap[:, -1:] / checks
    margin = step**2 / 8 * (curvature + strength**2)
    at_points = _least_offset(allowed - free - margin, log_charged)
    by_curvature = np.maximum(at_points[:, :-1], at_points[:, 1:])  # fact 2
    offset: FloatArray = np.minimum(by_monotony, by_curvature).max(axis=1)
    return offset


def _curvature(pulls: FloatArray, mean: FloatArray) -> FloatArray:
    """A bound on |d^2/dm^2 E_m f(S)| next to every point, for any f with values in [0, 1].

    It is E|W| / 2, W the second score of the binomial; near means of 0 and 1, N^2 times the second
    difference of f is less."""
    variance = _least_variance_nearby(mean)
    information = pulls * variance
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(2 * information**2 + information)
        score = (root + np.sqrt(information)) / (2 * variance**2)
    return np.fmin(score, 2 * pulls**2)


def _least_variance_nearby(mean: FloatArray) -> FloatArray:
    """The least m (1 - m) between the points before and after; it is concave, so at one of them."""
    here = mean * (1 - mean)
    least = here.copy()
    least[:, 1:] = np.minimum(least[:, 1:], here[:, :-1])
    least[:, :-1] = np.minimum(least[:, :-1], here[:, 1:])
    return least


def _least_offset(room: FloatArray, log_charged: FloatArray) -> FloatArray:
    """The offset that makes exp(-offset) B equal to `room`; infinite if there is no room."""
    with np.errstate(divide="ignore"):
        return log_charged - np.log(np.maximum(room, 0))


def _tail_offset(
    pulls: FloatArray,
    boundary: FloatArray | float,
    last: FloatArray,
    free: FloatArray,
    strength: float,
    reach: FloatArray | float,
    slope: FloatArray,
) -> FloatArray:
    """Least offset for means from `last` to boundary + reach, where A <= `free`: (candidates,).

    What A takes is counted where least is allowed, at the reach; B takes the rest."""
    log_share = np.log(np.maximum(free, TINY)) + strength * reach
    share = np.exp(np.minimum(log_share, 0))  # of what is allowed, at most 1
    log_charged = bounded_offset(pulls, boundary, last, strength, reach, slope)
    offset = _least_offset(1 - share, log_charged)
    return np.where(last < boundary + reach, offset, -np.inf)[:, 0]


def offsets(
    pulls: FloatArray,
    boundary: FloatArray | float,
    strength: float,
    reach: float,
    rewards: RewardModel,
    *,
    slope: FloatArray,
    start: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Starts and least offsets of candidates, one for each entry of `pulls`, `slope` and `start`.

    The boundary may differ by candidate. A start so high that no offset is right is backed off
    until one is, or given up (-inf)."""
    if not rewards.has_range:
        return start, subgaussian_offset(pulls, strength, reach, slope)
    boundary = np.broadcast_to(np.asarray(boundary, dtype=np.float64), pulls.shape)
    within = np.minimum(reach, 1 - boundary)  # no mean lies beyond 1
    begin = start.copy()
    offset = bounded_offset(pulls, boundary, boundary, strength, within, slope)
    open_: IntArray = np.flatnonzero(np.isfinite(start))  # candidates whose start has no offset yet
    for _ in range(1 + RETREATS):
        if not open_.size:
            break
        found = binary_offset(
            pulls[open_],
            boundary[open_],
            strength,
            within[open_],
            slope=slope[open_],
            start=begin[open_],
        )
        right = np.isfinite(found)
        offset[open_[right]] = found[right]
        open_ = open_[~right]
        begin[open_] -= np.ceil(RETREAT * np.sqrt(pulls[open_]))
    begin[open_] = -np.inf
    return begin, offset
