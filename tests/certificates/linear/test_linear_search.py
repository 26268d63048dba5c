"""The linear search, end to end: what it proves, what it costs, and when it goes the way back."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binomtest

import shortlist
from shortlist.algorithms import find
from shortlist.algorithms.certified import certified
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.frame import Retired
from shortlist.certificates.linear import search as linear_module
from shortlist.certificates.linear.planning import ArmSums, LinearPilot, Wanted
from shortlist.certificates.linear.search import SET_ASIDE, linear_search, look_share
from shortlist.driver import Outcome, counted, finish
from shortlist.errors import InvalidInput, UnsupportedGoal
from shortlist.features import Features
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary
from shortlist.search import Answer, Pulls, Rewards, Search, advance
from shortlist.simulation.worlds import BernoulliBandit, BetaBandit, GaussianBandit

Instance = tuple[FloatArray, FloatArray]


def line(n: int, d: int, seed: int, residual: float = 0.0, slope: float = 0.15) -> Instance:
    """Features and means: .5 + slope times a direction of normal features, within [.02, .98]."""
    rng = np.random.default_rng([n, d, seed])
    x = rng.normal(size=(n, d))
    w = rng.normal(size=d)
    index = np.clip(x @ w / np.linalg.norm(w), -3, 3)
    x[:, 0] += (index - x @ w / np.linalg.norm(w)) * np.linalg.norm(w) / w[0]  # keeps it linear
    return x, np.clip(0.5 + slope * index + residual * rng.normal(size=n), 0.02, 0.98)


def run(
    instance: Instance, k: int, epsilon: float, delta: float, seed: int, **more: Any
) -> tuple[Outcome, FloatArray]:
    """One run on 0/1 rewards with arms shuffled, and the means in its order."""
    x, means = instance
    rng = np.random.default_rng(seed)
    order = rng.permutation(means.size)
    features = Features(x[order], more.pop("misfit", 0.0))
    goal = FixedConfidence(epsilon, delta, more.pop("budget", None))
    bandit = more.pop("bandit", BernoulliBandit)(means[order])
    problem = Problem(means.size, k, goal, bandit.model, features=features, **more)
    search = counted(find("certified"), problem, np.random.default_rng([seed, 1]))
    draw = np.random.default_rng([seed, 2])
    outcome = finish(search, lambda pulls: bandit.pull(pulls.arms, pulls.times, draw))
    return outcome, problem.sign * means[order]


def regret(outcome: Outcome, means: FloatArray) -> float:
    return aggregate_regret(means, outcome.answer.top)


def test_few_arms_of_many_are_pulled_and_the_regret_is_small() -> None:
    outcome, means = run(line(400, 4, 1), 40, 0.03, 0.05, 0)
    answer = outcome.answer
    assert answer.evidence["certificate"] == "linear"
    assert answer.evidence["dimension"] == 4
    assert regret(outcome, means) <= (answer.regret_bound or 0) <= 0.03
    assert answer.confidence == 0.95
    assert answer.evidence["lack of fit"] > 0.001  # type: ignore[operator]
    assert int(outcome.pulls.sum()) < 2000
    assert (outcome.pulls > 0).mean() < 0.6


@pytest.mark.parametrize(
    "bandit",
    [
        lambda means: BetaBandit(means, sd=0.1),
        lambda means: GaussianBandit(10 * means, 2.0),
    ],
    ids=["beta", "gaussian"],
)
def test_scores_and_sub_gaussian_rewards_are_certified_too(
    bandit: Callable[[FloatArray], Any],
) -> None:
    for minimize in (False, True):
        outcome, means = run(line(80, 3, 2), 8, 0.1, 0.1, 3, bandit=bandit, minimize=minimize)
        answer = outcome.answer
        assert answer.evidence["certificate"] == "linear"
        assert regret(outcome, bandit(means).means) <= (answer.regret_bound or 0) <= 0.1


@pytest.mark.parametrize("k", [1, 3])
def test_small_problems_end(k: int) -> None:
    for n, d in ((2, 1), (4, 3), (5, 4), (7, 2)):
        if k < n:
            outcome, means = run(line(n, d, 3), k, 0.2, 0.1, 5)
            assert regret(outcome, means) <= 0.2


def test_equal_means_end() -> None:
    x, means = line(30, 3, 1)
    outcome, _ = run((x, np.full_like(means, 0.3)), 5, 0.1, 0.1, 0)
    assert outcome.answer.regret_bound is not None


HARD: dict[str, tuple[int, int, int, float, float]] = {  # n, d, k, epsilon, slope
    "n = 20, d = 3, k = 1": (20, 2, 1, 0.05, 0.15),
    "n = 12, d = 8, k = 3": (12, 7, 3, 0.08, 0.15),
    "ties": (15, 3, 5, 0.08, 0.0),
    "all but one": (8, 2, 7, 0.03, 0.1),
    "two arms": (2, 1, 1, 0.1, 0.04),
}


@pytest.mark.rates
@pytest.mark.parametrize("name", HARD)
def test_regret_stays_within_epsilon_at_confidence(name: str) -> None:
    n, d, k, epsilon, slope = HARD[name]
    runs = number_of_runs(8, 500)
    failed = 0
    for seed in range(runs):
        outcome, means = run(line(n, d, seed % 20, slope=slope), k, epsilon, 0.3, seed)
        failed += regret(outcome, means) > epsilon
    assert binomtest(failed, runs, 0.3, alternative="greater").pvalue > 1e-4


@pytest.mark.rates
def test_a_declared_misfit_is_allowed_for() -> None:
    runs = number_of_runs(6, 300)
    failed = 0
    for seed in range(runs):
        x, means = line(30, 2, seed)
        best = means >= np.sort(means)[-6]
        means = means + 0.01 * np.where(best, -1, 1)  # as an opponent would have it
        outcome, shuffled = run((x, means), 6, 0.1, 0.3, seed, misfit=0.01)
        assert outcome.answer.evidence["certificate"] == "linear"
        failed += regret(outcome, shuffled) > 0.1
    assert binomtest(failed, runs, 0.3, alternative="greater").pvalue > 1e-4


@pytest.mark.rates
def test_residuals_that_were_not_declared_are_reported_and_no_false_promise_follows() -> None:
    runs = number_of_runs(4, 40)
    reported, failed = 0, 0
    for seed in range(runs):
        outcome, means = run(line(150, 9, seed, residual=0.1), 15, 0.05, 0.1, seed)
        evidence = outcome.answer.evidence
        reported += "way back" in evidence
        failed += "way back" in evidence and regret(outcome, means) > 0.05
    assert reported >= 0.9 * runs - 0.5
    assert binomtest(failed, runs, 0.01, alternative="greater").pvalue > 1e-4


def test_shares_of_delta_add_up() -> None:
    total = sum(look_share(0.2, look) for look in range(linear_module.MOST_LOOKS))
    assert 0.17 < total + SET_ASIDE * 0.2 <= 0.2


def test_looks_do_not_depend_on_fresh_rewards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same pilot and other fresh rewards: the same batches, as long as there are looks."""
    x, means = line(60, 3, 4)
    problem = Problem(60, 6, FixedConfidence(0.02, 0.05), Binary(), features=Features(x, 0.0))
    batches = []
    for share in (0.2, 0.9):
        search = certified(problem, np.random.default_rng(0))
        draw = np.random.default_rng(1)
        turn, pilots = advance(search, None), True
        own: list[Any] = []
        while isinstance(turn, Pulls) and len(own) < 6:
            own.append((turn.arms.tolist(), turn.times.tolist()))
            pilots = pilots and turn.total < 400
            theta = means if pilots else np.full(60, share)
            sums = draw.binomial(turn.times, theta[turn.arms]).astype(float)
            turn = advance(search, Rewards(sums, sums))
        batches.append(own)
    same = [one == other for one, other in zip(*batches, strict=False)]
    assert all(same)
    assert len(same) >= 2


def seen_by(instance: Instance, retire: dict[int, list[int]], budget: int | None = None) -> Outcome:
    """A run in which these arms retire in these batches; their rewards are 0 from then on."""
    x, means = instance
    goal = FixedConfidence(0.1, 0.1, budget)
    problem = Problem(means.size, 4, goal, Binary(), features=Features(x, 0.0))
    draw, gone, batch = np.random.default_rng(0), [], [0]

    def pull(pulls: Pulls) -> Rewards:
        gone.extend(retire.get(batch[0], []))
        batch[0] += 1
        sums = draw.binomial(pulls.times, means[pulls.arms]).astype(float)
        sums[np.isin(pulls.arms, gone)] = 0
        retired: IntArray | None = np.array(gone, dtype=np.int64) if gone else None
        return Rewards(sums, sums, retired=retired)

    return finish(counted(find("certified"), problem, np.random.default_rng(1)), pull)


@pytest.mark.parametrize("when", [0, 1, 2])
def test_arms_that_retire_leave_a_bound_about_the_others(when: int) -> None:
    x, means = line(40, 3, 6)
    best = np.argsort(-means)[:3].tolist()
    for budget in (None, 20_000):
        outcome = seen_by((x, means), {when: best[:2], when + 1: best[2:]}, budget)
        answer = outcome.answer
        assert not set(answer.top.tolist()) & set(best)
        assert answer.evidence["certificate"] == "linear"
        assert answer.regret_bound is not None
        rest = np.setdiff1d(np.arange(40), best)
        lost = np.sort(means[rest])[-4:].mean() - means[answer.top].mean()
        assert lost <= answer.regret_bound


def test_remaining_arms_without_different_features_go_the_way_back() -> None:
    x = np.array([[0.0], [0.0], [0.0], [0.0], [0.0], [1.0]])
    means = np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0.9])
    outcome = seen_by((x, means), {0: [5]})
    assert outcome.answer.evidence["way back"] == "out of reach of the linear certificate"
    assert outcome.answer.regret_bound is not None


def test_a_budget_ends_it_with_the_bound_reached() -> None:
    outcome, means = run(line(40, 3, 1), 4, 0.001, 0.1, 1, budget=3000)
    assert outcome.pulls.sum() == 3000
    bound = outcome.answer.regret_bound
    assert bound is not None
    assert 0.001 < bound < 0.5
    assert regret(outcome, means) <= bound
    for n, budget in ((40, 45), (3, 3)):
        tiny, _ = run(line(n, min(3, n - 1), 1), 1, 0.001, 0.1, 1, budget=budget)
        assert tiny.pulls.sum() <= budget
        assert tiny.answer.top.size == 1


def test_an_epsilon_out_of_reach_of_counting_is_refused() -> None:
    with pytest.raises(InvalidInput, match="asks for too many pulls"):
        run(line(4, 1, 1, slope=0.0), 1, 1e-10, 0.1, 1)


def test_costs_move_pulls_to_cheap_arms() -> None:
    instance = line(60, 2, 3)
    dear = tuple([1.0] * 30 + [30.0] * 30)
    plain, _ = run(instance, 6, 0.05, 0.1, 0)
    paid, _ = run(instance, 6, 0.05, 0.1, 0, costs=dear)
    share = [each.pulls[30:].sum() / each.pulls.sum() for each in (plain, paid)]
    assert share[1] < 0.7 * share[0]


def test_a_misfit_that_no_pulls_overcome_goes_the_way_back() -> None:
    """Just below what is refused, the bias alone is more than epsilon."""
    instance = line(20, 3, 1)
    outcome, means = run(instance, 5, 0.2, 0.1, 0, misfit=0.099)
    assert outcome.answer.evidence["way back"] == "out of reach of the linear certificate"
    assert regret(outcome, means) <= 0.2


def test_a_rejected_declaration_without_a_budget_for_more_proves_nothing() -> None:
    x, _ = line(40, 2, 1)
    means = np.where(np.arange(40) % 2, 0.9, 0.1)
    outcome, _ = run((x, means), 4, 0.001, 0.1, 1, budget=2000)
    assert outcome.answer.regret_bound is None
    assert outcome.answer.evidence["way back"] == "lack of fit"
    assert outcome.answer.top.size == 4


def test_a_fit_that_fails_goes_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_module, "fit_of", lambda *given: None)
    outcome, _ = run(line(20, 2, 1), 5, 0.2, 0.1, 0)
    assert outcome.answer.evidence["way back"] == "out of reach of the linear certificate"


def test_looks_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_module, "MOST_LOOKS", 8)  # more than one design has
    monkeypatch.setattr(linear_module, "bound_over_ball", _never)
    outcome, _ = run(line(20, 2, 1), 5, 0.2, 0.1, 0)
    assert "way back" in outcome.answer.evidence


def _never(*given: Any) -> Any:
    from shortlist.certificates.linear.bound import BallBound

    return BallBound(np.inf, np.eye(2))


def problem_with(**more: Any) -> Problem:
    x, _ = line(10, 2, 1)
    given: dict[str, Any] = {"features": Features(x, 0.0), "rewards": Binary()} | more
    return Problem(10, 3, FixedConfidence(0.1, 0.1), **given)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "another certificate": ({}, {"certificate": "pairs"}, "only 'linear' rests on that"),
    "limits": ({"limits": (5,) * 10}, {}, "pulls few arms often"),
    "no declaration": ({"features": None}, {"certificate": "linear"}, "say `linear`"),
    "unknown variances": ({"rewards": shortlist.Normal()}, {}, "needs a range or a sigma"),
    "rounds": ({}, {"max_rounds": 3}, "sets it itself"),
    "batches": ({}, {"min_batch": 3}, "sets it itself"),
    "a large misfit": (
        {"features": Features(line(10, 2, 1)[0], 0.0501)},
        {},
        "epsilon can only be proved if that is less than 0.05",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_refused_before_any_pull(name: str) -> None:
    changed, options, words = REFUSED[name]
    with pytest.raises((InvalidInput, UnsupportedGoal), match=words):
        certified(problem_with(**changed), np.random.default_rng(0), **options)


def test_a_budget_alone_has_no_use_for_a_declaration() -> None:
    problem = replace(problem_with(), goal=FixedBudget(100))
    with pytest.raises(UnsupportedGoal, match="no certificate that rests on it"):
        find("expected-loss").check(problem)


def test_a_first_look_without_a_fit_proves_nothing() -> None:
    """Of a design on too few arms, which planning never drafts."""
    problem = problem_with()
    task = linear_module._Task(problem, np.random.default_rng(0), Retired(10), _no_way)
    none = ArmSums.none(10)
    assert linear_module._look(task, none, none, 0.1) is None


def _no_way(problem: Problem, retired: Retired) -> Search:
    yield Pulls(np.array([0]), np.array([1]))
    return Answer(np.arange(problem.k))


def test_the_result_prints_the_test() -> None:
    x, means = line(60, 3, 1)
    result = shortlist.select(
        pull_many=lambda arm, times, seed: np.random.default_rng(seed).binomial(
            1, means[arm], times
        ),
        batch=10_000,
        arms=60,
        k=6,
        epsilon=0.1,
        rewards="binary",
        features=x,
        linear=True,
        progress=False,
    )
    assert "means that are linear in the features, as declared; test of lack of fit on" in str(
        result
    )


def test_a_search_is_repeated_exactly() -> None:
    def batches() -> list[Any]:
        x, means = line(50, 3, 2)
        problem = Problem(50, 5, FixedConfidence(0.1, 0.1), Binary(), features=Features(x, 0.0))
        search = linear_search(problem, np.random.default_rng(3), Retired(50), _no_way)
        draw, made = np.random.default_rng(4), []
        turn = advance(search, None)
        while isinstance(turn, Pulls):
            made.append((turn.arms.tolist(), turn.times.tolist()))
            sums = draw.binomial(turn.times, means[turn.arms]).astype(float)
            turn = advance(search, Rewards(sums, sums))
        return made

    assert batches() == batches()


def test_a_design_of_more_pulls_than_can_be_counted_is_not_drafted() -> None:
    pilot = LinearPilot(Features(line(5, 1, 1)[0]).basis, np.ones(5), np.random.default_rng(0))
    with pytest.raises(OverflowError, match="pulls are needed"):
        pilot.draft(Wanted(1, 1e-30, 0.1, 0.0), np.random.default_rng(0))
