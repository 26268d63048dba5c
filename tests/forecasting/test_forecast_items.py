"""A forecast on a test set: cells and their share, before anything is evaluated."""

from typing import Any

import numpy as np
import pytest

import shortlist
from shortlist.errors import InvalidInput, UnknownName, UnsupportedGoal
from shortlist.instances import item_response_with

SMALL: dict[str, Any] = {"n": 10, "k": 2, "prior": (6, 6), "items": 80, "runs": 3}


def test_cells_and_their_share_are_forecast_for_every_goal() -> None:
    found = shortlist.forecast(**SMALL, epsilon=0.05, budget=[100, 400])
    certified, lean, rich = found.prospects

    assert found.arms == "10 arms with means from Beta(6, 6) on 80 items"
    assert [each.algorithm for each in found.prospects] == ["certified"] + ["expected-loss"] * 2
    assert certified.share == pytest.approx(certified.pulls.mean() / 800)
    assert certified.share is not None
    assert 0 < certified.share <= 1
    assert certified.failure_rate == 0
    assert (lean.pulls <= 100).all()
    assert rich.regret.mean() <= lean.regret.mean()
    assert found.left_out == ()


def test_the_summary_has_cells_and_the_table_a_share() -> None:
    found = shortlist.forecast(**SMALL, epsilon=0.05, budget=100, per_day=50)
    first, second = (each.summary() for each in found.prospects)
    text = str(found)

    assert first["cells"] == {
        "mean": found.prospects[0].pulls.mean(),
        "share": found.prospects[0].share,
    }
    assert second["cells"]["share"] <= 1 / 8  # type: ignore[index]
    assert "Cells until at most 0.05 is lost with probability 0.95:" in text
    assert "Regret after 100 cells:" in text
    assert "share" in text
    assert "days" in text


def test_a_forecast_without_items_knows_of_no_cells() -> None:
    found = shortlist.forecast(n=3, k=1, prior=(2, 2), budget=30, algorithms=["uniform"], runs=2)
    assert found.prospects[0].share is None
    assert "cells" not in found.prospects[0].summary()
    assert "share" not in str(found)


def test_searches_on_the_same_run_see_the_same_scores() -> None:
    both = shortlist.forecast(**{**SMALL, "items": 20}, budget=200, epsilon=0.3)
    certified, everything = both.prospects
    assert everything.algorithm == "expected-loss"
    assert (everything.pulls <= 200).all()
    assert (everything.regret == 0).all()  # all cells are seen, so nothing is lost
    again = shortlist.forecast(**{**SMALL, "items": 20}, epsilon=0.3, workers=2)
    assert np.array_equal(again.prospects[0].pulls, certified.pulls)


def test_items_may_be_named_and_orders_independent() -> None:
    named = {**SMALL, "items": [f"q{item}" for item in range(80)]}
    shared = shortlist.forecast(**SMALL, epsilon=0.05)
    assert np.array_equal(
        shortlist.forecast(**named, epsilon=0.05).prospects[0].pulls, shared.prospects[0].pulls
    )
    own = shortlist.forecast(**SMALL, epsilon=0.05, order="independent").prospects[0]
    assert own.failure_rate == 0
    assert not np.array_equal(own.pulls, shared.prospects[0].pulls)


def test_the_least_means_may_be_the_best() -> None:
    means = np.linspace(0.2, 0.8, 8)
    found = shortlist.forecast(
        k=2, means=means, items=150, epsilon=0.1, budget=600, runs=3, minimize=True
    )
    assert all(each.regret.max() <= 0.1 for each in found.prospects)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"items": 0}, InvalidInput, "`items` is 0, but must be a whole number of at least 1"),
        ({"items": []}, InvalidInput, "`items` is empty"),
        ({"items": ["a", "a"]}, InvalidInput, "two items are called 'a'"),
        ({"items": 10**6, "n": 100}, InvalidInput, "100 arms and 1,000,000 items are given, but"),
        ({"order": "own"}, UnknownName, "`order` is 'own', but must be one of shared, independent"),
        ({"items": None, "order": "independent"}, InvalidInput, "given without `items`, but only"),
        ({"algorithms": ["uniform"]}, UnsupportedGoal, "uniform does not support items"),
        (
            {"min_batch": 9, "window": 2},
            InvalidInput,
            "`window` is 2, but must be 0 or at least `min_batch` = 9",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    given: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        shortlist.forecast(**{**SMALL, "epsilon": 0.1, **given})


# Test sets of arms with given means


def test_made_up_scores_have_the_means_that_were_asked_for() -> None:
    means = np.array([0.0, 0.02, 0.3, 0.5, 0.77, 0.98, 1.0])
    scores = item_response_with(means, 40_000, np.random.default_rng(1))
    assert set(np.unique(scores)) == {0.0, 1.0}
    assert np.abs(scores.mean(1) - means).max() < 6 * 0.5 / 200
    assert scores[0].sum() == 0
    assert scores[-1].mean() == 1


def test_made_up_scores_share_how_hard_items_are() -> None:
    scores = item_response_with(np.full(40, 0.6), 500, np.random.default_rng(2))
    correlated = np.asarray(np.corrcoef(scores))[np.triu_indices(40, 1)].mean()
    assert 0.2 < correlated < 0.5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([0.5, 1.2], 5, np.random.default_rng(0)), "the mean of arm 1 is 1.2, but"),
        (([0.5, 0.2], 0, np.random.default_rng(0)), "`n_items` is 0"),
        (([0.5, 0.2], 5, 7), "`rng` is 7, but must be a numpy.random.Generator"),
    ],
)
def test_test_sets_that_cannot_be_made_up_are_refused(given: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        item_response_with(*given)
