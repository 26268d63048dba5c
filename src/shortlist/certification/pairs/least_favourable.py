"""The means that make a swap of two arms hardest to exclude, and how fast it is excluded there.

That the arm outside is better by `gap` is to be refuted, where the arm inside seems to have the
mean `inside` and the other one `outside`. Of all means x and y = x + gap the least favourable have

    r_in (inside - x) / v(x) = r_out (y - outside) / v(y),

r the pulls and v the variance of 0/1 rewards: there r_in kl(inside, x) + r_out kl(outside, y) is
least, and bets with that strength and these centres are the likelihood ratio against x and y."""

import numpy as np
from scipy.special import rel_entr

from shortlist.arrays import FloatArray

STEPS = 3  # of the fixed point: bets need not be centred exactly
MARGIN = 0.002  # that the centre of a bet keeps from 0 and 1


def least_favourable(
    inside: FloatArray, outside: FloatArray, gap: float, ratio: FloatArray
) -> FloatArray:
    """The lower mean x; all arrays broadcast, `ratio` is pulls inside per pull outside."""
    total = np.maximum(inside - outside, 0.0) + gap
    most = max(MARGIN, 1 - MARGIN - gap)
    x = np.minimum(np.maximum((inside + outside - gap) / 2, MARGIN), most)
    for _ in range(STEPS):
        y = np.minimum(x + gap, 1 - MARGIN)
        inner, outer = x * (1 - x), y * (1 - y) * ratio
        x = (x + inside - total * inner / (inner + outer)) / 2
        x = np.minimum(np.maximum(x, MARGIN), most)
    return x


def information(mean: FloatArray, other: FloatArray) -> FloatArray:
    """kl(mean, other) of 0/1 rewards."""
    result: FloatArray = rel_entr(mean, other) + rel_entr(1 - mean, 1 - other)
    return result
