"""The race on items where not every set of arms is feasible."""

from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

import shortlist
from shortlist.arrays import FloatArray
from shortlist.certificates.items import race as items_race
from shortlist.certificates.items.bound import DifferenceBounds
from shortlist.constraints import Matching, Matroid, Quotas
from shortlist.errors import InvalidInput
from shortlist.problem import FixedConfidence, Items, Problem
from shortlist.search import Pulls, Rewards

RUNS = number_of_runs(16, 2000)
Instance = tuple[FloatArray, str, dict[str, tuple[int, int]], int]


def spread(means: list[float], items: int) -> FloatArray:
    """0/1 scores with about these means, on items that arms share as little as can be."""
    scores = np.zeros((len(means), items))
    for arm, mean in enumerate(means):
        scores[arm, (np.arange(round(mean * items)) + arm * items // len(means)) % items] = 1
    return scores


HARD: dict[str, Instance] = {
    "two levels": (spread([0.1, 0.3, 0.95, 0.85], 40), "aabb", {"a": (1, 1)}, 2),
    "ties": (spread([0.5] * 6, 12), "aabbcc", {"a": (1, 1), "b": (0, 1)}, 3),
    "one decides": (spread([0.5, 0.55, 0.9, 0.1], 20), "aaab", {"b": (1, 1)}, 2),
    "more than half": (spread([0.3, 0.2, 0.8, 0.7, 0.9], 20), "aabbb", {"a": (1, 1)}, 4),
    "interacting": (spread([0.6, 0.5, 0.4, 0.55, 0.45, 0.35], 20), "aaabbb", {"a": (1, 2)}, 3),
}


@pytest.mark.rates
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("lopsided", [0, 99], ids=["single", "paired"])
def test_the_promise_is_kept_under_quotas(
    name: str, lopsided: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items_race, "FIRST_ITEMS", 1)
    monkeypatch.setattr(items_race, "SINGLE_FIRST", 1)
    monkeypatch.setattr(items_race, "LOPSIDED", lopsided)
    scores, groups, quotas, k = HARD[name]
    runs = shortlist.simulate(
        "certified", scores=scores, k=k, epsilon=0.02, delta=0.3, runs=RUNS,
        groups=list(groups), quotas=quotas,
    )  # fmt: skip
    assert (runs.pulls <= scores.size).all()
    assert binom.sf(int(runs.failed.sum()) - 1, RUNS, 0.3) > 1e-3


def test_an_arm_that_is_worse_than_all_others_may_be_in_the_best_feasible_set() -> None:
    """Sums of wealth put it out, which is right only where all sets are feasible."""
    scores, groups, quotas, k = HARD["two levels"]
    given: dict[str, Any] = {"groups": list(groups), "quotas": quotas, "epsilon": 0.05, "runs": 5}
    assert shortlist.simulate("certified", scores=scores, k=k, **given).regret.max() <= 0.05
    ranked, free = (DifferenceBounds(2, 1, 0.5, ranked=each) for each in (True, False))

    class Rich:
        grid = np.array([0.0])

        def against(self, _: object) -> FloatArray:
            return np.array([[[0.0, 9.0], [0.0, 0.0]]])

    pairs = np.array([[0], [1]]), np.array([[0, 1]])
    for bounds in (ranked, free):
        bounds.look(Rich(), pairs)  # type: ignore[arg-type]
    assert ranked.out.tolist() == [False, True]
    assert not free.out.any()


@pytest.mark.parametrize("algorithm", ["certified", "expected-loss"])
@pytest.mark.parametrize("name", HARD)
def test_all_cells_give_the_best_feasible_set(algorithm: str, name: str) -> None:
    scores, groups, quotas, k = HARD[name]
    goal: dict[str, Any] = {"epsilon": 1e-9}
    if algorithm == "expected-loss":
        goal = {"budget": scores.size}
    runs = shortlist.simulate(
        algorithm, scores=scores, k=k, groups=list(groups), quotas=quotas, runs=2, **goal
    )
    assert runs.regret.max() < 1e-9


def test_a_budget_of_cells_ends_with_a_bound_of_feasible_swaps() -> None:
    scores, groups, quotas, k = HARD["interacting"]
    runs = shortlist.simulate(
        "certified", scores=scores, k=k, groups=list(groups), quotas=quotas, runs=4, epsilon=0.01,
        budget=60,
    )  # fmt: skip
    assert (runs.regret <= runs.bound).all()
    assert (runs.bound < 1).all()


def test_a_budget_of_cells_keeps_to_any_family() -> None:
    pairs = [(row, column) for row in range(3) for column in range(3)]
    scores = spread([0.9, 0.1, 0.2, 0.2, 0.8, 0.1, 0.3, 0.2, 0.7], 20)
    family = Matching(*zip(*pairs, strict=True))
    runs = shortlist.simulate(
        "expected-loss", scores=scores, k=3, constraint=family, budget=scores.size, runs=3
    )
    assert runs.regret.max() < 1e-9


def problem_of(family: Any, n_arms: int, k: int) -> Problem:
    return Problem(n_arms, k, FixedConfidence(0.01, 0.05), items=Items(20), constraint=family)


def test_a_matching_on_items_is_refused() -> None:
    family = Matching("aabb", "xyxy")
    with pytest.raises(InvalidInput, match="it has no `exchangeable`"):
        shortlist.find("certified").start(problem_of(family, 4, 2), np.random.default_rng(0))


@pytest.mark.parametrize("k", [2, 4])
def test_quotas_hold_among_the_arms_that_remain(k: int) -> None:
    scores = spread([0.9, 0.8, 0.3, 0.2, 0.1, 0.5], 20)
    family = Quotas("aaabbb", {"b": (1, 3)}, k=k)
    search = shortlist.find("certified").start(problem_of(family, 6, k), np.random.default_rng(0))
    drawn = np.zeros(6, dtype=np.int64)
    turn: Any = next(search)
    batches = 0
    try:
        while True:
            assert isinstance(turn, Pulls)
            each = np.concatenate(
                [
                    scores[arm, drawn[arm] : drawn[arm] + times]
                    for arm, times in zip(turn.arms, turn.times, strict=True)
                ]
            )
            entry = np.repeat(np.arange(turn.arms.size), turn.times)
            sums = np.bincount(entry, each, turn.arms.size).astype(np.float64)
            drawn[turn.arms] += turn.times
            batches += 1
            gone = np.array([0]) if batches > 1 else None
            turn = search.send(Rewards(sums, sums, each, retired=gone))
    except StopIteration as stop:
        answer = stop.value
    assert 0 not in answer.top
    assert any("aaabbb"[arm] == "b" for arm in answer.top)
    assert answer.regret_bound is not None


def test_a_matroid_of_your_own_needs_no_rule_for_fewer_arms() -> None:
    class Even:
        best = Matroid(lambda arms: len({arm // 2 for arm in arms}) == len(arms), 4, k=2).best
        exchangeable = Matroid(
            lambda arms: len({arm // 2 for arm in arms}) == len(arms), 4, k=2
        ).exchangeable

    search = shortlist.find("certified").start(problem_of(Even(), 4, 2), np.random.default_rng(0))
    assert isinstance(next(search), Pulls)
