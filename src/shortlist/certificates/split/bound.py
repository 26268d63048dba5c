"""The split certificate: how much can a set lose that was chosen before these rewards were drawn?

Aggregate regret is a sum over arms, and the errors of independent arms average out. So instead of a
confidence interval per arm (and a union bound over arms) every arm is *charged* for evidence
against its place in the set:

    y_i      = x_i - b outside the set, b - x_i inside          (x_i the fresh mean, b the boundary)
    charge_i = max(0, slope_i * y_i + offset_i) / strength      (0 up to `start_i` successes)
    K * R_T <= sum_i charge_i + ln(1/delta) / strength          with probability 1 - delta.

All but the rewards must be fixed before they are drawn. An offset is right when the arm's
exponential moment is: for every mean g beyond the boundary, E[exp(-strength * charge)] <=
exp(-strength * min(g, reach)). With `reach` = K * epsilon the bound holds whenever it is at most K
* epsilon; with the largest possible reach it always holds. `offsets.py` finds the least offsets.

Where not every set of K arms may be chosen, every arm has a boundary of its own, its price, and the
surplus of the prices is added (docs/prices.md, Theorem 1).

Rewards in [0, 1] that are not 0/1 get a discount. A charge rests on the bet that multiplies by
1 - u X at every reward X. Count, mean x and variance v of N rewards do not determine its product,
but bound it:

    sum of ln(1 - u X)  >=  -slope x + discount,        u = 1 - exp(-slope / N),
    discount = N w (ln(1 - u m) + (slope / N) m),  m = x - v / (1 - x),  w = (1-x)^2 / ((1-x)^2 + v)

which is exact where the rewards are m, in a share w of the pulls, and 1. The discount is 0 for 0/1
rewards and never less; the larger the variance, the smaller it is.

Charges and their sum are rounded outward, so that rounding errors are on the safe side.
docs/certificate.md has the proofs."""

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray, grouped_by
from shortlist.certificates.split.offsets import TINY, log_shrink, offsets
from shortlist.certificates.under_constraints import largest_gain
from shortlist.constraints import Constraint
from shortlist.errors import InvalidInput
from shortlist.reward_models import RewardModel
from shortlist.search import Progress, Pulls, Rewards
from shortlist.validation import LARGEST, SMALLEST, number

STEEPEST_TILT = 8.0  # tilt up to which a discount is given: beyond, rounding is worth more
VARIANCE_BLUR = 2.0**-33  # added to a variance, which is a difference of rounded numbers


class Holdout:
    """Fresh pulls and their sums; the rewards never influence which pulls are requested."""

    def __init__(self, n_arms: int, blur: float) -> None:
        """`blur` bounds the rounding error of the mean of an arm."""
        self.blur = blur
        self.pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.sums: FloatArray = np.zeros(n_arms)
        self.squares: FloatArray = np.zeros(n_arms)

    @property
    def spent(self) -> int:
        """Pulls made in all."""
        return int(self.pulls.sum())

    def fill_up(self, wanted: IntArray, progress: Progress) -> Generator[Pulls, Rewards, None]:
        """Ask for the pulls missing to `wanted` of every arm, in one batch."""
        missing = wanted - self.pulls
        arm = int(missing.argmin())
        if missing[arm] < 0:  # a certificate of fewer pulls than were drawn would be void
            raise ValueError(
                f"{wanted[arm]} pulls of arm {arm} are wanted, but {self.pulls[arm]} were drawn"
            )
        arms = np.flatnonzero(missing)
        if arms.size:
            times = missing[arms]
            rewards = yield Pulls(arms, times, progress)
            self.pulls[arms] += times
            self.sums[arms] += rewards.sums
            self.squares[arms] += rewards.squares


def discount(
    pulls: FloatArray, mean: FloatArray, variance: FloatArray, slope: FloatArray
) -> FloatArray:
    """The discount on slope * mean of rewards of this mean and variance, outside the set."""
    mean = np.clip(mean, 0, 1)
    tilt = np.minimum(slope / pulls, STEEPEST_TILT)
    rest = np.maximum(1 - mean, TINY)
    variance = np.clip(variance, 0, mean * rest)  # no rewards have more
    point = np.maximum(mean - variance / rest, 0)
    share = rest / (rest + variance / rest)
    gained = np.maximum(log_shrink(point, tilt) + tilt * point, 0)
    return np.where(slope <= STEEPEST_TILT * pulls, pulls * share * gained, 0.0)


def discount_error(slope: FloatArray, pulls: FloatArray) -> FloatArray:
    """Largest change of the bound by an error of ROUNDED in the mean and in the second moment.

    The bound is linear in both, with the coefficients of a quadratic that touches ln(1 - u X): no
    more than its derivatives at 1, e^tilt - 1 and its square."""
    growth = np.expm1(np.minimum(slope / pulls, STEEPEST_TILT))
    error: FloatArray = ROUNDED * pulls * 4 * growth * (1 + growth)
    return error


@dataclass(frozen=True)
class Certificate:
    """A certificate as declared before its rewards are drawn; `bound` fills them in."""

    chosen: BoolArray  # (arms,), as all arrays here
    boundary: FloatArray | float  # of every arm, where they differ
    strength: float
    delta: float
    pulls: IntArray
    slope: FloatArray
    start: FloatArray  # successes (against the arm's place) that are not charged; -inf: all are
    offset: FloatArray
    blur: float = 0.0  # of the means, by rounding, before they came here
    discounted: bool = False  # rewards lie in [0, 1] and may vary less than 0/1 rewards
    surplus: float = 0.0  # by which a set that may be chosen exceeds this one at these prices

    def charges(self, sums: FloatArray, squares: FloatArray | None = None) -> FloatArray:
        """Charges of all arms for these rewards; `sums` may have several rows.

        With their `squares`, rewards in [0, 1] get a discount for a small variance."""
        means = sums / self.pulls
        beyond = (sums - self.pulls * self.boundary) / self.pulls
        against = np.where(self.chosen, -beyond, beyond)  # y of the theorem
        successes = np.where(self.chosen, self.pulls - sums, sums)
        exponent = self.slope * against + self.offset
        charge = exponent / self.strength + self._rounded(means)
        if squares is not None and self.discounted:
            charge = charge - self._discounts(means, squares)
        # in this order, so that NaN is never taken for no charge
        return np.where(successes <= self.start, 0.0, np.maximum(0, charge))

    def bound(self, sums: FloatArray, squares: FloatArray | None = None) -> float:
        """Upper confidence bound on the aggregate regret of the set; never NaN."""
        threshold = -math.log(self.delta)
        total = float(self.charges(sums, squares).sum()) + threshold / self.strength  # proof (c)
        bound = (1 + ROUNDED) * (total + self.surplus) / int(self.chosen.sum())
        return bound if bound >= 0 else math.inf

    def _rounded(self, means: FloatArray) -> FloatArray:
        """Largest rounding error of a charge: a share of the largest number on the way."""
        part = 1 + self.slope / self.strength
        largest = part * (1 + np.abs(means) + np.abs(self.boundary))
        rounded = ROUNDED * (largest + np.abs(self.offset) / self.strength)
        result: FloatArray = rounded + part * self.blur
        return result

    def _discounts(self, means: FloatArray, squares: FloatArray) -> FloatArray:
        """The discount of every charge for a small variance, rounded down."""
        counts = self.pulls.astype(np.float64)
        mirrored = np.where(self.chosen, 1 - means, means)
        error = (1 + self.blur / ROUNDED) * discount_error(self.slope, counts)
        variance = squares / counts - means**2 + VARIANCE_BLUR + 2 * self.blur
        found = discount(counts, mirrored, variance, self.slope) - error
        return np.maximum(0, found) / self.strength


def bound_by_swaps(
    certificate: Certificate,
    holdout: Holdout,
    constraint: Constraint,
    reference: FloatArray | None = None,
) -> float:
    """A smaller bound on the aggregate regret, for charges that are right for every mean.

    Only arms in which the best allowed set differs from this one count, so that the largest total
    over allowed sets is enough (docs/prices.md, Theorem 2). With the `reference` prices of a
    perfect matching, charges need to be right up to K epsilon only, and the bound holds whenever
    it is at most epsilon."""
    charges = certificate.charges(holdout.sums, holdout.squares)
    own = certificate.boundary if reference is None else reference
    prices = np.broadcast_to(own, charges.shape)
    gained = largest_gain(constraint, certificate.chosen, prices, charges)
    total = gained - math.log(certificate.delta) / certificate.strength
    bound = (1 + ROUNDED) * total / int(certificate.chosen.sum())
    return bound if bound >= 0 else math.inf


def declare(
    chosen: BoolArray,
    boundary: FloatArray | float,
    pulls: IntArray,
    *,
    strength: float,
    delta: float,
    reach: float,
    rewards: RewardModel,
    slope: FloatArray | None = None,
    start: FloatArray | None = None,
    blur: float = 0.0,
    surplus: float = 0.0,
) -> Certificate:
    """Fix a certificate with the least offsets that are right for these rewards (unit scale).

    With a boundary per arm, `surplus` is that of the set at these prices (prices.py).

    `slope` (at most `strength`) and `start` shape the charge of every arm; `start` needs 0/1
    rewards, and is lowered for an arm where it is too high for any offset."""
    if not isinstance(boundary, np.ndarray):
        boundary = number("boundary", boundary)
    if rewards.has_range:
        boundary = 1 - (1 - boundary)  # so that its mirror image is exact
    strength = number("strength", strength, above=SMALLEST, below=LARGEST)
    slope = np.full(chosen.size, strength) if slope is None else slope
    start = np.full(chosen.size, -np.inf) if start is None else start
    if np.isfinite(start).any() and not rewards.is_binary:
        raise InvalidInput(
            f"`start` is given for rewards that are {rewards.rule}, but needs rewards that are 0"
            " or 1"
        )
    begin = start.copy()
    offset = np.empty(chosen.size)
    for inside in (True, False):
        arms = np.flatnonzero(chosen == inside)
        own: FloatArray = np.broadcast_to(boundary, chosen.shape)[arms]
        edge = 1 - own if inside else own  # an arm inside is mirrored
        # arms of equal boundary, pulls, slope and start share an offset
        (edges, counts, slopes, starts), group = grouped_by(
            edge, pulls[arms].astype(np.float64), slope[arms], start[arms]
        )
        begins, least = offsets(
            counts, edges, strength, reach, rewards, slope=slopes, start=starts
        )  # (groups,) each: inequality (1)
        begin[arms] = begins[group]
        offset[arms] = least[group]
    discounted = rewards.has_range and not rewards.is_binary
    return Certificate(
        chosen, boundary, strength, delta, pulls, slope, begin, offset, blur, discounted, surplus
    )
