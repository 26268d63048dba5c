"""No arm is pulled more often than its limit allows, whatever searches, and no bound is wrong."""

from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

import shortlist
from shortlist.algorithms import ALGORITHMS, find
from shortlist.arrays import FloatArray
from shortlist.certificates.frame import FAR_BEYOND, fixed_design
from shortlist.driver import Outcome
from shortlist.errors import InvalidInput
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary, Bounded, RewardModel
from shortlist.search import Answer, Pulls, Search
from shortlist.simulation.simulate import drive
from shortlist.simulation.worlds import BernoulliBandit

Limits = tuple[int | None, ...] | None


def driven(
    name: str, means: Any, k: int, goal: Goal, limits: Limits, seed: int, **options: Any
) -> Outcome:
    model: RewardModel = options.pop("model", Binary())
    problem = Problem(len(means), k, goal, model, limits=limits)
    rng = np.random.default_rng(seed)
    return drive(find(name), problem, BernoulliBandit(np.asarray(means)), rng, **options)


WITH_LIMITS = sorted(name for name, each in ALGORITHMS.items() if not each.only_normal)


@pytest.mark.parametrize("name", WITH_LIMITS)
@pytest.mark.parametrize("goal", [FixedBudget(300), FixedConfidence(0.1, 0.1)])
def test_no_search_exceeds_a_limit(name: str, goal: Goal) -> None:
    if not isinstance(goal, ALGORITHMS[name].goals):
        pytest.skip("another goal")
    rng = np.random.default_rng(5)
    for seed in range(3):
        means = rng.random(9)
        limits = tuple([None if each > 20 else int(each) for each in rng.integers(1, 24, 9)])
        most = np.array([np.inf if limit is None else limit for limit in limits])
        k = 1 if name in ("track-and-stop", "median-elimination") else 3
        outcome = driven(name, means, k, goal, limits, seed)
        assert (outcome.pulls <= most).all()
        assert outcome.pulls.any()
        assert np.unique(outcome.answer.top).size == k


def test_a_budget_is_spent_as_far_as_limits_allow() -> None:
    means = np.linspace(0.1, 0.9, 10)
    assert driven("expected-loss", means, 3, FixedBudget(300), (30,) * 10, 0).pulls.sum() == 300
    assert driven("expected-loss", means, 3, FixedBudget(500), (30,) * 10, 0).pulls.sum() == 300
    limits = (*(3,) * 5, *(None,) * 5)
    assert driven("expected-loss", means, 3, FixedBudget(500), limits, 0).pulls.sum() == 500


@pytest.mark.parametrize("limits", [(30,) * 10, (*(3,) * 5, *(None,) * 5), (*(60,) * 9, 1)])
@pytest.mark.parametrize("pace", [{"max_rounds": 2}, {"max_rounds": 5}, {"min_batch": 90}])
def test_few_and_large_rounds_keep_to_limits(limits: Limits, pace: dict[str, int]) -> None:
    assert limits is not None
    means = np.linspace(0.1, 0.9, 10)
    outcome = driven("expected-loss", means, 3, FixedBudget(500), limits, 0, **pace)
    most = np.array([np.inf if limit is None else limit for limit in limits])
    assert (outcome.pulls <= most).all()
    assert outcome.rounds <= pace.get("max_rounds", 500 // 90 + 1)
    assert outcome.pulls.sum() == min(500, most.sum())


def test_two_hundred_workers_who_answer_forty_questions_at_most() -> None:
    regrets: dict[Limits, list[float]] = {None: [], (40,) * 200: []}
    for limits, lost in regrets.items():
        for seed in range(60):
            means = np.random.default_rng([seed, 7]).beta(8, 2, 200)
            outcome = driven("expected-loss", means, 20, FixedBudget(3000), limits, seed)
            lost.append(aggregate_regret(means, outcome.answer.top))
            assert limits is None or outcome.pulls.max() <= 40
    without, within = map(np.mean, regrets.values())
    assert within <= 1.1 * without


def test_where_means_are_uniform_forty_pulls_of_everybody_tell_less_than_3000_without_limits() -> (
    None
):
    lost: list[list[float]] = [[], []]
    for seed in range(20):
        means = np.random.default_rng([seed, 8]).random(200)
        free = driven("expected-loss", means, 20, FixedBudget(3000), None, seed)
        everybody = driven("uniform", means, 20, FixedBudget(8000), (40,) * 200, seed)
        for regrets, outcome in zip(lost, (free, everybody), strict=True):
            regrets.append(aggregate_regret(means, outcome.answer.top))
    assert np.mean(lost[1]) > 1.1 * np.mean(lost[0])


@pytest.mark.rates
@pytest.mark.parametrize(
    ("k", "options"),
    [
        (1, {}),
        (1, {"model": Bounded()}),
        (1, {"min_batch": 100}),
        (3, {"max_rounds": 4}),
        (3, {"min_batch": 40}),
        (3, {"min_batch": 60, "max_rounds": 5}),
    ],
)
def test_what_is_proved_within_limits_holds(k: int, options: dict[str, Any]) -> None:
    wrong, reached, size = 0, 0, number_of_runs(50, 1000)
    for seed in range(size):
        rng = np.random.default_rng([seed, k])
        means = rng.choice([0.2, 0.5, 0.55, 0.9], 8)
        limits = tuple(rng.choice([10, 60, 400], 8).tolist())
        goal = FixedConfidence(0.15, 0.2)
        answer = driven("certified", means, k, goal, limits, seed, **options).answer
        if answer.regret_bound is not None:
            assert answer.confidence == 0.8
            wrong += aggregate_regret(means, answer.top) > answer.regret_bound
            reached += answer.regret_bound <= 0.15
    assert wrong <= binom.isf(0.01, size, 0.2)
    assert reached > 0


def workers(seed: int, n_arms: int = 200) -> FloatArray:
    return np.random.default_rng([seed, 7]).beta(8, 2, n_arms)


def proved(means: FloatArray, k: int, limits: Limits, seed: int, **options: Any) -> float:
    goal = FixedConfidence(0.05, 0.05)
    bound = driven("certified", means, k, goal, limits, seed, **options).answer.regret_bound
    return np.inf if bound is None else bound


def test_limits_prove_as_much_by_default_as_in_large_requests() -> None:
    """All of 200 workers answer 40 questions in the end, however these are cut into requests."""
    usual = [proved(workers(seed), 20, (40,) * 200, seed) for seed in range(4)]
    large = [proved(workers(seed), 20, (40,) * 200, seed, min_batch=1000) for seed in range(4)]
    assert np.mean(usual) <= 1.05 * np.mean(large)
    assert max(usual) < 0.15


def test_limits_that_differ_prove_about_as_much_as_equal_ones() -> None:
    equal, different = [], []
    for seed in range(3):
        some = np.random.default_rng([seed, 9]).integers(20, 61, 50)
        equal.append(proved(workers(seed, 50), 10, (40,) * 50, seed))
        different.append(proved(workers(seed, 50), 10, tuple(some.tolist()), seed))
    assert np.mean(different) <= 1.5 * np.mean(equal)


@pytest.mark.parametrize("pace", [{}, {"min_batch": 200}])
def test_one_arm_with_a_small_limit_does_not_void_what_the_others_prove(
    pace: dict[str, int],
) -> None:
    """It adds what it may lose itself, 1 of K, to what the others prove."""
    means = np.random.default_rng(3).permutation(np.linspace(0.1, 0.9, 20))
    bounds = [proved(means, 4, (1, *(100,) * 19), seed, **pace) for seed in range(3)]
    assert np.mean(bounds) <= 1 / 4 + 0.25


@pytest.mark.parametrize("given", [{}, {"certificate": "split"}])
def test_the_split_certificate_keeps_to_limits_and_proves_within_them(given: Any) -> None:
    n_arms = 150 if given else 1200
    k = n_arms // 6
    limits = tuple(np.random.default_rng(2).integers(20, 40, n_arms).tolist())
    goal = FixedConfidence(0.02, 0.05)
    outcome = driven("certified", workers(0, n_arms), k, goal, limits, 0, **given)
    assert (outcome.pulls <= limits).all()
    assert outcome.answer.evidence["certificate"] == "split"
    assert outcome.answer.regret_bound is not None
    assert outcome.answer.regret_bound < 0.15


TIES = [0.5, 0.5, 0.5, 0.5]
# means, k, limits, and how the pulls are cut into requests
LIMITED: list[tuple[list[float], int, Any, dict[str, int]]] = [
    (TIES, 2, lambda rng: rng.choice([5, 12], 4), {}),
    ([0.9, 0.65, 0.6, 0.6], 1, lambda rng: (12,) * 4, {}),
    ([0.9, 0.55, 0.5, 0.45], 1, lambda rng: (None, None, 9, 9), {}),
    ([1.0, 1.0, 0.0, 0.9, 0.8], 3, lambda rng: rng.choice([1, 2, 25], 5), {}),
    ([0.5, 0.3, 0.5, 0.5, 0.5], 4, lambda rng: rng.choice([1, 2, 25], 5), {}),
    ([0.7, 0.3], 1, lambda rng: (1, 7), {}),
    ([0.6, 0.5, 0.4], 1, lambda rng: (None, 12, 15), {"min_batch": 30}),
    ([0.95, 0.95, 0.7], 1, lambda rng: (None, 12, 15), {"max_rounds": 3}),
    ([0.6, 0.5, 0.5, 0.2], 2, lambda rng: (None, 1, 20, 3), {"max_rounds": 1}),
    ([0.7, 0.6, 0.5, 0.4], 2, lambda rng: rng.choice([2, 6, 40], 4), {"min_batch": 20}),
]


@pytest.mark.rates
def test_bounds_within_limits_fail_no_more_often_than_delta() -> None:
    """Limits that bind for all arms or for some, limits of 1, ties; delta .3."""
    wrong, size = 0, number_of_runs(25, 200)
    for number, (means, k, limits_of, pace) in enumerate(LIMITED):
        failed = 0
        for seed in range(size):
            rng = np.random.default_rng([seed, number])
            shuffled = rng.permutation(means)
            limits = tuple(None if each is None else int(each) for each in limits_of(rng))
            goal = FixedConfidence(0.25, 0.3)
            answer = driven("certified", shuffled, k, goal, limits, seed, **pace).answer
            if answer.regret_bound is not None:
                lost = aggregate_regret(shuffled, answer.top)
                failed += lost > answer.regret_bound + 1e-9
        assert failed <= binom.isf(0.001, size, 0.3)
        wrong += failed
    assert 0 < wrong <= binom.isf(0.001, size * len(LIMITED), 0.3)


@pytest.mark.rates
def test_fresh_pulls_within_limits_fail_no_more_often_than_delta() -> None:
    wrong, size = 0, number_of_runs(25, 2000)
    for seed in range(size):
        rng = np.random.default_rng([seed, 11])
        means = rng.permutation(np.repeat([0.5, 0.35], 10))
        limits = tuple(rng.integers(8, 20, 20).tolist())
        goal = FixedConfidence(0.1, 0.3)
        options = {"certificate": "split"}
        answer = driven("certified", means, 10, goal, limits, seed, **options).answer
        assert answer.regret_bound is not None
        wrong += aggregate_regret(means, answer.top) > answer.regret_bound
    assert wrong <= binom.isf(0.001, size, 0.3)


def test_the_other_arms_continue_where_one_is_at_its_limit() -> None:
    """Two good arms that must be told apart, and a bad one that may be pulled a few times."""
    goal = FixedConfidence(0.1, 0.1)
    outcome = driven("certified", [0.7, 0.5, 0.01], 1, goal, (None, None, 20), 1)
    assert outcome.answer.regret_bound is not None
    assert outcome.answer.regret_bound <= 0.1
    assert outcome.pulls[2] <= 20 < outcome.pulls[:2].min()


def test_the_net_proves_nothing_within_limits() -> None:
    """All arms equal and few pulls: the fixed design cannot be completed, so nothing is claimed."""
    goal = FixedConfidence(0.1, 0.1)
    for options in ({}, {"max_rounds": 2}, {"min_batch": 30}):
        outcome = driven("certified", [0.5] * 4, 2, goal, (20,) * 4, 3, **options)
        bound = outcome.answer.regret_bound
        assert bound is None or bound > 0.1
        assert outcome.pulls.sum() == 80


def twice(problem: Problem, rng: np.random.Generator) -> Search:
    """Asks for the same arm in several entries, beyond its limit."""
    while True:
        arms = rng.integers(0, problem.n_arms, 12)
        yield Pulls(arms, np.full(12, 3))
    return Answer(np.arange(problem.k))


def test_the_last_request_of_a_search_of_ones_own_is_cut() -> None:
    calls: list[int] = []

    def pull(arm: int) -> float:
        calls.append(arm)
        return 0.25 * arm

    arms = [shortlist.Arm(each, limit=limit) for each, limit in enumerate((7, 50, 50))]
    result = shortlist.select(pull, arms=arms, k=1, budget=1000, algorithm=twice, progress=False)
    assert [arm.pulls for arm in result.arms] == np.bincount(calls).tolist()
    assert result.arms[0].pulls == 7
    assert result.top == (2,)
    assert not result.partial


def test_the_result_says_what_limits_left_unresolved() -> None:
    def pull(arm: str, seed: int) -> float:
        mean = {"a": 0.5, "b": 0.52, "c": 0.0}[arm]
        return float(np.random.default_rng(seed).random() < mean)

    arms: list[shortlist.Arm | str] = [shortlist.Arm(each, limit=50) for each in "ab"]
    arms.append("c")
    result = shortlist.select(
        pull, arms=arms, k=1, epsilon=0.01, rewards="binary", progress=False, seed=3
    )
    assert set(result.unresolved) == {"a", "b"}
    assert result.to_dict()["unresolved"] == ["a", "b"]
    assert result.verdict.startswith("Limits ended the search before epsilon = 0.01")
    assert "at or near their limit: a, b." in str(result)
    assert [arm.limit for arm in result.arms] == [50, 50, None]


def test_nothing_is_unresolved_where_epsilon_was_reached() -> None:
    def pull(arm: str, seed: int) -> float:
        return float(np.random.default_rng(seed).random() < {"a": 0.5, "b": 0.45, "c": 0.1}[arm])

    arms = [shortlist.Arm(each, limit=60) for each in "abc"]
    result = shortlist.select(pull, arms=arms, k=1, epsilon=0.4, rewards="binary", progress=False)
    assert result.reached
    assert result.unresolved == ()


@pytest.mark.parametrize("limits", [(1, 2), (1, 2, 0), "abc", 5])
def test_limits_that_make_no_sense_are_refused(limits: Any) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        Problem(3, 1, FixedBudget(100), limits=limits)


def test_no_limits_are_none() -> None:
    assert Problem(2, 1, FixedBudget(9), limits=(None, None)) == Problem(2, 1, FixedBudget(9))


def test_arms_without_a_limit_do_not_race_for_ever_beside_others_at_theirs() -> None:
    limits = (None, None, 3000, None, 3000, 10)
    problem = Problem(6, 4, FixedConfidence(0.05, 0.3), Bounded(), limits=limits)
    bandit = BernoulliBandit(np.array([0.9, 0.02, 0.02, 0.02, 0.9, 0.55]))
    most = FAR_BEYOND * fixed_design(6, 4, 0.05, 0.3, Bounded())
    for seed in range(10):
        outcome = drive(find("certified"), problem, bandit, np.random.default_rng(seed))
        assert outcome.pulls.max() <= max(most, 3000)
        assert outcome.pulls[5] <= 10
