"""Certified selection: which certificate it takes, what it costs at most, and if it is right."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

import shortlist
from shortlist import driver
from shortlist.algorithms import find
from shortlist.algorithms.certified import certified, suitable
from shortlist.arrays import FloatArray
from shortlist.certificates.frame import fixed_design
from shortlist.errors import InvalidInput
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary, Bounded, SubGaussian
from shortlist.search import Answer
from shortlist.simulation.simulate import simulate
from shortlist.simulation.worlds import BernoulliBandit
from shortlist.spec import Certificate

BELIEVABLE = 1e-4  # a test fails when what it saw has a smaller chance than this if it is right
GOAL = FixedConfidence(0.2, 0.1)


@pytest.mark.parametrize(
    ("n_arms", "k", "expected"),
    [
        (2, 1, "pairs"),
        (20, 10, "pairs"),
        (34, 17, "pairs"),
        (35, 17, "split"),
        (1000, 1, "pairs"),
        (1000, 999, "pairs"),
        (200, 2, "split"),
        (100, 50, "split"),
        (101, 20, "plans"),
        (1000, 500, "plans"),
        (1000, 980, "plans"),
        (1000, 995, "split"),
    ],
)
def test_the_certificate_is_settled_by_the_numbers_of_arms(
    n_arms: int, k: int, expected: str, finish: Callable[..., Answer]
) -> None:
    problem = Problem(n_arms, k, FixedConfidence(0.5, 0.1), Binary())
    assert suitable(problem) == expected
    bandit = BernoulliBandit(np.linspace(0.02, 0.98, n_arms))
    answer = finish(certified(problem, np.random.default_rng(0)), bandit, np.random.default_rng(1))
    assert answer.evidence["certificate"] == expected


@pytest.mark.parametrize("certificate", ["pairs", "split"])
def test_a_certificate_may_be_forced(certificate: str, finish: Callable[..., Answer]) -> None:
    search = find("certified").start(
        Problem(8, 3, GOAL, Binary()), np.random.default_rng(0), certificate=certificate
    )
    answer = finish(search, BernoulliBandit(np.linspace(0, 1, 8)), np.random.default_rng(1))
    assert answer.evidence["certificate"] == certificate


def test_plans_are_forced_only_where_they_can_be(finish: Callable[..., Answer]) -> None:
    force = {"certificate": "plans"}
    rng = np.random.default_rng(0)
    search = find("certified").start(Problem(60, 20, GOAL, Binary()), rng, **force)
    answer = finish(search, BernoulliBandit(np.linspace(0, 1, 60)), np.random.default_rng(1))
    assert answer.evidence["certificate"] == "plans"
    for problem in (
        Problem(60, 20, FixedConfidence(0.2, 0.1, budget=10_000), Binary()),
        Problem(60, 20, GOAL, SubGaussian(0.5)),
        Problem(60, 20, GOAL, Binary(), limits=(9,) * 60),
    ):
        assert suitable(problem) != "plans"
        assert (
            suitable(replace(problem, n_arms=200, limits=problem.limits and (9,) * 200)) != "plans"
        )
        with pytest.raises(InvalidInput, match="plans need rewards with a range, no budget"):
            find("certified").start(problem, rng, **force)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"certificate": "plan"}, "`certificate` is 'plan', but must be one of auto, pairs, pl"),
        ({"certificate": "split", "max_rounds": 3}, "`max_rounds` is 3, but the split certificate"),
        ({"certificate": "plans", "max_rounds": 3}, "`max_rounds` is 3, but the plans certificate"),
        ({"certificate": "plans", "min_batch": 9}, "`min_batch` is 9, but the plans certificate"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        find("certified").start(Problem(8, 3, GOAL), np.random.default_rng(0), **options)


def test_the_certificate_is_given_next_to_the_options_and_kept_with_them() -> None:
    asked: dict[str, Any] = {"k": 3, "epsilon": 0.4}

    def taken(certificate: Certificate) -> object:
        result = shortlist.select(
            lambda arm: float(arm > 4), arms=8, certificate=certificate, progress=False, **asked
        )
        return result.evidence["certificate"]

    assert [taken(each) for each in ("auto", "pairs", "split")] == ["pairs", "pairs", "split"]
    made = shortlist.Experiment.create(8, certificate="split", **asked)
    assert made.settings.options == {"certificate": "split"}
    assert shortlist.Experiment.create(8, certificate="auto", **asked).settings.options == {}
    pulls = [
        simulate("certified", np.linspace(0, 1, 8), runs=2, **told, **asked).pulls.tolist()
        for told in ({"certificate": "split"}, {"options": {"certificate": "split"}}, {})
    ]
    assert pulls[0] == pulls[1] != pulls[2]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"certificate": "plan"}, "`certificate` is 'plan', but must be one of auto, pairs"),
        ({"certificate": None}, "`certificate` is None, but must be one of auto"),
        ({"certificate": "split", "options": {"certificate": "pairs"}}, "among the options, too"),
        (
            {"certificate": "pairs", "algorithm": "lucb"},
            "`certificate` is 'pairs', but lucb has no certificates to choose from; certified has",
        ),
    ],
)
def test_a_certificate_that_cannot_be_is_refused_before_anything_is_paid(
    asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        shortlist.select(lambda arm: pytest.fail("paid"), arms=8, k=1, epsilon=0.2, **asked)


TIES = {
    "two equal arms": (np.full(2, 0.5), 1, 0.1),
    "five equal arms": (np.full(5, 0.5), 1, 0.1),
    "ten equal arms": (np.full(10, 0.3), 3, 0.1),
    "all but one of six": (np.full(6, 0.7), 5, 0.05),
    "forty equal arms": (np.full(40, 0.5), 15, 0.1),
    "a hundred equal arms": (np.full(100, 0.5), 30, 0.1),
    "nearly equal arms": (np.linspace(0.5, 0.52, 40), 20, 0.05),
}


@pytest.mark.rates
@pytest.mark.parametrize("name", TIES)
def test_no_run_takes_more_than_one_and_a_half_times_the_fixed_design(name: str) -> None:
    means, k, epsilon = TIES[name]
    runs = simulate(
        "certified", means, k=k, epsilon=epsilon, delta=0.05, runs=number_of_runs(2, 60), seed=3
    )
    design = fixed_design(means.size, k, epsilon, 0.05, Binary())
    assert runs.pulls.max() <= 1.5 * means.size * design
    assert (runs.bound <= epsilon).all()


HARD = {
    "two arms": (np.array([0.5 + 0.101, 0.5]), 1),
    "two arms near 0": (np.array([0.102, 0.001]), 1),
    "five arms": (np.array([0.601, *[0.5] * 4]), 1),
    "two of six": (np.array([0.75, 0.75, *[0.54] * 4]), 2),
    "all but one": (np.array([*[0.61] * 5, 0.1]), 5),
    "fifteen of forty": (np.repeat([0.71, 0.59], [15, 25]), 15),
}


@pytest.mark.rates
@pytest.mark.parametrize("name", HARD)
def test_the_regret_stays_within_epsilon_at_confidence(name: str) -> None:
    means, k = HARD[name]
    delta, n_runs = 0.3, number_of_runs(15, 600)
    runs = simulate(
        "certified",
        means,
        k=k,
        epsilon=0.1,
        delta=delta,
        runs=n_runs,
        seed=5,
        options={"min_batch": 32},
    )
    assert binom.sf(int(runs.failed.sum()) - 1, n_runs, delta) > BELIEVABLE


def test_the_safety_net_of_the_split_certificate_answers_where_looks_do_not() -> None:
    problem = Problem(40, 15, FixedConfidence(0.1, 0.05), Binary())
    answers = [_answer(problem, np.full(40, 0.5), np.random.default_rng(seed)) for seed in range(3)]
    assert any(answer.evidence.get("fallback design") for answer in answers)
    for answer in answers:
        assert answer.regret_bound is not None
        assert answer.regret_bound <= 0.1
        assert answer.confidence == 0.95


def _answer(problem: Problem, means: FloatArray, rng: np.random.Generator) -> Answer:
    bandit = BernoulliBandit(means)
    run = driver.counted(find("certified"), problem, rng)
    return driver.finish(run, lambda pulls: bandit.pull(pulls.arms, pulls.times, rng)).answer


def test_rewards_in_a_range_are_certified_too() -> None:
    runs = simulate(
        "certified", [0.8, 0.3, 0.3, 0.3], k=1, epsilon=0.2, delta=0.1, runs=10, rewards="beta"
    )
    assert not runs.failed.any()
    design = fixed_design(4, 1, 0.2, 0.1, Bounded())
    assert runs.pulls.max() <= 1.5 * 4 * design
