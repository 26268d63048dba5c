"""`certify` with features: Theorem 1, by exact enumeration and through the public call."""

import math
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import shortlist
from shortlist.errors import InvalidInput
from shortlist.instances import linear

LINE = np.array([0.3, 0.45, 0.6, 0.75])


@pytest.mark.parametrize("misfit", [0.0, 0.04])
@pytest.mark.parametrize("top", [(0, 1), (2, 3), (0,), (1, 2, 3)])
def test_the_bound_of_a_fixed_set_fails_with_probability_delta_at_most(
    top: tuple[int, ...], misfit: float
) -> None:
    """Exact: all outcomes of three pulls of three arms; one arm is never pulled."""
    pulls = np.array([3, 0, 3, 3])
    means = LINE + misfit * np.array([1, -1, -1, 1])
    k = len(top)
    best = max(means[list(arms)].sum() for arms in combinations(range(4), k))
    loss = (best - means[list(top)].sum()) / k
    failed = 0.0
    for sums in product(range(4), [0], range(4), range(4)):
        weight = math.prod(
            float(binom.pmf(s, n, p)) for s, n, p in zip(sums, pulls, means, strict=True)
        )
        bound = shortlist.certify(
            list(top),
            pulls,
            list(sums),
            fresh=True,
            delta=0.3,
            rewards="binary",
            features=LINE[:, None],
            linear=misfit or True,
        )
        failed += weight * (loss > bound)
    assert failed <= 0.3


def test_pulls_of_some_arms_bound_the_regret_of_many() -> None:
    x, means = linear(500, 4, np.random.default_rng(0))
    pulls = np.zeros(500, dtype=int)
    pulls[::20] = 200
    sums = np.random.default_rng(1).binomial(pulls, means)
    best = np.argsort(-means)[:50]
    worst = np.argsort(means)[:50]
    given: dict[str, Any] = {"fresh": True, "features": x, "rewards": "binary"}
    assert shortlist.certify(best, pulls, sums, **given) < 0.05
    assert shortlist.certify(worst, pulls, sums, **given) > 0.3
    scaled = shortlist.certify(
        best, pulls, 10.0 * sums, fresh=True, features=x, rewards=(0, 10), linear=0.01
    )
    assert 0.01 < scaled < 2


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a boundary": ({"boundary": 0.5}, "`boundary` is given, but does not go with `features`"),
    "an epsilon": ({"epsilon": 0.1}, "`epsilon` is given, but does not go with `features`"),
    "squares": ({"squares": [1, 1, 1, 1]}, "`squares` is given"),
    "no declaration": ({"linear": False}, "rests on linear means"),
    "too few arms": ({"pulls": [5, 0, 0, 0]}, "do not settle the coefficients"),
    "other arms": ({"features": [[1.0], [2.0]]}, "has 2 rows"),
    "negative pulls": ({"pulls": [5, -1, 0, 0]}, "at least 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_go_with_features_is_refused(name: str) -> None:
    changed, words = BAD[name]
    given = {"pulls": [5, 5, 5, 5], "sums": [1, 0, 0, 0], "fresh": True, "features": LINE[:, None]}
    with pytest.raises(InvalidInput, match=words):
        shortlist.certify([0], **{**given, **changed})
