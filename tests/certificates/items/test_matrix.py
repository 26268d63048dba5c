"""What a matrix of scores with missing cells proves, over all samples of its items."""

from itertools import combinations, product

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

from shortlist.arrays import FloatArray
from shortlist.certificates.past.charges import MOST_PAIRED, MatrixBounds, matrix_bounds

RUNS = number_of_runs(30, 2000)
MATRICES = {
    "one item decides": np.array([[0.4] * 5 + [1.0], [0.5] * 5 + [0.0], [0.45] * 6]),
    "ties": np.repeat(np.eye(3), 2, axis=1),
    "halves": np.array([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 1, 0, 1, 0]]),
}


def is_wrong(found: MatrixBounds, scores: FloatArray) -> bool:
    """Whether any statement is false: an interval, a difference, a tier, a bound of any set."""
    means = scores.mean(axis=1)
    n = means.size
    if (means < found.low - 1e-9).any() or (means > found.high + 1e-9).any():
        return True
    if (means[None, :] - means[:, None] > found.above + 1e-9).any():
        return True
    ranked = np.sort(means)[::-1]
    for k in range(1, n):
        inside, outside = found.tiers(k)
        if (means[inside] < ranked[k - 1] - 1e-9).any() or (
            means[outside] > ranked[k] + 1e-9
        ).any():
            return True
        for top in combinations(range(n), k):
            chosen = np.isin(np.arange(n), top)
            if ranked[:k].mean() - means[chosen].mean() > found.regret(chosen) + 1e-9:
                return True
    return False


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("count", [2, 3, 5])
def test_over_all_shared_samples_statements_fail_with_probability_delta_at_most(
    name: str, count: int
) -> None:
    scores, delta = MATRICES[name], 0.8
    samples = list(combinations(range(6), count))
    orders = 4  # the order of the seen items is random, too
    wrong = 0
    for seed, sample in product(range(orders), samples):
        seen = np.isin(np.arange(6), sample)
        partly = np.where(seen, scores, np.nan)
        wrong += is_wrong(matrix_bounds(partly, delta, np.random.default_rng(seed)), scores)
    assert wrong <= delta * len(samples) * orders


@pytest.mark.rates
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("kind", ["shared", "own", "some complete"])
def test_statements_about_random_samples_fail_in_no_more_than_delta_of_the_runs(
    name: str, kind: str
) -> None:
    scores, delta, failures = np.repeat(MATRICES[name], 5, axis=1), 0.3, 0
    for run in range(RUNS):
        rng = np.random.default_rng([run, 5])
        shuffled = rng.permutation(scores)
        lots = rng.random(shuffled.shape)
        if kind == "shared":
            lots[:] = lots[0]
        share = 12 if kind != "own" else rng.integers(1, 30, (len(scores), 1))
        seen = np.argsort(np.argsort(lots, axis=1), axis=1) < share
        if kind == "some complete":
            seen[0] = True
        partly = np.where(seen, shuffled, np.nan)
        failures += is_wrong(matrix_bounds(partly, delta, rng), shuffled)
    assert binom.sf(failures - 1, RUNS, delta) > 1e-3


def test_a_complete_matrix_is_exact() -> None:
    scores = np.array([[1.0, 1, 0, 1], [1, 0, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0]])
    found = matrix_bounds(scores, 0.05, np.random.default_rng(0))
    assert np.allclose(found.low, scores.mean(1))
    assert np.allclose(found.high, scores.mean(1))
    assert found.separates_at() == (1, 3)  # two arms are tied for the second place
    inside, outside = found.tiers(2)
    assert inside.tolist() == [True, False, False, False]
    assert outside.tolist() == [False, False, False, True]
    assert found.regret(np.array([True, False, True, False])) == pytest.approx(0)


def test_an_arm_without_scores_is_unknown() -> None:
    scores = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [np.nan, np.nan, np.nan]])
    found = matrix_bounds(scores, 0.05, np.random.default_rng(0))
    assert (found.low[2], found.high[2]) == (0.0, 1.0)
    assert np.isnan(found.means[2])
    assert not found.tiers(1)[0].any()


def test_differences_on_the_same_items_are_bounded_more_closely() -> None:
    rng = np.random.default_rng(3)
    hard = rng.random(400)
    scores = np.array([hard < 0.62, hard < 0.6, hard < 0.5]).astype(float)
    scores[:, 200:] = np.nan
    found = matrix_bounds(scores, 0.05, rng)
    assert found.above[0, 2] < found.high[2] - found.low[0]
    assert found.above[0, 2] < 0 < found.high[2] - found.low[0]


def test_arms_with_items_of_their_own_are_bounded_one_by_one() -> None:
    rng = np.random.default_rng(4)
    scores = np.array([[0.9] * 60, [0.5] * 60, [0.1] * 60])
    partly = np.where(rng.random(scores.shape) < 0.7, scores, np.nan)
    found = matrix_bounds(partly, 0.05, rng)
    assert not is_wrong(found, scores)
    assert found.separates_at() == (1, 2)
    assert np.allclose(found.above, np.where(np.eye(3), 0, found.high[None] - found.low[:, None]))


def test_many_arms_on_the_same_items_are_bounded_one_by_one() -> None:
    rng = np.random.default_rng(4)
    scores = rng.random((MOST_PAIRED + 1, 8))
    scores[:, 6:] = np.nan
    found = matrix_bounds(scores, 0.05, rng)
    off = ~np.eye(len(scores), dtype=bool)
    assert np.allclose(found.above[off], (found.high[None] - found.low[:, None])[off])
