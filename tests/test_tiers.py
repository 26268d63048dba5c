"""Tiers of a result: which arms are surely among the best, and surely not."""

import itertools
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binomtest

import shortlist
from shortlist.certificates.frame import tiers_of
from shortlist.confidence import separations

DELTA = 0.3


def test_tiers_are_those_of_all_sets_that_agree_with_what_is_known() -> None:
    """Against all sets of k arms that have no j without an i that must be in before it."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(2, 7))
        k = int(rng.integers(1, n))
        order = rng.permutation(n)
        before = (order[:, None] < order) & (rng.random((n, n)) < 0.7)
        agreeing = [
            set(each)
            for each in itertools.combinations(range(n), k)
            if not any(before[i, j] for j in each for i in set(range(n)) - set(each))
        ]
        tiers = tiers_of(before, k)
        for arm in range(n):
            if tiers.inside[arm]:
                assert all(arm in each for each in agreeing)
            if tiers.outside[arm]:
                assert not any(arm in each for each in agreeing)


def test_intervals_separate_where_no_order_of_means_contradicts() -> None:
    low, high = np.array([0.7, 0.1, 0.3, 0.35]), np.array([0.9, 0.2, 0.45, 0.5])
    assert separations(low, high) == (1, 3)
    assert separations(-high, -low) == (1, 3)


CASES: dict[str, dict[str, Any]] = {
    "pairs of many rewards": {"means": (0.9, 0.8, 0.3, 0.1), "k": 2, "epsilon": 0.05},
    "one arm ahead": {"means": (0.75, 0.6, 0.5), "k": 1, "epsilon": 0.2},
    "items in pairs": {"means": (0.75, 0.65, 0.5, 0.4), "k": 2, "epsilon": 0.2, "items": 30},
    "items one by one": {"means": (0.8, 0.6, *[0.5] * 7), "k": 1, "epsilon": 0.15, "items": 30},
    "more than half of them": {"means": (0.7, 0.6, 0.55, 0.3), "k": 3, "epsilon": 0.2, "items": 30},
    "shared seeds": {
        "means": (0.9, 0.4, 0.1),
        "k": 1,
        "epsilon": 0.05,
        "seeds": "shared",
        "min_batch": 300,
    },
}


def outcome(case: dict[str, Any], rng: np.random.Generator) -> tuple[bool, int]:
    """Whether the bound or a tier of a run is wrong, and how many arms are in or out."""
    given = dict(case)
    means = rng.permutation(np.array(given.pop("means")))
    items, k = given.get("items"), given["k"]
    scores = rng.random((means.size, items or 1)) < means[:, None]
    truth = scores.mean(1) if items else means

    def pull(arm: int, item: int = 0, seed: int = 0) -> float:
        return float(scores[arm, item]) if items else float(rng.random() < means[arm])

    result = shortlist.select(
        pull, arms=means.size, delta=DELTA, rewards="binary", progress=False, **given,
        seed=int(rng.integers(2**31)),
    )  # fmt: skip
    ranked = np.sort(truth)[::-1]
    assert result.tiers is not None
    assert result.regret_bound is not None
    lost = (ranked[:k].sum() - truth[list(result.top)].sum()) / k
    low = any(truth[arm] < ranked[k - 1] - 1e-9 for arm in result.tiers["in"])
    high = any(truth[arm] > ranked[k] + 1e-9 for arm in result.tiers["out"])
    assert set(result.tiers["in"]) <= set(result.top)
    known = len(result.tiers["in"]) + len(result.tiers["out"])
    return bool(lost > result.regret_bound + 1e-9 or low or high), known


@pytest.mark.rates
@pytest.mark.parametrize("name", CASES)
def test_bound_and_tiers_hold_together(name: str) -> None:
    rng, runs = np.random.default_rng(7), number_of_runs(24, 2000)
    found = [outcome(CASES[name], rng) for _ in range(runs)]
    wrong = sum(each for each, _ in found)
    assert binomtest(wrong, runs, DELTA, alternative="greater").pvalue > 1e-4
    assert sum(known for _, known in found) > 0  # something is said


def test_tiers_are_left_open_where_nothing_is_proved_of_single_arms() -> None:
    def pull(arm: int) -> float:
        return arm / 3

    budget = shortlist.select(pull, arms=3, k=1, budget=30, progress=False)
    split = shortlist.select(
        pull, arms=3, k=1, epsilon=0.2, certificate="split", progress=False
    )  # fmt: skip
    assert budget.tiers is None
    assert split.tiers is None
    assert split.regret_bound is not None
    assert split.to_dict()["tiers"] is None
    assert budget.separates_at == tuple(budget.to_dict()["separates_at"])  # type: ignore[arg-type]


def test_arms_with_equal_scores_in_another_order_are_not_separated() -> None:
    rng, levels = np.random.default_rng(0), [0.1, 0.2, 0.3, 0.4, 0.7, 0.6] * 5
    for seed in range(4):
        scores = np.array([rng.permutation(levels) for _ in range(4)])
        result = shortlist.select(
            lambda arm, item, scores=scores: scores[arm, item],
            arms=4, k=1, epsilon=0.001, items=30, seed=seed, progress=False,
        )  # fmt: skip
        assert len({arm.mean for arm in result.arms}) > 1  # as floats
        assert result.separates_at == ()
