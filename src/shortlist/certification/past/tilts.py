"""Bets on a whole swap with one tilt for all of its arms: e-processes for rewards in [0, 1].

With a tilt l, the product of exp(-l x) / (1 - theta + theta exp(-l)) over the rewards x of an arm
is a supermartingale from 1, as exp(-l x) lies below its chord. Its logarithm is the charge of
theta, -l S - N ln(1 - theta a) with a = 1 - exp(-l). It is convex, so the reach has a closed form.

A bet of strength s about a centre c multiplies the wealth by 1 - s (x - c) for an arm that may be
better and by 1 + s (x - c) for one that may be worse. Both charges then have about the same slope
at means near c, which makes a swap of them narrow: this gives the two tilts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from shortlist.arrays import FloatArray
from shortlist.certification.past.evidence import HALF, Totals
from shortlist.rounding import ROUNDED

CENTRES = (0.0, 0.5, 1.0)
NEAR = np.geomspace(0.8, 1.25, 9)  # around a price
STRENGTHS = tuple(0.9 * 2.0**-power for power in range(14))


@dataclass(frozen=True, slots=True)
class Charged:
    """Reaches of every arm and what swaps are charged, one column for each price that is tried."""

    up: FloatArray  # (arms, columns) the largest mean - price * charge
    down: FloatArray  # (arms, columns) the largest -mean - price * charge
    costs: FloatArray  # (M, columns) price * threshold of swaps of m arms


def joined(charged: Sequence[Charged]) -> Charged:
    """The columns of all: each of them gives bounds."""
    up, down = (np.hstack([getattr(each, name) for each in charged]) for name in ("up", "down"))
    return Charged(up, down, np.hstack([each.costs for each in charged]))


def tilted_charges(totals: Totals, mirrored: Totals, log_shares: FloatArray) -> Charged:
    """Columns for every tilt; together they have half of the wealth, in equal parts."""
    bets = [_bet(centre, strength) for centre in CENTRES for strength in STRENGTHS]
    stakes, better, worse = np.array(bets).T  # (bets,) each
    typical = _typical_prices(totals)  # (prices,)
    prices = (typical / stakes[:, None]).ravel()  # (columns,)
    up = tilted_reach(totals, prices, np.repeat(better, typical.size))
    down = tilted_reach(mirrored, prices, np.repeat(worse, typical.size)) - 1
    thresholds = HALF + math.log(len(bets)) - log_shares  # (M,)
    return Charged(up, down, prices * thresholds[:, None])


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
    result: FloatArray = (NEAR / typical[:, None]).ravel()
    return result


def tilted_reach(totals: Totals, prices: FloatArray, tilts: FloatArray) -> FloatArray:
    """(arms, columns) The largest theta - price * charge, where its slope in theta is 0."""
    pulls, sums = totals.pulls[:, None], totals.sums[:, None]
    gap = -np.expm1(-tilts)
    theta = np.clip(1 / gap - prices * pulls, 0.0, 1.0)
    lost, drift = tilts * sums, xlogy(pulls, 1 - theta * gap)
    charge = -lost - drift - ROUNDED * (np.abs(lost) + np.abs(drift))
    result: FloatArray = theta - prices * charge
    return result
