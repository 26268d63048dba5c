"""Choosing on a test set: `select` and `simulate` with items."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars
import pytest

import shortlist
from shortlist.arrays import FloatArray
from shortlist.errors import InvalidInput, InvalidReward, UnknownName, UnsupportedGoal
from shortlist.problem import FixedConfidence, Items, Problem
from shortlist.regret import aggregate_regret
from shortlist.spec import Order


def matrix(n: int, size: int, seed: int) -> FloatArray:
    return shortlist.instances.item_response(n, size, np.random.default_rng(seed))


class Cell:
    """Looks scores up and counts how often each was asked for."""

    def __init__(self, scores: FloatArray) -> None:
        self.scores = scores
        self.asked: Counter[tuple[int, int]] = Counter()

    def __call__(self, arm: int, item: int) -> float:
        self.asked[arm, item] += 1
        return float(self.scores[arm, item])

    def many(self, arm: int, items: Sequence[int]) -> list[float]:
        return [self(arm, item) for item in items]


@pytest.mark.parametrize("order", ["shared", "independent"])
def test_no_cell_is_asked_twice_and_the_promise_is_kept(order: Order) -> None:
    cell = Cell(matrix(12, 150, 3))
    result = shortlist.select(
        cell, arms=12, k=3, epsilon=0.03, items=150, order=order, rewards="binary", progress=False
    )

    assert max(cell.asked.values()) == 1
    assert result.pulls == len(cell.asked) < 12 * 150
    assert result.reached
    assert aggregate_regret(cell.scores.mean(1), list(result.top)) <= 0.03
    assert result.evidence["certificate"] == "items"


def test_arms_share_the_first_items_of_one_order() -> None:
    cell = Cell(matrix(6, 80, 4))
    shortlist.select(cell, arms=6, k=2, epsilon=0.05, items=80, progress=False)
    seen = [{item for arm, item in cell.asked if arm == each} for each in range(6)]
    seen.sort(key=len)

    assert all(fewer <= more for fewer, more in pairwise(seen))


def test_a_function_of_many_items_gives_the_same_result() -> None:
    scores = matrix(8, 100, 5)
    asked = {"arms": 8, "k": 2, "epsilon": 0.04, "items": 100, "progress": False}
    one = shortlist.select(Cell(scores), **asked)  # type: ignore[arg-type]
    many = shortlist.select(pull_many=Cell(scores).many, **asked)  # type: ignore[arg-type]

    assert many == one


def test_scores_that_are_known_are_not_asked_for() -> None:
    scores = matrix(8, 120, 6)
    known = np.where(np.random.default_rng(0).random(scores.shape) < 0.5, scores, np.nan)
    cell = Cell(scores)
    result = shortlist.select(
        cell, arms=8, k=2, epsilon=0.02, items=120, scores=known, progress=False
    )

    assert not any(math.isfinite(known[each]) for each in cell.asked)
    assert aggregate_regret(scores.mean(1), list(result.top)) <= 0.02


def test_with_everything_known_nothing_is_asked_for_and_the_answer_is_exact() -> None:
    scores = matrix(8, 30, 7)
    cell = Cell(scores)
    result = shortlist.select(
        cell, arms=8, k=3, epsilon=0.01, items=30, scores=scores, progress=False
    )

    assert not cell.asked
    assert aggregate_regret(scores.mean(1), list(result.top)) == 0


def test_a_budget_of_cells_ends_with_what_could_be_proved() -> None:
    scores = matrix(10, 200, 8)
    bounds = []
    for budget in (10, 55, 400, 1200, 2000):
        cell = Cell(scores)
        result = shortlist.select(
            cell, arms=10, k=2, epsilon=0.001, items=200, budget=budget, progress=False
        )
        assert result.pulls <= budget
        assert result.regret_bound is not None
        assert aggregate_regret(scores.mean(1), list(result.top)) <= result.regret_bound + 1e-9
        bounds.append(result.regret_bound)

    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == 0


@pytest.mark.parametrize("k", [1, 3, 9])
def test_expected_loss_asks_for_new_cells_only_and_keeps_to_its_budget(k: int) -> None:
    cell = Cell(matrix(10, 60, 9))
    result = shortlist.select(cell, arms=10, k=k, items=60, budget=250, progress=False)

    assert result.algorithm == "expected-loss"
    assert 125 < result.pulls == len(cell.asked) <= 250
    assert max(cell.asked.values()) == 1


def test_a_budget_of_more_than_all_cells_is_not_spent() -> None:
    cell = Cell(matrix(5, 20, 9))
    result = shortlist.select(cell, arms=5, k=2, items=20, budget=1000, progress=False)

    assert result.pulls <= 100
    assert aggregate_regret(cell.scores.mean(1), list(result.top)) == 0


def test_expected_loss_uses_what_is_known_and_pays_for_the_rest_alone() -> None:
    scores = matrix(10, 80, 3)
    known = scores.copy()
    known[:, 40:] = np.nan
    cell = Cell(scores)
    result = shortlist.select(
        cell, arms=10, k=2, items=80, scores=known, budget=200, progress=False
    )

    assert all(item >= 40 for _, item in cell.asked)
    assert len(cell.asked) <= 200
    assert aggregate_regret(scores.mean(1), list(result.top)) <= 0.05


def test_expected_loss_with_all_cells_is_exact() -> None:
    for seed in range(5):
        scores = matrix(9, 12, seed)
        runs = shortlist.simulate("expected-loss", scores=scores, k=4, budget=108, seed=seed)
        assert runs.regret.max() == pytest.approx(0, abs=1e-12)


def test_where_small_scores_are_good_ones_the_least_means_are_chosen() -> None:
    scores = matrix(8, 60, 1)
    known = np.where(np.arange(60) < 10, scores, np.nan)
    result = shortlist.select(
        Cell(scores), arms=8, k=2, epsilon=0.05, items=60, scores=known, minimize=True
    )

    assert aggregate_regret(-scores.mean(1), list(result.top)) <= 0.05


def test_scores_of_any_range_are_taken() -> None:
    scores = 10 * matrix(8, 60, 1) - 3
    result = shortlist.select(
        Cell(scores), arms=8, k=2, epsilon=0.5, items=60, rewards=(-3, 7), progress=False
    )

    assert aggregate_regret(scores.mean(1), list(result.top)) <= 0.5


def test_simulate_says_which_share_of_the_cells_was_asked_for() -> None:
    scores = matrix(12, 200, 2)
    runs = shortlist.simulate("certified", scores=scores, k=2, epsilon=0.05, runs=5)
    cells = runs.summary()["cells"]

    assert cells == {"mean": runs.pulls.mean(), "share": runs.pulls.mean() / 2400}
    assert (runs.pulls <= 2400).all()
    assert (runs.bound <= 0.05 + 1e-9).all()


def test_intervals_hold_what_items_not_scored_leave_open_and_there_are_no_lifts() -> None:
    scores = matrix(6, 40, 2)
    for epsilon, budget in ((0.05, None), (None, 100)):
        result = shortlist.select(
            Cell(scores), arms=6, k=2, items=40, epsilon=epsilon, budget=budget, progress=False
        )
        for arm, mean in zip(result.arms, scores.mean(1), strict=True):
            assert arm.low - 1e-9 <= mean <= arm.high + 1e-9
            assert arm.high - arm.low <= (40 - arm.pulls) / 40 + 1e-9
        with pytest.raises(InvalidInput, match="but these are scores on items"):
            result.lift(0)


def test_items_may_be_anything() -> None:
    def score(arm: str, item: dict[str, float]) -> float:
        return item[arm]

    examples = [{"a": 1.0, "b": each / 40} for each in range(40)]
    result = shortlist.select(score, arms=["a", "b"], k=1, epsilon=0.1, items=examples)

    assert result.top == ("a",)


def nothing(arm: object, item: object) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"items": 0}, "`items` is 0, but must be a whole number of at least 1"),
        ({"items": []}, "`items` is empty"),
        ({"items": "abc"}, "`items` is 'abc', but must be a number of items or a list"),
        ({"items": ["x", "y", "x"]}, "two items are called 'x'"),
        ({"items": 3, "scores": [[1, 2], [1]]}, "all of the same length"),
        ({"items": 3, "scores": [[1, 0, 1]]}, r"shape \(1, 3\), but must have a row for each of 2"),
        ({"items": 2, "scores": [[0, 2], [0, 1]]}, "arm 0 on item 1 is 2, but must be"),
        ({"items": 2, "order": "sorted"}, "`order` is 'sorted'"),
        ({"items": 2, "order": "independent", "scores": [[0, 1]] * 2}, "need a shared order"),
        ({"scores": [[0, 1]] * 2}, "`scores` is given without `items`"),
        ({"order": "independent"}, "`order` is given without `items`"),
        ({"items": 2, "algorithm": "lucb"}, "lucb does not support items"),
        ({"items": 2, "rewards": shortlist.SubGaussian(0.5)}, "scores on items need one"),
        (
            {"items": 2, "options": {"window": 3, "min_batch": 4}},
            "`window` is 3, but must be 0 or at least `min_batch` = 4",
        ),
        ({"items": 2, "options": {"certificate": "split"}}, "'split' and items are given"),
    ],
)
def test_bad_test_sets_are_refused_in_words(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        shortlist.select(nothing, arms=2, k=1, epsilon=0.1, **given)  # type: ignore[arg-type]


def test_scores_without_items_are_refused_whatever_they_are() -> None:
    with pytest.raises(InvalidInput, match=r"without `items`.* use `assess\(scores=\)`"):
        shortlist.select(nothing, arms=4, k=1, epsilon=0.1, scores=np.eye(4))


def test_items_are_needed_for_their_certificate_and_rule_out_a_holdout() -> None:
    with pytest.raises(InvalidInput, match="'items' and items are not given"):
        shortlist.simulate(
            "certified", [0.5, 0.6], k=1, epsilon=0.1, options={"certificate": "items"}
        )
    with pytest.raises(InvalidInput, match="must be 0 where there are items"):
        shortlist.simulate(
            "expected-loss", scores=np.eye(4), k=1, budget=8, options={"holdout": 0.5}
        )
    for pace in ("max_rounds", "min_batch"):
        with pytest.raises(InvalidInput, match="is 3, but a search on items sets it itself"):
            shortlist.simulate("expected-loss", scores=np.eye(4), k=1, budget=8, options={pace: 3})


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[1, 0], [1]], "`scores` cannot be read"),
        ([1, 0], r"shape \(2,\)"),
        ([[1, 0], [math.nan, 1]], "arm 1 on item 0 is nan, but must be a finite number"),
    ],
)
def test_bad_matrices_are_refused_in_words(scores: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        shortlist.simulate("certified", scores=scores, k=1, epsilon=0.1)  # type: ignore[arg-type]


def test_means_and_scores_are_one_or_the_other() -> None:
    with pytest.raises(InvalidInput, match="neither of `means` and `scores` given"):
        shortlist.simulate("certified", k=1, epsilon=0.1)
    with pytest.raises(InvalidInput, match="both of `means` and `scores` given"):
        shortlist.simulate("certified", [0.1, 0.2], scores=np.eye(2), k=1, epsilon=0.1)
    with pytest.raises(UnknownName, match="`order` is 'none'"):
        shortlist.simulate("certified", scores=np.eye(2), order="none", k=1, epsilon=0.1)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedGoal, match="lucb does not support items"):
        shortlist.simulate("lucb", scores=np.eye(2), k=1, epsilon=0.1)


def test_a_search_that_asks_for_more_than_there_are_items_is_stopped() -> None:
    def greedy(problem: Problem, rng: np.random.Generator) -> shortlist.Search:
        yield shortlist.Pulls(np.array([1]), np.array([4]))
        return shortlist.Answer(np.array([0]))

    with pytest.raises(InvalidInput, match="greedy asks for more pulls of arm 1 than it has items"):
        shortlist.simulate(greedy, scores=np.eye(3), k=1, epsilon=0.1)


def test_known_scores_must_be_of_the_arms() -> None:
    goal = FixedConfidence(0.1, 0.1)
    with pytest.raises(InvalidInput, match="must be of 3 arms and 2 items"):
        Problem(3, 1, goal, items=Items(2, np.zeros((2, 2))))
    assert Items(2, np.array([[1, np.nan], [0, 1]])).cells(2) == 1


def test_a_bad_score_is_refused_with_the_arm_and_the_item_named() -> None:
    with pytest.raises(InvalidReward, match=r"a reward of arm 'a' on item [012] is nan"):
        shortlist.select(
            lambda arm, item: math.nan, arms=["a", "b"], k=1, epsilon=0.1, items=3, progress=False
        )


@pytest.mark.parametrize("bad", [1.3, None])
def test_a_bad_score_among_many_is_refused_with_its_item_named(bad: float | None) -> None:
    def many(arm: str, items: list[dict[str, str]]) -> list[float | None]:
        return [bad if item["id"] == "q7" else 1.0 for item in items]

    with pytest.raises(InvalidReward, match=rf"a reward of arm '[ab]' on item 'q7' is {bad}"):
        shortlist.select(
            pull_many=many,
            arms=["a", "b"],
            k=1,
            epsilon=0.01,
            items=[{"id": f"q{n}"} for n in range(12)],
            batch=4,
            progress=False,
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clusters": {0: "x", 1: "x", 2: "y"}}, "`clusters` is a dict, but must be a list"),
        ({"clusters": polars.DataFrame({"c": [1]})}, "`clusters` is a DataFrame, but must be"),
        ({"items": polars.DataFrame({"id": ["q"]})}, "`items` is a DataFrame, but must be"),
    ],
)
def test_what_would_be_read_by_its_keys_is_refused(given: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = {"items": 3, "k": 1, "epsilon": 0.1, "progress": False, **given}
    with pytest.raises(InvalidInput, match=message):
        shortlist.select(lambda arm, item: 1.0, arms=2, **settings)


def test_cells_that_were_asked_for_ahead_and_not_needed_are_named() -> None:
    asked: dict[str, Any] = {"k": 1, "epsilon": 0.1, "items": 40, "progress": False}
    result = shortlist.select(Cell(matrix(6, 40, 1)), arms=6, min_batch=4, window=24, **asked)
    assert result.unused == len(result.cells or ()) - result.pulls
    assert result.spent == result.pulls + result.unused
    assert result.unused > 0
    assert f"{result.pulls:,} pulls ({result.unused} more cells asked for ahead)" in str(result)
    assert "that cost" not in str(result)
