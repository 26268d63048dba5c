"""EpsSplit: choose k arms where a gap near rank k makes that easy (Lemma "gap")."""

from collections.abc import Generator

import numpy as np

from shortlist.algorithms.subroutines.est_kth_arm import halve
from shortlist.arrays import IntArray
from shortlist.search import NO_PROGRESS, Progress, Pulls, Rewards


def eps_split(
    arms: IntArray,
    k: int,
    core: int,
    tau: float,
    phi: float,
    delta: float,
    rng: np.random.Generator,
    progress: Progress = NO_PROGRESS,
) -> Generator[Pulls, Rewards, IntArray]:
    """Halve `arms` down to `core` <= k of them and fill up to `k` with the best of those dropped.

    If theta_core - theta_{m+1} > phi for a rank m >= k (or m = |arms|), then with probability >= 1
    - delta/4 at most (m - k) + (k - core) + tau*delta*core/4 of the chosen are not among the k
    best: those kept between the ranks k and m, those filled in, and those kept below the gap.

    Chen, Chen, Zhang, Zhou (2017), Lemma "gap". The printed proof takes core = (1 - tau) k and m =
    (1 + tau) k and does not count the arms filled in (E9)."""
    kept, dropped = yield from halve(arms, core, tau, phi, delta, rng, progress)
    return np.concatenate([kept, dropped[: k - core]])
