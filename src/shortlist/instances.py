"""The instances of the paper, each a vector of means, best first (Sections 4 and 5)."""

import csv
from importlib.resources import files

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.errors import InvalidInput
from shortlist.validation import MOST_ARMS, check_choice, number, shown, whole

ETA = 1e-4  # the bias of the paper's coins


def two_group(n: int, k: int) -> FloatArray:
    """The top k arms have mean 0.7, the others 0.3."""
    check_choice(n, k)
    return np.where(np.arange(n) < k, 0.7, 0.3)


def uniform(n: int) -> FloatArray:
    """Means 1 - i/n for i = 1..n."""
    n = whole("n", n, at_least=2, at_most=MOST_ARMS)
    return 1 - np.arange(1, n + 1) / n


def synthetic(p: float, n: int, k: int) -> FloatArray:
    """Means pushed to the boundary 1 - k/n (p > 1) or away from it (p < 1); p = 1 is `uniform`.

    The formula spans [0, 1) as it stands, so nothing is rescaled (E17)."""
    number("p", p, above=0)
    check_choice(n, k)
    i = np.arange(1, n + 1)
    share = k / n
    above = share * (1 - np.minimum(i, k) / k) ** p
    below = (1 - share) * ((np.maximum(i, k) - k) / (n - k)) ** p
    return (1 - share) + above - below


def rte() -> FloatArray:
    """Accuracy of the 164 crowd workers of the RTE task.

    Snow, O'Connor, Jurafsky, Ng (2008); where the data are from: data/README.md."""
    return -np.sort(-rte_workers())


def rte_workers() -> FloatArray:
    """The same accuracies as `rte`, by the number of the worker."""
    with (files("shortlist") / "data" / "rte_workers.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return np.array([int(row["correct"]) / int(row["answered"]) for row in rows])


def lower_bound(n: int, eta: float = ETA, surplus: int = 0) -> FloatArray:
    """K = n/2 coins of value 0.5 + eta and as many of 0.5 - eta.

    Here every search must pay for ln(1/epsilon).

    In the reduction of Section 4 one coin at random is replaced by a coin to be told, so that there
    are K + `surplus` good ones, `surplus` being -1, 0 or 1. H^(t, epsilon) = n / (4 eta^2) for
    every epsilon <= 2 eta, as the paper says, if it is 0; otherwise the boundary is a tie, Psi_t =
    0 and H^(t, epsilon) > n / (2 epsilon^2) (E19)."""
    n = whole("n", n, at_least=2, at_most=MOST_ARMS)
    number("eta", eta, above=0, below=0.5)
    if n % 2:
        raise InvalidInput(f"`n` is {n}, but must be even, since K = n/2")
    if not isinstance(surplus, int) or surplus not in (-1, 0, 1):
        raise InvalidInput(f"`surplus` is {shown(surplus)}, but must be -1, 0 or 1")
    return np.where(np.arange(n) < n // 2 + surplus, 0.5 + eta, 0.5 - eta)
