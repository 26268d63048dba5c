"""What `assess` says is wrong with probability delta at most, although its rewards chose the set.

Small cases are enumerated, so that these probabilities are exact; larger ones are drawn, 2,000
times in `make attack`, and the failures are judged by a binomial bound."""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom, multinomial

from shortlist import Assessment, SubGaussian, assess
from shortlist.arrays import FloatArray, IntArray

DELTA = 0.3
ROUNDED = 1e-12
DRAWS = number_of_runs(200, 2000)
MEANS = (0.0, 0.1, 0.5, 0.55, 0.9, 1.0)


def assessed(pulls: Any, sums: Any, k: int, squares: Any = None, **settings: Any) -> Assessment:
    columns = (pulls, sums) if squares is None else (pulls, sums, squares)
    counts = dict(enumerate(zip(*columns, strict=True)))
    return assess(counts, k, delta=DELTA, **settings)


def is_wrong(found: Assessment, means: FloatArray) -> bool:
    """Whether the bound or a tier is wrong; arms are labelled by their positions in `means`."""
    sign = -1 if found.minimize else 1
    values = sign * means
    k = len(found.top)
    ordered = np.sort(values)[::-1]
    lost = (ordered[:k].sum() - values[list(found.top)].sum()) / k
    inside, outside = (values[list(found.tiers[name])] for name in ("in", "out"))
    return bool(
        lost > found.regret_bound + ROUNDED
        or np.any(inside < ordered[k - 1] - ROUNDED)
        or np.any(outside > ordered[k] + ROUNDED)
    )


def misses(found: Assessment, means: FloatArray) -> bool:
    """Whether an interval does not hold the mean of its arm."""
    ends = np.array([(arm.low, arm.high) for arm in found.arms])
    return bool(np.any(means < ends[:, 0] - ROUNDED) or np.any(means > ends[:, 1] + ROUNDED))


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("pulls", "k"),
    [((1, 1), 1), ((9, 9), 1), ((2, 14), 1), ((2, 2, 2), 1), ((1, 2, 5), 2), ((1, 1, 1, 2), 2)],
)
def test_with_fixed_pulls_no_means_make_it_wrong_more_often_than_delta(
    pulls: tuple[int, ...], k: int
) -> None:
    """Exact: all outcomes are enumerated, for means on a grid with ties, 0 and 1."""
    outcomes = list(product(*(range(times + 1) for times in pulls)))
    found = [assessed(pulls, each, k, fixed=True) for each in outcomes]
    for means in product(MEANS, repeat=len(pulls)):
        masses = [
            np.asarray(binom.pmf(range(n + 1), n, mean)).tolist()
            for n, mean in zip(pulls, means, strict=True)
        ]
        probabilities = [np.prod(each) for each in product(*masses)]
        theta = np.array(means)
        for fails in (is_wrong, misses):
            happens = [fails(each, theta) for each in found]
            assert np.dot(probabilities, happens) <= DELTA


@pytest.mark.no_cover
@pytest.mark.parametrize(("n", "k", "most"), [(2, 1, 11), (3, 2, 6)])
def test_no_rule_of_sampling_and_stopping_makes_it_wrong_more_often_than_delta(
    n: int, k: int, most: int
) -> None:
    """Exact: the worst rule for these means is found by dynamic programming.

    It knows the means, pulls whichever arm it likes next, and stops when the statement is wrong."""

    @cache
    def found(pulls: tuple[int, ...], sums: tuple[int, ...]) -> Assessment:
        return assessed(pulls, sums, k, fixed=False)

    for fails in (is_wrong, misses):
        for means in ((0.5, 0.5, 0.5)[:n], (0.4, 0.6, 0.5)[:n], (0.0, 0.1, 1.0)[:n]):
            assert worst_case(found, fails, np.array(means), most) <= DELTA


def worst_case(
    found: Callable[[tuple[int, ...], tuple[int, ...]], Assessment],
    fails: Callable[[Assessment, FloatArray], bool],
    means: FloatArray,
    most: int,
) -> float:
    """The largest probability of a wrong statement within so many pulls."""

    @cache
    def chance(pulls: tuple[int, ...], sums: tuple[int, ...]) -> float:
        if sum(pulls) and fails(found(pulls, sums), means):
            return 1.0
        if sum(pulls) == most:
            return 0.0
        return max(_next(pulls, sums, arm) for arm in range(means.size))

    def _next(pulls: tuple[int, ...], sums: tuple[int, ...], arm: int) -> float:
        after = raised(pulls, arm)
        mean = float(means[arm])
        good = mean * chance(after, raised(sums, arm)) if mean > 0 else 0.0
        return good + ((1 - mean) * chance(after, sums) if mean < 1 else 0.0)

    return chance((0,) * means.size, (0,) * means.size)


def raised(counts: tuple[int, ...], arm: int) -> tuple[int, ...]:
    return (*counts[:arm], counts[arm] + 1, *counts[arm + 1 :])


TIES: dict[str, tuple[list[float], int, Any, dict[str, Any]]] = {
    "two ties": ([0.5] * 2, 1, 20, {}),
    "near ties, one of five": ([0.5, 0.48, 0.45, 0.45, 0.3], 1, 25, {}),
    "four of five": ([0.2, 0.2, 0.2, 0.25, 0.3], 4, 25, {"minimize": True}),
    "twelve ties near 0": ([0.05] * 12, 3, 60, {}),
    "eleven of twelve": ([0.5] * 6 + [0.6] * 6, 11, 20, {}),
    "ends of the range, unequal pulls": ([0.0] * 4 + [0.9] * 4 + [1.0] * 4, 6, (1, 4, 15), {}),
    "fifty": ([0.5] * 40 + [0.6] * 10, 10, (10, 10, 30), {}),
}


@pytest.mark.rates
@pytest.mark.parametrize("name", TIES)
def test_with_fixed_pulls_failures_are_within_delta(name: str) -> None:
    given, k, times, settings = TIES[name]
    rng = np.random.default_rng(len(name))
    means = np.array(given)
    pulls = np.resize(times, means.size)

    @cache
    def found(sums: tuple[int, ...]) -> Assessment:
        return assessed(pulls, sums, k, fixed=True, **settings)

    wrong = missed = 0
    for _ in range(DRAWS):
        theta = rng.permutation(means)
        outcome = found(tuple(rng.binomial(pulls, theta).tolist()))
        wrong += is_wrong(outcome, theta)
        missed += misses(outcome, theta)
    assert binom.sf(wrong - 1, DRAWS, DELTA) > 1e-3
    assert binom.sf(missed - 1, DRAWS, DELTA) > 1e-3


@pytest.mark.rates
def test_stopping_at_the_most_misleading_time_keeps_failures_within_delta() -> None:
    """Pulls go to the arm that looks worst or best by turns; it stops where the errors of two means
    are farthest apart."""
    rng = np.random.default_rng(3)
    means = [0.5, 0.5, 0.5, 0.45, 0.4]
    theta = np.array([rng.permutation(means) for _ in range(DRAWS)])  # (draws, arms)
    pulls, sums = misled(theta, rng)
    wrong = missed = 0
    for row in range(DRAWS):
        found = assessed(pulls[row].tolist(), sums[row].tolist(), 2, fixed=False)
        wrong += is_wrong(found, theta[row])
        missed += misses(found, theta[row])
    assert binom.sf(wrong - 1, DRAWS, DELTA) > 1e-3
    assert binom.sf(missed - 1, DRAWS, DELTA) > 1e-3


def misled(theta: FloatArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Pulls and successes of every run when the errors of two means were farthest apart."""
    draws, n = theta.shape
    rows = np.arange(draws)
    pulls, sums = np.zeros((draws, n), dtype=np.int64), np.zeros((draws, n), dtype=np.int64)
    kept_pulls, kept_sums, largest = pulls, sums, np.full(draws, -np.inf)
    for step in range(60):
        means = (sums + 0.5) / (pulls + 1)
        arm = means.argmin(axis=1) if step % 2 else means.argmax(axis=1)
        arm = np.full(draws, step) if step < n else arm
        sums[rows, arm] += rng.random(draws) < theta[rows, arm]
        pulls[rows, arm] += 1
        means = (sums + 0.5) / (pulls + 1)
        excess = (means - theta) * np.sqrt(pulls)
        lead = excess.max(axis=1) - excess.min(axis=1)
        now = (lead > largest) & (step >= n)
        largest = np.where(now, lead, largest)
        kept_pulls = np.where(now[:, None], pulls, kept_pulls)
        kept_sums = np.where(now[:, None], sums, kept_sums)
    return kept_pulls, kept_sums


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("squared", [True, False])
def test_scores_between_0_and_1_fail_within_delta_exactly(fixed: bool, squared: bool) -> None:
    """Rewards 0, 1/2 and 1, 4 pulls of each of two arms: all outcomes are enumerated."""
    values = np.array([0.0, 0.5, 1.0])
    counts = [np.array(each) for each in product(range(5), repeat=3) if sum(each) == 4]
    found = {}
    for a, b in product(range(len(counts)), repeat=2):
        sums = [float(counts[arm] @ values) for arm in (a, b)]
        squares = [float(counts[arm] @ values**2) for arm in (a, b)] if squared else None
        found[a, b] = assessed((4, 4), sums, 1, squares, fixed=fixed, rewards=(0, 1))
    distributions = [
        np.array(weights) / 2 for weights in product(range(3), repeat=3) if sum(weights) == 2
    ]
    masses = [
        np.array([multinomial.pmf(each, 4, weights) for each in counts])
        for weights in distributions
    ]
    for one, two in product(range(len(distributions)), repeat=2):
        theta = np.array([distributions[one] @ values, distributions[two] @ values])
        wrong = np.array([is_wrong(each, theta) for each in found.values()])
        assert np.outer(masses[one], masses[two]).ravel() @ wrong <= DELTA


@pytest.mark.rates
@pytest.mark.parametrize("fixed", [True, False])
def test_normal_rewards_fail_within_delta(fixed: bool) -> None:
    rng = np.random.default_rng(9)
    means, pulls = np.array([100.0, 100.0, 99.5, 99.0, 98.0]), np.array([5, 20, 20, 8, 40])
    wrong = missed = 0
    for _ in range(DRAWS):
        theta = rng.permutation(means)
        sums = rng.normal(pulls * theta, 2 * np.sqrt(pulls)).tolist()
        found = assessed(pulls.tolist(), sums, 2, fixed=fixed, rewards=SubGaussian(2.0))
        wrong += is_wrong(found, theta)
        missed += misses(found, theta)
    assert binom.sf(wrong - 1, DRAWS, DELTA) > 1e-3
    assert binom.sf(missed - 1, DRAWS, DELTA) > 1e-3
