"""The race of pairs where not every set of arms is feasible: its promise, its end, its bound."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binomtest
from small_families import bases_of, mask_of, random_matroids

from shortlist.algorithms import find
from shortlist.arrays import BoolArray, FloatArray
from shortlist.certificates.frame import Retired, fixed_design, informed, log_swaps_of
from shortlist.certificates.pairs import fallback
from shortlist.certificates.pairs.bound import feasible_set_gap
from shortlist.certificates.pairs.planning import BatchSizes
from shortlist.certificates.pairs.search import PairsRace, complete_samples, pairs_search
from shortlist.certificates.under_constraints import ExchangeGraph
from shortlist.constraints import Laminar, Matching, Matroid, Quotas
from shortlist.errors import InvalidInput, UnsupportedGoal
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian
from shortlist.search import Answer, Pulls, Rewards, advance
from shortlist.simulation.simulate import drive
from shortlist.simulation.worlds import Bandit, BernoulliBandit, BetaBandit, GaussianBandit

RUNS = number_of_runs(8, 2000)
QUICK: dict[str, Any] = {"batch": 16, "growth": 0.1}
Family = Quotas | Laminar | Matroid


def shuffled_quotas(groups: str, quotas: dict[str, tuple[int, int]], k: int, order: Any) -> Quotas:
    return Quotas([groups[arm] for arm in order], quotas, k=k)


def lost(family: Family, means: FloatArray, top: Any) -> float:
    return float(means[family.best(means)].sum() - means[top].sum()) / family.k


# groups, quotas, k, means, epsilon: gaps just above what may be lost, ties, several best sets
HARD: list[tuple[str, dict[str, tuple[int, int]], int, list[float], float]] = [
    ("aab", {"a": (1, 1)}, 2, [0.62, 0.5, 0.9], 0.0599),
    ("aabb", {"a": (1, 1), "b": (1, 1)}, 2, [0.62, 0.5, 0.62, 0.5], 0.0599),
    ("aabb", {"a": (1, 1), "b": (1, 1)}, 2, [0.62, 0.5, 0.62, 0.5], 0.1199),
    ("aabbb", {"a": (1, 2), "b": (0, 1)}, 2, [0.3, 0.18, 0.18, 0.9, 0.78], 0.0599),
    ("aaabbb", {"a": (1, 2), "b": (1, 2)}, 3, [0.6, 0.6, 0.5, 0.6, 0.5, 0.5], 0.0333),
    ("aaabbb", {"a": (0, 1)}, 2, [0.62, 0.62, 0.62, 0.5, 0.5, 0.38], 0.0599),
    ("abcdef", {"a": (0, 0)}, 3, [0.9, 0.6, 0.6, 0.6, 0.5, 0.5], 0.0333),
    ("aabbcc", {"a": (1, 1), "b": (1, 1)}, 3, [0.98, 0.85, 0.15, 0.02, 0.5, 0.5], 0.0429),
]


def failures(instance: Any, options: dict[str, Any]) -> int:
    groups, quotas, k, given, epsilon = instance
    failed = 0
    for seed in range(RUNS):
        rng = np.random.default_rng([seed, 7])
        order = rng.permutation(len(groups))
        family, means = shuffled_quotas(groups, quotas, k, order), np.array(given)[order]
        problem = Problem(means.size, k, FixedConfidence(epsilon, 0.3), constraint=family)
        race = replace(find("certified"), search=pairs_search)
        answer = drive(race, problem, BernoulliBandit(means), rng, **options).answer
        failed += lost(family, means, answer.top) > epsilon + 1e-9
    return failed


@pytest.mark.rates
@pytest.mark.parametrize(
    ("options", "slack"),
    [(QUICK, 1.5), (QUICK, 6.0), ({"least": 150}, 6.0), ({"rounds": 3}, 1.5)],
    ids=["fallback", "race alone", "large batches", "few batches"],
)
def test_regret_stays_within_epsilon_at_confidence(
    options: dict[str, Any], slack: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fallback, "SLACK", slack)
    failed = [failures(instance, options) for instance in HARD]
    for each, size in [*((each, RUNS) for each in failed), (sum(failed), RUNS * len(HARD))]:
        assert binomtest(each, size, 0.3, alternative="greater").pvalue > 1e-4, failed


@pytest.mark.rates
@pytest.mark.parametrize("mean", [0.5, 0.03, 0.9])
def test_no_run_asks_for_more_than_one_and_a_half_designs_of_the_family(mean: float) -> None:
    """All arms tie, which takes longest."""
    race = replace(find("certified"), search=pairs_search)
    for groups, quotas, k, *_ in HARD:
        family = Quotas(groups, quotas, k=k)
        problem = Problem(
            len(groups), k, FixedConfidence(0.2 / k, 0.05), Binary(), constraint=family
        )
        swaps = log_swaps_of(problem)
        most = 1.5 * len(groups) * fixed_design(len(groups), k, 0.2 / k, 0.05, Binary(), swaps)
        for seed in range(number_of_runs(1, 60)):
            bandit = BernoulliBandit(np.full(len(groups), mean))
            outcome = drive(race, problem, bandit, np.random.default_rng(seed), **QUICK)
            assert outcome.pulls.sum() <= most


KINDS: list[tuple[RewardModel, type[Any]]] = [
    (Binary(), BernoulliBandit),
    (Bounded(), BetaBandit),
    (SubGaussian(0.5), GaussianBandit),
]


@pytest.mark.parametrize(("model", "bandit"), KINDS)
@pytest.mark.parametrize("settings", [{}, {"costs": (1.0, 2.0) * 4}, {"limits": (900,) * 8}])
def test_every_kind_of_rewards_costs_and_limits_has_a_feasible_proved_answer(
    model: RewardModel, bandit: Any, settings: dict[str, Any]
) -> None:
    groups, quotas = "aaabbbcc", {"a": (1, 2), "b": (1, 1), "c": (0, 1)}
    family = Quotas(groups, quotas, k=3)
    means = np.array([0.9, 0.5, 0.1, 0.4, 0.2, 0.1, 0.9, 0.8])
    goal = FixedConfidence(0.15, 0.1)
    problem = Problem(8, 3, goal, model, constraint=family, **settings)
    outcome = drive(find("certified"), problem, bandit(means), np.random.default_rng(1))
    assert frozenset(outcome.answer.top.tolist()) in bases_of(family)
    assert outcome.answer.regret_bound is not None
    assert lost(family, means, outcome.answer.top) <= outcome.answer.regret_bound <= 0.15


def test_the_fewest_means_win_where_rewards_are_minimized() -> None:
    family = Quotas("aabb", {"a": (1, 1)}, k=2)
    problem = Problem(4, 2, FixedConfidence(0.1, 0.05), minimize=True, constraint=family)
    bandit = BernoulliBandit(np.array([0.9, 0.3, 0.8, 0.1]))
    outcome = drive(find("certified"), problem, bandit, np.random.default_rng(0))
    assert outcome.answer.top.tolist() == [1, 3]


def test_one_group_without_a_quota_is_plain_top_k() -> None:
    goal = FixedConfidence(0.1, 0.05)
    means = BernoulliBandit(np.linspace(0.2, 0.8, 6))
    free = Problem(6, 2, goal, constraint=Quotas("a" * 6, {}, k=2))
    assert free.constraint is None
    outcomes = [
        drive(find("certified"), problem, means, np.random.default_rng(3))
        for problem in (Problem(6, 2, goal), free)
    ]
    assert np.array_equal(outcomes[0].pulls, outcomes[1].pulls)
    assert np.array_equal(outcomes[0].sums, outcomes[1].sums)
    assert outcomes[0].answer.regret_bound == outcomes[1].answer.regret_bound


@pytest.mark.parametrize(
    "family",
    [
        Quotas("aab", {"a": (2, 2)}, k=2),
        Matroid(lambda arms: set(arms) <= {0, 1}, 3, k=2),
    ],
)
def test_the_only_feasible_set_is_the_answer_without_a_pull(family: Family) -> None:
    problem = Problem(3, 2, FixedConfidence(0.1, 0.05), constraint=family)
    bandit = BernoulliBandit(np.full(3, 0.5))
    outcome = drive(find("certified"), problem, bandit, np.random.default_rng(0))
    assert outcome.answer.top.tolist() == [0, 1]
    assert outcome.answer.regret_bound == 0
    assert outcome.pulls.sum() == 0


def test_pairs_refuse_a_family_that_is_no_matroid() -> None:
    pairs = [(row, column) for row in range(3) for column in range(3)]
    family = Matching(*zip(*pairs, strict=True))
    problem = Problem(9, 3, FixedConfidence(0.1, 0.05), constraint=family)
    with pytest.raises(InvalidInput, match="no `exchangeable`"):
        find("certified").start(problem, np.random.default_rng(0), certificate="pairs")


def random_evidence(problem: Problem, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Wealth of every arm, (arm, clock), and clocks."""
    return rng.normal(1.0, 2.0, (problem.n_arms, 3)), np.array([2.0, 5.0, 9.0])


def gap_of(
    swap: BoolArray, wealth: FloatArray, clock: FloatArray, log_weights: FloatArray, level: float
) -> float:
    """The root of ln(sum of weights exp(wealth + clock gap)) = level, by bisection."""
    low, high = -100.0, 100.0
    for _ in range(80):
        middle = (low + high) / 2
        exponents = log_weights + wealth[swap].sum(0) + clock * middle
        low, high = (middle, high) if np.logaddexp.reduce(exponents) < level else (low, middle)
    return high


def test_the_bound_on_sets_is_at_least_that_of_every_feasible_swap_and_hardly_more() -> None:
    """At least by the theorem; hardly more, or quotas would cost pulls."""
    rng = np.random.default_rng(5)
    log_weights = np.log([0.6, 0.3, 0.1])
    excess = []
    for family, sets in random_matroids(80, 6):
        n: int = family.n_arms  # type: ignore[attr-defined]
        problem = Problem(n, len(sets[0]), FixedConfidence(0.1, 0.05), constraint=family)
        swaps = log_swaps_of(problem)
        if swaps is None or len(swaps) < 2:
            continue
        graph, levels = ExchangeGraph(problem), np.array(swaps) + 3.0
        wealth, clock = random_evidence(problem, rng)
        chosen = sets[int(rng.integers(len(sets)))]
        top, every = mask_of(chosen, n), np.ones(n, dtype=np.bool_)
        largest = partial(graph.largest, top, every)
        found = feasible_set_gap(wealth, ~top, clock, log_weights, levels, largest)
        true = [
            gap_of(mask_of(other ^ chosen, n), wealth, clock, log_weights, levels[size - 1])
            for other in sets
            if (size := len(other - chosen)) >= 2
        ]
        if true:
            assert found >= max(true) - 1e-9
            excess.append(found - max(true))
    assert len(excess) > 30
    assert np.median(excess) < 0.1


def played(
    problem: Problem, means: FloatArray, gone: int, batch: int
) -> tuple[list[Pulls], Answer]:
    """A race in which an arm retires in a batch."""
    retired, asked = Retired(problem.n_arms), list[Pulls]()
    rng = np.random.default_rng(0)
    search = informed(pairs_search(problem, rng, retired), retired)
    bandit: Bandit = BernoulliBandit(means)
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        asked.append(turn)
        given = bandit.pull(turn.arms, turn.times, rng)
        left = np.array([gone]) if len(asked) > batch else None
        turn = advance(search, Rewards(given.sums, given.squares, retired=left))
    return asked, turn


@pytest.mark.parametrize("batch", [0, 3])
def test_quotas_hold_among_the_arms_that_remain(batch: int) -> None:
    means = np.array([0.95, 0.6, 0.4, 0.9, 0.8, 0.2])
    family = Quotas("aaabbb", {"a": (1, 1)}, k=2)
    problem = Problem(6, 2, FixedConfidence(0.2, 0.05), Binary(), constraint=family)
    asked, answer = played(problem, means, gone=0, batch=batch)
    assert all(0 not in each.arms for each in asked[batch + 1 :])
    assert answer.regret_bound is not None
    assert answer.regret_bound <= 0.2
    assert {"aaabbb"[arm] for arm in answer.top} == {"a", "b"}
    assert 0 not in answer.top


def test_arms_that_only_a_retired_arm_beat_complete_their_samples_before_these_decide() -> None:
    family = Quotas("aaab", {"a": (1, 1)}, k=2)
    problem = Problem(4, 2, FixedConfidence(0.2, 0.1), Binary(), constraint=family)
    retired = Retired(4)
    race = PairsRace(problem, np.random.default_rng(0), BatchSizes(rounds=2), retired)
    race.gaps[1, 0] = -0.1
    race.choose(np.array([0, 3]))
    search = informed(complete_samples(race, 1, at_once=True), retired)
    first = advance(search, None)
    assert isinstance(first, Pulls)
    assert first.arms.tolist() == [0, 2]  # arm 1 is below arm 0; arm 3 is in every set
    second = advance(search, Rewards(np.zeros(2), np.zeros(2), retired=np.array([0])))
    assert isinstance(second, Pulls)
    assert second.arms.tolist() == [1]
    won = second.times.astype(np.float64)
    answer = advance(search, Rewards(won, won, retired=np.array([0])))
    assert isinstance(answer, Answer)
    assert answer.top.tolist() == [1, 3]
    assert answer.evidence["fallback design"]


def test_a_budget_ends_the_race_with_a_bound() -> None:
    family = Quotas("aaabbb", {"a": (1, 2), "b": (1, 2)}, k=3)
    goal = FixedConfidence(0.01, 0.05, 600)
    problem = Problem(6, 3, goal, constraint=family)
    means = np.array([0.9, 0.5, 0.1, 0.8, 0.5, 0.2])
    outcome = drive(find("certified"), problem, BernoulliBandit(means), np.random.default_rng(0))
    assert outcome.pulls.sum() <= 600
    assert outcome.answer.regret_bound is not None
    assert lost(family, means, outcome.answer.top) <= outcome.answer.regret_bound < 1


def test_a_budget_alone_is_not_for_certified() -> None:
    family = Quotas("aabb", {"a": (1, 1)}, k=2)
    with pytest.raises(UnsupportedGoal):
        find("certified").check(Problem(4, 2, FixedBudget(100), constraint=family))
