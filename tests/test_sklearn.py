"""`ShortlistSearchCV` keeps to scikit-learn's rules, finds the best candidates with a third of the
fits, and proves a bound only where splits are independent."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs

from shortlist.errors import InvalidInput, InvalidReward

pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_wine, make_regression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    StratifiedShuffleSplit,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist.sklearn import ShortlistSearchCV, adjusted_means, ranks

STRENGTHS = {"alpha": [0.1, 1.0, 10.0]}
NEIGHBOURS = {"n_neighbors": [1, 3, 5, 15, 60]}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        ShortlistSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2, random_state=0),
        ShortlistSearchCV(Ridge(), STRENGTHS, random_state=0),
    ]
)
def test_scikit_learns_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.rates
def test_the_best_candidate_of_a_full_search_is_found_with_a_third_of_the_fits() -> None:
    X, y = load_breast_cancer(return_X_y=True)  # noqa: N806
    data = (scale(X), y)
    grid = {"C": [0.01, 0.1, 1, 10, 100], "gamma": [0.0001, 0.001, 0.01, 0.1, 1]}
    n_splits = number_of_runs(15, 30)
    splits = StratifiedShuffleSplit(n_splits, test_size=0.2, random_state=1)
    full = GridSearchCV(SVC(), grid, cv=splits, n_jobs=1).fit(*data)

    for seed in range(2):
        search = ShortlistSearchCV(SVC(), grid, cv=splits, random_state=seed).fit(*data)
        assert search.best_params_ == full.best_params_
        assert search.cv_results_["n_splits_fitted"].sum() == search.n_fits_ <= 25 * n_splits / 3
        assert search.result_.regret_bound is None


def test_scores_are_those_of_a_full_search_on_the_same_splits() -> None:
    data = load_wine(return_X_y=True)
    splits = ShuffleSplit(6, test_size=0.3, random_state=2)
    full = GridSearchCV(KNeighborsClassifier(), NEIGHBOURS, cv=splits, return_train_score=True)
    full.fit(*data)
    search = ShortlistSearchCV(
        KNeighborsClassifier(), NEIGHBOURS, cv=splits, budget=30, return_train_score=True
    ).fit(*data)

    for part in ("test", "train"):
        name = f"mean_{part}_score"
        assert np.allclose(search.cv_results_[name], full.cv_results_[name])
    assert set(full.cv_results_) - set(search.cv_results_) == set()
    assert search.best_score_ == full.best_score_
    assert (search.cv_results_["rank_test_score"] == 1).sum() == 1


def test_on_random_splits_a_bound_is_proved() -> None:
    data = load_wine(return_X_y=True)
    splits = StratifiedShuffleSplit(test_size=0.3)
    search = ShortlistSearchCV(
        make_pipeline(StandardScaler(), KNeighborsClassifier()),
        {"kneighborsclassifier__n_neighbors": [1, 9, 120]},
        cv=splits,
        epsilon=0.1,
        rewards="normal",
        random_state=0,
    ).fit(*data)

    assert search.result_.reached
    assert (search.result_.regret_bound or 0.0) <= 0.1
    assert search.result_.confidence == 0.95
    assert search.result_.shared_seeds
    assert search.best_params_ != {"kneighborsclassifier__n_neighbors": 120}
    assert splits.get_n_splits() == 10, "the splitter of the caller is not changed"


def test_every_candidate_meets_the_same_new_splits_and_none_twice() -> None:
    met: dict[int, list[bytes]] = {0: [], 1: []}

    class Notes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        def __init__(self, luck: int = 0) -> None:
            self.luck = luck

        def fit(self, X: Any, y: Any) -> "Notes":  # noqa: N803
            met[self.luck].append(X.tobytes())
            self.classes_ = np.unique(y)
            return self

        def predict(self, X: Any) -> Any:  # noqa: N803
            return np.full(len(X), self.luck)

    rows = np.arange(200.0).reshape(-1, 1)
    ShortlistSearchCV(
        Notes(),
        {"luck": [0, 1]},
        cv=ShuffleSplit(test_size=0.2),
        epsilon=0.2,
        refit=False,
        random_state=3,
    ).fit(rows, np.arange(200) % 10 < 6)

    assert met[0] == met[1]
    assert len(set(met[0])) == len(met[0]) >= 4


@pytest.mark.parametrize("cv", [5, KFold(5, shuffle=True), [(np.arange(90), np.arange(90, 178))]])
def test_splits_that_depend_on_each_other_get_a_budget_only(cv: Any) -> None:
    search = ShortlistSearchCV(KNeighborsClassifier(), NEIGHBOURS, cv=cv, epsilon=0.1)
    with pytest.raises(InvalidInput, match="not independent of each other"):
        search.fit(*load_wine(return_X_y=True))


def test_groups_are_for_the_splits() -> None:
    X, y = load_wine(return_X_y=True)  # noqa: N806
    groups = np.arange(len(y)) % 7
    goals: list[dict[str, Any]] = [{}, {"epsilon": 0.2, "rewards": "normal"}]
    for goal in goals:
        search = ShortlistSearchCV(
            KNeighborsClassifier(), NEIGHBOURS, cv=GroupShuffleSplit(4, random_state=0), **goal
        ).fit(X, y, groups=groups)
        assert search.predict(X).shape == y.shape


def test_several_candidates_may_be_chosen_and_several_scores_computed() -> None:
    search = ShortlistSearchCV(
        KNeighborsClassifier(),
        {"n_neighbors": list(range(1, 60))},
        n_candidates=8,
        k=3,
        scoring=["accuracy", "f1_macro"],
        refit="f1_macro",
        random_state=0,
    ).fit(*load_wine(return_X_y=True))

    results = search.cv_results_
    assert len(results["params"]) == 8
    assert list(results["rank_test_f1_macro"][search.best_indices_]) == [1, 2, 3]
    assert search.best_score_ == results["mean_test_f1_macro"][search.best_index_]
    assert search.score(*load_wine(return_X_y=True)) > 0.6


def test_it_can_be_cloned_pickled_and_fitted_in_parallel() -> None:
    data = make_regression(60, 5, noise=20.0, random_state=0)
    search = ShortlistSearchCV(Ridge(), STRENGTHS, random_state=0, n_jobs=2)
    twin = clone(search).set_params(n_jobs=1).fit(*data)
    again = pickle.loads(pickle.dumps(search.fit(*data)))

    assert again.best_params_ == twin.best_params_
    assert np.array_equal(
        again.cv_results_["mean_test_score"], twin.cv_results_["mean_test_score"], equal_nan=True
    )


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"param_grid": {"n_neighbors": [3]}}, "has 1 candidates, but must have more than `k` = 1"),
        ({"k": 5}, "has 5 candidates, but must have more than `k` = 5"),
        ({"k": 0}, "`k` is 0, but must be a whole number of at least 1"),
        ({"error_score": math.nan}, "`error_score` is nan, but must be a finite number"),
        ({"refit": min}, "`refit` is .*, but must be True, False or the name of a score"),
        ({"scoring": ["accuracy"]}, "`refit` is True, but must be one of accuracy"),
        ({"scoring": lambda *_: {"a": 1.0}}, "`refit` is True, but must be the name of one"),
        ({"budget": 9}, "`budget` is 9, but must be a whole number of at least 10"),
        ({"cv": [(range(90), range(90, 178))]}, "which is 1 split, but must be 2"),
        ({"epsilon": -1}, "`epsilon` is -1"),
    ],
)
def test_errors_name_the_value_and_the_rule(change: dict[str, Any], rule: str) -> None:
    search = ShortlistSearchCV(KNeighborsClassifier(), NEIGHBOURS).set_params(**change)
    with pytest.raises(InvalidInput, match=rule):
        search.fit(*load_wine(return_X_y=True))


def test_scores_outside_the_declared_range_are_refused() -> None:
    data = make_regression(60, 5, noise=400.0, random_state=0)
    search = ShortlistSearchCV(
        Ridge(), STRENGTHS, cv=ShuffleSplit(test_size=0.5), epsilon=0.1, random_state=0
    )
    with pytest.raises(InvalidReward, match="between 0 and 1"):
        search.fit(*data)


def test_no_interval_rests_on_a_range_that_was_guessed() -> None:
    how: dict[str, Any] = {"cv": ShuffleSplit(6, random_state=0), "budget": 20, "random_state": 0}
    data = load_wine(return_X_y=True)
    guessed = ShortlistSearchCV(KNeighborsClassifier(), NEIGHBOURS, **how).fit(*data).result_
    declared = ShortlistSearchCV(KNeighborsClassifier(), NEIGHBOURS, rewards=(0, 1), **how)
    assert {(arm.low, arm.high) for arm in guessed.arms} == {(-np.inf, np.inf)}
    assert guessed.separates_at == ()
    assert all(0 <= arm.low <= arm.high <= 1 for arm in declared.fit(*data).result_.arms)


def test_adjusted_means_take_the_difficulty_of_splits_out() -> None:
    effects, levels = np.array([0.3, 0.1, 0.2]), np.array([0.0, 0.5, -0.4, 0.2])
    scores = effects[:, None] + levels
    full = adjusted_means(scores)
    scores[0, 1] = scores[2, 0] = scores[2, 3] = np.nan

    assert np.allclose(adjusted_means(scores), full)
    assert not np.allclose(np.nanmean(scores, axis=1), full)
    assert ranks(scores, np.array([1])).tolist() == [2, 1, 3]
