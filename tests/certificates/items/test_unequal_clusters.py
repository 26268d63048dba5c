"""Clusters of unequal size in searches that plan their batches."""

import random
from typing import Any

import pytest

import shortlist

SIZES = (7, 2, 4, 1, 1, 1, 4) * 12
CLUSTERS = [cluster for cluster, size in enumerate(SIZES) for _ in range(size)]
ITEMS = len(CLUSTERS)
RIGHT = (0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)


def answered(arm: int, item: int) -> bool:
    return random.Random(f"{arm}/{item}").random() < RIGHT[arm]


@pytest.mark.parametrize(
    "how", [{}, {"min_batch": 4}, {"min_batch": 4, "window": 0}, {"min_batch": 30, "window": 90}]
)
def test_the_bound_holds_on_clusters_of_unequal_size(how: dict[str, Any]) -> None:
    means = [sum(answered(arm, item) for item in range(ITEMS)) / ITEMS for arm in range(10)]
    for seed in range(2):
        result = shortlist.select(
            answered,
            arms=10,
            k=2,
            items=ITEMS,
            clusters=CLUSTERS,
            epsilon=0.05,
            seed=seed,
            progress=False,
            **how,
        )
        best = sum(sorted(means)[-2:]) / 2
        assert result.regret_bound is not None
        assert best - sum(means[arm] for arm in result.top) / 2 <= result.regret_bound
