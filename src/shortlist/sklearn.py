"""scikit-learn: candidates of a hyper-parameter search as arms, shared splits as items or seeds.

A search on a fixed list of splits spends a budget on it: splits are the items of a test set, and no
candidate is fitted twice on one. A search for an `epsilon` draws new splits from shared seeds.
Given the data they are independent, which the folds of one partition are not, so only there a bound
is proved (docs/hyper-parameters.md). Extra: `pip install 'shortlist[sklearn]'`."""

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.engine.experiment import Experiment
from shortlist.engine.tickets import Ticket
from shortlist.errors import InvalidInput
from shortlist.result import Result
from shortlist.reward_models import RewardsDeclared
from shortlist.validation import number, shown, whole

try:
    from sklearn import get_config
    from sklearn.base import clone, is_classifier
    from sklearn.metrics import check_scoring
    from sklearn.model_selection import (
        BaseShuffleSplit,
        ParameterGrid,
        ParameterSampler,
        ShuffleSplit,
        StratifiedShuffleSplit,
        check_cv,
        cross_validate,
    )
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state, get_tags, indexable
    from sklearn.utils.metadata_routing import process_routing
    from sklearn.utils.parallel import Parallel, delayed
except ImportError as error:
    raise ImportError(
        "scikit-learn is not installed, but shortlist.sklearn needs it:"
        " pip install 'shortlist[sklearn]'"
    ) from error

SPLITS = 30  # random splits, if none are given ...
TEST_SIZE = 0.2  # ... and the share of the data that they test on
SAVING = 3  # the default budget is this part of all fits
BELOW, ABOVE = 4.0, 2.0  # likely range of scores around the best, in halves of their range
SEEDS = 2**31  # number of seeds to draw from

MISSING = object()  # a parameter that a candidate does not have

Split = tuple[IntArray, IntArray]  # rows to fit on, rows to test on
Scores = Mapping[str, FloatArray]  # what `cross_validate` returns for one fit


class ShortlistSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search hyper-parameters with few fits: candidates are compared on the same splits.

    With a `budget` on any splits, by default a third of the fits of a full search, and without a
    guarantee. With `epsilon` on random splits, until the following is proved: with probability at
    least 1 - `delta`, the mean score of the chosen candidates over all random splits *of this data
    set* is at most epsilon below that of the best ones.

    Args:
        estimator: The estimator to tune.
        param_grid: Lists of values by parameter, or a list of such mappings; with `n_candidates`
            also distributions.
        n_candidates: Number of candidates to draw from `param_grid`. Default: the full grid.
        k: Number of candidates to choose. The first of them is refitted.
        budget: Number of fits, at least two per candidate. Default: a third of all; with
            `epsilon` no limit.
        epsilon: Largest regret allowed, in the unit of the score. Needs random splits.
        delta: Largest probability that the regret exceeds epsilon.
        rewards: Range `(low, high)` of the scores; with `epsilon` also "normal". Default: 0 to 1
            if `epsilon` is given, else any numbers.
        scoring: As in GridSearchCV. Of several scores `refit` names the one to search by.
        n_jobs: Number of fits at a time. Default: 1.
        refit: Whether to refit the best candidate on all data, or the name of a score.
        cv: Splits, as in GridSearchCV. Default: 30 random splits that test on a fifth of the data,
            stratified for classifiers. With `epsilon` a ShuffleSplit, StratifiedShuffleSplit or
            GroupShuffleSplit, from which as many splits as needed are drawn.
        verbose: Verbosity of joblib.
        pre_dispatch: As in GridSearchCV.
        error_score: Score of a fit that fails, or "raise", the default.
        return_train_score: Whether to score on the rows that were fitted on, too.
        random_state: Random seed of candidates, of splits that are drawn here, and of the search.

    Raises:
        InvalidInput: In `fit`, if an argument is not valid.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> from shortlist.sklearn import ShortlistSearchCV
        >>> neighbours = {"n_neighbors": [1, 3, 5, 10, 20, 40, 80, 100]}
        >>> search = ShortlistSearchCV(KNeighborsClassifier(), neighbours, random_state=0)
        >>> search = search.fit(*load_iris(return_X_y=True))
        >>> search.n_fits_ <= 8 * 30 / 3
        True"""

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        n_candidates: int | None = None,
        k: int = 1,
        budget: int | None = None,
        epsilon: float | str | None = None,
        delta: float = 0.05,
        rewards: RewardsDeclared | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: float | str = "raise",
        return_train_score: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.param_grid = param_grid
        self.n_candidates = n_candidates
        self.k = k
        self.budget = budget
        self.epsilon = epsilon
        self.delta = delta
        self.rewards = rewards
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags = copy.deepcopy(get_tags(self.estimator).target_tags)
        return tags

    def fit(self, X: Any, y: Any = None, **params: Any) -> "ShortlistSearchCV":  # noqa: N803
        """Search, and refit the best candidate on all data.

        Args:
            X: The data.
            y: The targets, if there are any.
            params: `groups` are for the splits; the others go to `fit` of the estimator, or by
                metadata routing to where they were requested.

        Returns:
            The search itself. `result_` is the `Result`; its labels are positions in
            `cv_results_["params"]`, and `best_indices_` are those of the chosen candidates."""
        X, y = indexable(X, y)  # noqa: N806
        self._check(y)
        random = check_random_state(self.random_state)
        candidates = self._candidates(random)
        self.scorer_, self.multimetric_ = self._scorers()
        groups = params.pop("groups", None)
        splits = self._splits(X, y, groups, int(random.randint(SEEDS)))
        with Parallel(self.n_jobs, verbose=self.verbose, pre_dispatch=self.pre_dispatch) as many:
            fits = _Fits(candidates, self._fit_of(X, y, params), self.refit, many)
            self.result_: Result[int] = self._search(fits, splits, int(random.randint(SEEDS)))
        self._conclude(fits)
        if self.refit:
            self._refit(X, y, params)
        return self

    def _check(self, y: Any) -> None:
        """Refuse what the search cannot take; the rest is checked by the experiment."""
        if y is None and get_tags(self.estimator).target_tags.required:
            raise InvalidInput(
                "`y` is None, but y should be a 1d array or a table: the estimator needs targets"
            )
        if callable(self.refit):
            raise InvalidInput(
                f"`refit` is {shown(self.refit)}, but must be True, False or the name of a score"
            )

    def _candidates(self, random: Any) -> list[dict[str, Any]]:
        """All candidates, each once."""
        if self.n_candidates is None:
            candidates = list(ParameterGrid(self.param_grid))
        else:
            most = whole("n_candidates", self.n_candidates, at_least=1)
            candidates = list(ParameterSampler(self.param_grid, most, random_state=random))
        if len(candidates) <= whole("k", self.k, at_least=1):
            raise InvalidInput(
                f"`param_grid` has {len(candidates)} candidates, but must have more than"
                f" `k` = {self.k}"
            )
        return candidates

    def _scorers(self) -> tuple[Any, bool]:
        """The scorer of `score`, or scorers by name; and whether there are several."""
        given = self.scoring
        if isinstance(given, list | tuple | set):
            given = {name: name for name in given}
        if not isinstance(given, dict):
            return check_scoring(self.estimator, given), False
        if self.refit not in given:
            names = ", ".join(map(str, given))
            raise InvalidInput(f"`refit` is {shown(self.refit)}, but must be one of {names}")
        return {name: check_scoring(self.estimator, each) for name, each in given.items()}, True

    def _splits(self, X: Any, y: Any, groups: Any, seed: int) -> "_Splits":  # noqa: N803
        """The splits that `cv` stands for."""
        cv, stratified = self.cv, is_classifier(self.estimator)
        if cv is None:
            kind = StratifiedShuffleSplit if stratified else ShuffleSplit
            cv = kind(SPLITS, test_size=TEST_SIZE, random_state=seed)
        cv = check_cv(cv, y, classifier=stratified)
        if self.epsilon is None:
            return _Listed(list(cv.split(X, y, groups)))
        if not isinstance(cv, BaseShuffleSplit):
            raise InvalidInput(
                f"`cv` is {shown(cv)}, but with `epsilon` must be a ShuffleSplit,"
                " StratifiedShuffleSplit or GroupShuffleSplit: other splits are not independent"
                " of each other, so that only a `budget` can be spent on them"
            )
        return _Drawn(cv, X, y, groups)

    def _search(self, fits: "_Fits", splits: "_Splits", seed: int) -> Result:
        """Search among the candidates, on a list of splits or on seeds of new ones."""
        how: dict[str, Any] = {"seed": seed, "rewards": self.rewards}
        if isinstance(splits, _Drawn):
            how |= {"epsilon": self.epsilon, "delta": self.delta, "budget": self.budget}
            return fits.searched(splits, k=self.k, seeds="shared", **how)
        n, size = len(fits.candidates), len(splits.splits)
        if size < 2:
            raise InvalidInput(f"`cv` is {shown(self.cv)}, which is {size} split, but must be 2")
        budget = max(2 * n, n * size // SAVING)
        if self.budget is not None:  # all candidates are fitted on two splits
            budget = whole("budget", self.budget, at_least=2 * n)
        known = np.full((n, size), np.nan)
        known[:, 0] = fits.made([(arm, *splits.at(0)) for arm in range(n)])
        limits = None if self.rewards is not None else likely_range(known[:, 0])
        if limits is not None:
            known, how["rewards"] = known.clip(*limits), limits
        how |= {"items": size, "scores": known, "budget": min(budget, n * size) - n}
        result = fits.searched(splits, limits, k=self.k, **how)
        return result if limits is None else without_intervals(result)

    def _fit_of(self, X: Any, y: Any, params: Mapping[str, Any]) -> Callable[..., Any]:  # noqa: N803
        """A fit of one candidate on one split, to be made by joblib."""
        failed = self.error_score
        if failed != "raise":  # a missing score cannot be compared
            failed = number("error_score", failed)

        def fit(candidate: Mapping[str, Any], split: Split) -> Any:
            return delayed(cross_validate)(
                clone(self.estimator).set_params(**clone(candidate, safe=False)),
                X,
                y,
                cv=[split],
                scoring=self.scoring,
                params=dict(params),
                error_score=failed,
                return_train_score=self.return_train_score,
            )

        return fit

    def _conclude(self, fits: "_Fits") -> None:
        """Set the attributes that GridSearchCV has."""
        self.best_indices_ = np.array(self.result_.top)
        self.best_index_ = int(self.best_indices_[0])
        self.best_params_ = fits.candidates[self.best_index_]
        self.cv_results_ = fits.table(self.best_indices_)
        self.n_splits_ = len(fits.columns)
        self.n_fits_ = len(fits.cells)
        self.best_score_ = self.cv_results_[f"mean_{fits.guide}"][self.best_index_]

    def _refit(self, X: Any, y: Any, params: Mapping[str, Any]) -> None:  # noqa: N803
        """Fit the best candidate on all data."""
        best = clone(self.best_params_, safe=False)
        self.best_estimator_ = clone(self.estimator).set_params(**best)
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, "fit", **params).estimator.fit
        begun = time.time()
        self.best_estimator_.fit(X, *([] if y is None else [y]), **params)
        self.refit_time_ = time.time() - begun
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


class _Listed:
    """A fixed list of splits: the items of a test set."""

    def __init__(self, splits: list[Split]) -> None:
        self.splits = splits

    def at(self, place: int) -> tuple[int, Split]:
        """The key and the rows of a split."""
        return place, self.splits[place]

    def of(self, ticket: Ticket) -> tuple[int, Split]:
        """The key and the rows of the split of a ticket."""
        assert isinstance(ticket.item, int)
        return self.at(ticket.item)


class _Drawn:
    """Independent random splits of one data set: one for every seed."""

    def __init__(self, cv: Any, *data: Any) -> None:
        self.cv = copy.copy(cv)
        self.cv.n_splits = 1
        self.data = data

    def of(self, ticket: Ticket) -> tuple[int, Split]:
        """The key and the rows of the split of a ticket."""
        # all 63 bits: with 32 of them the same split would soon be drawn twice
        self.cv.random_state = np.random.RandomState(np.random.MT19937(ticket.seed))
        (split,) = self.cv.split(*self.data)
        return ticket.seed, split


_Splits = _Listed | _Drawn


class _Fits:
    """The fits so far: scores by candidate and split."""

    def __init__(
        self,
        candidates: list[dict[str, Any]],
        fit: Callable[..., Any],
        refit: object,
        parallel: Callable[..., list[Scores]],
    ) -> None:
        self.candidates = candidates
        self.fit = fit
        self.refit = refit
        self.parallel = parallel
        self.columns: dict[int, int] = {}  # of the table, by the key of a split
        self.cells: list[tuple[int, int]] = []  # row and column of every fit
        self.scores: list[Scores] = []

    @property
    def guide(self) -> str:
        """Name of the score to search by."""
        return "test_score" if "test_score" in self.scores[0] else f"test_{self.refit}"

    def searched(
        self, splits: _Splits, limits: tuple[float, float] | None = None, **settings: Any
    ) -> Result:
        """Make the fits that a search asks for, until it ends.

        Scores are cut at `limits` for the search, if there are any."""
        with Experiment.create(len(self.candidates), **settings) as kept:
            while tickets := kept.ask(len(self.candidates) * SPLITS):
                scores = self.made([(int(each.arm), *splits.of(each)) for each in tickets])
                scores = scores if limits is None else scores.clip(*limits)
                kept.tell_many(zip(tickets, scores, strict=True))
            result = kept.result()
            if result.cells is not None:
                len(result.cells)  # read before the experiment is closed
        return result

    def made(self, asked: Sequence[tuple[int, int, Split]]) -> FloatArray:
        """Make fits: (candidate, key and rows of the split) each. Return their scores."""
        scores = self.parallel(self.fit(self.candidates[arm], split) for arm, _, split in asked)
        self.cells += [(a, self.columns.setdefault(key, len(self.columns))) for a, key, _ in asked]
        self.scores += scores
        if self.guide not in scores[0]:
            raise InvalidInput(
                f"`refit` is {shown(self.refit)}, but must be the name of one of the scores"
            )
        values = np.array([float(each[self.guide][0]) for each in scores])
        for (arm, *_), value in zip(asked, values.tolist(), strict=True):
            number(f"score of {self.candidates[arm]}", value)
        return values

    def table(self, chosen: IntArray) -> dict[str, Any]:
        """The results as GridSearchCV has them; NaN where a candidate was not fitted."""
        table: dict[str, Any] = {}
        for name in self.scores[0]:
            values = np.full((len(self.candidates), len(self.columns)), np.nan)
            values[tuple(np.array(self.cells).T)] = [float(each[name][0]) for each in self.scores]
            table[f"mean_{name}"] = np.nanmean(values, axis=1)
            table[f"std_{name}"] = np.nanstd(values, axis=1)
            if not name.endswith("_time"):
                table |= {f"split{place}_{name}": own for place, own in enumerate(values.T)}
            if name == self.guide:
                table[f"rank_{name}"] = ranks(values, chosen)
                table["n_splits_fitted"] = np.isfinite(values).sum(axis=1)
        for name in sorted({name for each in self.candidates for name in each}):
            table[f"param_{name}"] = _column([each.get(name, MISSING) for each in self.candidates])
        return {**table, "params": self.candidates}


def likely_range(scores: FloatArray) -> tuple[float, float]:
    """A range for scores that have none declared, by those of all candidates on one split.

    It only guides the search: wide for good candidates, cut below for hopeless ones."""
    best, middle = float(scores.max()), float(np.median(scores))
    width = best - middle or best - float(scores.min()) or abs(best) or 1.0
    return best - BELOW * width, best + ABOVE * width


def without_intervals(result: Result) -> Result:
    """The result without intervals: they would rest on a range that was not declared."""
    arms = tuple(replace(arm, low=-math.inf, high=math.inf) for arm in result.arms)
    return replace(result, arms=arms)


def adjusted_means(scores: FloatArray) -> FloatArray:
    """Mean of every candidate, as if all had been fitted on all splits; NaN where one was not.

    Least squares for score = candidate + split. The plain mean of a candidate that met easy splits
    is too high."""
    seen = np.isfinite(scores).astype(np.float64)
    filled = np.where(seen > 0, scores, 0.0)
    shared = seen / seen.sum(axis=0)
    system = np.diag(seen.sum(axis=1)) - shared @ seen.T
    effects = np.linalg.lstsq(system, (filled - shared * filled.sum(axis=0)).sum(axis=1))[0]
    level = (filled.sum(axis=0) - effects @ seen) / seen.sum(axis=0)
    means: FloatArray = effects + level.mean()
    return means


def ranks(scores: FloatArray, chosen: IntArray) -> IntArray:
    """1 for the best: the chosen candidates in their order, then all others by adjusted mean."""
    order = np.argsort(-adjusted_means(scores), kind="stable")
    order = np.concatenate([chosen, order[~np.isin(order, chosen)]])
    return np.argsort(order) + 1


def _column(values: list[Any]) -> Any:
    """A masked column of objects, masked where a candidate has no such parameter."""
    column: Any = np.ma.MaskedArray(np.full(len(values), None), mask=True)
    for place, value in enumerate(values):
        if value is not MISSING:
            column[place] = value
    return column
