"""Section 4: telling coins, telling them by a search, and what the search then pays."""

from dataclasses import replace
from math import comb, log

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from shortlist.algorithms import find
from shortlist.errors import InvalidInput
from shortlist.instances import lower_bound
from shortlist.problem import FixedBudget, Problem
from shortlist.search import Answer, Pulls, Search
from shortlist.simulation.simulate import simulate
from shortlist.theory import (
    Coin,
    CoinVerdict,
    Reduction,
    demonstrate,
    least_budget,
    least_pulls,
    least_tosses,
    measured_cost,
    optimal_error,
    tally,
)

ETA, EPSILON, N_ARMS = 0.2, 0.2, 80
SEARCHES = ["uniform", "adaptive-top-k", "adaptive-top-k-tight"]


def reduction(name: str, cost: float | None = None) -> Reduction:
    cost = measured_cost(name, N_ARMS, EPSILON, ETA) if cost is None else cost
    return Reduction(find(name), N_ARMS, EPSILON, cost, ETA)


def test_coin_counts_its_tosses_and_shows_heads_at_its_rate() -> None:
    coin = Coin(0.6, np.random.default_rng(0))
    heads = coin.toss(np.array([10_000, 20_000])).sum() + coin.toss(np.array([10_000])).sum()
    assert coin.tosses == 40_000
    assert binomtest(int(heads), 40_000, 0.6).pvalue > 0.001


@pytest.mark.parametrize("tosses", [0, 1, 2, 5, 8])
def test_optimal_error_is_the_best_of_all_rules_on_the_number_of_heads(tosses: int) -> None:
    """Greedy by likelihood ratio over single outcomes, 0.1 of the mass to be answered."""
    eta, budget, wrong = 0.1, 0.1, 0.0
    law = [
        comb(tosses, x) * (0.5 - eta) ** x * (0.5 + eta) ** (tosses - x) for x in range(tosses + 1)
    ]
    pairs = sorted(
        (min(law[x], law[-1 - x]) / (law[x] + law[-1 - x]), x) for x in range(tosses // 2 + 1)
    )
    for share_wrong, x in pairs:
        mass = law[x] if 2 * x == tosses else law[x] + law[-1 - x]
        used = min(budget, mass)
        wrong, budget = wrong + used * share_wrong, budget - used
    assert optimal_error(tosses, eta) == pytest.approx(wrong / 0.1)


def test_more_tosses_never_hurt() -> None:
    errors = [optimal_error(tosses, 0.1) for tosses in range(60)]
    assert errors[0] == 0.5
    assert np.all(np.diff(errors) < 0)


def test_no_rule_of_the_proof_beats_the_optimum() -> None:
    """Answer beyond m/2 +- t with the largest t that leaves at most 0.9 unknown."""
    for tosses in (10, 51, 200):
        heads = np.arange(tosses + 1)
        law = binom.pmf(heads, tosses, 0.4)
        apart = np.abs(heads - tosses / 2)
        t = max(t for t in range(tosses) if law[apart <= t].sum() <= 0.9)
        wrong = law[heads > tosses / 2 + t].sum() / law[apart > t].sum()
        assert optimal_error(tosses, 0.1) <= wrong * (1 + 1e-9)


def test_least_tosses_grow_linearly_in_the_log_of_the_error() -> None:
    errors = np.geomspace(1e-2, 1e-6, 9)
    tosses = [least_tosses(error, 0.1) for error in errors]
    assert all(
        optimal_error(m, 0.1) <= error < optimal_error(m - 1, 0.1)
        for m, error in zip(tosses, errors, strict=True)
    )
    assert np.corrcoef(np.log(1 / errors), tosses)[0, 1] > 0.99
    assert least_tosses(0.5, 0.1) == 0


@pytest.mark.parametrize("name", SEARCHES)
def test_reduction_errs_in_at_most_epsilon_of_its_answers_and_answers_often_enough(
    name: str,
) -> None:
    tosser = reduction(name)
    seen = tally(tosser, 400, seed=1)
    unknown = seen.gave_up + seen.unverified
    assert seen.right + seen.wrong + unknown == 400
    assert seen.most_tosses <= tosser.most_tosses
    assert binomtest(unknown, 400, 0.9, alternative="less").pvalue < 0.001
    assert (
        binomtest(seen.wrong, seen.right + seen.wrong, EPSILON, alternative="less").pvalue < 0.001
    )


def test_search_gives_up_where_the_hidden_coin_makes_the_boundary_a_tie() -> None:
    """One good coin too many leaves a tie, where H^(t, epsilon) is of the order n / epsilon^2 and
    not n / eta^2."""
    accuracy, half = EPSILON * ETA / 4, N_ARMS // 2
    even, tied = (
        simulate(
            "adaptive-top-k", lower_bound(N_ARMS, ETA, surplus), k=half, epsilon=accuracy, runs=3
        ).pulls.mean()
        for surplus in (0, 1)
    )
    assert tied > 20 * even
    seen = tally(reduction("adaptive-top-k"), 400)
    # a good coin in the place of a bad one
    assert binomtest(seen.gave_up, 400, 0.25).pvalue > 0.001


def test_reduction_gives_up_before_it_tosses_too_often() -> None:
    seen = tally(reduction("uniform", cost=N_ARMS), 20)
    assert seen.gave_up == 20
    assert seen.most_tosses == 0


def test_search_that_guesses_is_found_out_by_the_verification() -> None:
    def guess(problem: Problem, rng: np.random.Generator) -> Search:
        yield Pulls(np.arange(problem.n_arms), np.ones(problem.n_arms, dtype=np.int64))
        return Answer(rng.permutation(problem.n_arms)[: problem.k])

    seen = tally(
        Reduction(replace(find("uniform"), search=guess), N_ARMS, EPSILON, N_ARMS, ETA), 50
    )
    assert seen.unverified == 50


def test_search_that_takes_only_a_budget_is_given_its_cost() -> None:
    tosser = Reduction(
        replace(find("uniform"), goals=(FixedBudget,)), N_ARMS, EPSILON, 200 * N_ARMS, ETA
    )
    assert tosser.problem.goal == FixedBudget(200 * N_ARMS)
    seen = tally(tosser, 100)
    assert seen.most_tosses == 200
    assert seen.right >= 90


def test_verdict_names_the_value() -> None:
    tosser = reduction("adaptive-top-k-tight")
    for value, verdict in ((0.7, CoinVerdict.HIGH), (0.3, CoinVerdict.LOW)):
        said = [tosser.tell(Coin(value, rng), rng) for rng in np.random.default_rng(5).spawn(30)]
        assert said.count(verdict) >= 25


@pytest.mark.parametrize(
    ("n_arms", "epsilon", "eta", "words"),
    [
        (60, 0.2, 0.2, "`n_arms` is 60, but must be at least 16 / epsilon = 80"),
        (81, 0.2, 0.2, "`n` is 81, but must be even"),
        (80, 1.0, 0.2, "`epsilon` is 1.0"),
        (80, 0.2, 0.5, "`eta` is 0.5"),
    ],
)
def test_reduction_refuses_what_its_proof_does_not_cover(
    n_arms: int, epsilon: float, eta: float, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        Reduction(find("uniform"), n_arms, epsilon, 1000, eta)


def test_budget_needed_grows_linearly_in_ln_1_over_epsilon_while_hardness_stays() -> None:
    growth = demonstrate(np.geomspace(0.04, 0.004, 5), 600, runs=60)
    log_inverse = [log(1 / each.epsilon) for each in growth.needed]
    assert np.corrcoef(log_inverse, [each.tosses_per_arm for each in growth.needed])[0, 1] > 0.98
    assert growth.r_squared > 0.98**2
    assert growth.slope == pytest.approx(1 / (2 * 0.1**2), rel=0.3)
    assert len({each.h for each in growth.needed}) == 1
    assert all(each.budget > least_pulls(600, each.epsilon, 0.1) for each in growth.needed)


def test_budget_needed_grows_linearly_in_n() -> None:
    sizes = [200, 400, 800, 1600]
    budgets = [least_budget("uniform", n, 0.02, eta=0.1, runs=60, seed=0) for n in sizes]
    slope, intercept = np.polyfit(sizes, budgets, 1)
    assert np.corrcoef(sizes, budgets)[0, 1] > 0.995
    assert abs(intercept) < 0.1 * budgets[-1]
    assert slope > 0
