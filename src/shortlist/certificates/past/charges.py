"""Charges of the arms and thresholds for swaps, from past rewards (docs/assess.md has the proofs).

Values are on the unit scale, and all charges are for means that are larger than the rewards
suggest; those for smaller means are the same of mirrored rewards. Values that a mean may have are
cut into cells that are narrow where it matters.

Pulls fixed beforehand: a charge is a squared normal score of a p-value for "the mean is at least
theta". 0/1 rewards: P(Bin(N, theta) <= S), exact. Rewards in [0, 1]: the least of Hoeffding's bound
exp(-N kl(S/N, theta)) and of E(Z - t)+ / (F - t) for some t, where F = N - S and Z is binomial of N
trials with mean 1 - theta (Hoeffding's convex order, then Markov). Both fall in theta. Normal
rewards of unknown variance: the tail of Student's t, exact.

Else: a charge is the logarithm of the wealth of bets against "the mean is theta" that win if it is
less. It is an e-process, a nonnegative supermartingale from 1 at the true mean, however arms are
pulled and whenever one stops. Its lower bound over a cell [low, high] of values theta is used,
rounded down.

The swaps of m arms each have the share delta w_m / (C(k, m) C(n - k, m)) of delta, w_m ~ 1/m. The
threshold of a swap is what the charges of its 2m arms exceed with that probability only.

Rewards in [0, 1] also allow bets on a whole swap with one tilt for all of its arms. With a tilt l,
the product of exp(-l x) / (1 - theta + theta exp(-l)) over the rewards x of an arm is a
supermartingale from 1, as exp(-l x) lies below its chord. Its logarithm is the charge of theta, -l
S - N ln(1 - theta a) with a = 1 - exp(-l). It is convex, so the reach has a closed form. A bet of
strength s about a centre c multiplies the wealth by 1 - s (x - c) for an arm that may be better and
by 1 + s (x - c) for one that may be worse. Both charges then have about the same slope at means
near c, which makes a swap of them narrow: this gives the two tilts.

A matrix of scores with missing cells (`matrix_bounds`): for every arm the items with a score are a
random sample of all items, without replacement. They are put into a random order; then bets along
it bound the mean from both sides (docs/items.md, Lemma 1). With a share delta / 2n for each of 2n
bounds, all intervals hold together with probability 1 - delta. Where all arms with missing cells
have scores on the same items, differences of two arms are bounded in the same way, each with a
share of the other half of delta: docs/assess.md."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from scipy.special import (
    betainc,
    betaln,
    gammainc,
    gammaincc,
    gammaln,
    logsumexp,
    ndtr,
    ndtri,
    xlog1py,
    xlogy,
)

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray
from shortlist.certificates.frame import LogSwaps, log_swaps, tiers_of
from shortlist.certificates.items import race
from shortlist.certificates.items.bound import (
    EXACT,
    LAST_DIGIT,
    ROUNDINGS,
    BettingUpperBound,
    have_exact_sums,
    largest_matching,
    outward,
)
from shortlist.certificates.pairs.bound import curvature
from shortlist.confidence import JEFFREYS, TYPICAL
from shortlist.reward_models import UNIT_SIGMA, RewardModel
from shortlist.search import Tiers

# standard errors from the mean reward, after the arcsine transformation
NEAR_STEPS = np.linspace(-6.0, 6.0, 601)
FAR_STEPS = np.geomspace(6.0, 56.0, 145)[1:]
# so that no wide cell is left at 10^9 pulls, where it would decide at low prices
FARTHEST_STEPS = np.geomspace(56.0, 1e5, 151)[1:]
ALL_STEPS = np.concatenate([NEAR_STEPS, FAR_STEPS, FARTHEST_STEPS])
MATRIX_GAPS = (0.12, 0.25, 0.5, 1.0)  # gaps that are bet on, in units of the expected half-width

MOST_PAIRED = 60  # arms up to which all differences are bounded


def cells(pulls: int, mean: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends of cells that together are [0, 1], about a mean of this many rewards."""
    angles = np.arcsin(np.sqrt(mean)) + ALL_STEPS / (2 * np.sqrt(pulls))
    inner = np.sin(np.clip(angles, 0.0, np.pi / 2)) ** 2
    edges = np.maximum.accumulate(np.concatenate([[0.0], inner, [1.0]]))
    return edges[:-1], edges[1:]


TAIL_ROUNDING = 1e-7  # relative, of the incomplete beta function and of differences of it
LEAST_TAIL = 1e-290  # p-values below are taken for this one
MOST_SUMMED = 1e6  # pulls up to which differences of the incomplete beta function are exact
TAIL_OFFSETS = 12  # values of t


def binary_tail(pulls: int, successes: float, theta: FloatArray) -> FloatArray:
    """P(Bin(N, theta) <= S), rounded up."""
    if successes >= pulls:
        return np.ones(theta.size)
    below = betainc(pulls - successes, successes + 1, 1 - theta)
    return _rounded_up(below)


def bounded_tail(pulls: int, total: float, theta: FloatArray) -> FloatArray:
    """Bound on P(S' <= S) for independent rewards in [0, 1] with mean theta."""
    lost = pulls - total
    mean = total / pulls
    divergence = xlogy(mean, mean) - xlogy(mean, theta)
    divergence += xlogy(1 - mean, 1 - mean) - xlogy(1 - mean, 1 - theta)
    divergence = np.where(theta > mean, divergence, 0.0)
    best = np.exp(-pulls * np.maximum(0.0, divergence) * (1 - TAIL_ROUNDING))
    if pulls <= MOST_SUMMED:
        for start in _starts(pulls, lost):
            best = np.minimum(best, _excess(pulls, lost, int(start), 1 - theta))
    return _rounded_up(best)


def _starts(pulls: int, lost: float) -> FloatArray:
    """Values of t below F: 1 and a few standard deviations."""
    offsets = np.geomspace(0.5, 2 * np.sqrt(pulls) + 1, TAIL_OFFSETS)
    starts = np.unique(np.ceil(lost - offsets))
    return starts[(starts >= 1) & (starts < lost) & (starts < pulls)]


def _excess(pulls: int, lost: float, start: int, mean: FloatArray) -> FloatArray:
    """E(Z - t)+ / (F - t), and E(Z - t)+ = N mean P(Z' >= t) - t P(Z > t), Z' of one trial less."""
    above = betainc(start, pulls - start, mean)
    beyond = betainc(start + 1, pulls - start, mean)
    gained = pulls * mean * above
    excess = np.maximum(gained - start * beyond, 0.0) + TAIL_ROUNDING * gained
    return excess / (lost - start)


def _rounded_up(tails: FloatArray) -> FloatArray:
    return np.clip(tails * (1 + TAIL_ROUNDING), LEAST_TAIL, 1.0)


VARIANCE_BETS = 0.9 * 2.0 ** -np.arange(16)  # (bets,) of bets on the variance
BET_WEIGHTS = 1 / (np.arange(1, 17) * np.arange(2, 18))  # (bets,) they add up to less than 1
WEALTH_ROUNDING = 1e-7  # of the logarithm of an incomplete beta function


def mixture_wealth(pulls: int, total: float, low: FloatArray, high: FloatArray) -> FloatArray:
    """Of a mixture of likelihood ratios L(p) / L(theta) over p below theta, by Jeffreys' prior.

    ln M(theta) - ln P(theta) - ln L(theta), where M(theta) is the integral of L(p) over the prior
    below theta and P(theta) the prior below theta: both grow. It is at least -ln(2S + 1)."""
    lost = pulls - total
    whole = betaln(total + JEFFREYS, lost + JEFFREYS) - betaln(JEFFREYS, JEFFREYS)
    nearest = np.clip(total / pulls, low, high)  # where the likelihood is largest in the cell
    likelihood = xlogy(total, nearest) + xlog1py(lost, -nearest)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.log(betainc(total + JEFFREYS, lost + JEFFREYS, low))
        prior = np.log(betainc(JEFFREYS, JEFFREYS, high))
        wealth = whole + below - prior - likelihood
    rounding = (
        ROUNDED * (abs(whole) + np.abs(np.nan_to_num(likelihood, neginf=0.0))) + WEALTH_ROUNDING
    )
    known = np.nan_to_num(wealth, nan=-np.inf, posinf=np.inf, neginf=-np.inf) - rounding
    result: FloatArray = np.maximum(known, -math.log(2 * total + 1))
    return result


def spread_wealth(
    pulls: int, total: float, squares: float, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Of bets 1 + l (theta - x) of several strengths l: large where rewards vary little.

    y = l (theta - x) is at least -h with h = l (1 - theta), hence ln(1 + y) >= y - curvature(h) y^2
    (`pairs/bound.py`). The sum of y^2 is convex in theta, so it is largest at an end of the
    cell."""
    strength = VARIANCE_BETS[:, None]
    drift = strength * (pulls * low - total)  # (bets, cells)
    around = [squares - 2 * theta * total + pulls * theta**2 for theta in (low, high)]
    most = np.maximum(0.0, np.maximum(*around)) * (1 + WEALTH_ROUNDING)
    gains = drift - curvature(strength * (1 - low)) * strength**2 * most
    gains -= ROUNDED * (np.abs(drift) + strength * pulls)
    return logsumexp(gains + np.log(BET_WEIGHTS)[:, None], axis=0)


LARGEST_SUMMED = 32  # arms on a side of a swap up to which the distribution is summed
LEAST_LOG = -500.0  # logarithm of a probability below which it is bounded by its moments
SUM_ROUNDING = 1e-9  # relative, of the sum
TILTS = np.linspace(0.0, 0.5, 402)[1:-1]  # of the moment generating function
POISSON_TAIL = 60.0  # standard deviations and more of a Poisson distribution


def log_shares(n_arms: int, k: int, delta: float, swaps: LogSwaps = None) -> FloatArray:
    """(M,) Logarithm of the share of delta that every swap of m = 1 ... M arms has.

    `swaps` are the logarithms of the numbers of feasible ones where not every set is feasible."""
    numbers = log_swaps(n_arms, k) if swaps is None else np.array(swaps)
    sizes = np.arange(1, numbers.size + 1)
    weights = (1 / sizes) / (1 / sizes).sum()
    result: FloatArray = math.log(delta) + np.log(weights) - numbers - ROUNDED
    return result


def square_thresholds(log_probabilities: FloatArray, shift: float) -> FloatArray:
    """(M,) What sum (Z_i + shift)^2 of 2m normal variables exceeds with these probabilities."""
    return np.array(
        [_threshold(m, float(log_p), shift) for m, log_p in enumerate(log_probabilities, 1)]
    )


@cache
def _threshold(size: int, log_probability: float, shift: float) -> float:
    high = _by_moments(size, log_probability, shift)
    if size > LARGEST_SUMMED or log_probability < LEAST_LOG:
        return high
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        exceeded = _log_tail(middle, size, shift) > log_probability
        low, high = (middle, high) if exceeded else (low, middle)
    return high


def _by_moments(size: int, log_probability: float, shift: float) -> float:
    """Chernoff: E exp(s X) = (1 - 2s)^(-m) exp(2m shift^2 s / (1 - 2s)) for X of 2m variables."""
    kept = 1 - 2 * TILTS
    log_moment = -size * np.log(kept) + 2 * size * shift**2 * TILTS / kept
    return float(((log_moment - log_probability) / TILTS).min() * (1 + SUM_ROUNDING))


def _log_tail(value: float, size: int, shift: float) -> float:
    """Logarithm of P(X > value): X is chi-square with 2 (m + J) degrees of freedom, J Poisson of
    mean m shift^2.

    Terms beyond the last are at most the Poisson probabilities themselves."""
    mean = size * shift**2
    last = int(mean + POISSON_TAIL + 12 * math.sqrt(mean) + value)
    count = np.arange(last + 1)
    weights = np.exp(xlogy(count, mean) - mean - gammaln(count + 1))
    tail = float(weights @ gammaincc(size + count, value / 2) + gammainc(last + 1, mean))
    tail *= 1 + SUM_ROUNDING
    return math.log(tail) if tail > 0 else -math.inf


REMEMBERED = 4096  # arms with the same counts are computed once
FINENESS = 6  # prices per factor of 2
DEEPEST = 10  # factors of 2 from 4 down to the inverse of the most pulls, and beyond it
EVEN, UNEVEN = 3.0, 1.0  # shifts of normal scores, where pulls are about equal, and else
ABOUT = 4  # times as often is about equally often
HALF = math.log(2)


@dataclass(frozen=True, slots=True)
class Totals:
    """Pulls and rewards of every arm on the unit scale: (arms,) each."""

    pulls: IntArray
    sums: FloatArray
    squares: FloatArray | None  # None: unknown
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
    """How arms are charged, fixed before any reward is seen."""

    fixed: bool  # whether the pulls were fixed beforehand
    binary: bool  # rewards are 0 or 1
    ranged: bool  # rewards lie in [0, 1]; else they are normal, or sub-Gaussian with sigma = 1/2
    shift: float = 0.0  # of normal scores
    student: bool = False  # rewards are normal, of unknown variances

    def thresholds(self, log_shares: FloatArray) -> FloatArray:
        """(M,) What the charges of a swap of m arms exceed with these probabilities at most.

        Where tilted bets are possible too, the other bets have half of the wealth."""
        if self.scored:
            return square_thresholds(log_shares, self.shift)
        return HALF - log_shares if self.tilted else -log_shares

    @property
    def scored(self) -> bool:
        """Whether charges are squared normal scores of p-values: they are never negative."""
        return self.fixed and (self.ranged or self.student)

    @property
    def tilted(self) -> bool:
        """Whether there are also bets on swaps with one tilt for all of their arms."""
        return self.ranged and not self.fixed

    def largest_charge(self, thresholds: FloatArray) -> float:
        """The largest charge of any one arm, as long as no swap is charged above `thresholds`.

        Every arm is in a swap of two single arms. If no charge is negative, as squares are not, it
        is at most the sum of both. Logarithms of wealth may be negative, so they give no limit."""
        return float(thresholds[0]) if self.scored else math.inf

    def limit(self, probability: float) -> float:
        """The value that the charge of one arm exceeds with this probability at most."""
        if self.scored:
            return max(0.0, self.shift - float(ndtri(probability))) ** 2
        return -math.log(probability)

    @property
    def mirror(self) -> float:
        """The sum of the mean of an arm and that of its mirrored rewards."""
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
    binary, ranged, student = rewards.is_binary, rewards.has_range, not rewards.knows_spread
    if not fixed or not (ranged or student):
        return (Evidence(fixed, binary, ranged),)
    if student:
        return (Evidence(True, binary, ranged, UNEVEN, student),)
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
    return 4 * 2.0 ** (-np.arange(count) / FINENESS)


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
    if evidence.student:
        assert squares is not None, "without squares nothing is known of a variance"
        return _student(evidence, pulls, total, squares, price, largest, limit)
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
    return np.maximum(0.0, evidence.shift - ndtri(tail)) ** 2


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


STUDENT_CELLS = 600  # of means, in equal steps of their normal scores


def _student(
    evidence: Evidence,
    pulls: int,
    total: float,
    squares: float,
    price: FloatArray,
    largest: float,
    limit: float,
) -> tuple[FloatArray, float]:
    """Normal rewards: the mean whose normal score is z is x + S / sqrt(N) times the quantile of
    Student's t with N - 1 degrees of freedom at Phi(z).

    S was rounded up, so quantiles below 0 are taken for 0. The reach over all means is infinite, as
    quantiles grow faster than z^2: `largest` must not be."""
    if pulls < 2:
        return np.full(price.size, np.inf), math.inf
    scores = np.linspace(0.0, math.sqrt(largest), STUDENT_CELLS + 1)  # z + shift
    ends = np.append(scores[1:], math.sqrt(limit)) - evidence.shift
    mean = total / pulls
    error = math.sqrt(max(squares - total * mean, 0.0) / (pulls - 1) / pulls) * (1 + TAIL_ROUNDING)
    quantiles = _student_quantiles(pulls - 1, tuple(ends.tolist()))
    highest = mean + ROUNDED * abs(mean) + error * quantiles
    reach = (highest[:-1, None] - scores[:-1, None] ** 2 * price).max(axis=0)
    return reach, float(highest[-1])


@lru_cache(maxsize=REMEMBERED)
def _student_quantiles(freedom: int, scores: tuple[float, ...]) -> FloatArray:
    """The quantiles at Phi(z) for every z, at least 0, rounded up."""
    from scipy.stats import t  # takes long to load

    quantiles = np.maximum(t.isf(ndtr(-np.array(scores)), freedom), 0.0)
    result: FloatArray = quantiles * (1 + TAIL_ROUNDING)
    return result


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


CENTRES = (0.0, 0.5, 1.0)
NEAR_PRICES = np.geomspace(0.8, 1.25, 9)  # around a price
SWAP_STRENGTHS = tuple(0.9 * 2.0**-power for power in range(14))


@dataclass(frozen=True, slots=True)
class SwapCharges:
    """Reaches of every arm and costs of swaps, one column for each price that is tried."""

    up: FloatArray  # (arms, columns) the largest mean - price * charge
    down: FloatArray  # (arms, columns) the largest -mean - price * charge
    costs: FloatArray  # (M, columns) price * threshold of swaps of m arms


def joined(charged: Sequence[SwapCharges]) -> SwapCharges:
    """The columns of all: each of them gives bounds."""
    up, down = (np.hstack([getattr(each, name) for each in charged]) for name in ("up", "down"))
    return SwapCharges(up, down, np.hstack([each.costs for each in charged]))


def tilted_charges(totals: Totals, mirrored: Totals, log_shares: FloatArray) -> SwapCharges:
    """Columns for every tilt; together they have half of the wealth, in equal parts."""
    bets = [_bet(centre, strength) for centre in CENTRES for strength in SWAP_STRENGTHS]
    stakes, better, worse = np.array(bets).T  # (bets,) each
    typical = _typical_prices(totals)  # (prices,)
    prices = (typical / stakes[:, None]).ravel()  # (columns,)
    up = tilted_reach(totals, prices, np.repeat(better, typical.size))
    down = tilted_reach(mirrored, prices, np.repeat(worse, typical.size)) - 1
    thresholds = HALF + math.log(len(bets)) - log_shares  # (M,)
    return SwapCharges(up, down, prices * thresholds[:, None])


def _bet(centre: float, strength: float) -> tuple[float, float, float]:
    """The stake, and the tilts for arms that may be better and for those that may be worse."""
    stake = strength / max(centre, 1 - centre)
    better = math.log1p(stake * centre) - math.log1p(-stake * (1 - centre))
    worse = math.log1p(stake * (1 - centre)) - math.log1p(-stake * centre)
    return stake, better, worse


def _typical_prices(totals: Totals) -> FloatArray:
    """(prices,) About 1/N: the slope of the charge of an arm is about N times the stake."""
    pulled = totals.pulls[totals.pulls > 0]
    typical = np.unique(np.quantile(pulled, (0.0, 0.5, 1.0))) if pulled.size else np.ones(1)
    return (NEAR_PRICES / typical[:, None]).ravel()


def tilted_reach(totals: Totals, prices: FloatArray, tilts: FloatArray) -> FloatArray:
    """(arms, columns) The largest theta - price * charge, where its slope in theta is 0."""
    pulls, sums = totals.pulls[:, None], totals.sums[:, None]
    gap = -np.expm1(-tilts)
    theta = np.clip(1 / gap - prices * pulls, 0.0, 1.0)
    lost, drift = tilts * sums, xlogy(pulls, 1 - theta * gap)
    charge = -lost - drift - ROUNDED * (np.abs(lost) + np.abs(drift))
    return theta - prices * charge


@dataclass(frozen=True, slots=True)
class MatrixBounds:
    """Bounds on means over all items that hold together, on the unit scale."""

    means: FloatArray  # (arms,) of the scores; NaN without any
    low: FloatArray  # (arms,)
    high: FloatArray  # (arms,)
    above: FloatArray  # [i, j]: how much the mean of j is above that of i at most

    def tiers(self, k: int) -> Tiers:
        """Which arms are surely among the k best, and which are surely not."""
        return tiers_of(self.above < -EXACT, k)

    def separates_at(self) -> tuple[int, ...]:
        """Every k at which the k best arms are surely above all others."""
        sizes = range(1, self.means.size)
        return tuple(k for k in sizes if int(self.tiers(k)[0].sum()) == k)

    def regret(self, chosen: BoolArray) -> float:
        """A bound on the regret of a set, rounded up: its largest matching with the other arms."""
        between = self.above[np.ix_(chosen, ~chosen)]
        return (1 + ROUNDED) * largest_matching(between) / int(chosen.sum())


def matrix_bounds(
    scores: FloatArray, delta: float, rng: np.random.Generator, blur: float = 0.0
) -> MatrixBounds:
    """Bounds for a matrix of scores in [0, 1], NaN where there is none: (arms, items).

    `blur` is the rounding error of a mean on the way to the unit scale. An arm with all scores has
    its mean at both ends: equal means are equal floats."""
    n, size = scores.shape
    seen = ~np.isnan(scores)
    order = rng.permutation(size)
    shared = _shared(seen)
    paired = shared and n <= MOST_PAIRED
    level = 2 * n / (delta / 2 if paired else delta)
    rounding = 0.0 if have_exact_sums(scores[seen]) else (size + ROUNDINGS) * 2.0**-53 + blur
    placed, counts = _placed(scores[:, order], seen[:, order], rng, shared=shared)
    sums = np.where(seen, scores, 0.0).sum(1)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    high = _upper(placed, counts, size, level) + rounding
    low = 1 - _upper(1 - placed, counts, size, level) - rounding
    high = np.where(counts == size, means + rounding, high)
    low = np.where(counts == size, means - rounding, low)
    above = outward(high[None, :] - low[:, None])
    if paired:
        apart = _differences(placed, counts, size, delta / 2) + 2 * rounding
        above = np.minimum(above, outward(apart))
    np.fill_diagonal(above, 0.0)
    return MatrixBounds(means, *_shown(means, low, high, counts == size), above)


def _shown(
    means: FloatArray, low: FloatArray, high: FloatArray, complete: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Ends of intervals, rounded outward; the mean where an arm has all scores."""
    low, high = np.maximum(low - LAST_DIGIT, 0.0), np.minimum(high + LAST_DIGIT, 1.0)
    return np.where(complete, means, low), np.where(complete, means, high)


def _shared(seen: BoolArray) -> bool:
    """Whether all arms with missing cells have scores on the same items."""
    partly = seen[~seen.all(axis=1)]
    return bool((partly == partly[:1]).all())


def _placed(
    scores: FloatArray, seen: BoolArray, rng: np.random.Generator, *, shared: bool
) -> tuple[FloatArray, IntArray]:
    """The scores of every arm, those that are seen first, in a random order; and their numbers.

    Where items are shared, all arms have the same order: items that all have seen come first."""
    counts: IntArray = seen.sum(axis=1)
    if shared:
        order = np.argsort(~seen.all(axis=0), kind="stable")
        return scores[:, order], counts
    lots = np.where(seen, rng.random(seen.shape), 2.0)
    return np.take_along_axis(scores, np.argsort(lots, axis=1, kind="stable"), axis=1), counts


def _upper(placed: FloatArray, counts: IntArray, size: int, level: float) -> FloatArray:
    """Bounds on the means of all arms from above: (arms,)."""
    upper = np.ones(len(placed))
    for count in np.unique(counts[counts > 0]).tolist():
        arms = np.flatnonzero(counts == count)
        upper[arms] = _bound(placed[arms, :count], size, level)
    return upper


def _bound(scores: FloatArray, size: int, level: float) -> FloatArray:
    """Bounds on means of rows from above, by scores on the first of `size` items."""
    rows, count = scores.shape
    none = np.zeros(rows)
    # the half-width to be expected of 0/1 scores; it depends on numbers of items alone
    width = np.sqrt(np.log(level) / (2 * count) * max(1 - count / size, 1 / size))
    gaps = np.array(MATRIX_GAPS) * width
    weights = np.full(gaps.size, 1 / gaps.size)
    fresh = np.ones(scores.shape, dtype=np.bool_)
    variances = np.full(count, race.SINGLE_VARIANCE)
    band = BettingUpperBound(scores, fresh, size, none, none, variances, gaps)
    return band.upper(weights, level, np.ones(rows))


def _differences(placed: FloatArray, counts: IntArray, size: int, delta: float) -> FloatArray:
    """[i, j]: a bound on the mean of j less that of i, by their scores on the same items."""
    n, count = len(placed), int(counts.min())
    above = np.ones((n, n))
    if count == 0:
        return above
    level = n * (n - 1) / delta
    for arm in range(n):
        halves = (1 + placed[:, :count] - placed[arm, :count]) / 2  # in [0, 1]
        above[arm] = 2 * _bound(halves, size, level) - 1
    return above
