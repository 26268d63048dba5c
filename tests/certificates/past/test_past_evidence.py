"""The evidence behind `assess`: p-values and wealth keep what they promise, exactly."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom, multinomial, ncx2

from shortlist import Binary, Bounded, SubGaussian
from shortlist.arrays import FloatArray
from shortlist.certificates.frame import tiers_of
from shortlist.certificates.past.bound import bound_past
from shortlist.certificates.past.charges import (
    Evidence,
    Totals,
    binary_tail,
    bounded_tail,
    cells,
    log_shares,
    mixture_wealth,
    prices_for,
    settled,
    spread_wealth,
    square_thresholds,
    tilted_reach,
)
from shortlist.reward_models import RewardModel

SCORES = np.array([0.0, 0.3, 1.0])
COUNTS = np.array([each for each in product(range(7), repeat=3) if sum(each) == 6])  # of 6 rewards


def distributions(mean: float) -> list[FloatArray]:
    """Of rewards 0, 0.3 and 1 with this mean: without 1, without 0.3, and half of each."""
    extremes = [np.array([1 - mean, 0.0, mean])]
    if mean <= 0.3:
        extremes.append(np.array([1 - mean / 0.3, mean / 0.3, 0.0]))
    else:
        extremes.append(np.array([0.0, (1 - mean) / 0.7, (mean - 0.3) / 0.7]))
    return [*extremes, (extremes[0] + extremes[1]) / 2]


@pytest.mark.parametrize("pulls", [1, 2, 7, 30])
@pytest.mark.parametrize("theta", [0.0, 0.03, 0.5, 0.8, 1.0])
def test_a_binary_tail_is_a_p_value_and_the_exact_one(pulls: int, theta: float) -> None:
    masses = np.asarray(binom.pmf(range(pulls + 1), pulls, theta))
    at = np.array([theta])
    found = np.array([binary_tail(pulls, s, at)[0] for s in range(pulls + 1)])
    assert found == pytest.approx(np.maximum(binom.cdf(range(pulls + 1), pulls, theta), 1e-290))
    for value in found:
        assert masses[found <= value].sum() <= value * (1 + 1e-12)


@pytest.mark.parametrize("theta", [0.05, 0.2, 0.3, 0.6, 0.9])
def test_a_bounded_tail_is_a_p_value_for_all_rewards_in_the_range(theta: float) -> None:
    sums = COUNTS @ SCORES
    found = np.array([bounded_tail(6, s, np.array([theta]))[0] for s in sums])
    for weights in distributions(theta):
        masses = multinomial.pmf(COUNTS, 6, weights)
        for value in found:
            assert masses[found <= value].sum() <= value * (1 + 1e-9)


def test_tails_fall_as_the_mean_rises() -> None:
    theta = np.linspace(0, 1, 301)
    for pulls, total in ((1, 0.0), (10, 3.0), (400, 250.0), (10**7, 10.0)):
        for tail in (binary_tail, bounded_tail):
            assert np.all(np.diff(tail(pulls, total, theta)) <= 1e-15)
    assert np.all(bounded_tail(400, 250.0, theta) >= binary_tail(400, 250, theta))


@pytest.mark.parametrize("theta", [0.02, 0.3, 0.5, 0.97])
def test_wealth_is_1_at_most_on_average_and_never_grows_on_average(theta: float) -> None:
    at = np.array([theta])
    for pulls in (1, 5, 40):
        wealth = np.array([math.exp(mixture_wealth(pulls, s, at, at)[0]) for s in range(pulls + 1)])
        assert binom.pmf(range(pulls + 1), pulls, theta) @ wealth <= 1 + 1e-12
    for total in range(6):
        now = math.exp(mixture_wealth(5, total, at, at)[0])
        good, bad = (math.exp(mixture_wealth(6, total + x, at, at)[0]) for x in (1, 0))
        assert theta * good + (1 - theta) * bad <= now * (1 + 1e-6)


@pytest.mark.parametrize("theta", [0.05, 0.2, 0.5, 0.9])
def test_wealth_of_scores_is_1_at_most_on_average(theta: float) -> None:
    at = np.array([theta])
    sums, squares = COUNTS @ SCORES, COUNTS @ SCORES**2
    mixture = np.array([mixture_wealth(6, s, at, at)[0] for s in sums])
    spread = [spread_wealth(6, s, q, at, at)[0] for s, q in zip(sums, squares, strict=True)]
    for weights in distributions(theta):
        masses = multinomial.pmf(COUNTS, 6, weights)
        assert masses @ np.exp(mixture) <= 1 + 1e-9
        assert masses @ np.exp(spread) <= 1 + 1e-9


def test_wealth_over_a_cell_is_at_most_that_of_every_mean_in_it() -> None:
    low, high = cells(50, 0.3)
    assert (low[0], high[-1]) == (0.0, 1.0)
    assert np.array_equal(low[1:], high[:-1])
    low, high = low[high > low], high[high > low]
    for share in (0.0, 0.4, 1.0):
        inside = low + share * (high - low)
        point = mixture_wealth(50, 15, inside, inside)
        assert np.all(mixture_wealth(50, 15, low, high) <= point + 1e-6)
        around = spread_wealth(50, 15.0, 7.0, inside, inside)
        assert np.all(spread_wealth(50, 15.0, 7.0, low, high) <= around + 1e-9)


@pytest.mark.parametrize("tilt", [0.01, 0.3, 2.0])
def test_a_tilted_reach_is_the_largest_mean_less_its_charge(tilt: float) -> None:
    theta = np.linspace(0, 1, 4001)
    prices = np.array([1e-4, 0.003, 0.02, 0.5])
    totals = Totals(np.array([40, 0]), np.array([13.0, 0.0]), None)
    found = tilted_reach(totals, prices, np.full(4, tilt))
    charge = -tilt * 13 - 40 * np.log(1 - theta * (1 - math.exp(-tilt)))
    best = (theta[:, None] - charge[:, None] * prices).max(axis=0)
    assert found[0] == pytest.approx(best, abs=1e-6)
    assert np.all(found[0] >= best - 1e-12)
    assert found[1] == pytest.approx(np.ones(4))
    for mean in (0.0, 0.2, 0.9):  # the charge is the logarithm of a wealth of 1 on average
        masses = binom.pmf(range(41), 40, mean)
        charges = -tilt * np.arange(41) - 40 * math.log(1 - mean * (1 - math.exp(-tilt)))
        assert masses @ np.exp(charges) == pytest.approx(1)


def test_thresholds_are_quantiles_of_a_noncentral_chi_square() -> None:
    shares = np.log([0.3, 1e-3, 1e-9])
    for shift in (1.0, 3.0):
        found = square_thresholds(shares, shift)
        for m, (share, threshold) in enumerate(zip(shares, found, strict=True), start=1):
            exact = ncx2.isf(math.exp(share), 2 * m, 2 * m * shift**2)
            assert exact * (1 - 1e-6) <= threshold <= exact * (1 + 1e-4)
    many = square_thresholds(np.full(40, -1000.0), 3.0)
    assert np.all(np.diff(many) > 0)


@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 4), (12, 3), (200, 100)])
def test_shares_of_all_swaps_add_up_to_delta(n: int, k: int) -> None:
    sizes = range(1, min(k, n - k) + 1)
    swaps = [math.log(math.comb(k, m)) + math.log(math.comb(n - k, m)) for m in sizes]
    assert np.exp(log_shares(n, k, 0.3) + swaps).sum() == pytest.approx(0.3, rel=1e-6)
    assert np.exp(log_shares(n, k, 0.3) + swaps).sum() <= 0.3


def test_only_fixed_pulls_may_decide_how_arms_are_charged() -> None:
    even, uneven = np.array([50, 60]), np.array([5, 60])
    for rewards in (Binary(), Bounded(), SubGaussian(1)):
        free = [settled(rewards, each, fixed=False, squared=True) for each in (even, uneven)]
        assert free[0] == free[1]
    fixed = [settled(Binary(), each, fixed=True, squared=True) for each in (even, uneven)]
    assert fixed[0] != fixed[1]


def test_means_are_left_out_only_where_no_charge_is_negative() -> None:
    low, high = cells(50, 0.3)
    thresholds = np.array([7.0, 9.0])
    models: list[RewardModel] = [Binary(), Bounded(), SubGaussian(1)]
    for fixed, rewards in product((True, False), models):
        (evidence,) = settled(rewards, np.array([50, 50]), fixed=fixed, squared=False)
        largest = evidence.largest_charge(thresholds)
        assert largest == (7.0 if fixed and evidence.ranged else math.inf)
        if math.isfinite(largest):
            assert np.all(_charge(evidence, 50, 15.0, low) >= 0)
            assert _charge(evidence, 50, 15.0, low)[0] == 0  # so that some mean always remains
    assert np.any(mixture_wealth(50, 15.0, low, high) < 0)


def test_an_arm_is_in_or_out_by_the_number_of_arms_that_it_surely_beats_or_is_beaten_by() -> None:
    pairs = np.full((4, 4), 0.1)  # [i, j]: bound on the mean of j less that of i
    pairs[0, 1:] = -0.1  # arm 0 beats all others
    pairs[1:3, 3] = -0.1  # arms 1 and 2 beat arm 3
    for k, surely_in, surely_out in ((1, [0], [1, 2, 3]), (2, [0], [3]), (3, [0, 1, 2], [3])):
        inside, outside = tiers_of(pairs < 0, k)
        assert np.flatnonzero(inside).tolist() == surely_in
        assert np.flatnonzero(outside).tolist() == surely_out


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(
    ("pulled", "given", "highest", "slack"),
    [
        ((60, 60, 80), (30.0, 24.0, 25.0), 1.0, 0.02),
        ((20000, 20000, 30000), (200.0, 190.0, 290.0), 0.02, 0.0006),
    ],
)
def test_the_bound_is_never_less_than_that_of_any_set_by_brute_force(
    fixed: bool,
    pulled: tuple[int, ...],
    given: tuple[float, ...],
    highest: float,
    slack: float,
) -> None:
    """The largest loss over means on a grid that no swap is charged too much for."""
    pulls, sums = np.array(pulled), np.array(given)
    (evidence,) = settled(Binary(), pulls, fixed=fixed, squared=False)
    found = bound_past(Totals(pulls, sums, None), 1, 0.2, (evidence,))
    threshold = evidence.thresholds(log_shares(3, 1, 0.2))[0]
    grid = np.linspace(0, highest, 400)
    largest = 0.0
    for other in (1, 2):
        up = _charge(evidence, int(pulls[other]), sums[other], grid)
        down = _charge(evidence, int(pulls[0]), pulls[0] - sums[0], 1 - grid)
        possible = up[:, None] + down[None, :] <= threshold
        largest = max(largest, float((grid[:, None] - grid[None, :])[possible].max()))
    assert largest <= found.regret_bound or not fixed  # tilted bets may make it smaller
    assert found.regret_bound <= largest + slack


def _charge(evidence: Evidence, pulls: int, total: float, theta: FloatArray) -> FloatArray:
    if evidence.fixed:
        tail = (binary_tail if evidence.binary else bounded_tail)(pulls, total, theta)
        result: FloatArray = np.maximum(0.0, evidence.shift - ndtri(tail)) ** 2
        return result
    return mixture_wealth(pulls, total, theta, theta)


def test_prices_reach_from_one_pull_to_very_many() -> None:
    few, many = prices_for(np.array([1])), prices_for(np.array([10**9]))
    assert few[-1] < 0.01
    assert many[-1] < 1e-10
    assert np.array_equal(few, many[: few.size])
