"""Charges of every arm, by what was declared about its rewards and its number of pulls.

Values are on the unit scale, and all charges are for means that are larger than the rewards say.
Those for smaller means are the same of mirrored rewards."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.past.cells import cells
from shortlist.certification.past.tails import binary_tail, bounded_tail
from shortlist.certification.past.thresholds import square_thresholds
from shortlist.certification.past.wealth import mixture_wealth, spread_wealth
from shortlist.confidence import TYPICAL
from shortlist.reward_models import UNIT_SIGMA, RewardModel

REMEMBERED = 4096  # arms with the same counts are computed once
FINENESS = 6  # prices per factor of 2
DEEPEST = 10  # factors of 2 from 4 down to the inverse of the most pulls, and beyond it
EVEN, UNEVEN = 3.0, 1.0  # shifts of normal scores, where pulls are about equal, and else
ABOUT = 4  # times as often is about equally often
HALF = math.log(2)


@dataclass(frozen=True, slots=True)
class Totals:
    """What every arm gave on the unit scale: (arms,) each; `squares` may be unknown."""

    pulls: IntArray
    sums: FloatArray
    squares: FloatArray | None
    blur: float = 0.0  # of a mean, by rounding on the way to the unit scale

    @property
    def raised(self) -> "Totals":
        """The largest that they may be without rounding: no charge is larger then."""
        lifted = self.blur * self.pulls
        squares = None if self.squares is None else self.squares + 2 * lifted
        return Totals(self.pulls, self.sums + lifted, squares)

    @property
    def means(self) -> FloatArray:
        """(arms,) NaN without pulls."""
        with np.errstate(invalid="ignore"):
            result: FloatArray = self.sums / self.pulls
        return result


@dataclass(frozen=True, slots=True)
class Evidence:
    """How arms are charged: all of it is settled before any reward is seen."""

    fixed: bool  # whether the pulls were fixed beforehand
    binary: bool  # rewards are 0 or 1
    ranged: bool  # rewards lie in [0, 1]; else they are sub-Gaussian with sigma = 1/2
    shift: float = 0.0  # of normal scores: used where pulls were fixed and rewards have a range

    def thresholds(self, log_shares: FloatArray) -> FloatArray:
        """(M,) What the charges of a swap of m arms exceed with these probabilities at most.

        Half of a wealth that is not of tilted bets is theirs, where both are possible."""
        if self.fixed and self.ranged:
            return square_thresholds(log_shares, self.shift)
        return HALF - log_shares if self.tilted else -log_shares

    @property
    def tilted(self) -> bool:
        """Whether swaps are also betted on with one tilt for all of their arms."""
        return self.ranged and not self.fixed

    def largest_charge(self, thresholds: FloatArray) -> float:
        """The largest charge of any one arm, as long as no swap is charged above `thresholds`.

        Every arm is in a swap of two single arms. If no charge is negative, as squares are not, it
        is at most the sum of both. Logarithms of wealth may be negative, so they give no limit."""
        return float(thresholds[0]) if self.fixed and self.ranged else math.inf

    def limit(self, probability: float) -> float:
        """What the charge of one arm exceeds with this probability at most."""
        if self.fixed and self.ranged:
            return max(0.0, self.shift - float(ndtri(probability))) ** 2
        return -math.log(probability)

    @property
    def mirror(self) -> float:
        """What the mean of an arm and that of its mirrored rewards add up to."""
        return 1.0 if self.ranged else 0.0

    def mirrored(self, totals: Totals) -> Totals:
        """The same arms with rewards 1 - x, or -x where they have no range."""
        pulls, sums, squares = totals.pulls, totals.sums, totals.squares
        if not self.ranged:
            return Totals(pulls, -sums, squares, totals.blur)
        turned = None if squares is None else pulls - 2 * sums + squares
        return Totals(pulls, pulls - sums, turned, totals.blur)

    def reaches(
        self, totals: Totals, prices: FloatArray, largest: float, limit: float
    ) -> tuple[FloatArray, FloatArray]:
        """(arms, prices) Reaches, and (arms,) the largest means that are charged at most `limit`.

        A reach is the largest mean - price * charge over all means that are charged at most
        `largest`."""
        unknown = [None] * totals.sums.size
        squares = unknown if totals.squares is None else totals.squares.tolist()
        rows = zip(totals.pulls.tolist(), totals.sums.tolist(), squares, strict=True)
        found = [_reach(self, *row, prices.size, largest, limit) for row in rows]
        return np.array([reach for reach, _ in found]), np.array([end for _, end in found])


Evidences = tuple[Evidence, ...]


def settled(rewards: RewardModel, pulls: IntArray, *, fixed: bool, squared: bool) -> Evidences:
    """How arms are charged, each way with an equal share of delta.

    It depends on pulls only if those were fixed beforehand. Where squares are known, bets on the
    variance are made, too: they prove more than tails if rewards vary little, and less if not."""
    binary, ranged = rewards.is_binary, rewards.has_range
    if not (fixed and ranged):
        return (Evidence(fixed, binary, ranged),)
    pulled = pulls[pulls > 0]
    even = pulled.size == 0 or pulled.max() <= ABOUT * pulled.min()
    tails = Evidence(True, binary, ranged, EVEN if even else UNEVEN)
    return (tails, Evidence(False, binary, ranged)) if squared and not binary else (tails,)


def prices_for(pulls: IntArray) -> FloatArray:
    """(prices,) Lagrange multipliers to be tried: each of them gives a bound."""
    factors = math.log2(max(1, int(pulls.max()))) + DEEPEST
    return _prices(math.ceil(FINENESS * factors))


def _prices(count: int) -> FloatArray:
    """(count,) From 4 downward."""
    result: FloatArray = 4 * 2.0 ** (-np.arange(count) / FINENESS)
    return result


@lru_cache(maxsize=REMEMBERED)
def _reach(
    evidence: Evidence,
    pulls: int,
    total: float,
    squares: float | None,
    n_prices: int,
    largest: float,
    limit: float,
) -> tuple[FloatArray, float]:
    price = _prices(n_prices)
    if not evidence.ranged:
        return _sub_gaussian(evidence, pulls, total, price, limit)
    if pulls == 0:
        return np.ones(price.size), 1.0
    low, high = cells(pulls, min(max(total / pulls, 0.0), 1.0))
    charges = _charges(evidence, pulls, min(max(total, 0.0), pulls), squares, low, high)
    possible = charges <= largest  # the first cell always is: tails at 0 are 1
    reach = (high[possible, None] - charges[possible, None] * price).max(axis=0)
    return reach, float(high[charges <= limit].max(initial=0.0))


def _charges(
    evidence: Evidence,
    pulls: int,
    total: float,
    squares: float | None,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """(cells,) Lower bound on the charge of every mean in a cell."""
    if not evidence.fixed:
        return _wealth(evidence, pulls, total, squares, low, high)
    tail = (binary_tail if evidence.binary else bounded_tail)(pulls, total, low)
    result: FloatArray = np.maximum(0.0, evidence.shift - ndtri(tail)) ** 2
    return result


def _wealth(
    evidence: Evidence,
    pulls: int,
    total: float,
    squares: float | None,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """The logarithm of a wealth, half of it on the variance where squares are known."""
    mixture = mixture_wealth(pulls, total, low, high)
    if evidence.binary or squares is None:
        return mixture
    spread = spread_wealth(pulls, total, squares, low, high)
    return np.logaddexp(mixture, spread) - HALF


def _sub_gaussian(
    evidence: Evidence, pulls: int, total: float, price: FloatArray, limit: float
) -> tuple[FloatArray, float]:
    """Charges (theta - mean)^2 / (2 s^2) - rest, solved for theta.

    Pulls fixed: s^2 = sigma^2 / N and no rest. Else Robbins' normal mixture, which is larger."""
    if pulls == 0:
        return np.full(price.size, np.inf), math.inf
    mean, variance, rest = total / pulls, UNIT_SIGMA**2 / pulls, 0.0
    if not evidence.fixed:
        variance *= 1 + TYPICAL / pulls
        rest = math.log1p(pulls / TYPICAL) / 2
    return mean + variance / (2 * price) + price * rest, mean + math.sqrt(
        2 * variance * (limit + rest)
    )
