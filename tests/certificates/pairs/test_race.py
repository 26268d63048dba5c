"""The race of pairs as a whole: its promise, its fallback, and its manners."""

from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from shortlist.arrays import IntArray
from shortlist.certificates.frame import fixed_design
from shortlist.certificates.pairs import fallback
from shortlist.certificates.pairs.planning import BatchSizes
from shortlist.certificates.pairs.search import PairsRace, _draw, complete_samples, pairs_search
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian
from shortlist.search import NO_PROGRESS, Answer, Rewards
from shortlist.simulation.worlds import Bandit, BernoulliBandit, BetaBandit, GaussianBandit

RUNS = number_of_runs(8, 600)  # of every instance below
QUICK = {"batch": 16, "growth": 0.1}
LARGE: list[dict[str, int]] = [{"least": 150}, {"rounds": 4}]  # requests, cut into parts


def drive(
    bandit: Bandit, problem: Problem, seed: int, **pace: int | float
) -> tuple[Answer, list[IntArray]]:
    """The answer of a race, and what it asked for: pulls of every arm, request by request."""
    rng = np.random.default_rng(seed)
    search = pairs_search(problem, rng, **pace)  # type: ignore[arg-type]
    requests: list[IntArray] = []
    try:
        request = next(search)
        while True:
            requests.append(np.bincount(request.arms, request.times, problem.n_arms).astype(int))
            request = search.send(bandit.pull(request.arms, request.times, rng))
    except StopIteration as stop:
        return stop.value, requests


def shuffled(means: list[float], seed: int) -> BernoulliBandit:
    return BernoulliBandit(np.random.default_rng([seed, 1]).permutation(np.array(means)))


HARD = [  # differences just above what may be lost, at several levels of the means
    ([0.5605, 0.5], 1, 0.06),
    ([0.0805, 0.02], 1, 0.06),
    ([0.98, 0.9195], 1, 0.06),
    ([0.3605, 0.3, 0.3], 1, 0.06),
    ([0.5, 0.5, 0.4395], 2, 0.03),
    ([0.661, 0.5, 0.5, 0.5, 0.5], 1, 0.16),
    ([0.62, 0.62, 0.5, 0.5], 2, 0.0599),
    ([0.6, 0.6, 0.6, 0.49, 0.49, 0.49], 3, 0.1),
    ([0.98, *[0.8795] * 8], 1, 0.1),
    ([*[0.1205] * 8, 0.02], 8, 0.0125),
]


def failures(means: list[float], k: int, epsilon: float, pace: dict[str, Any]) -> int:
    """In how many of RUNS races more than epsilon is lost."""
    problem = Problem(len(means), k, FixedConfidence(epsilon, 0.3))
    failed = 0
    for seed in range(RUNS):
        bandit = shuffled(means, seed)
        answer, _ = drive(bandit, problem, seed, **pace)
        failed += aggregate_regret(bandit.means, answer.top) > epsilon + 1e-9
    return failed


def check_rates(pace: dict[str, Any]) -> None:
    """Failures are believable on every hard instance, and on all together: 12 runs of each are
    enough to see that races fail half of the time."""
    failed = [failures(*instance, pace) for instance in HARD]
    for each, size in [*((each, RUNS) for each in failed), (sum(failed), RUNS * len(HARD))]:
        assert binomtest(each, size, 0.3, alternative="greater").pvalue > 1e-4, failed


@pytest.mark.rates
@pytest.mark.parametrize("slack", [1.5, 6.0], ids=["fallback", "race alone"])
def test_regret_stays_within_epsilon_at_confidence(
    slack: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        fallback, "SLACK", slack
    )  # a fallback far away leaves most of delta to the race
    check_rates(QUICK)


@pytest.mark.rates
@pytest.mark.parametrize("pace", LARGE, ids=str)
def test_regret_stays_within_epsilon_where_bets_are_fixed_part_by_part(
    pace: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fallback, "SLACK", 6.0)
    check_rates(pace)


def test_the_bets_of_a_part_are_fixed_before_its_rewards_are_seen() -> None:
    problem = Problem(3, 1, FixedConfidence(0.05, 0.05))
    fixed = []
    for last in (0.0, 1.0):  # all rewards of the last part are 0, or 1
        race = PairsRace(problem, np.random.default_rng(0), BatchSizes(least=600))
        stages, arms = race.movers()
        assert race.ready(stages)
        times = race.stages.times(stages, arms)
        sums = np.where(stages == stages[-1], last * times, times // 2).astype(float)
        race.book(stages, arms, Rewards(sums, sums))
        fixed.append(race.stages.fixed)
    assert len(fixed[0]) == len(fixed[1]) > 5
    for one, other in zip(*fixed, strict=True):
        assert np.array_equal(one.advance, other.advance)
        assert np.array_equal(one.lower, other.lower)
        assert (one.mean, one.weight) == (other.mean, other.weight)


@pytest.mark.rates
@pytest.mark.parametrize("n_k", [(2, 1), (3, 2), (5, 1), (10, 3), (8, 1), (8, 7)], ids=str)
@pytest.mark.parametrize("mean", [0.5, 0.03, 0.9])
def test_no_run_asks_for_more_than_one_and_a_half_designs(
    n_k: tuple[int, int], mean: float
) -> None:
    n, k = n_k
    problem = Problem(n, k, FixedConfidence(0.2 / k, 0.05))
    most = 1.5 * n * fixed_design(n, k, 0.2 / k, 0.05, Binary())
    for seed in range(number_of_runs(2, 60)):
        _, requests = drive(BernoulliBandit(np.full(n, mean)), problem, seed)
        assert np.sum(requests) <= most


def test_rewards_that_are_not_binary_get_larger_samples() -> None:
    problem = Problem(2, 1, FixedConfidence(0.2, 0.05))
    design = fixed_design(2, 1, 0.2, 0.05, Bounded())
    bandit = BetaBandit(np.array([0.5, 0.5]), concentration=0.2)
    for seed in range(5):
        _, requests = drive(bandit, problem, seed, **QUICK)
        assert np.sum(requests) <= 1.5 * 2 * design


@pytest.mark.parametrize(
    ("bandit", "model"),
    [
        (BetaBandit(np.array([0.7, 0.5, 0.4])), Bounded()),
        (BetaBandit(np.array([0.60, 0.5, 0.4]), concentration=100), Bounded()),
        (GaussianBandit(np.array([0.7, 0.5, 0.4])), SubGaussian(0.5)),
    ],
    ids=["beta", "small variance", "normal"],
)
def test_other_rewards_are_judged_by_their_own_bets(bandit: Bandit, model: RewardModel) -> None:
    problem = Problem(3, 1, FixedConfidence(0.1, 0.05), model)
    runs = [drive(bandit, problem, seed) for seed in range(5)]
    assert all(answer.top.tolist() == [0] for answer, _ in runs)
    assert all((answer.regret_bound or 0) <= 0.1 for answer, _ in runs)
    assert np.mean([np.sum(requests) for _, requests in runs]) < 3 * fixed_design(
        3, 1, 0.1, 0.05, model
    )


def test_small_variance_saves_pulls() -> None:
    problem = Problem(2, 1, FixedConfidence(0.05, 0.05))
    means = np.array([0.5, 0.5])
    spent = [np.sum(drive(BetaBandit(means, concentration=c), problem, 0)[1]) for c in (1.0, 100.0)]
    assert spent[1] < spent[0] / 3


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_there_are_no_more_requests_than_rounds(rounds: int) -> None:
    for means in ([0.5] * 4, [0.6, 0.5, 0.45, 0.4]):
        problem = Problem(4, 1, FixedConfidence(0.1, 0.05))
        for seed in range(4):
            answer, requests = drive(BernoulliBandit(np.array(means)), problem, seed, rounds=rounds)
            assert len(requests) <= rounds
            assert answer.regret_bound is not None
            assert answer.regret_bound <= 0.1


@pytest.mark.parametrize("pace", LARGE, ids=str)
def test_a_budget_ends_a_race_in_the_midst_of_a_large_request(pace: dict[str, int]) -> None:
    for budget in (5, 50, 400):
        problem = Problem(4, 2, FixedConfidence(0.01, 0.05, budget))
        answer, requests = drive(shuffled([0.7, 0.6, 0.3, 0.2], budget), problem, budget, **pace)
        assert np.sum(requests) <= budget
        assert answer.top.size == 2


def test_a_budget_ends_a_race_with_what_is_proved() -> None:
    for budget in (3, 50, 400):
        problem = Problem(4, 2, FixedConfidence(0.01, 0.05, budget))
        answer, requests = drive(shuffled([0.7, 0.6, 0.3, 0.2], budget), problem, budget)
        assert np.sum(requests) <= budget
        assert answer.top.size == 2
        assert answer.regret_bound is not None
        assert 0 <= answer.regret_bound <= 1
    assert (answer.regret_bound or 0.0) < 0.5


@pytest.mark.rates
def test_bounds_hold_at_every_request_at_once() -> None:
    means = np.array([0.55, 0.5, 0.45])
    problem = Problem(3, 1, FixedConfidence(0.02, 0.3))
    wrong = 0
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        race = PairsRace(problem, rng, BatchSizes(batch=16, growth=0.2))
        held = True
        for _ in range(25):
            if not race.open.any():
                break
            stages, arms = race.movers()
            if not race.ready(stages):
                break
            times = race.stages.times(stages, arms)
            race.book(stages, arms, BernoulliBandit(means).pull(arms, times, rng))
            race.stand()
            held &= means.max() - means[race.top].sum() <= race.bound() + 1e-9
        wrong += not held
    assert binomtest(wrong, RUNS, 0.3, alternative="greater").pvalue > 1e-4


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 7), st.data())
def test_races_end_with_k_arms_and_a_bound(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n - 1))
    epsilon = data.draw(st.sampled_from([0.05, 0.3, 0.9]))
    delta = data.draw(st.sampled_from([0.001, 0.05, 0.5]))
    rewards: RewardModel = Bounded() if data.draw(st.booleans()) else Binary()
    means = np.array(data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    problem = Problem(n, k, FixedConfidence(max(epsilon, 0.3 / k), delta), rewards)
    answer, requests = drive(BernoulliBandit(means), problem, 0, batch=16, growth=0.2)
    assert np.unique(answer.top).size == k
    assert answer.regret_bound is not None
    assert 0 <= answer.regret_bound <= problem.epsilon
    assert all((request >= 0).all() and request.any() for request in requests)


def test_a_race_is_a_function_of_its_seed_and_rewards() -> None:
    problem = Problem(5, 2, FixedConfidence(0.1, 0.05))
    bandit = shuffled([0.6, 0.55, 0.5, 0.4, 0.3], 0)
    first, second = drive(bandit, problem, 7), drive(bandit, problem, 7)
    assert first[0].top.tolist() == second[0].top.tolist()
    assert np.array_equal(first[1], second[1])


@pytest.mark.rates
@pytest.mark.parametrize(("n", "k", "epsilon"), [(30, 1, 0.8), (40, 2, 0.2)])
def test_arms_without_a_range_that_are_not_pulled_prove_nothing(
    n: int, k: int, epsilon: float
) -> None:
    """An arm that has its sample before others have theirs is idle in later stages."""
    means = 0.5 - 0.001 * np.arange(n)
    wrong, size = 0, number_of_runs(10, 400)
    for seed in range(size):
        bandit = GaussianBandit(np.random.default_rng(seed).permutation(means))
        problem = Problem(n, k, FixedConfidence(epsilon, 0.05), SubGaussian(0.5))
        answer, _ = drive(bandit, problem, seed)
        assert answer.regret_bound is not None
        wrong += aggregate_regret(bandit.means, answer.top) > answer.regret_bound + 1e-12
    assert binomtest(wrong, size, 0.05, alternative="greater").pvalue > 1e-4


def test_a_budget_too_small_for_the_last_resort_says_what_is_proved_by_then() -> None:
    for model, most in ((Binary(), 1.0), (SubGaussian(0.5), None)):
        problem = Problem(2, 1, FixedConfidence(0.05, 0.05, 40), model)
        answer, requests = drive(shuffled([0.6, 0.5], 0), problem, 1, rounds=1)
        assert requests == []
        assert answer.regret_bound == most  # nothing, but that means have a range


def test_arms_that_come_into_doubt_by_the_new_choice_complete_their_samples_too() -> None:
    race = PairsRace(
        Problem(3, 1, FixedConfidence(0.2, 0.05)), np.random.default_rng(0), BatchSizes()
    )
    race.pulls[:2] = race.fallback.size
    race.sums[:2] = race.squares[:2] = [0, race.fallback.size]
    race.open = np.array([True, True, False])  # arm 2 is in no open pair of the present choice
    race.top = np.array([True, False, False])
    search = complete_samples(race, 0, at_once=False)
    request = next(search)  # after arm 1 was chosen, against which arm 2 is open
    assert request.arms.tolist() == [2]
    times = request.times.astype(float)
    with pytest.raises(StopIteration) as stop:
        search.send(Rewards(0 * times, 0 * times))
    assert stop.value.value.top.tolist() == [1]
    assert stop.value.value.evidence["fallback design"]


def test_nothing_is_asked_for_where_all_entries_are_idle() -> None:
    race = PairsRace(
        Problem(2, 1, FixedConfidence(0.2, 0.05)), np.random.default_rng(0), BatchSizes()
    )
    idle = _draw(race, np.array([0, 1]), np.zeros(2, dtype=np.int64), NO_PROGRESS)
    with pytest.raises(StopIteration) as stop:
        next(idle)
    assert not stop.value.value.sums.any()


@pytest.mark.parametrize("k", [1, 8])
def test_one_arm_near_the_end_of_the_range_runs_ahead_of_its_rivals(k: int) -> None:
    means = np.array([0.99, *[0.85] * 8])
    bandit = BernoulliBandit(means if k == 1 else 1 - means)
    problem = Problem(9, k, FixedConfidence(0.09 / k, 0.05))
    pulls = np.zeros(9)
    for seed in range(8):  # in some of them the pilot does not show where the arms lie
        answer, requests = drive(bandit, problem, seed)
        assert (answer.top.tolist() == [0]) == (k == 1)
        pulls += np.sum(requests, axis=0)
    assert pulls[0] > 5 * pulls[1:].mean()
