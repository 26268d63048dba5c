"""How good is a chosen set: the notions of optimality of Section 1.2.

`means` are the true means of all arms, `top` the positions of the K chosen ones, in any order. A
set that is elementwise epsilon-optimal has aggregate regret at most epsilon and is Explore-K
epsilon-optimal. Neither of the last two implies the other (E15): regret averages one bad arm away,
and Explore-K does not look above theta_K."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.validation import MOST_RUNS, arm_means, collected, listed, number, shown

ROUNDING = 1e-9  # differences of means are floats: a loss of exactly epsilon is allowed


def aggregate_regret(means: npt.ArrayLike, top: npt.ArrayLike) -> float:
    """Aggregate regret R_T = (sum of the K best means - sum of the chosen means) / K.

    Args:
        means: True mean of every arm.
        top: Positions of the chosen arms, from 0.

    Returns:
        The regret, at least 0, in units of the means.

    Raises:
        InvalidInput: If a mean is not finite, or `top` is not a set of arms.

    Example:
        >>> import shortlist
        >>> shortlist.regret.aggregate_regret([0.75, 0.5, 0.25], top=[0, 2])
        0.125
    """
    chosen, best = _chosen_and_best(means, top)
    return max(0.0, float(best.sum() - chosen.sum()) / best.size)


def expected_aggregate_regret(means: npt.ArrayLike, tops: Sequence[npt.ArrayLike]) -> float:
    """Average of R_T over the sets chosen in several runs.

    That it is at most epsilon is a weaker demand than R_T <= epsilon in most runs.

    Args:
        means: True mean of every arm.
        tops: The set chosen in each run, all of the same size.

    Returns:
        The average regret.

    Raises:
        InvalidInput: If a mean is not finite, or the sets differ in size.

    Example:
        >>> import shortlist
        >>> shortlist.regret.expected_aggregate_regret([0.75, 0.5, 0.25], [[0], [1]])
        0.125
    """
    sets = _sets_of_runs(tops)
    return float(np.mean([aggregate_regret(means, top) for top in sets]))


def misidentified(means: npt.ArrayLike, top: npt.ArrayLike) -> bool:
    """Whether the set is not one of the best; with ties at the boundary there are several.

    Args:
        means: True mean of every arm.
        top: Positions of the chosen arms, from 0.

    Returns:
        True if another set of this size has a larger sum of means.

    Raises:
        InvalidInput: If a mean is not finite, or `top` is not a set of arms.

    Example:
        >>> import shortlist
        >>> shortlist.regret.misidentified([0.75, 0.5, 0.25], top=[1])
        True
    """
    chosen, best = _chosen_and_best(means, top)
    return not np.array_equal(chosen, best)


def misidentification_probability(means: npt.ArrayLike, tops: Sequence[npt.ArrayLike]) -> float:
    """Share of runs whose set is not one of the best.

    Args:
        means: True mean of every arm.
        tops: The set chosen in each run, all of the same size.

    Returns:
        The share, from 0 to 1.

    Raises:
        InvalidInput: If a mean is not finite, or the sets differ in size.

    Example:
        >>> import shortlist
        >>> shortlist.regret.misidentification_probability([0.75, 0.5, 0.25], [[0], [1]])
        0.5
    """
    sets = _sets_of_runs(tops)
    return float(np.mean([misidentified(means, top) for top in sets]))


def explore_k(means: npt.ArrayLike, top: npt.ArrayLike, epsilon: float) -> bool:
    """Explore-K: whether every chosen arm is at least theta_K - epsilon.

    Kalyanakrishnan, Tewari, Auer, Stone (2012).

    Args:
        means: True mean of every arm.
        top: Positions of the chosen arms, from 0.
        epsilon: Allowed difference, at least 0.

    Returns:
        Whether the set is Explore-K epsilon-optimal.

    Raises:
        InvalidInput: If a value breaks its rule.

    Example:
        >>> import shortlist
        >>> shortlist.regret.explore_k([0.75, 0.5, 0.25], top=[1], epsilon=0.25)
        True
    """
    _check_loss(epsilon)
    chosen, best = _chosen_and_best(means, top)
    return bool(chosen[-1] >= best[-1] - epsilon - ROUNDING)


def elementwise(means: npt.ArrayLike, top: npt.ArrayLike, epsilon: float) -> bool:
    """Elementwise: whether the i-th best chosen arm is at least theta_i - epsilon, for all i.

    Cao, Li, Tao, Li (2015).

    Args:
        means: True mean of every arm.
        top: Positions of the chosen arms, from 0.
        epsilon: Allowed difference, at least 0.

    Returns:
        Whether the set is elementwise epsilon-optimal.

    Raises:
        InvalidInput: If a value breaks its rule.

    Example:
        >>> import shortlist
        >>> shortlist.regret.elementwise([0.75, 0.5, 0.25], top=[0, 2], epsilon=0.1)
        False
    """
    _check_loss(epsilon)
    chosen, best = _chosen_and_best(means, top)
    return bool(np.all(chosen >= best - epsilon - ROUNDING))


def chosen_arms(top: npt.ArrayLike, n_arms: int) -> IntArray:
    """Return `top` as an array, if it names at least one arm of `n_arms` and none twice.

    Args:
        top: Numbers of the chosen arms.
        n_arms: Number of arms.

    Returns:
        Numbers of the arms, as an array."""
    arms = listed("top", top, rule := "a list of at least one arm number")
    if arms.size == 0 or not np.issubdtype(arms.dtype, np.integer):
        raise InvalidInput(f"`top` is {shown(top)}, but must be {rule}")
    wrong = arms[(arms < 0) | (arms >= n_arms)]
    if wrong.size:
        raise InvalidInput(
            f"`top` holds arm {wrong[0]}, but arms are numbered from 0 to {n_arms - 1}"
        )
    ordered = np.sort(arms)
    repeated = ordered[1:][np.diff(ordered) == 0]
    if repeated.size:
        raise InvalidInput(
            f"`top` holds arm {repeated[0]} more than once, but must hold distinct arms"
        )
    return arms.astype(np.int64)


def _chosen_and_best(means: npt.ArrayLike, top: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The means of the chosen arms and of the best as many arms, both from large to small."""
    theta = arm_means(means)
    arms = chosen_arms(top, theta.size)
    best = np.partition(theta, theta.size - arms.size)[theta.size - arms.size :]
    return np.sort(theta[arms])[::-1], np.sort(best)[::-1]


def _sets_of_runs(tops: Sequence[npt.ArrayLike]) -> list[npt.NDArray[Any]]:
    runs = collected("tops", tops, at_most=MOST_RUNS)
    sets = [listed("tops", top, "a list of sets of arm numbers") for top in runs]
    sizes = sorted({each.size for each in sets})
    if len(sizes) != 1:
        raise InvalidInput(
            f"`tops` has sets of sizes {sizes}, but must have one or more sets of the same size"
        )
    return sets


def _check_loss(epsilon: float) -> None:
    if number("epsilon", epsilon) < 0:
        raise InvalidInput(f"`epsilon` is {shown(epsilon)}, but must be at least 0")
