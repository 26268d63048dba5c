"""The instances of the paper's experiments (Section 5), each a vector of means, best first."""

import csv
from importlib.resources import files

import numpy as np

from shortlist.problem import number, whole
from shortlist.search import FloatArray


def two_group(n: int, k: int) -> FloatArray:
    """The top k arms have mean 0.7, the others 0.3."""
    _check(n, k)
    return np.where(np.arange(n) < k, 0.7, 0.3)


def uniform(n: int) -> FloatArray:
    """Means 1 - i/n for i = 1..n."""
    whole("n", n, at_least=2)
    return 1 - np.arange(1, n + 1) / n


def synthetic(p: float, n: int, k: int) -> FloatArray:
    """Means pushed towards the boundary 1 - k/n (p > 1) or away from it (p < 1); p = 1 is `uniform`.

    The formula spans [0, 1) as it stands, so nothing is rescaled (E17)."""
    number("p", p, above=0)
    _check(n, k)
    i = np.arange(1, n + 1)
    share = k / n
    above = share * (1 - np.minimum(i, k) / k) ** p
    below = (1 - share) * ((np.maximum(i, k) - k) / (n - k)) ** p
    return (1 - share) + above - below


def rte() -> FloatArray:
    """Accuracy of the 164 workers of the RTE crowdsourcing task of Snow, O'Connor, Jurafsky, Ng (2008)."""
    with (files("shortlist") / "data" / "rte_workers.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    accuracy = np.array([int(row["correct"]) / int(row["answered"]) for row in rows])
    return -np.sort(-accuracy)


def _check(n: int, k: int) -> None:
    whole("n", n, at_least=2)
    whole("k", k, at_least=1)
