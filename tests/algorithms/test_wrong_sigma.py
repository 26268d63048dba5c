"""Sub-Gaussian rewards: a run ends within 1.5 fixed designs, even if sigma is too small."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import shortlist
from shortlist.algorithms import registry
from shortlist.certificates.frame import SLACK, fixed_design
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import SubGaussian
from shortlist.simulation.simulate import drive
from shortlist.simulation.worlds import GaussianBandit

SIGMA = 0.5
EPSILON, DELTA = 0.1, 0.05
CERTIFIED = registry.find("certified")


def problem(n: int, k: int, budget: float | None = None) -> Problem:
    return Problem(n, k, FixedConfidence(EPSILON, DELTA, budget), SubGaussian(SIGMA))


def means(n: int, spread: float, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return spread * np.random.default_rng(seed).standard_normal(n)


def in_designs(asked: Problem, pulls: int) -> float:
    """Pulls as a multiple of the fixed design of the same declaration."""
    unit = asked.unit()
    design = fixed_design(asked.n_arms, asked.k, unit.sharp_epsilon, unit.delta, unit.rewards)
    return pulls / (asked.n_arms * design)


@pytest.mark.parametrize("times", [1.0, 5.0])
@pytest.mark.parametrize("spread", [0.0, 0.3])
@pytest.mark.parametrize(
    ("n", "k", "options"),
    [
        (2, 1, {}),
        (5, 4, {}),
        (5, 2, {"max_rounds": 3}),
        (5, 1, {"min_batch": 100}),
        (12, 6, {"certificate": "split"}),
        (40, 1, {}),
        (100, 20, {}),
        (101, 20, {}),
        (150, 30, {"min_batch": 1000}),
        (250, 40, {}),
    ],
)
def test_no_run_takes_more_than_1_5_designs_whatever_the_true_deviation(
    n: int, k: int, options: dict[str, Any], spread: float, times: float
) -> None:
    asked = problem(n, k)
    bandit = GaussianBandit(means(n, spread, n), times * SIGMA)
    outcome = drive(CERTIFIED, asked, bandit, np.random.default_rng(k), **options)
    assert outcome.answer.regret_bound is not None
    assert in_designs(asked, int(outcome.pulls.sum())) <= SLACK


def test_a_budget_beyond_1_5_designs_is_not_spent_on_a_wrong_sigma() -> None:
    n, k = 150, 30
    needed = in_designs(problem(n, k), 1)
    ample, scarce = (problem(n, k, int(designs / needed)) for designs in (4, 1.2))
    bandit = GaussianBandit(np.zeros(n), 5 * SIGMA)
    rng = np.random.default_rng(3)
    assert in_designs(ample, int(drive(CERTIFIED, ample, bandit, rng).pulls.sum())) <= SLACK
    spent = drive(CERTIFIED, scarce, bandit, rng)
    assert in_designs(scarce, int(spent.pulls.sum())) <= 1.2


def test_the_net_of_many_arms_keeps_the_promise_on_ties_and_near_ties() -> None:
    """At delta = .3, where the fallback answers: half of the arms are better by 1.5 epsilon."""
    n, k, delta, runs = 120, 20, 0.3, 40
    asked = Problem(n, k, FixedConfidence(0.4, delta), SubGaussian(SIGMA))
    failed = netted = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        gap = 0.6 * (seed % 2)
        bandit = GaussianBandit(rng.permutation(np.where(np.arange(n) < n // 2, gap, 0.0)), SIGMA)
        answer = drive(CERTIFIED, asked, bandit, rng).answer
        failed += aggregate_regret(bandit.means, answer.top) > 0.4
        netted += bool(answer.evidence.get("fallback design"))
    assert netted > 0
    assert binomtest(failed, runs, delta, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize(
    ("n", "k", "spread"), [(2, 1, 0.0), (2, 1, 2.0), (3, 2, 0.0), (10, 3, 0.3)]
)
def test_a_sigma_five_times_too_small_is_reported_in_every_run(
    n: int, k: int, spread: float
) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        true = means(n, spread, seed)
        with pytest.warns(shortlist.errors.Doubtful, match="sigma = 0.5 was declared") as caught:
            result = shortlist.select(
                lambda arm, true=true, rng=rng: rng.normal(true[arm], 5 * SIGMA),
                arms=n,
                k=k,
                epsilon=EPSILON,
                rewards=SubGaussian(SIGMA),
                progress=False,
                seed=seed,
            )
        (said,) = result.warnings
        assert str(caught[0].message) == said
        assert "p < 1e-06" in said
        assert in_designs(problem(n, k), result.pulls) <= SLACK


def test_a_true_sigma_is_not_complained_about() -> None:
    rng = np.random.default_rng(0)
    result = shortlist.select(
        lambda arm: rng.normal(arm / 10, SIGMA),
        arms=5,
        k=1,
        epsilon=EPSILON,
        rewards=SubGaussian(SIGMA),
        progress=False,
    )
    assert result.warnings == ()
