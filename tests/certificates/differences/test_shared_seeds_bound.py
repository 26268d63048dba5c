"""Arms on shared seeds: exact moments of bets on dependent rewards, and error rates."""

from itertools import product
from math import log

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

from shortlist import Binary, Bounded, FixedConfidence, Normal, Problem, simulate
from shortlist.arrays import FloatArray
from shortlist.certificates.differences import planning
from shortlist.certificates.differences.bound import PairSums, log_gains, row_sums
from shortlist.certificates.differences.planning import Comparisons, ranged_clocks
from shortlist.certificates.differences.search import Course, DifferencesRace, differences_search
from shortlist.reward_models import RewardModel
from shortlist.search import Answer, Pulls, advance, rewards_of

WEIGHTS = np.array(planning.GAP_WEIGHTS)
BOTH, ONE, OTHER = np.array([0, 1]), np.array([0]), np.array([1])
EPSILON = 0.1


def bet_on(rows: FloatArray) -> PairSums:
    """Bet row by row on rewards in [0, 1], clocks and centres by the rows before."""
    sums, compared = PairSums(2, WEIGHTS), Comparisons(2)
    for place, row in enumerate(rows):
        told = row_sums(row[None, :] / EPSILON)
        if place:
            centres = np.clip(EPSILON * compared.mean_leads(), -1, 1)
            clocks = ranged_clocks(compared.variances(), centres, 1, EPSILON)
            sums.bet_ranged(BOTH, row[None, :], clocks, centres, EPSILON)
        compared.add(BOTH, told)
    return sums


# joint distributions of two dependent rewards: rows, and how often each comes
JOINT: dict[str, tuple[list[tuple[float, float]], list[float]]] = {
    "alike": ([(0, 0), (1, 1), (0, 1)], [0.45, 0.45, 0.1]),
    "opposite": ([(0, 1), (1, 0), (1, 1)], [0.5, 0.3, 0.2]),
    "graded": ([(0.2, 0.9), (0.7, 0.1), (0.5, 0.5)], [0.3, 0.4, 0.3]),
}


@pytest.mark.parametrize("name", JOINT)
def test_the_mean_wealth_of_ranged_bets_is_at_most_1_over_all_sequences(name: str) -> None:
    rows, chances = JOINT[name]
    lead = sum(p * (b - a) for (a, b), p in zip(rows, chances, strict=True)) / EPSILON
    total = wrong = 0.0
    for which in product(range(3), repeat=5):
        chance = float(np.prod([chances[each] for each in which]))
        sums = bet_on(np.array([rows[each] for each in which]))
        logs = (lead * sums.slope - sums.spent)[0, 1]
        total += chance * float(WEIGHTS @ np.exp(logs))
        wrong += chance * float(sums.update(ONE, OTHER, log(2))[0, 0] <= lead)
    assert 0.5 < total <= 1 + 1e-12
    assert wrong <= 0.5


def test_counts_of_binary_rows_give_the_gains_of_single_rows() -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 2, (40, 3)).astype(float)
    clocks = rng.uniform(0, 0.4, (3, 3, 6))
    centres = rng.uniform(-0.5, 0.5, (3, 3))
    slow = np.zeros((3, 3, 6))
    for row in rows:
        difference = (row[None, :] - row[:, None])[:, :, None]
        slow += np.log1p(clocks * (centres[:, :, None] - difference))
    assert np.allclose(log_gains(rows, clocks, centres), slow)
    nearly = np.where(rows == 0, 1e-9, rows)  # no longer 0 and 1: row by row
    assert np.allclose(log_gains(nearly, clocks, centres), slow, atol=1e-6)


def test_no_stake_can_ruin() -> None:
    for centre in (-1.0, 0.0, 0.7, 1.0):
        centres = np.full((2, 2), centre)
        clocks = ranged_clocks(np.full((2, 2), 1e-9), centres, 1, 0.01)
        assert (clocks * (1 - centre) <= 0.5).all()


def test_the_correlation_is_the_share_that_cancels() -> None:
    rng, course = np.random.default_rng(2), Course()
    assert course.correlation is None
    shared = rng.standard_normal((4000, 1))
    course.compare(0.8**0.5 * shared + 0.2**0.5 * rng.standard_normal((4000, 5)))
    assert course.correlation == pytest.approx(0.8, abs=0.03)


def problem_of(rewards: RewardModel, delta: float, n: int = 3, k: int = 1) -> Problem:
    return Problem(n, k, FixedConfidence(EPSILON, delta), rewards, shared_seeds=True)


def test_no_fallback_is_used_on_shared_seeds() -> None:
    race = DifferencesRace(problem_of(Normal(), 0.3), np.random.default_rng(0))
    assert race.fallback is None


@pytest.mark.rates
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("sd", [(0.5, 1.0, 2.0), (0.05, 0.05, 0.05)])
def test_normal_arms_on_shared_seeds_fail_with_probability_delta_at_most(
    correlation: float, sd: tuple[float, ...]
) -> None:
    runs = number_of_runs(12, 2000)
    done = simulate(
        "certified",
        [0.101, 0, 0],
        k=1,
        epsilon=0.1,
        delta=0.3,
        rewards="normal",
        sd=sd,
        seeds="shared",
        correlation=correlation,
        runs=runs,
        seed=17,
    )
    assert binom.sf(int(done.failed.sum()) - 1, runs, 0.3) > 1e-3


@pytest.mark.rates
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_binary_arms_on_shared_seeds_fail_with_probability_delta_at_most(
    correlation: float,
) -> None:
    runs = number_of_runs(12, 2000)
    done = simulate(
        "certified",
        [0.601, 0.5, 0.5],
        k=1,
        epsilon=0.1,
        delta=0.3,
        seeds="shared",
        correlation=correlation,
        runs=runs,
        seed=18,
    )
    assert binom.sf(int(done.failed.sum()) - 1, runs, 0.3) > 1e-3


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_a_large_shared_deviation_and_an_offset_change_nothing(offset: float) -> None:
    def end(size: float) -> tuple[Answer, int]:
        rng, pulls = np.random.default_rng(4), 0
        search = differences_search(problem_of(Normal(), 0.05), np.random.default_rng(1))
        turn = advance(search, None)
        while isinstance(turn, Pulls):
            rows = int(turn.times[0])
            shared = np.round(rng.standard_normal((rows, 1)) * 1024)
            own = np.round(rng.standard_normal((rows, 3)) * 1024)[:, turn.arms] / 1024
            means = np.array([0.0, 1.0, 0.5])[turn.arms]
            each = (offset + size * shared + means + own).T.ravel()
            entry = np.repeat(np.arange(turn.arms.size), turn.times)
            pulls += turn.total
            turn = advance(search, rewards_of(each, entry, turn.arms.size))
        return turn, pulls

    plain, pulls = end(0.0)
    shaken, again = end(1e3)
    assert shaken.top.tolist() == plain.top.tolist() == [1]
    assert again == pulls
    assert shaken.evidence["correlation"] == pytest.approx(1)


def test_ranged_rewards_may_be_graded() -> None:
    rng = np.random.default_rng(5)
    for rewards, rounded in ((Bounded(), False), (Binary(), True)):
        search = differences_search(problem_of(rewards, 0.05), np.random.default_rng(1))
        turn = advance(search, None)
        while isinstance(turn, Pulls):
            rows = int(turn.times[0])
            shared = rng.random((rows, 1))
            each = np.clip(shared + np.array([0.0, 0.3, 0.1])[turn.arms], 0, 1)
            each = (each > 0.7).astype(float) if rounded else each
            entry = np.repeat(np.arange(turn.arms.size), turn.times)
            turn = advance(search, rewards_of(each.T.ravel(), entry, turn.arms.size))
        assert turn.top.tolist() == [1]
        assert turn.evidence["proof"] == "race"
