"""Subroutines of ImprovedTopK: EstKthArm, Elim, ReverseElim and EpsSplit.

EstKthArm estimates the mean of the k-th best arm (Algorithm 2) by halving. Elim and ReverseElim
(Algorithms 3, 4) put a tenth of the arms aside, with hardly a mistake. EpsSplit chooses k arms
where a gap near rank k makes that easy (Lemma "gap")."""

from collections.abc import Generator
from math import ceil, floor, inf, log

import numpy as np

from shortlist.algorithms.subroutines.sampling import best, sample
from shortlist.arrays import IntArray
from shortlist.search import NO_PROGRESS, Progress, Pulls, Rewards

Estimate = Generator[Pulls, Rewards, float]
Halves = Generator[Pulls, Rewards, tuple[IntArray, IntArray]]


def pulls_for(phi: float, failure: float) -> int:
    """(2/phi^2) ln(2/failure): then a mean is off by phi/2 with probability `failure` at most.

    Either side alone fails with half that probability (Hoeffding)."""
    if phi**2 == 0 or failure == 0:
        raise OverflowError(
            f"accuracy {phi:g} with failure {failure:g} needs more pulls than a float can say"
        )
    return ceil(2 / phi**2 * log(2 / failure))


def halve(
    arms: IntArray,
    k: int,
    tau: float,
    phi: float,
    delta: float,
    rng: np.random.Generator,
    progress: Progress = NO_PROGRESS,
) -> Halves:
    """Keep the better half until `k` arms are left; return them, and the others best guess first.

    With probability >= 1 - delta/4 at most tau*delta*k/4 of the kept lie more than phi below the
    k-th best (Lemma "few-remain"). Widths phi/4 (3/4)^r add up to phi, shares tau/4 (3/4)^r to tau,
    probabilities delta/8 2^-r to delta/4. Chen, Chen, Zhang, Zhou (2017), Algorithm 2, lines 1-7;
    about a quarter of the pulls printed, as the proof asks only that a mean is off by phi_r/2 with
    probability at most tau_r delta_r delta / 16 (E6)."""
    kept, dropped = arms, [arms[:0]]
    tau_r, phi_r, delta_r = tau / 4, phi / 4, delta / 8
    while kept.size > k:
        means = yield from sample(kept, pulls_for(phi_r, tau_r * delta_r * delta / 16), progress)
        order = kept[best(means, kept.size, rng)]
        size = max(k, ceil(kept.size / 2))
        kept, dropped = order[:size], [order[size:], *dropped]
        tau_r, phi_r, delta_r = 3 / 4 * tau_r, 3 / 4 * phi_r, delta_r / 2
    return kept, np.concatenate(dropped)


def est_kth_arm(
    arms: IntArray,
    k: int,
    tau: float,
    phi: float,
    delta: float,
    rng: np.random.Generator,
    progress: Progress = NO_PROGRESS,
) -> Estimate:
    """Estimate the mean of the k-th best of `arms`, give or take a few ranks.

    The value lies in [theta_k - phi, theta_j + phi], j = ceil((1 - tau) k), with probability >= 1 -
    delta. The k best by halving are sampled once more, one of the tau*k/2 lowest is drawn, and its
    mean is taken from fresh pulls. Chen, Chen, Zhang, Zhou (2017), Algorithm 2 and Theorem "estK".

    Where we depart: the last means are sampled at all (E6); exactly floor(tau*k/2) + 1 arms can be
    drawn, ties broken at random (E7); the answer is a number, so arm and mean get phi/2 and delta/2
    each (E8). A rank below 1 has value +inf and one above |arms| has -inf: with no range of rewards
    in mind that is all one can say of it."""
    if not 1 <= k <= arms.size:
        return inf if k < 1 else -inf
    kept, _ = yield from halve(arms, k, tau, phi / 2, delta / 2, rng, progress)
    means = yield from sample(kept, pulls_for(phi / 2, tau * (delta / 2) / 16), progress)  # E6
    lowest = kept[best(-means, floor(tau * k / 2) + 1, rng)]  # E7
    drawn = rng.choice(lowest, size=1)
    mean = yield from sample(drawn, pulls_for(phi, delta / 2), progress)  # E8
    return float(mean[0])


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
