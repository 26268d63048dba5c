"""The wealth of bets within blocks is at most 1 on average: by exact count of all histories."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from math import comb, fsum

import numpy as np
import pytest

from shortlist.arrays import FloatArray
from shortlist.certificates.drift.bound import (
    LOG_WEIGHTS,
    MOST_STAKED,
    MULTIPLES,
    REFUSAL,
    BlockTerms,
    BlockWealth,
    is_plausible,
    log_level,
    most_step,
    regret_bound,
)
from shortlist.certificates.pairs.bound import StageRewards
from shortlist.errors import InvalidInput

ARMS = 3
Visit = tuple[int, float]  # arm and reward
History = tuple[Visit, ...]
Rates = Callable[[History], FloatArray]  # of the next visitor, by what happened before


def terms(shares: FloatArray, centre: float, part: float) -> BlockTerms:
    """Terms whose step is this part of the largest one."""
    return BlockTerms(shares, part * most_step(shares, centre), centre)


def told(visits: History) -> StageRewards:
    times = np.zeros(ARMS, dtype=np.int64)
    sums, squares = np.zeros((2, ARMS))
    for arm, reward in visits:
        times[arm] += 1
        sums[arm] += reward
        squares[arm] += reward**2
    return StageRewards(times, sums, squares)


def histories(
    before: History, chance: float, visitors: int, shares: FloatArray, rates: Rates, values: int
) -> Iterator[tuple[History, float, FloatArray]]:
    """All that a block can become: history, probability, and the sum of the rates of its visitors.

    A reward is 0 or 1, or with three `values` also 1/2."""
    if visitors == 0:
        yield before, chance, np.zeros(ARMS)
        return
    now = rates(before)
    for arm in np.flatnonzero(shares).tolist():
        rate = float(now[arm])
        laws = [(0.0, 1 - rate), (1.0, rate)]
        if values == 3:  # the same mean
            half = min(rate, 1 - rate)
            laws = [(0.0, 1 - rate - half / 2), (0.5, half), (1.0, rate - half / 2)]
        for reward, probability in laws:
            if probability == 0:
                continue
            after = (*before, (arm, reward))
            likely = chance * float(shares[arm]) * probability
            for end, p, total in histories(after, likely, visitors - 1, shares, rates, values):
                yield end, p, total + now


def reacting(seed: int) -> Rates:
    """Rates that depend on everything that happened before, differently in every world."""

    def rates(before: History) -> FloatArray:
        key = [seed, len(before), *(int(2 * x) + 3 * arm for arm, x in before)]
        return np.random.default_rng(key).beta(0.6, 0.8, ARMS)

    return rates


def factor(wealth: BlockWealth, lead_sums: FloatArray, i: int, j: int) -> float:
    """The supermartingale of a pair; `lead_sums` are steps times leads, added up."""
    exponents = LOG_WEIGHTS + wealth.log_gains[i, j] + MULTIPLES * lead_sums[i, j]
    return float(np.exp(exponents).sum())


def expected(seed: int, values: int, *, binary: bool, clock_of_pair: bool = False) -> FloatArray:
    """The mean wealth of every pair after two blocks; terms of the second depend on the first.

    In the second block an arm may be out of play. `clock_of_pair` is the mistake of moving the
    clock only for visitors who were shown one of the two arms."""
    rng = np.random.default_rng(seed)
    rates = reacting(seed)
    first = terms(rng.dirichlet(np.ones(ARMS)), rng.uniform(), rng.uniform(0.2, 1))
    parts: list[FloatArray] = []
    for middle, chance, total in histories((), 1.0, 2, first.shares, rates, values):
        own = np.random.default_rng([seed, *(int(2 * x) + 3 * arm for arm, x in middle)])
        shares = own.dirichlet(np.ones(ARMS))
        if own.random() < 0.4:
            shares[own.integers(ARMS)] = 0.0
        second = terms(shares / shares.sum(), own.uniform(), own.uniform(0.2, 1))
        for end, likely, more in histories(middle, chance, 2, second.shares, rates, values):
            wealth = BlockWealth(ARMS)
            lead_sums = np.zeros((ARMS, ARMS))
            for block, of_block, visits in ((first, total, end[:2]), (second, more, end[2:])):
                wealth.book(block, told(visits), binary=binary)
                i, j = block.pairs()
                arms = np.array([arm for arm, _ in visits])
                shown = (arms == i[:, None]) | (arms == j[:, None])
                part = shown.mean(1) if clock_of_pair else 1.0
                lead_sums[i, j] += block.steps(i, j) * (of_block[j] - of_block[i]) * part
            each = [factor(wealth, lead_sums, i, j) for i in range(ARMS) for j in range(ARMS)]
            parts.append(likely * np.array(each))
    return np.array([fsum(column) for column in np.array(parts).T])


@pytest.mark.parametrize("seed", range(4))
def test_wealth_is_at_most_one_on_average_where_rates_react_to_the_past(seed: int) -> None:
    assert expected(seed, 2, binary=True).max() <= 1 + 1e-12


@pytest.mark.parametrize("seed", [10])
def test_wealth_from_sums_and_squares_is_at_most_one_on_average(seed: int) -> None:
    assert expected(seed, 3, binary=False).max() <= 1 + 1e-12


def test_a_clock_of_the_two_arms_alone_would_be_wrong() -> None:
    assert max(expected(seed, 2, binary=True, clock_of_pair=True).max() for seed in range(4)) > 1


def exactly_one(multiple: int, p: list[Fraction], theta: list[Fraction]) -> Fraction:
    """The mean factor of a visitor, in fractions: 1 - multiple * step * lead."""
    step, centre = Fraction(1, 50), Fraction(3, 10)
    up, down = (multiple * step / p[arm] for arm in (0, 1))
    mean = Fraction(0)
    for arm, reward in product(range(3), (0, 1)):
        chance = p[arm] * (theta[arm] if reward else 1 - theta[arm])
        bet = {0: up, 1: -down}.get(arm, Fraction(0))
        mean += chance * (1 + bet * (reward - centre))
    return mean


def test_the_centre_cancels_exactly() -> None:
    p = [Fraction(1, 5), Fraction(3, 10), Fraction(1, 2)]
    theta = [Fraction(1, 7), Fraction(2, 9), Fraction(1, 3)]
    for multiple in (1, 2, 4):
        lead = theta[1] - theta[0]
        assert exactly_one(multiple, p, theta) == 1 - multiple * Fraction(1, 50) * lead


def test_gains_are_those_of_single_visitors() -> None:
    block = terms(np.array([0.2, 0.3, 0.5]), 0.3, 0.7)
    visits: History = ((0, 1.0), (1, 0.0), (2, 1.0), (1, 1.0), (0, 0.0))
    wealth = BlockWealth(ARMS)
    wealth.book(block, told(visits), binary=True)
    step = float(block.steps(np.array([0]), np.array([1]))[0])
    gains = np.zeros(MULTIPLES.size)
    for arm, reward in visits:
        if arm < 2:
            bet = MULTIPLES * step / block.shares[arm] * (1 if arm == 0 else -1)
            gains += np.log1p(bet * (reward - 0.3))
    assert wealth.log_gains[0, 1] == pytest.approx(gains, rel=1e-12)
    assert wealth.clock[0, 1] == pytest.approx(5 * step)
    assert wealth.clock[0, 0] == 0


def test_sums_without_squares_give_no_larger_gains() -> None:
    block = terms(np.array([0.2, 0.3, 0.5]), 0.3, 0.7)
    visits: History = ((0, 0.5), (0, 0.4), (1, 0.3), (1, 0.5), (2, 0.9))
    with_squares, without, exact = BlockWealth(ARMS), BlockWealth(ARMS), np.zeros(MULTIPLES.size)
    counts = told(visits)
    with_squares.book(block, counts, binary=False)
    without.book(block, StageRewards(counts.times, counts.sums, counts.sums), binary=False)
    assert (without.log_gains <= with_squares.log_gains + 1e-12).all()
    for arm, reward in visits[:4]:
        bet = MULTIPLES * float(block.steps(np.array([0]), np.array([1]))[0]) / block.shares[arm]
        exact += np.log1p((bet if arm == 0 else -bet) * (reward - 0.3))
    assert (with_squares.log_gains[0, 1] <= exact + 1e-12).all()


def test_bounds_are_roots_from_above() -> None:
    rng = np.random.default_rng(3)
    wealth = BlockWealth(ARMS)
    block = terms(np.array([0.5, 0.5, 0.0]), 0.3, 0.1)
    times = np.array([500, 480, 0])
    sums = rng.binomial(times, 0.3).astype(float)
    wealth.book(block, StageRewards(times, sums, sums), binary=True)
    level = log_level(2, 0.1, 1)
    bounds = wealth.bounds(level)
    assert np.isinf(bounds[0, 2])
    assert np.isinf(bounds[2, 1])
    assert (np.diag(bounds) == 0).all()
    for i, j in ((0, 1), (1, 0)):
        reached = factor(wealth, wealth.clock * np.nan_to_num(bounds, posinf=0), i, j)
        assert level - 1e-12 <= np.log(reached) <= level + 1e-3


def test_regret_bound_is_the_largest_matching_and_infinite_if_a_pair_is_unknown() -> None:
    bounds = np.array([[0, 0.1, 0.3, 0.2], [0.1, 0, 0.25, -1], [0, 0, 0, 0], [0, 0, 0, 0]])
    top, others = np.array([0, 1]), np.array([2, 3])
    assert regret_bound(bounds, top, others) == pytest.approx(0.45)
    bounds[1, 3] = np.inf
    assert regret_bound(bounds, top, others) == np.inf


@pytest.mark.parametrize(
    ("shares", "step", "centre"),
    [
        ([0.5, 0.4], 0.01, 0.1),
        ([1.0, 0.0], 0.01, 0.1),
        ([1.2, -0.2], 0.01, 0.1),
        ([0.5, 0.5], 0.0, 0.1),
        ([0.5, 0.5], 0.3, 0.1),
        ([0.5, 0.5], 0.01, 1.1),
    ],
)
def test_terms_that_prove_nothing_are_refused(
    shares: list[float], step: float, centre: float
) -> None:
    with pytest.raises(InvalidInput, match="the terms of a block"):
        BlockTerms(np.array(shares), step, centre)


def test_no_reward_ruins_a_bet_at_the_largest_step() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        shares, centre = rng.dirichlet(np.ones(4)), rng.uniform()
        block = terms(shares, centre, 1.0)
        i, j = block.pairs()
        stakes = block.steps(i, j) / shares[i] * MULTIPLES.max() * max(centre, 1 - centre)
        assert stakes.max() <= MOST_STAKED * (1 + 1e-12)


def refusals(total: int, shares: FloatArray) -> float:
    """The exact probability that the sample-ratio test refuses: three arms."""
    chances = []
    for one in range(total + 1):
        for two in range(total - one + 1):
            counts = np.array([one, two, total - one - two])
            if not is_plausible(counts, shares):
                ways = comb(total, one) * comb(total - one, two)
                chances.append(ways * float(np.prod(shares**counts)))
    return fsum(chances)


@pytest.mark.parametrize("shares", [(0.33, 0.33, 0.34), (0.02, 0.49, 0.49)])
def test_a_sound_block_is_refused_with_at_most_the_stated_probability(
    shares: tuple[float, ...],
) -> None:
    refused = refusals(40, np.array(shares))
    assert 0 < refused <= REFUSAL


def test_missing_rows_are_implausible_and_an_empty_block_is_not() -> None:
    shares = np.array([0.5, 0.5, 0.0])
    assert is_plausible(np.array([5000, 5100, 0]), shares)
    assert not is_plausible(np.array([5000, 4400, 0]), shares)
    assert not is_plausible(np.array([4400, 5000, 0]), shares)
    assert is_plausible(np.array([0, 0, 0]), shares)
    assert is_plausible(np.array([2**40, 2**40 + 2**20, 0]), shares)
    assert not is_plausible(np.array([2**40, 2**40 + 2**25, 0]), shares)


def test_the_level_grows_with_the_blocks_that_may_be_refused() -> None:
    assert log_level(5, 0.05, 0) == pytest.approx(np.log(100))
    assert log_level(5, 0.05, 90) == pytest.approx(np.log(100) + 90 * REFUSAL)
