"""Confidence sequences, against exact laws and against what they claim."""

from fractions import Fraction
from itertools import permutations, product
from math import comb, log

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from shortlist.confidence import (
    BetaMixture,
    NormalMixture,
    PopulationMixture,
    differences,
    intervals,
    ratios,
)
from shortlist.problem import FixedBudget, FixedConfidence, Items, Problem
from shortlist.reward_models import Binary, Bounded, SubGaussian

GOAL = FixedConfidence(0.1, 0.2)
IN_STEP = np.ones(3, dtype=np.bool_)


def test_all_intervals_hold_at_all_times_at_confidence() -> None:
    rng, runs = np.random.default_rng(0), 3000
    means = np.array([0.05, 0.3, 0.5, 0.9])
    problem = Problem(4, 1, GOAL, Binary())
    successes = np.cumsum(rng.random((60, runs, 4)) < means, axis=0)  # after 1, ..., 60 pulls
    missed = np.zeros(runs, dtype=bool)
    for pulls, seen in enumerate(successes, start=1):
        # an interval depends on the successes alone: those of all numbers of them, four at a time
        possible = np.resize(np.arange(pulls + 1), (pulls // 4 + 1, 4))
        ends = [intervals(problem, np.full(4, pulls), each / pulls) for each in possible]
        low, high = (np.concatenate(column) for column in zip(*ends, strict=True))
        missed |= ((means < low[seen]) | (means > high[seen])).any(axis=1)
    assert binomtest(int(missed.sum()), runs, 0.2, alternative="greater").pvalue > 1e-6


def test_intervals_of_three_values_are_missed_at_most_as_often_as_they_say() -> None:
    """Rewards 0, 1/2 and 1: every path of eight pulls, weighed exactly."""
    law = {0.0: 0.3, 0.5: 0.6, 1.0: 0.1}
    mean = sum(reward * chance for reward, chance in law.items())
    problem = Problem(2, 1, FixedConfidence(0.1, 0.5), Bounded())
    paths = np.array(list(product(law, repeat=8)))  # (3^8, 8)
    missed = np.zeros(len(paths), dtype=bool)
    for pulls in range(1, 9):
        rewards = paths[:, :pulls].mean(axis=1)
        ends = [
            intervals(problem, np.full(2, pulls), np.full(2, value)) for value in np.unique(rewards)
        ]
        inside = {
            value: low[0] <= mean <= high[0]
            for value, (low, high) in zip(np.unique(rewards), ends, strict=True)
        }
        missed |= [not inside[value] for value in rewards]
    chances = np.prod(np.vectorize(law.__getitem__)(paths), axis=1)
    assert 0 < chances[missed].sum() <= 0.25  # each of two arms has half of delta


@pytest.mark.parametrize(
    ("scores", "rewards"),
    [
        ((1, 1, 1, 1, 1, 1, 0, 0), Binary()),
        ((1, 1, 1, 1, 0, 0, 0, 0), Bounded()),
        ((0.9, 0.8, 0.8, 0.7, 0.1, 1.0, 0.0), Bounded()),
        ((1, 1, 1, 1, 1, 1, 1, 0.5), Bounded()),
    ],
)
def test_intervals_on_a_test_set_are_missed_at_most_as_often_as_they_say(
    scores: tuple[float, ...], rewards: Bounded | Binary
) -> None:
    """Every order of a few scores, looked at after each of them."""
    delta = 0.9
    problem = Problem(2, 1, FixedConfidence(0.1, delta), rewards, items=Items(len(scores)))
    orders = np.array(sorted(set(permutations(scores))))  # equally likely
    missed = np.zeros(len(orders), dtype=bool)
    for pulls in range(1, len(scores) + 1):
        means = np.round(orders[:, :pulls].mean(axis=1), 12)
        for mean in np.unique(means):
            low, high = intervals(problem, np.full(2, pulls), np.full(2, mean))
            outside = not low[0] - 1e-9 <= np.mean(scores) <= high[0] + 1e-9
            missed |= (means == mean) & outside
    assert missed.mean() <= delta / 2  # each of two arms has half of delta


@given(st.integers(2, 60), st.data())
def test_the_evidence_of_draws_without_replacement_has_expectation_one(
    size: int, data: st.DataObject
) -> None:
    ones, pulls = data.draw(st.integers(0, size)), data.draw(st.integers(1, size))
    successes = np.arange(max(0, pulls - size + ones), min(ones, pulls) + 1.0)
    counts, sizes = np.full(successes.size, float(pulls)), np.full(successes.size, float(size))
    chances = [comb(ones, int(s)) * comb(size - ones, pulls - int(s)) for s in successes]
    wealth = PopulationMixture(counts, successes, sizes, binary=True)._against(
        np.full(successes.size, ones / size)
    )
    possible = float(np.array(chances) @ np.exp(wealth)) / comb(size, pulls)
    assert possible <= 1 + 1e-9  # less where some sums are impossible, that the mixture bets on
    free = PopulationMixture(counts, successes, sizes, binary=False)
    assert (free._against(np.full(successes.size, ones / size)) <= wealth + 1e-9).all()


def test_441_of_800_items_leave_a_mean_open_by_less_than_a_tenth() -> None:
    """What the items not scored leave open would be 0.415 to 0.864."""
    (low,), (high,) = PopulationMixture(
        np.array([441.0]), np.array([441 * 0.753]), np.array([800.0]), binary=False
    ).edges(np.array([log(1 / 0.05)]))
    assert 0.69 < low < 0.753 < high < 0.81


def test_known_scores_move_the_interval_by_their_share() -> None:
    known = np.full((2, 20), np.nan)
    known[:, :10] = 1.0
    goal, pulls, means = FixedConfidence(0.1, 0.2), np.full(2, 6), np.full(2, 0.5)
    all_unknown = Problem(2, 1, goal, Binary(), items=Items(10))
    half_known = Problem(2, 1, goal, Binary(), items=Items(20, known))
    low, high = intervals(all_unknown, pulls, means)
    found = intervals(half_known, pulls, means)
    np.testing.assert_allclose(found, ((10 + 10 * low) / 20, (10 + 10 * high) / 20), atol=1e-9)
    assert (low >= 0.3 - 1e-9).all()
    assert (high <= 0.7 + 1e-9).all()


@given(st.integers(1, 60), st.floats(0.01, 0.99))
def test_the_evidence_of_coin_tosses_has_expectation_one(pulls: int, theta: float) -> None:
    successes = np.arange(pulls + 1.0)
    evidence = BetaMixture(np.full(pulls + 1, float(pulls)), successes)._against(
        np.full(pulls + 1, theta)
    )
    chances = [
        comb(pulls, s) * mpmath.mpf(theta) ** s * (1 - mpmath.mpf(theta)) ** (pulls - s)
        for s in range(pulls + 1)
    ]
    total = mpmath.fsum(
        chance * mpmath.exp(each) for chance, each in zip(chances, evidence, strict=True)
    )
    assert float(total) == pytest.approx(1, rel=1e-9)


@given(st.integers(0, 10**9), st.floats(0, 1), st.floats(0.5, 50))
def test_edges_are_where_the_evidence_reaches_the_level(
    pulls: int, share: float, level: float
) -> None:
    count = np.array([float(pulls)])
    mixture = BetaMixture(count, count * share)
    low, high = mixture.edges(np.array([level]))
    assert 0 <= low[0] <= (share if pulls else 0.5) + 1e-15
    assert (share if pulls else 0.5) - 1e-15 <= high[0] <= 1
    for end, beyond in ((low, low - 1e-9), (high, high + 1e-9)):
        if 0 < end[0] < 1:
            assert mixture._against(end)[0] >= level - 1e-6 * max(1.0, pulls**0.5)
            assert not 0 <= beyond[0] <= 1 or mixture._against(beyond)[0] >= level - 1e-3


def test_a_normal_mixture_ends_where_its_formula_says() -> None:
    mixture = NormalMixture(np.array([100.0]), np.array([0.2]))
    low, high = mixture.edges(np.array([3.0]))
    against = 100**2 * (high - 0.2) ** 2 / (2 * 0.25 * 130) - np.log(130 / 30) / 2
    assert against == pytest.approx(3.0)
    assert high - 0.2 == pytest.approx(0.2 - low)


def test_intervals_are_in_the_units_of_the_rewards_and_keep_to_their_range() -> None:
    pulls, means = np.array([100, 100, 0]), np.array([0.5, 1.0, np.nan])
    goal = FixedBudget(1000)
    low, high = intervals(Problem(3, 1, goal, Bounded(0, 1)), pulls, means)
    assert (low[2], high[1], high[2]) == (0, 1, 1)
    wide_low, wide_high = intervals(Problem(3, 1, goal, Bounded(-2, 6)), pulls, 8 * means - 2)
    assert wide_low == pytest.approx(8 * low - 2)
    assert wide_high == pytest.approx(8 * high - 2)
    assert intervals(Problem(3, 1, goal, SubGaussian(1)), pulls, means)[1][2] == np.inf


@pytest.mark.parametrize(("low", "high"), [(-1.7, 0.3), (0.1, 0.7), (5.3, 5.9), (1e9, 1e9 + 2)])
def test_no_interval_excludes_an_end_of_the_range_by_rounding(low: float, high: float) -> None:
    problem = Problem(2, 1, FixedBudget(1000), Bounded(low, high))
    least, most = intervals(problem, np.array([0, 50]), np.array([np.nan, high]))
    assert (least[0], most.tolist()) == (low, [high, high])
    assert intervals(problem, np.array([0, 50]), np.array([np.nan, low]))[0].tolist() == [low, low]


def test_few_successes_in_a_row_say_more_than_the_union_over_times_did() -> None:
    low, _ = intervals(
        Problem(2, 1, FixedConfidence(0.1, 0.05)), np.array([28, 28]), np.array([1.0, 0.5])
    )
    assert low[0] > 0.75


def test_more_pulls_of_the_same_mean_narrow_an_interval() -> None:
    problem = Problem(5, 1, GOAL)
    low, high = intervals(problem, np.array([10, 20, 100, 1000, 10**6]), np.full(5, 0.3))
    assert (np.diff(low) > 0).all()
    assert (np.diff(high) < 0).all()


@pytest.mark.parametrize("model", [Binary(), SubGaussian(0.5)])
def test_differences_hold_together_and_are_mostly_narrower_than_two_intervals(
    model: Binary | SubGaussian,
) -> None:
    rng, runs, missed, narrower = np.random.default_rng(1), 200, 0, 0
    means = np.array([0.1, 0.15, 0.4])
    problem = Problem(3, 1, GOAL, model)
    for _ in range(runs):
        pulls = rng.integers(1, 400, 3)
        seen = rng.binomial(pulls, means) / pulls
        low, high = differences(problem, pulls, seen, 0, IN_STEP[:3])
        missed += bool(((means - means[0] < low) | (means - means[0] > high)).any())
        apart_low, apart_high = intervals(problem, pulls, seen)
        apart = apart_high - apart_low
        narrower += int((high - low)[1] < apart[0] + apart[1])
    assert binomtest(missed, runs, 0.2, alternative="greater").pvalue > 1e-6
    assert narrower > 0.8 * runs


def test_no_pair_with_little_evidence_against_it_is_left_out() -> None:
    problem = Problem(2, 1, FixedConfidence(0.1, 0.05), Binary())
    pulls, means = np.array([40, 25]), np.array([0.3, 0.6])
    low, high = differences(problem, pulls, means, 0, IN_STEP[:2])
    low_ratio, high_ratio = ratios(problem, pulls, means, 0, IN_STEP[:2])
    grid = np.linspace(0.0005, 0.9995, 1000)
    evidence = [
        BetaMixture(np.array([n]), np.array([n * mean]))._against(grid)
        for n, mean in ((40.0, 0.3), (25.0, 0.6))
    ]
    control, arm = np.nonzero(evidence[0][:, None] + evidence[1][None, :] <= np.log(20 / 0.9))
    gaps, quotients = grid[arm] - grid[control], grid[arm] / grid[control]
    assert low[1] <= gaps.min() <= low[1] + 0.01
    assert high[1] - 0.01 <= gaps.max() <= high[1]
    assert low_ratio[1] <= quotients.min()
    assert quotients.max() <= high_ratio[1]
    assert (low[0], high[0], low_ratio[0], high_ratio[0]) == (0, 0, 1, 1)


def test_a_control_never_pulled_leaves_everything_open() -> None:
    problem = Problem(2, 1, GOAL, Binary())
    pulls, means = np.array([0, 50]), np.array([np.nan, 0.5])
    low, high = differences(problem, pulls, means, 0, IN_STEP[:2])
    assert low[1] < -0.6
    assert high[1] > 0.6
    assert ratios(problem, pulls, means, 0, IN_STEP[:2])[1][1] == np.inf


@given(
    scores=st.lists(st.sampled_from([0.0, 1.0, 0.1, 0.3, 0.7]), min_size=2, max_size=9),
    data=st.data(),
)
def test_an_interval_on_a_test_set_contains_every_mean_that_unseen_items_leave_open(
    scores: list[float], data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, len(scores) - 1))
    problem = Problem(2, 1, FixedConfidence(0.1, 1e-60), items=Items(len(scores)))
    pulls, seen = np.full(2, count), sum(scores[:count])
    low, high = intervals(problem, pulls, np.full(2, seen / count))
    sure = sum(map(Fraction, scores[:count]), Fraction(0))
    assert Fraction(low[0]) <= sure / len(scores)
    assert Fraction(high[0]) >= (sure + len(scores) - count) / len(scores)
