"""Bounds on the gap of swaps, from the log capitals of their arms.

The capital that bets against "A is better than B by gap" is sum over clocks k of
weight_k exp(sum_A L-_k + sum_B L+_k + clock_k gap); it stays below exp(level) with confidence, so
the root of the equation capital = exp(level) bounds the gap. Every value returned is a bound."""

import numpy as np

from shortlist.arrays import FloatArray

NEWTON_STEPS = 3
MOST_REFINED = 20_000  # pairs for which the mixture is solved; more get the best single clock
TRIALS = 3  # shares tried beyond the single clocks


def pair_gaps(
    down: FloatArray, up: FloatArray, clock: FloatArray, log_weights: FloatArray, level: FloatArray
) -> FloatArray:
    """Bound on the gap of every pair: log capitals and clocks are (..., clock), the rest (...)."""
    log_capital = down + up + log_weights
    gaps: FloatArray = ((level[..., None] - log_capital) / clock).min(-1)
    if gaps.size > MOST_REFINED:
        return gaps
    for _ in range(NEWTON_STEPS):  # from above on a convex function: never below the root
        exponents = log_capital + clock * gaps[..., None]
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
    """Bound on the gap of all swaps of two or more arms; `down`, `up` are (arm, clock), in and out.

    Gibbs: ln sum_k exp(a_k) >= sum_k p_k (a_k - ln p_k) for any shares p. It is linear in the arms,
    so the worst swap of m arms has the m least of each side. Any p gives a bound for every m."""
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


def _gaps_by_size(down: FloatArray, up: FloatArray, clock: float, levels: FloatArray) -> FloatArray:
    """Bound on the gap of swaps of m arms, for every m, if the capital has one clock only."""
    most = min(down.size, up.size)
    least = np.cumsum(np.sort(down)[:most] + np.sort(up)[:most])  # (m,)
    result: FloatArray = (levels[:most] - least) / clock
    return result


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
    """The shares of the clocks in the capital against the swap that is worst at present."""
    size = 2 + int(best[1:].argmax())
    inside = np.argsort(down @ favourite)[:size]
    outside = np.argsort(up @ favourite)[:size]
    exponents = log_weights + down[inside].sum(0) + up[outside].sum(0) + clock * best[size - 1]
    parts = np.exp(exponents - exponents.max())
    result: FloatArray = parts / parts.sum()
    return result
