"""Bets on the mean of one arm whose capital is log-linear in that mean.

For rewards x in [0, 1] with mean theta, a strength l and a centre c known beforehand,

    E[1 +- l (x - c)] = 1 +- l (theta - c) <= exp(+-l (theta - c)),

so exp(L+ - clock * theta) and exp(L- + clock * theta) are supermartingales that start from 1, with
L+- = sum of ln(1 +- l (x - c)) +- l c over the rewards, and clock = sum of l over the pulls.
The bet up stakes l c and the bet down l (1 - c) of the capital: where that would be too much, the
centre is moved."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.reward_models import UNIT_SIGMA, RewardModel

# log capital of an arm without a range that was not pulled: nothing is known of it any more.
# It is finite, so that sums and products of it are numbers.
RUINED = -1e120
TINY = 1e-300  # instead of 0: the strength of no bet
STAKE = 0.9  # of the capital, at most: no reward ruins


@dataclass(frozen=True, slots=True)
class Draws:
    """What some arms gave in one stage: one entry an arm."""

    times: IntArray
    sums: FloatArray
    squares: FloatArray


def log_gains(
    draws: Draws, advance: FloatArray, low: FloatArray, high: FloatArray, rewards: RewardModel
) -> tuple[FloatArray, FloatArray]:
    """What L+ and L- gain in a stage that moves every arm's clocks by `advance`: (arm, clock).

    Bets up are centred on `low`, those down on `high`: one mean an arm each.
    An arm pulled B times bets with strength advance / B. One that is not pulled at all stays
    within exp(0 * theta) and exp(1 * theta), as its mean lies in [0, 1]."""
    idle = draws.times == 0  # (arm,)
    times = np.maximum(draws.times, 1)[:, None]
    strengths = np.maximum(advance, TINY) / times  # (arm, clock)
    if not rewards.has_range:
        up, down = _sub_gaussian(draws, strengths)
        up[idle], down[idle] = RUINED, RUINED
        return up, down
    most = STAKE / strengths  # (arm, clock)
    up = _bounded(draws, strengths, np.minimum(low[:, None], most), rewards)
    below = np.minimum(1 - high[:, None], most)
    down = _bounded(_mirrored(draws), strengths, below, rewards)
    down -= draws.times[:, None] * strengths  # from 1 - theta back to theta
    up[idle], down[idle] = 0.0, -advance
    return up, down


def _mirrored(draws: Draws) -> Draws:
    """The same rewards as 1 - x."""
    squares = draws.times - 2 * draws.sums + draws.squares
    return Draws(draws.times, draws.times - draws.sums, squares)


def _bounded(
    draws: Draws, strengths: FloatArray, centres: FloatArray, rewards: RewardModel
) -> FloatArray:
    """Lower bound on the sum of ln(1 + l (x - c)) + l c over [0, 1] rewards: (arm, clock).

    ln(1 + l (x - c)) is concave in x, so its chord from 0 to 1 lies below it.
    ln(1 + y) >= y - curvature(h) y^2 for y >= -h, h = l c, is better if the variance is small."""
    times = draws.times[:, None]
    sums = draws.sums[:, None]
    gain: FloatArray = sums * np.log1p(strengths * (1 - centres))
    gain += (times - sums) * np.log1p(-strengths * centres)
    if not rewards.is_binary:
        around = draws.squares[:, None] - 2 * centres * sums + times * centres**2
        parabola = strengths * (sums - times * centres)
        parabola -= curvature(strengths * centres) * strengths**2 * np.maximum(around, 0.0)
        gain = np.maximum(gain, parabola)
    return gain + times * strengths * centres


def _sub_gaussian(draws: Draws, strengths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E exp(+-l x) <= exp(+-l theta + l^2 sigma^2 / 2): no centre is needed."""
    drift = strengths * draws.sums[:, None]  # (arm, clock)
    cost = draws.times[:, None] * (strengths * UNIT_SIGMA) ** 2 / 2
    return drift - cost, -drift - cost


def curvature(h: FloatArray) -> FloatArray:
    """Least a with ln(1 + y) >= y - a y^2 for all y >= -h."""
    h = np.maximum(h, 1e-3)  # it grows with h, and differences lose digits below
    result: FloatArray = (-np.log1p(-h) - h) / h**2
    return result
