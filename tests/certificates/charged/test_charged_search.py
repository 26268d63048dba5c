"""Many normal arms of unknown variances: promises, looks, budgets and units."""

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

from shortlist import FixedConfidence, Normal, Problem, simulate
from shortlist.arrays import FloatArray
from shortlist.certificates.charged import search as charged_module
from shortlist.certificates.charged.bound import charged_bound
from shortlist.certificates.charged.search import (
    ChargedSearch,
    Explored,
    charged_search,
    draft,
    guess_of,
)
from shortlist.search import Answer, Pulls, advance, rewards_of

N, K = 60, 12


def problem_of(delta: float = 0.05, budget: int | None = None, scale: float = 1.0) -> Problem:
    return Problem(N, K, FixedConfidence(0.2 * scale, delta, budget), Normal())


def finished(
    problem: Problem,
    means: FloatArray,
    sd: FloatArray,
    seed: int,
    shift: float = 0.0,
    scale: float = 1.0,
    least: int = 0,
) -> tuple[Answer, list[Pulls]]:
    rng, batches = np.random.default_rng([5, seed]), []
    search = charged_search(problem, np.random.default_rng(seed), least)
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        batches.append(turn)
        entry = np.repeat(np.arange(turn.arms.size), turn.times)
        arms = turn.arms[entry]
        each = shift + scale * (means[arms] + sd[arms] * rng.standard_normal(arms.size))
        turn = advance(search, rewards_of(each, entry, turn.arms.size))
    return turn, batches


def spread_means(seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng([6, seed])
    return rng.uniform(0, 3, N), np.exp(rng.uniform(np.log(0.3), np.log(3), N))


@pytest.mark.rates
@pytest.mark.parametrize("gap", [0.0, 0.202, 0.5])
def test_many_arms_fail_with_probability_delta_at_most(gap: float) -> None:
    runs, failed = number_of_runs(12, 2000), 0
    for run in range(runs):
        rng = np.random.default_rng([7, run])
        means = rng.permutation(np.where(np.arange(N) < K, gap, 0.0))
        answer, _ = finished(problem_of(0.3), means, rng.uniform(0.2, 1, N), run)
        lost = np.sort(means)[-K:].mean() - means[answer.top].mean()
        failed += lost > (answer.regret_bound or 0) + 1e-12
    assert binom.sf(failed - 1, runs, 0.3) > 1e-3


def test_a_look_proves_the_choice_on_fresh_pulls() -> None:
    means, sd = spread_means(1)
    answer, batches = finished(problem_of(), means, sd, 1)
    assert answer.regret_bound is not None
    assert answer.regret_bound <= 0.2
    assert answer.evidence["certificate"] == "split"
    assert (batches[0].times == charged_module.FIRST_PULLS).all()
    assert batches[-1].arms.size == N  # every arm has fresh pulls
    lost = np.sort(means)[-K:].mean() - means[answer.top].mean()
    assert lost <= 0.2


@pytest.mark.parametrize(("shift", "scale"), [(1e9, 1.0), (0.0, 1e9), (0.0, 1e-9)])
def test_units_change_neither_answer_nor_pulls(shift: float, scale: float) -> None:
    means, sd = spread_means(2)
    plain, batches = finished(problem_of(), means, sd, 2)
    moved, again = finished(problem_of(scale=scale), means, sd, 2, shift, scale)
    assert moved.top.tolist() == plain.top.tolist()
    assert [batch.total for batch in again] == [batch.total for batch in batches]


def test_a_look_that_fails_lowers_the_goal_of_the_next() -> None:
    state = ChargedSearch(problem_of(), np.random.default_rng(0))
    state.explored.pulls[:] = 100
    before = state.goal
    state.failed()
    assert state.goal == pytest.approx(charged_module.LOWER_GOAL * before)
    assert state.plan(state.guess()) is None  # not before there are more pulls
    assert state.looks == 1
    for _ in range(20):
        state.failed()
    assert state.goal == pytest.approx(charged_module.LEAST_GOAL * K)


def test_a_search_continues_after_a_look_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    from shortlist.certificates.charged import search as module

    real, seen = charged_bound, []

    def bound(each: FloatArray, strength: float, delta: float) -> float:
        seen.append(delta)
        return 1e9 if len(seen) == 1 else real(each, strength, delta)

    monkeypatch.setattr(module, "charged_bound", bound)
    means, sd = spread_means(3)
    answer, _ = finished(problem_of(), means, sd, 3)
    assert answer.evidence["looks"] == len(seen) >= 2
    assert seen[1] == pytest.approx(seen[0] / 4)


def test_a_budget_ends_the_search_without_a_bound() -> None:
    means, sd = spread_means(4)
    for budget in (100, 1500):
        answer, batches = finished(problem_of(budget=budget), means, sd, 4)
        assert sum(batch.total for batch in batches) <= budget
        assert answer.regret_bound is None
        assert answer.top.size == K


def test_batches_that_explore_have_at_least_the_given_number_of_pulls() -> None:
    means, sd = spread_means(5)
    _, batches = finished(problem_of(), means, sd, 5, least=2000)
    assert min(batch.total for batch in batches[1:-1]) >= 2000


def test_arms_without_any_variance_end_the_search() -> None:
    answer, _ = finished(problem_of(), np.linspace(0, 3, N), np.zeros(N), 6)
    assert answer.top.tolist() == list(range(N - K, N))


def test_no_plan_reaches_a_goal_below_its_level() -> None:
    explored = Explored(N)
    means, _ = spread_means(7)
    explored.add(np.arange(N), np.full(N, 30), means, np.full(N, 30.0))
    guess = guess_of(explored, K, np.arange(N))
    assert draft(guess, np.ones(N), 3.0, float(K), 0.01) is None
    assert draft(guess, np.ones(N), 3.0, float(K), 0.9 * K) is not None


def test_certified_uses_it_for_many_arms() -> None:
    means, sd = spread_means(8)
    runs = simulate("certified", means, k=K, epsilon=0.2, rewards="normal", sd=sd, runs=2)
    assert not runs.failed.any()
    assert (runs.rounds < 40).all()
    asked = simulate(
        "certified", means[:8], k=2, epsilon=0.5, rewards="normal", certificate="split", runs=1
    )
    assert (asked.bound <= 0.5).all()
