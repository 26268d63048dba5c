"""Levels that move, for tests of the certificate "drift": a factor of all rates, by the time."""

from collections.abc import Callable

import numpy as np

from shortlist.arrays import FloatArray, IntArray

SLOTS = 6  # of a block: the level may move within it
Level = Callable[[float], float]  # by the time in blocks

LEVELS: dict[str, Level] = {
    "steady": lambda time: 1.0,
    "weekend": lambda time: 0.7 if int(time) % 7 in (5, 6) else 1.1,
    "evening": lambda time: 0.7 + 0.6 * (time % 1),
    "falling": lambda time: max(0.7, 1.5 - 0.04 * time),
    "rising": lambda time: min(2.0, 0.8 + 0.04 * time),
    "sale": lambda time: 2.0 if int(time) % 7 in (1, 2) else 0.8,
}


def visited(
    rates: FloatArray,
    shares: FloatArray,
    visitors: int,
    block: int,
    level: Level,
    rng: np.random.Generator,
) -> tuple[IntArray, FloatArray, float]:
    """Visitors and sums per arm of a block, and the level averaged over its visitors."""
    times = np.zeros(rates.size, dtype=np.int64)
    sums = np.zeros(rates.size)
    levels = [level(block + (slot + 0.5) / SLOTS) for slot in range(SLOTS)]
    for now in levels:
        came = rng.multinomial(visitors // SLOTS, shares)
        times += came
        sums += rng.binomial(came, np.clip(rates * now, 0, 1))
    return times, sums, float(np.mean(levels))
