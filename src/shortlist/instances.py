"""The instances of the paper, each a vector of means, best first (Sections 4 and 5); test sets."""

import csv
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from shortlist.arrays import FloatArray
from shortlist.errors import InvalidInput
from shortlist.validation import (
    LARGEST,
    MOST_ARMS,
    MOST_CELLS,
    arm_means,
    check_choice,
    flag,
    number,
    shown,
    whole,
)

ETA = 1e-4  # the bias of the paper's coins
DIFFICULTY = 1.6  # standard deviation of the usual items
ABILITIES = np.linspace(-30, 30, 601)  # at which the mean over items is tabulated
NEAREST_END = 1e-6  # distance of a mean from 0 and 1 where scores are graded


def two_group(n: int, k: int) -> FloatArray:
    """Means of two groups: the top k arms have mean 0.7, the others 0.3.

    Args:
        n: Number of arms, at least 2.
        k: Number of good arms, from 1 to n - 1.

    Returns:
        The means, best first: (n,).

    Raises:
        InvalidInput: If `n` or `k` breaks its rule.

    Example:
        >>> import shortlist
        >>> shortlist.instances.two_group(3, 1)
        array([0.7, 0.3, 0.3])
    """
    check_choice(n, k)
    return np.where(np.arange(n) < k, 0.7, 0.3)


def uniform(n: int) -> FloatArray:
    """Means 1 - i/n for i = 1..n.

    Args:
        n: Number of arms, at least 2.

    Returns:
        The means, best first: (n,).

    Raises:
        InvalidInput: If `n` is below 2.

    Example:
        >>> import shortlist
        >>> shortlist.instances.uniform(4)
        array([0.75, 0.5 , 0.25, 0.  ])
    """
    n = whole("n", n, at_least=2, at_most=MOST_ARMS)
    return 1 - np.arange(1, n + 1) / n


def synthetic(p: float, n: int, k: int) -> FloatArray:
    """Means pushed to the boundary 1 - k/n (p > 1) or away from it (p < 1); p = 1 is `uniform`.

    The formula spans [0, 1) as it stands, so nothing is rescaled (E17).

    Args:
        p: Power, above 0.
        n: Number of arms, at least 2.
        k: Number of arms above the boundary, from 1 to n - 1.

    Returns:
        The means, best first: (n,).

    Raises:
        InvalidInput: If a value breaks its rule.

    Example:
        >>> import shortlist
        >>> shortlist.instances.synthetic(1, 4, 2)
        array([0.75, 0.5 , 0.25, 0.  ])
    """
    p = number("p", p, above=0)
    check_choice(n, k)
    i = np.arange(1, n + 1)
    share = k / n
    above = share * (1 - np.minimum(i, k) / k) ** p
    below = (1 - share) * ((np.maximum(i, k) - k) / (n - k)) ** p
    return (1 - share) + above - below


def rte() -> FloatArray:
    """Accuracy of the 164 crowd workers of the RTE task.

    Snow, O'Connor, Jurafsky, Ng (2008); the source of the data is in data/README.md.

    Returns:
        The accuracies, best first: (164,).

    Example:
        >>> import shortlist
        >>> shortlist.instances.rte().size
        164
    """
    return -np.sort(-rte_workers())


def rte_workers() -> FloatArray:
    """The same accuracies as `rte`, by the number of the worker.

    Returns:
        The accuracies: (164,).

    Example:
        >>> import shortlist
        >>> shortlist.instances.rte_workers().size
        164
    """
    with (files("shortlist") / "data" / "rte_workers.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return np.array([int(row["correct"]) / int(row["answered"]) for row in rows])


def lower_bound(n: int, eta: float = ETA, surplus: int = 0) -> FloatArray:
    """K = n/2 coins of value 0.5 + eta and as many of 0.5 - eta.

    Here every search must pay for ln(1/epsilon). In the reduction of Section 4 one coin at random
    is replaced by the unknown coin, so that there are K + `surplus` good ones. If `surplus` is 0,
    H^(t, epsilon) = n / (4 eta^2) for every epsilon <= 2 eta, as the paper says; otherwise the
    boundary is a tie, Psi_t = 0 and H^(t, epsilon) > n / (2 epsilon^2) (E19).

    Args:
        n: Number of arms, even.
        eta: Bias of the coins, between 0 and 0.5. Default 1e-4, as in the paper.
        surplus: Good coins beyond n/2: -1, 0 or 1. Default 0.

    Returns:
        The means, best first: (n,).

    Raises:
        InvalidInput: If a value breaks its rule.

    Example:
        >>> import shortlist
        >>> shortlist.instances.lower_bound(4, eta=0.25)
        array([0.75, 0.75, 0.25, 0.25])
    """
    n = whole("n", n, at_least=2, at_most=MOST_ARMS)
    eta = number("eta", eta, above=0, below=0.5)
    if n % 2:
        raise InvalidInput(f"`n` is {n}, but must be even, since K = n/2")
    if not isinstance(surplus, int) or surplus not in (-1, 0, 1):
        raise InvalidInput(f"`surplus` is {shown(surplus)}, but must be -1, 0 or 1")
    return np.where(np.arange(n) < n // 2 + surplus, 0.5 + eta, 0.5 - eta)


def levels(n: int, groups: int = 20) -> tuple[FloatArray, list[str]]:
    """Means in groups of different levels: under quotas every group has a boundary of its own.

    Group levels are evenly spread from .2 to .8, and means within a group evenly from .2 below to
    .2 above its level.

    Args:
        n: Number of arms, a multiple of `groups`, at least two per group.
        groups: Number of groups, at least 2.

    Returns:
        The means and the names of the groups, "0", "1", ..., group by group: (n,) each.

    Raises:
        InvalidInput: If `n` is no such multiple.

    Example:
        >>> import shortlist
        >>> means, names = shortlist.instances.levels(4, groups=2)
        >>> means.round(2).tolist(), names
        ([0.4, 0.0, 1.0, 0.6], ['0', '0', '1', '1'])
    """
    groups = whole("groups", groups, at_least=2)
    n = whole("n", n, at_least=2 * groups, at_most=MOST_ARMS)
    if n % groups:
        raise InvalidInput(f"`n` is {n}, but must be a multiple of the {groups} groups")
    size = n // groups
    own = np.linspace(0.2, 0.8, groups)[:, None] + np.linspace(0.2, -0.2, size)
    names = [str(group) for group in range(groups) for _ in range(size)]
    return np.clip(own, 0.0, 1.0).ravel(), names


def matching(size: int) -> tuple[FloatArray, list[int], list[int]]:
    """Means of all pairs of a row and a column, uniform on [0, 1], drawn once from a fixed seed.

    Args:
        size: Number of rows, and of columns, at least 2.

    Returns:
        The means, and the row and the column of every arm: (size^2,) each.

    Raises:
        InvalidInput: If `size` breaks its rule.

    Example:
        >>> import shortlist
        >>> means, rows, columns = shortlist.instances.matching(2)
        >>> rows, columns
        ([0, 0, 1, 1], [0, 1, 0, 1])
    """
    size = whole("size", size, at_least=2, at_most=int(MOST_ARMS**0.5))
    means = np.random.default_rng(size).random(size**2)
    places = np.arange(size**2)
    return means, (places // size).tolist(), (places % size).tolist()


def item_response(
    n: int,
    n_items: int,
    rng: np.random.Generator,
    *,
    spread: float = 0.4,
    difficulty: float = DIFFICULTY,
    guessing: float = 0.0,
    graded: float | None = None,
) -> FloatArray:
    """Scores of n arms on items by item response theory, each cell drawn once.

    P(right) = guessing + (1 - guessing) logistic(a (1 + spread t - b)), with ability t of an arm
    from N(0, 1), difficulty b of an item from N(0, difficulty^2) and discrimination a from
    lognormal(0, 0.3). With the defaults means have a standard deviation of about 0.06 and the
    difference of two good arms on an item one of about 0.5. Birnbaum (1968), three-parameter model;
    docs/benchmarks.md compares it with leaderboards.

    Args:
        n: Number of arms, at least 2.
        n_items: Number of items, at least 1.
        rng: Source of randomness.
        spread: Standard deviation of abilities, above 0. Default 0.4.
        difficulty: Standard deviation of difficulties, above 0. Default 1.6.
        guessing: Probability of a right answer by chance, at least 0 and below 1. Default 0.
        graded: Concentration of the Beta distribution that scores are drawn from. Default None:
            scores are 0 or 1.

    Returns:
        The scores: (n, n_items).

    Raises:
        InvalidInput: If a value breaks its rule.

    Example:
        >>> import numpy as np, shortlist
        >>> shortlist.instances.item_response(3, 5, np.random.default_rng(0)).shape
        (3, 5)
    """
    n = whole("n", n, at_least=2, at_most=MOST_CELLS)
    n_items = whole("n_items", n_items, at_least=1, at_most=MOST_CELLS // n)
    spread = number("spread", spread, above=0, below=LARGEST)
    difficulty = number("difficulty", difficulty, above=0, below=LARGEST)
    _check_rng(rng)
    guessing = number("guessing", guessing)
    if not 0 <= guessing < 1:
        raise InvalidInput(f"`guessing` is {guessing!r}, but must be at least 0 and less than 1")
    ability = rng.normal(0, 1, n)[:, None]
    hard = rng.normal(0, difficulty, n_items)
    discrimination = rng.lognormal(0, 0.3, n_items)
    right = expit(discrimination * (1 + spread * ability - hard))
    right = guessing + (1 - guessing) * right
    if graded is None:
        return _drawn(right, rng)
    concentration = number("graded", graded, above=1e-3, below=1e9)
    right = np.clip(
        right, NEAREST_END, 1 - NEAREST_END
    )  # a Beta distribution has no mean of 0 or 1
    return rng.beta(concentration * right, concentration * (1 - right))


def item_response_with(means: npt.ArrayLike, n_items: int, rng: np.random.Generator) -> FloatArray:
    """Scores 0 or 1 of arms with these means on items by item response theory.

    Items are like those of `item_response`, and an arm has the ability for which P(right) has this
    mean over them. As every cell is drawn once, the mean of an arm on M items differs from this one
    by a standard deviation of at most 0.5 / sqrt(M).

    Args:
        means: Mean of every arm, from 0 to 1.
        n_items: Number of items, at least 1.
        rng: Source of randomness.

    Returns:
        The scores: (arms, items).

    Raises:
        InvalidInput: If a value breaks its rule.

    Example:
        >>> import numpy as np, shortlist
        >>> shortlist.instances.item_response_with([0.5, 0.9], 4, np.random.default_rng(0)).shape
        (2, 4)
    """
    theta = arm_means(means, 0.0, 1.0)
    n_items = whole("n_items", n_items, at_least=1, at_most=MOST_CELLS // max(theta.size, 1))
    _check_rng(rng)
    hard = rng.normal(0, DIFFICULTY, n_items)
    discrimination = rng.lognormal(0, 0.3, n_items)
    curve = [expit(discrimination * (ability - hard)).mean() for ability in ABILITIES]
    ability = np.interp(theta, curve, ABILITIES)[:, None]
    return _drawn(expit(discrimination * (ability - hard)), rng)


class WithFeatures(NamedTuple):
    """Arms with known features."""

    features: FloatArray  #: a row per arm
    means: FloatArray  #: mean of every arm


def linear(
    n: int, d: int, rng: np.random.Generator, *, residual: float = 0.0, sigmoid: bool = False
) -> WithFeatures:
    """Arms with normal features whose means are linear in them, or a sigmoid of a linear function.

    A direction is drawn. An arm that lies z standard deviations along it, 3 at most, has mean
    0.5 + 0.15 z, or 1 / (1 + exp(-1.5 z)). Residuals are added, and means are cut to [0.01, 0.99].

    Args:
        n: Number of arms, at least 2.
        d: Number of coefficients: a constant and d - 1 features; at least 2.
        rng: Source of randomness.
        residual: Standard deviation of the part of a mean that features do not explain. Default 0.
        sigmoid: Whether means are a sigmoid. Default False: they are linear.

    Returns:
        Features, (n, d - 1), and means, (n,), in random order.

    Raises:
        InvalidInput: If a value breaks its rule.

    Example:
        >>> import numpy as np, shortlist
        >>> features, means = shortlist.instances.linear(100, 4, np.random.default_rng(0))
        >>> features.shape
        (100, 3)
    """
    n = whole("n", n, at_least=2, at_most=MOST_ARMS)
    d = whole("d", d, at_least=2, at_most=max(2, MOST_CELLS // n))
    residual = number("residual", residual)
    if residual < 0:
        raise InvalidInput(f"`residual` is {residual!r}, but must be at least 0")
    _check_rng(rng)
    direction = rng.normal(size=d - 1)
    direction /= np.linalg.norm(direction)
    features = rng.normal(size=(n, d - 1))
    while (far := np.abs(features @ direction) > 3).any():
        features[far] = rng.normal(size=(int(far.sum()), d - 1))
    z = features @ direction
    means = expit(1.5 * z) if flag("sigmoid", sigmoid) else 0.5 + 0.15 * z
    return WithFeatures(features, np.clip(means + residual * rng.normal(size=n), 0.01, 0.99))


def _drawn(right: FloatArray, rng: np.random.Generator) -> FloatArray:
    """1 with probability `right`, else 0."""
    return (rng.random(right.shape) < right).astype(np.float64)


def _check_rng(rng: object) -> None:
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput(f"`rng` is {shown(rng)}, but must be a numpy.random.Generator")
