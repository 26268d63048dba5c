"""The least offsets that are right: proofs of exponential moments, for every kind of rewards."""

import math

import numpy as np
from scipy.special import betainc

from shortlist.arrays import FloatArray
from shortlist.reward_models import RewardModel

# means at which the exponential moment of a 0/1 arm is checked, at least and at most,
CHECKS = 64, 256
MORE_CHECKS = 16  # so many more for every unit of its exponent
RETREATS = 4  # times a start is lowered at most, by about a fifth of a standard deviation
TINY = 1e-300  # stands in for what is too small for a float, so that a charge never passes for none


def offsets(
    pulls: FloatArray,
    boundary: float,
    strength: float,
    reach: float,
    rewards: RewardModel,
    *,
    slope: FloatArray,
    start: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Starts and least offsets for arms outside the set, as seen from `boundary` (inside: mirror
    the rewards).

    A start with so much that is not charged that no offset is right is lowered until there is one,
    or given up."""
    if not rewards.has_range:
        return start, subgaussian_offset(pulls, strength, reach, slope)
    reach = min(reach, 1 - boundary)
    begin, offset = start.copy(), bounded_offset(pulls, boundary, boundary, strength, reach, slope)
    ways, retreats = np.flatnonzero(np.isfinite(start)), 0
    while ways.size and retreats <= RETREATS:
        found = binary_offset(
            pulls[ways], boundary, strength, reach, slope=slope[ways], start=begin[ways]
        )
        offset[ways] = np.where(np.isfinite(found), found, offset[ways])
        ways = ways[~np.isfinite(found)]
        begin[ways] -= np.ceil(0.1 * np.sqrt(pulls[ways]))
        retreats += 1
    begin[ways] = -np.inf
    return begin, offset


def subgaussian_offset(
    pulls: FloatArray, strength: float, reach: FloatArray | float, slope: FloatArray
) -> FloatArray:
    """slope^2 / 8N for rewards with sigma = 1/2, and what a slope below the strength falls short of
    at `reach`."""
    with np.errstate(invalid="ignore", over="ignore"):  # 0 times an infinite reach
        missing = np.where(slope < strength, (strength - slope) * reach, 0.0)
        result: FloatArray = slope**2 / (8 * pulls) + missing
    return result


def bounded_offset(
    pulls: FloatArray,
    boundary: FloatArray | float,
    low: FloatArray | float,
    strength: float,
    reach: FloatArray | float,
    slope: FloatArray,
) -> FloatArray:
    """The largest N ln(1 - m u) + slope b + strength (m - b), u = 1 - e^(-slope/N), for m in [low,
    boundary + reach].

    Rewards in [0, 1] have E[exp(-slope * x)] <= (1 - m u)^N at mean m. It is concave, its maximiser
    in closed form."""
    u = -np.expm1(-slope / pulls)
    worst = np.minimum(np.maximum(1 / u - pulls / strength, low), boundary + reach)
    result: FloatArray = (
        pulls * _log_shrink(worst, slope / pulls) + slope * boundary + strength * (worst - boundary)
    )
    return result


def _log_shrink(mean: FloatArray, step: FloatArray) -> FloatArray:
    """ln(1 - m (1 - e^-step)) without loss of digits, be the step small (many pulls) or large."""
    near = np.log1p(mean * np.expm1(-np.minimum(step, 1)))
    rest = (1 - mean) + mean * np.exp(-step)
    # so little is left at a mean of 1 only
    far = np.where(rest > TINY, np.log(np.maximum(rest, TINY)), -step)
    return np.where(step < 1, near, far)


def binary_offset(
    pulls: FloatArray,
    boundary: float,
    strength: float,
    reach: float,
    *,
    slope: FloatArray,
    start: FloatArray,
    checks: int | None = None,
) -> FloatArray:
    """Least offset for 0/1 rewards where up to `start` successes cost nothing: an exact moment,
    checked on a grid.

    It is infinite where no offset is right: then the moment is too large already where nothing is
    charged.

    With S successes in N, E[exp(-strength * charge)] <= A(m) + e^-offset B(m) at mean m, where A =
    P(S <= start) and B = E[exp(-slope (S/N - b)); S > start]. It must not exceed R(m) =
    exp(-strength (m - b)). Between two points of the grid that follows from either of two facts:
    the moment falls with m, so its value at the left end against R at the right end will do; or
    both ends keep a margin of (step^2 / 8) times a bound on the second derivative. Beyond the grid
    A is negligible and B has the closed form of `bounded_offset`."""
    # (ways, 1)
    pulls, slope, start = (
        pulls[:, None],
        slope[:, None],
        np.clip(np.floor(start), -1, pulls)[:, None],
    )
    checks = checks or int(min(CHECKS[0] + MORE_CHECKS * strength * reach, CHECKS[1]))
    widest = 0.25 if boundary < 0.5 else boundary * (1 - boundary)
    deviations = math.sqrt(2 * (strength * reach + 12))  # there A is below e^-12 of what is allowed
    far = np.minimum(
        reach, np.maximum(0, start / pulls - boundary) + deviations * np.sqrt(widest / pulls)
    )
    gap = far * np.linspace(0, 1, checks + 1)  # (ways, checks + 1)
    mean = boundary + gap
    free, log_charged = _binary_moments(pulls, slope, start, mean, boundary)
    allowed = np.exp(-strength * gap)
    margin = (far / checks) ** 2 / 8 * (_curvature(pulls, mean) + strength**2)
    by_monotony = _least_offset(allowed[:, 1:] - free[:, :-1], log_charged[:, :-1])
    at_ends = _least_offset(allowed - free - margin, log_charged)
    inner = np.minimum(by_monotony, np.maximum(at_ends[:, :-1], at_ends[:, 1:])).max(axis=1)
    tail = _tail_offset(pulls, boundary, mean[:, -1:], free[:, -1:], strength, reach, slope)
    result: FloatArray = np.maximum(inner, tail)
    return result


def _binary_moments(
    pulls: FloatArray, slope: FloatArray, start: FloatArray, mean: FloatArray, boundary: float
) -> tuple[FloatArray, FloatArray]:
    """A and ln B of `binary_offset`; the exponential tilt of a binomial is a binomial with another
    mean."""
    step, some = slope / pulls, np.maximum(start, 0)
    # P(S <= start). `betaincc` of the mean itself is ten times slower, and differs by 1e-16 times
    # the pulls at most.
    free = np.where(start < 0, 0.0, betainc(pulls - some, some + 1, 1 - mean))
    log_shrink = _log_shrink(mean, step)
    tilted = np.minimum(mean * np.exp(-step - log_shrink), 1)
    # P(S > start) under the tilt
    above = np.where(start < 0, 1.0, betainc(some + 1, pulls - some, tilted))
    return free, pulls * log_shrink + slope * boundary + np.log(np.maximum(above, TINY))


def _curvature(pulls: FloatArray, mean: FloatArray) -> FloatArray:
    """Bound on |d^2/dm^2 E_m f(S)| for any f with values in [0, 1], next to every point of the
    grid.

    It is E|W| / 2, W the second score of the binomial; near means of 0 and 1 N^2 times a second
    difference is less."""
    here = mean * (1 - mean)
    spread = here.copy()  # the least between the points before and after, since it is concave
    spread[:, 1:] = np.minimum(spread[:, 1:], here[:, :-1])
    spread[:, :-1] = np.minimum(spread[:, :-1], here[:, 1:])
    count = pulls * spread
    with np.errstate(divide="ignore", invalid="ignore"):
        score = (np.sqrt(2 * count**2 + count) + np.sqrt(count)) / (2 * spread**2)
    result: FloatArray = np.fmin(score, 2 * pulls**2)
    return result


def _least_offset(room: FloatArray, log_charged: FloatArray) -> FloatArray:
    """The offset that makes e^-offset B equal to `room`; infinite if there is none."""
    with np.errstate(divide="ignore"):
        return log_charged - np.log(np.maximum(room, 0))


def _tail_offset(
    pulls: FloatArray,
    boundary: float,
    last: FloatArray,
    free: FloatArray,
    strength: float,
    reach: float,
    slope: FloatArray,
) -> FloatArray:
    """Least offset for means from `last` to boundary + reach, where A is at most `free`."""
    # of what is allowed
    share = np.exp(np.minimum(np.log(np.maximum(free, TINY)) + strength * reach, 0))
    offset = _least_offset(1 - share, bounded_offset(pulls, boundary, last, strength, reach, slope))
    return np.where(last < boundary + reach, offset, -np.inf)[:, 0]
