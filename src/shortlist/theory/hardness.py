"""Hardness of an instance: the gaps and parameters of Section 1.1, and c-spread arms (Section 1.2).

    Delta_i = theta_i - theta_(K+1) for the top K, theta_K - theta_i for the others
    t       = the most arms that may be swapped across the boundary:
              t * Delta_(K-t) and t * Delta_(K+t+1) are at most K epsilon
    Psi_t   = min(Delta_(K-t), Delta_(K+t+1)),  Psi_t^epsilon = max(epsilon, Psi_t)
    H       = sum of min(Delta_i^-2, (Psi_t^epsilon)^-2)

Here means come in any order; theta_1 >= theta_2 >= ... are the same means, sorted."""

import math
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

from shortlist.arrays import FloatArray
from shortlist.errors import InvalidInput
from shortlist.formatting import Tabular, TextTable, figures
from shortlist.validation import arm_means, check_choice, number, shown


@dataclass(frozen=True, slots=True)
class Hardness(Tabular):
    """The hardness of choosing the `k` best arms up to an aggregate regret of `epsilon`."""

    k: int  #: how many arms are to be chosen
    epsilon: float  #: the regret allowed
    gaps: FloatArray = field(repr=False)  #: (n,) Delta_i(K), in the order the means were given
    t: int  #: t(epsilon, K), the most arms that may be swapped across the boundary
    psi: float  #: Psi_t, the lesser gap of the two arms that t leaves next to the boundary
    psi_epsilon: float  #: Psi_t^epsilon, the larger of epsilon and Psi_t
    h: float  #: H^(t, epsilon), what AdaptiveTopK and ImprovedTopK pay for
    h0: float  #: H^(0, epsilon), what CLUCB-PAC pays for
    h_tilde: float  #: the classical sum of Delta_i^-2, infinite where the boundary is a tie

    def summary(self) -> dict[str, object]:
        """The figures of the command line's JSON: all but the gaps."""
        names = [each.name for each in fields(self) if each.name != "gaps"]
        return {"n": self.gaps.size, **{name: getattr(self, name) for name in names}}

    def tables(self) -> tuple[TextTable]:
        """The figures of `summary`."""
        return (figures(self.summary()),)


def hardness(means: npt.ArrayLike, k: int, epsilon: float) -> Hardness:
    """Compute the gaps and hardness parameters of an instance.

    H <= H0 <= n / epsilon^2 always. t is at most min(K, n - K) - 1, for arm K + t + 1 must exist
    (E15).

    Args:
        means: Mean reward of every arm, in any order.
        k: Number of arms to choose, from 1 to one less than there are.
        epsilon: Allowed regret, above 0, in units of the rewards.

    Returns:
        The gaps, t, Psi, H, H0 and the classical sum of inverse squared gaps. It prints as a table.

    Raises:
        InvalidInput: If a mean is not finite, or `k` or `epsilon` breaks its rule.

    Example:
        >>> import shortlist
        >>> found = shortlist.hardness([0.7, 0.7, 0.3, 0.3], k=2, epsilon=0.1)
        >>> found.t, round(found.h, 6)
        (0, 25.0)
    """
    theta = arm_means(means)
    check_choice(theta.size, k)
    k, epsilon = int(k), number("epsilon", epsilon, above=0)
    ordered = np.sort(theta)[::-1]
    own_gaps = gaps(theta, k)
    t, psi = _exchangeable(ordered, k, epsilon)
    psi_epsilon = max(epsilon, psi)
    return Hardness(
        k=k,
        epsilon=epsilon,
        gaps=own_gaps,
        t=t,
        psi=psi,
        psi_epsilon=psi_epsilon,
        h=_sum_of_inverse_squares(np.maximum(own_gaps, psi_epsilon)),
        # Psi_0 is the least gap, so cutting gaps off at Psi_0^epsilon is the same as at epsilon
        h0=_sum_of_inverse_squares(np.maximum(own_gaps, epsilon)),
        h_tilde=_sum_of_inverse_squares(own_gaps),
    )


def gaps(means: FloatArray, k: int) -> FloatArray:
    """Delta_i(K): how far each arm is from the nearest arm across the boundary."""
    ordered = np.partition(means, (means.size - k - 1, means.size - k))
    outside, inside = ordered[means.size - k - 1], ordered[means.size - k]  # theta_(K+1), theta_K
    delta: FloatArray = np.where(means >= inside, means - outside, inside - means)
    return delta


def _exchangeable(ordered: FloatArray, k: int, epsilon: float) -> tuple[int, float]:
    """t(epsilon, K) and Psi_t."""
    swaps = np.arange(min(k, ordered.size - k))  # E15
    above = ordered[k - 1 - swaps] - ordered[k]  # Delta_(K-t)
    below = ordered[k - 1] - ordered[k + swaps]  # Delta_(K+t+1)
    t = int(np.flatnonzero(swaps * np.maximum(above, below) <= k * epsilon)[-1])
    return t, float(min(above[t], below[t]))


def _sum_of_inverse_squares(values: FloatArray) -> float:
    # a gap of 0, or all but 0, is infinitely hard
    with np.errstate(divide="ignore", over="ignore"):
        return float(np.sum(values**-2.0))


def spread(means: npt.ArrayLike) -> float | None:
    """The least c for which the arms are c-spread, or None if there is none, as with ties.

    c-spread: |i - j| / (c n) <= |theta_i - theta_j| <= c |i - j| / n for all i, j, and c >= 1.
    Neighbours decide: a difference over d places is a sum of d steps between neighbours, so it lies
    between d times the least and d times the largest step, and both bounds hold for all pairs if
    they hold for d = 1."""
    theta = arm_means(means)
    if theta.size < 2:
        raise InvalidInput(f"`means` has {theta.size} arms, but a spread needs at least 2")
    steps = np.diff(np.sort(theta)) * theta.size
    least, largest = float(steps.min()), float(steps.max())
    c = max(1.0, largest, 1 / least) if least > 0 else math.inf
    return c if math.isfinite(c) else None


def spread_upper_bound(n_arms: int, k: int, epsilon: float, c: float) -> float:
    """What H^(t, epsilon) is at most on c-spread arms: O(c^2.5 gamma^-1/2 n / sqrt(epsilon)), gamma
    = k / n <= 1/2.

    Lemma "c-spread", with constants: H <= 4 c^2 n^2 / m, where m = min(k, n - k, sqrt(k n epsilon /
    (2c))) <= t + 1.
    - t(t + 1) <= k n epsilon / c satisfies both conditions on t, as Delta_(K-t) and Delta_(K+t+1)
      <= c (t + 1) / n. So unless t is at its cap, (t + 1)(t + 2) > k n epsilon / c, hence 2 (t +
      1)^2 > k n epsilon / c.
    - The j-th arm from the boundary on either side has Delta >= j / (cn), and Psi_t >= (t + 1) /
      (cn). So H <= 2 (cn)^2 * (sum over j of max(j, t + 1)^-2) <= 2 (cn)^2 * 2 / (t + 1)."""
    _check_spread(n_arms, epsilon, c)
    check_choice(n_arms, k)
    return 4 * (c * n_arms) ** 2 / min(k, n_arms - k, math.sqrt(k * n_arms * epsilon / (2 * c)))


def spread_lower_bound(n_arms: int, epsilon: float, c: float) -> float:
    """What H^(0, epsilon) is at least on c-spread arms, for every k: Omega(n / (c epsilon)) once
    epsilon n >= c.

    Lemma "c-spread": one side of the boundary holds n/2 arms, and the j-th of them has Delta <= c j
    / n."""
    _check_spread(n_arms, epsilon, c)
    j = np.arange(1, (n_arms + 1) // 2 + 1)
    return _sum_of_inverse_squares(np.maximum(c * j / n_arms, epsilon))


def _check_spread(n_arms: int, epsilon: float, c: float) -> None:
    check_choice(n_arms, 1)
    number("epsilon", epsilon, above=0)
    if number("c", c) < 1:
        raise InvalidInput(f"`c` is {shown(c)}, but must be at least 1")
