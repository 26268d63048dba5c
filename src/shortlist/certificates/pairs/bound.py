"""Bets on the means of arms, and the bounds on the gaps of swaps that follow from their wealth.

For rewards x in [0, 1] with mean theta, a strength l and a centre c known beforehand,

    E[1 +- l (x - c)] = 1 +- l (theta - c) <= exp(+-l (theta - c)),

so exp(L+ - clock * theta) and exp(L- + clock * theta) are supermartingales that start from 1, with
L+- = sum of ln(1 +- l (x - c)) +- l c over the rewards, and clock = sum of l over the pulls.
The bet up stakes l c of the wealth and the bet down l (1 - c). Where that would be too much, the
centre is moved.

The wealth of the bets against "A is better than B by gap" is the sum over clocks k of
weight_k exp(sum_A L-_k + sum_B L+_k + clock_k gap). It stays below exp(level) with confidence, so
the root of wealth = exp(level) bounds the gap. Every value returned is a bound.

A stage is fixed from rewards of earlier stages only: the pulls of every arm when the first arm
enters it; the advance of each clock and the centres of the bets before any of its rewards is seen.
So arms may lag behind and catch up. docs/pairs.md has the proofs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.reward_models import UNIT_SIGMA, RewardModel

# log wealth of an arm without a range that was not pulled: nothing is known of its mean any more;
# finite, so that sums and products of it are numbers
RUINED = -1e120
TINY = 1e-300  # instead of 0: the strength of no bet
MOST_STAKED = 0.9  # largest share of the wealth that a bet stakes: no reward ruins
MOST_REFINED = 20_000  # pairs for which the mixture is solved; more get the best single clock
TRIALS = 3  # shares of the clocks tried beyond the single clocks
STEEP = 0.7, 1.5, 3.0  # slopes tried beyond those of the levels, in units of the first level
# The mixture of gaps that are bet on is fixed by the problem alone: its weights are part of the
# theorem. Most of the wealth is on gaps near the least one that matters, the rest on larger ones,
# so that arms that are far apart are told apart soon, however small epsilon is.
NEAR_GAPS = (1.0, 2.0, 5.0)  # in units of the least gap
NEAR_WEIGHTS = (0.78, 0.16, 0.06)
GAP_RATIO = 2.5  # of a farther gap to the one before
FAR_WEIGHT = 0.06  # of all farther gaps together, if any
FARTHEST_GAP = 0.6  # on the unit scale
LARGE_GAP = 3.0  # least gap bet on, in the same units, where a lead decides about smaller ones


@dataclass(frozen=True, slots=True)
class StageRewards:
    """Rewards of some arms in one stage: one entry per arm."""

    times: IntArray
    sums: FloatArray
    squares: FloatArray


def log_gains(
    draws: StageRewards,
    advance: FloatArray,
    low: FloatArray,
    high: FloatArray,
    rewards: RewardModel,
) -> tuple[FloatArray, FloatArray]:
    """Gains of L+ and L- in a stage that moves every arm's clocks by `advance`: (arm, clock).

    Bets up are centred on `low`, those down on `high`: (arm,) each. An arm pulled B times bets with
    strength advance / B. One that is not pulled at all stays within exp(0 * theta) and
    exp(1 * theta), as its mean lies in [0, 1]."""
    idle = draws.times == 0  # (arm,)
    times = np.maximum(draws.times, 1)[:, None]
    strengths = np.maximum(advance, TINY) / times  # (arm, clock)
    if not rewards.has_range:
        up, down = _sub_gaussian(draws, strengths)
        up[idle], down[idle] = RUINED, RUINED
        return up, down
    most = MOST_STAKED / strengths  # (arm, clock)
    up = _bounded(draws, strengths, np.minimum(low[:, None], most), rewards)
    below = np.minimum(1 - high[:, None], most)
    down = _bounded(mirrored_draws(draws), strengths, below, rewards)
    down -= draws.times[:, None] * strengths  # from 1 - theta back to theta
    up[idle], down[idle] = 0.0, -advance
    return up, down


def mirrored_draws(draws: StageRewards) -> StageRewards:
    """The same rewards as 1 - x."""
    squares = draws.times - 2 * draws.sums + draws.squares
    return StageRewards(draws.times, draws.times - draws.sums, squares)


def _bounded(
    draws: StageRewards, strengths: FloatArray, centres: FloatArray, rewards: RewardModel
) -> FloatArray:
    """Lower bound on the sum of ln(1 + l (x - c)) + l c over [0, 1] rewards: (arm, clock)."""
    growth = least_growth(draws, strengths, centres, binary=rewards.is_binary)
    return growth + draws.times[:, None] * strengths * centres


def least_growth(
    draws: StageRewards, strengths: FloatArray, centres: FloatArray, *, binary: bool
) -> FloatArray:
    """Lower bound on the sum of ln(1 + l (x - c)) over [0, 1] rewards: (arm, clock).

    ln(1 + l (x - c)) is concave in x, so its chord from 0 to 1 lies below it.
    ln(1 + y) >= y - curvature(h) y^2 for y >= -h, h = l c, is better if the variance is small."""
    times = draws.times[:, None]
    sums = draws.sums[:, None]
    gain: FloatArray = sums * np.log1p(strengths * (1 - centres))
    gain += (times - sums) * np.log1p(-strengths * centres)
    if not binary:
        around = draws.squares[:, None] - 2 * centres * sums + times * centres**2
        parabola = strengths * (sums - times * centres)
        parabola -= curvature(strengths * centres) * strengths**2 * np.maximum(around, 0.0)
        gain = np.maximum(gain, parabola)
    return gain


def _sub_gaussian(draws: StageRewards, strengths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E exp(+-l x) <= exp(+-l theta + l^2 sigma^2 / 2): no centre is needed."""
    drift = strengths * draws.sums[:, None]  # (arm, clock)
    cost = draws.times[:, None] * (strengths * UNIT_SIGMA) ** 2 / 2
    return drift - cost, -drift - cost


def curvature(h: FloatArray) -> FloatArray:
    """Least a with ln(1 + y) >= y - a y^2 for all y >= -h."""
    h = np.maximum(h, 1e-3)  # it grows with h, and differences lose digits below
    return (-np.log1p(-h) - h) / h**2


def pair_gaps(
    down: FloatArray, up: FloatArray, clock: FloatArray, log_weights: FloatArray, level: FloatArray
) -> FloatArray:
    """Bound on the gap of every pair: log wealths and clocks are (..., clock), the rest (...)."""
    log_wealth = down + up + log_weights
    gaps: FloatArray = ((level[..., None] - log_wealth) / clock).min(-1)
    if gaps.size > MOST_REFINED:
        return gaps
    for _ in range(3):  # Newton's method from above on a convex function: never below the root
        exponents = log_wealth + clock * gaps[..., None]
        highest = exponents.max(-1)
        parts = np.exp(exponents - highest[..., None])
        total = parts.sum(-1)
        excess = highest + np.log(total) - level
        gaps = gaps - np.maximum(excess, 0.0) * total / (parts * clock).sum(-1)
    return gaps


def set_gap(
    down: FloatArray,
    up: FloatArray,
    clock: FloatArray,
    log_weights: FloatArray,
    levels: FloatArray,
) -> float:
    """Bound on the gap of all swaps of two or more arms.

    `down` is about arms inside the choice, `up` about arms outside: (arm, clock) each. Gibbs:
    ln sum_k exp(a_k) >= sum_k p_k (a_k - ln p_k) for any shares p. It is linear in the arms, so the
    worst swap of m arms has the m least of each side. Any p gives a bound for every m."""
    most = min(len(down), len(up))
    best = np.full(most, np.inf)  # (m,) over the shares tried so far
    favourite, worst = np.eye(clock.size)[0], np.inf
    for trial in range(clock.size + TRIALS):
        if trial < clock.size:
            shares = np.eye(clock.size)[trial]
        else:
            posterior = _shares(down, up, clock, log_weights, best, favourite)
            shares = favourite = (favourite + posterior) / 2
        found = _gaps_by_size(down @ shares, up @ shares, clock @ shares, levels)
        found -= _relative_entropy(shares, log_weights) / (clock @ shares)
        if trial < clock.size and found[1:].max() < worst:
            favourite, worst = shares, float(found[1:].max())
        best = np.minimum(best, found)
    return float(best[1:].max())


def feasible_set_gap(
    wealth: FloatArray,
    outside: BoolArray,
    clock: FloatArray,
    log_weights: FloatArray,
    levels: FloatArray,
    largest: Callable[[FloatArray], tuple[FloatArray, BoolArray]],
) -> float:
    """The same where not every swap is feasible.

    `wealth` has L- of arms outside the choice and L+ of those inside: (arm, clock). `largest` is of
    gains, (row, arm), the largest sum over arms that a feasible swap moves, and these arms: (row,)
    and (row, arm). Let f(m) be the largest sum over swaps of m arms. If every arm from outside
    gains s more, the largest sum over all sizes is at least f(m) + s m, for every slope s. The
    slopes tried are those of the levels, as one of them is best at the worst m, and a few steeper
    ones, so that swaps of fewer than two arms do not count."""
    slopes = np.unique(np.append(np.diff(levels), levels[0] * np.array(STEEP)))
    sizes = np.arange(2, levels.size + 1)
    best = np.full(sizes.size, np.inf)  # (m,) over the shares tried so far
    shares = np.eye(clock.size)
    for _ in range(1 + TRIALS):
        gains = -wealth @ shares.T  # (arm, share)
        rows = gains.T[:, None] + slopes[:, None] * outside  # (share, slope, arm)
        sums, moved = largest(rows.reshape(-1, outside.size))
        totals = sums.reshape(len(shares), -1, 1) - slopes[:, None] * sizes  # (share, slope, m)
        entropies = np.array([_relative_entropy(share, log_weights) for share in shares])
        found = (levels[1:] + totals - entropies[:, None, None]) / (shares @ clock)[:, None, None]
        best = np.minimum(best, found.min((0, 1)))
        worst = int(best.argmax())
        share, slope = np.unravel_index(found[:, :, worst].argmin(), found.shape[:2])
        swap = moved.reshape(len(shares), -1, outside.size)[share, slope]
        exponents = log_weights + wealth[swap].sum(0) + clock * best[worst]
        parts = np.exp(exponents - exponents.max())
        shares = (shares[share] + parts / parts.sum())[None] / 2
    return float(best.max())


def _gaps_by_size(down: FloatArray, up: FloatArray, clock: float, levels: FloatArray) -> FloatArray:
    """Bound on the gap of swaps of m arms, if the wealth has one clock only: (m,)."""
    most = min(down.size, up.size)
    least = np.cumsum(np.sort(down)[:most] + np.sort(up)[:most])  # (m,)
    return (levels[:most] - least) / clock


def _relative_entropy(shares: FloatArray, log_weights: FloatArray) -> float:
    """sum_k p_k (ln w_k - ln p_k)."""
    used = shares > 0
    return float(shares[used] @ (log_weights[used] - np.log(shares[used])))


def _shares(
    down: FloatArray,
    up: FloatArray,
    clock: FloatArray,
    log_weights: FloatArray,
    best: FloatArray,
    favourite: FloatArray,
) -> FloatArray:
    """The shares of the clocks in the wealth against the swap that is worst at present."""
    size = 2 + int(best[1:].argmax())
    inside = np.argsort(down @ favourite)[:size]
    outside = np.argsort(up @ favourite)[:size]
    exponents = log_weights + down[inside].sum(0) + up[outside].sum(0) + clock * best[size - 1]
    parts = np.exp(exponents - exponents.max())
    result: FloatArray = parts / parts.sum()
    return result


@dataclass(frozen=True, slots=True)
class GapMixture:
    """Gaps bet on, in units of the least, and their weights: (clocks,) each."""

    multiples: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, least: float) -> "GapMixture":
        """The mixture where `least` is the least gap bet on."""
        farther = _farther(GAP_RATIO * NEAR_GAPS[-1], least)
        if not farther:
            return cls(np.array(NEAR_GAPS), np.array(NEAR_WEIGHTS))
        near = (1 - FAR_WEIGHT) * np.array(NEAR_WEIGHTS)
        far = np.full(len(farther), FAR_WEIGHT / len(farther))
        return cls(np.array([*NEAR_GAPS, *farther]), np.concatenate([near, far]))

    @classmethod
    def of_large(cls, least: float) -> "GapMixture":
        """A mixture of gaps well above `least` alone."""
        multiples = _farther(LARGE_GAP, least) or [LARGE_GAP]
        return cls(np.array(multiples), np.full(len(multiples), 1 / len(multiples)))


def _farther(first: float, least: float) -> list[float]:
    """Multiples of `least` from `first` on, as far as they are gaps."""
    multiples = []
    while first * least < FARTHEST_GAP:
        multiples.append(first)
        first *= GAP_RATIO
    return multiples


Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True)
class BetStage:
    """A stage as it is fixed before it begins."""

    times: IntArray  # (arm,) pulls
    advance: FloatArray  # (clock,)
    mean: float  # that the centre of an arm's bets is drawn to ...
    weight: float  # ... as if it had been seen in this many pulls
    lower: FloatArray  # (arm,) how far below that bets up are centred, ...
    higher: FloatArray  # (arm,) ... and how far above bets down


class Stages:
    """All stages so far; stage 0 is the start, where every wealth is 1."""

    def __init__(self, n_arms: int, clocks: int) -> None:
        self.fixed: list[BetStage] = []  # stage q is fixed[q - 1]
        self.last = 0  # stage whose pulls are planned
        self.at: IntArray = np.zeros(n_arms, dtype=np.int64)  # last stage completed by every arm
        self.planned: IntArray = np.zeros(n_arms, dtype=np.int64)  # pulls of all stages together
        self._clock: FloatArray = np.zeros((1, clocks))  # (stage, clock)
        self._times: IntArray = np.zeros((1, n_arms), dtype=np.int64)  # (stage, arm)
        self._up: FloatArray = np.zeros((1, n_arms, clocks))  # (stage, arm, clock)
        self._down: FloatArray = np.zeros((1, n_arms, clocks))

    def add(self, stage: BetStage) -> None:
        """Plan one more stage and fix it."""
        self.plan(stage.times)
        self.fix(stage)

    def plan(self, times: IntArray) -> None:
        """Add a stage with these pulls per arm, whose bets are fixed later."""
        if self.last + 1 == len(self._clock):  # double the room
            self._clock = _doubled(self._clock)
            self._times = _doubled(self._times)
            self._up = _doubled(self._up)
            self._down = _doubled(self._down)
        self.last += 1
        self.planned = self.planned + times
        self._times[self.last] = times

    def fix(self, stage: BetStage) -> None:
        """Fix the bets of the first stage whose pulls alone are planned."""
        self.fixed.append(stage)
        q = len(self.fixed)
        self._clock[q] = self._clock[q - 1] + stage.advance

    def book(
        self, q: int, arms: IntArray, draws: StageRewards, centres: FloatArray, rewards: RewardModel
    ) -> None:
        """Add the rewards in stage q of `arms` that have completed stage q - 1."""
        assert (self.at[arms] == q - 1).all()  # no arm skips a stage: clocks are common
        stage = self.fixed[q - 1]
        low = np.clip(centres - stage.lower[arms], 0.0, 1.0)
        high = np.clip(centres + stage.higher[arms], 0.0, 1.0)
        up, down = log_gains(draws, stage.advance, low, high, rewards)
        self._up[q, arms] = self._up[q - 1, arms] + up
        self._down[q, arms] = self._down[q - 1, arms] + down
        self.at[arms] = q

    def times(self, stages: IntArray, arms: IntArray) -> IntArray:
        """Pulls of these arms in these stages, entry by entry."""
        return self._times[stages, arms]

    def up(self, q: int | IntArray, arms: IntArray) -> FloatArray:
        """L+ of these arms after stage q: (..., clock)."""
        result: FloatArray = self._up[q, arms]
        return result

    def down(self, q: int | IntArray, arms: IntArray) -> FloatArray:
        """L- of these arms after stage q: (..., clock)."""
        result: FloatArray = self._down[q, arms]
        return result

    def clock(self, q: int | IntArray) -> FloatArray:
        """The clocks after stage q: (..., clock)."""
        return self._clock[q]


def _doubled(table: npt.NDArray[Number]) -> npt.NDArray[Number]:
    return np.concatenate([table, np.zeros_like(table)])
