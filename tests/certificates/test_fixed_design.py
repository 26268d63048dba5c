"""The fixed design against exact failure probabilities."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from math import comb, log

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.stats import binom, norm

from shortlist.arrays import FloatArray
from shortlist.certificates.frame import (
    edge_failure,
    failure,
    fixed_design,
    log_swap_failure,
    swap_failure,
)
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian

HALVES = (Fraction(0), Fraction(1, 2), Fraction(1))


def pair_fails(worse: Fraction, better: Fraction, pulls: int) -> Fraction:
    """P(the worse of two 0/1 arms is taken), ties at random, summed over all outcomes."""

    def law(mean: Fraction) -> list[Fraction]:
        return [comb(pulls, s) * mean**s * (1 - mean) ** (pulls - s) for s in range(pulls + 1)]

    total = Fraction(0)
    for (x, p), (y, q) in product(enumerate(law(better)), enumerate(law(worse))):
        total += p * q * (Fraction(1, 2) if x == y else Fraction(int(y > x)))
    return total


def law_of_sum(law: FloatArray, pulls: int) -> FloatArray:
    """Distribution of the sum of `pulls` draws, on the grid of one draw."""
    result = np.ones(1)
    for _ in range(pulls):
        result = np.convolve(result, law)
    return result


def fails(laws: list[FloatArray], k: int, epsilon: float, pulls: int) -> float:
    """Exact P(R_T > epsilon): every outcome of all arms, every way to break its ties."""
    means = np.array([law @ np.linspace(0, 1, law.size) for law in laws])
    best = np.sort(means)[-k:].sum()
    sums = [law_of_sum(law, pulls) for law in laws]
    total = 0.0
    for outcome in product(*(range(s.size) for s in sums)):
        weight = np.prod([s[x] for s, x in zip(sums, outcome, strict=True)])
        x = np.array(outcome)
        edge = np.sort(x)[-k]
        sure, tied = np.flatnonzero(x > edge), np.flatnonzero(x == edge)
        rests = list(combinations(tied, k - sure.size))
        lost = [best - means[sure].sum() - means[list(rest)].sum() for rest in rests]
        total += weight * np.mean(np.array(lost) > k * epsilon + 1e-12)
    return float(total)


@pytest.mark.parametrize("pulls", [1, 2, 5, 8])
def test_no_pair_of_means_fails_more_often_than_the_symmetric_one(pulls: int) -> None:
    gap = Fraction(1, 7)
    worst = pair_fails((1 - gap) / 2, (1 + gap) / 2, pulls)
    rng = np.random.default_rng(pulls)
    for _ in range(60):
        worse = Fraction(int(rng.integers(0, 601)), 700)
        better = worse + gap + Fraction(int(rng.integers(0, 100)), 10**6)
        assert pair_fails(worse, min(better, Fraction(1)), pulls) <= worst


@pytest.mark.parametrize("pulls", [1, 2, 5, 8])
def test_failure_of_a_pair_has_its_closed_form(pulls: int) -> None:
    gap = Fraction(1, 7)
    exact = pair_fails((1 - gap) / 2, (1 + gap) / 2, pulls)
    assert swap_failure(float(gap), pulls) == pytest.approx(float(exact), rel=1e-6)
    assert swap_failure(float(gap), pulls) >= float(exact)


def test_failure_at_the_edge_is_that_of_the_means_nearest_to_the_centre() -> None:
    gap, pulls, edge = Fraction(1, 20), 6, Fraction(3, 20)
    found = edge_failure(float(gap), pulls, float(edge))
    assert found >= float(pair_fails(edge - gap, edge, pulls))
    for worse in (Fraction(i, 200) for i in range(20)):
        assert float(pair_fails(worse, worse + gap, pulls)) <= found
        assert float(pair_fails(1 - worse - gap, 1 - worse, pulls)) <= found
    assert edge_failure(0.2, 10, 0.15) == 0


@pytest.mark.parametrize(
    ("gap", "pulls", "edge"),
    [
        (0.2, 3, 0.5),
        (0.01, 5000, 0.5),
        (0.002, 5000, 0.05),
        (1e-4, 3000, 1e-3),
        (1e-10, 2000, 1e-9),
    ],
)
def test_failure_at_the_edge_is_rounded_up_and_hardly_more(
    gap: float, pulls: int, edge: float
) -> None:
    with mp.workdps(30):
        better, worse = list(law(mpf(edge), pulls)), list(law(mpf(edge) - mpf(gap), pulls))
        behind, exact = mpf(1), mpf(0)
        for taken, other in zip(better, worse, strict=True):
            exact += taken * (behind - other / 2)
            behind -= other
        assert exact * (1 + 1.9e-7) < edge_failure(gap, pulls, edge) < exact * (1 + 2.1e-7)


def law(mean: mpf, pulls: int) -> Iterator[mpf]:
    """P(Bin(pulls, mean) = s), one s after the other."""
    chance = (1 - mean) ** pulls
    for successes in range(pulls + 1):
        yield chance
        chance *= mean / (1 - mean) * (pulls - successes) / (successes + 1)


def test_failure_at_the_edge_of_many_pulls_is_that_of_other_software() -> None:
    successes, gap, edge = np.arange(10**6 + 1), 0.001, 0.3
    behind = binom.sf(successes, 10**6, edge - gap) + binom.pmf(successes, 10**6, edge - gap) / 2
    exact = binom.pmf(successes, 10**6, edge) @ behind
    assert edge_failure(gap, 10**6, edge) == pytest.approx(exact, rel=2.1e-7)


@pytest.mark.parametrize(
    ("n", "k", "pulls"), [(3, 1, 4), (3, 2, 4), (4, 2, 3), (4, 1, 3), (5, 2, 2)]
)
def test_exact_failures_with_binary_rewards_stay_below_the_bound(
    n: int, k: int, pulls: int
) -> None:
    rng = np.random.default_rng(n * 10 + k)
    for trial in range(12):
        epsilon = float(rng.uniform(0.05, 0.45))
        means = rng.random(n)
        if trial % 2:  # least favourable: two groups, as far apart as may not be lost
            low = float(rng.uniform(0, 1 - min(0.99, k * epsilon)))
            means = np.where(np.arange(n) < k, min(1.0, low + k * epsilon + 1e-9), low)
        laws = [np.array([1 - mean, mean]) for mean in means]
        bound = failure(n, k, epsilon, pulls, Binary())
        assert fails(laws, k, epsilon, pulls) <= bound + 1e-12


@pytest.mark.parametrize(("n", "k", "pulls"), [(2, 1, 5), (3, 1, 3), (4, 2, 2)])
def test_exact_failures_with_bounded_rewards_stay_below_the_bound(
    n: int, k: int, pulls: int
) -> None:
    rng = np.random.default_rng(n)
    for _ in range(8):
        laws = [rng.dirichlet([0.5, 0.5, 0.5]) for _ in range(n)]  # on 0, 1/2, 1
        for epsilon in (0.1, 0.3):
            bound = failure(n, k, epsilon, pulls, Bounded())
            assert fails(laws, k, epsilon, pulls) <= bound + 1e-12


@pytest.mark.parametrize("size", [2, 3])
def test_swaps_of_several_arms_fail_most_often_at_equal_means(size: int) -> None:
    rng = np.random.default_rng(size)
    pulls, gap = 4, 0.6
    bound = np.exp(log_swap_failure(np.array([size]), gap, pulls, Binary())[0])
    for _ in range(100):
        better = rng.random(size)
        worse = rng.random(size)
        if better.sum() - worse.sum() < gap:
            continue
        sums = np.ones(1)  # of the worse arms and of 1 - x of the better ones
        for mean in np.concatenate([worse, 1 - better]):
            sums = np.convolve(sums, law_of_sum(np.array([1 - mean, mean]), pulls))
        half = size * pulls
        assert sums[half + 1 :].sum() + sums[half] / 2 <= bound + 1e-12


def test_two_arms_need_less_than_half_of_the_usual_count() -> None:
    assert fixed_design(2, 1, 0.05, 0.05, Binary()) == 541
    assert failure(2, 1, 0.05, 540, Binary()) > 0.05  # so no smaller design is right
    assert fixed_design(2, 1, 0.05, 0.05, Bounded()) == 850
    assert fixed_design(2, 1, 0.05, 0.05, SubGaussian(0.5)) == 1199


@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 1), (10, 3), (20, 10), (100, 50), (1000, 10)])
def test_designs_are_ordered_by_what_they_assume(n: int, k: int) -> None:
    counts = [
        fixed_design(n, k, 0.05, 0.05, model) for model in (Binary(), Bounded(), SubGaussian(0.5))
    ]
    assert counts == sorted(counts)
    hoeffding = -log(failure(n, k, 0.05, counts[2], SubGaussian(0.5)))
    assert hoeffding >= log(20)


def test_nothing_is_to_be_shown_where_no_set_loses_more() -> None:
    assert fixed_design(5, 4, 0.25, 0.05, Binary()) == 1


@pytest.mark.parametrize("rewards", [Binary(), Bounded(), SubGaussian(0.5)], ids=lambda m: m.kind)
@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 1), (5, 4), (10, 9), (10, 3), (30, 15)])
@pytest.mark.parametrize("epsilon", [0.02, 0.112, 0.3, 1.0])
def test_a_design_keeps_what_it_promises(
    rewards: RewardModel, n: int, k: int, epsilon: float
) -> None:
    for delta in (0.3, 0.05, 1e-6):
        pulls = fixed_design(n, k, epsilon, delta, rewards)
        no_set_loses_more = rewards.has_range and k * epsilon >= min(k, n - k)
        assert no_set_loses_more or failure(n, k, epsilon, pulls, rewards) <= delta


def test_sub_gaussian_means_have_no_range_that_could_make_a_design_small() -> None:
    pulls = fixed_design(2, 1, 1.0, 0.05, SubGaussian(0.5))
    assert norm.sf(np.sqrt(2 * pulls)) <= 0.05  # two normal arms of sigma 1/2 that differ by 1


@pytest.mark.parametrize("epsilon", [1e-6, 1e-7, 1e-8])
def test_huge_designs_are_those_of_hoeffding_since_tails_cannot_be_trusted(epsilon: float) -> None:
    for model in (Binary(), Bounded()):
        pulls = fixed_design(2, 1, epsilon, 0.05, model)
        assert pulls == pytest.approx(log(1 / 0.05) / epsilon**2, rel=1e-6)
