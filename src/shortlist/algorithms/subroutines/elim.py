"""Elim and ReverseElim (Algorithms 3, 4): put a tenth of the arms aside, with hardly a mistake."""

from collections.abc import Generator

import numpy as np

from shortlist.algorithms.subroutines.est_kth_arm import pulls_for
from shortlist.algorithms.subroutines.sampling import best, sample
from shortlist.arrays import IntArray
from shortlist.search import NO_PROGRESS, Progress, Pulls, Rewards

Removal = Generator[Pulls, Rewards, IntArray]


def elim(
    arms: IntArray,
    gamma: float,
    phi: float,
    delta: float,
    rng: np.random.Generator,
    progress: Progress = NO_PROGRESS,
) -> Removal:
    """The tenth of `arms`, at least one, with the smallest means.

    Means are those of (2/phi^2) ln(2/(gamma delta)) pulls.

    Let a fifth of the arms, at least two, lie phi or more below the k-th best, and gamma <= 1/2.
    Then with probability >= 1 - delta at most gamma*k of the returned are among the k best: such an
    arm must be off by phi/2, which more than gamma*k of the k best are with probability <= delta/2;
    or else so many of the low fifth are off by phi/2 that fewer than a tenth remain, with
    probability <= 2 gamma delta/2 <= delta/2.

    Chen, Chen, Zhang, Zhou (2017), Algorithm 3, with its constant c = 2 (E13) and never an empty
    answer (E12)."""
    means = yield from sample(arms, pulls_for(phi, gamma * delta), progress)
    return arms[best(-means, max(1, arms.size // 10), rng)]


def reverse_elim(
    arms: IntArray,
    gamma: float,
    phi: float,
    delta: float,
    rng: np.random.Generator,
    progress: Progress = NO_PROGRESS,
) -> Removal:
    """The tenth of `arms`, at least one, with the largest means: `elim` seen from below.

    Let a fifth of the arms, at least two, lie phi or more above the k-th best, and gamma <= 1/2.
    Then with probability >= 1 - delta at most gamma*(|arms| - k) of the returned are not among the
    k best. Algorithm 4 (E12, E13)."""
    means = yield from sample(arms, pulls_for(phi, gamma * delta), progress)
    return arms[best(means, max(1, arms.size // 10), rng)]
