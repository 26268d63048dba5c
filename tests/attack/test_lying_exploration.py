"""Exploration lies as it likes, certification is honest: failures stay below delta.

Whoever answers the exploration picks the set, the boundary and the plan of the certificate; it
picks sets that lose just more than epsilon. All that can still go wrong is the fresh rewards, and
that must not happen more often than delta allows, by an exact binomial bound."""

import math
import os
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from shortlist.arrays import FloatArray
from shortlist.certification.split.split_search import split_search
from shortlist.metrics import aggregate_regret
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary, Bounded, RewardModel
from shortlist.search import Answer, Pulls, Rewards, advance
from shortlist.simulation.bandit import Bandit, BernoulliBandit, BetaBandit

SCALE = int(os.environ.get("SHORTLIST_ATTACK_SCALE", "1"))  # times as many runs
SEED = int(os.environ.get("SHORTLIST_ATTACK_SEED", "0"))
DELTA, RUNS = 0.3, 10
EPSILON = 0.15
BELIEVABLE = 1e-6  # a test fails if what it saw has a smaller chance than this
MOST_REQUESTS = 14  # a liar may keep a search from ending
LOSS = 1.02  # of the set that the liar praises, in units of epsilon

Lie = Callable[[FloatArray, int, np.random.Generator], FloatArray]


def any_two_levels(means: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    """The praised arms look better than the others, and the boundary lies anywhere."""
    low, high = np.sort(rng.uniform(0.02, 0.98, 2))
    return np.asarray(np.where(np.arange(means.size) < k, high, low))


def nearly_true(means: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    """As the arms are, but that the praised ones look a little better than the others."""
    return means + np.where(np.arange(means.size) < k, 0.06, -0.06)


def one_swap(means: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    """All is true but for one arm inside and one outside."""
    told = means.copy()
    told[0], told[-1] = told[-1], told[0] * rng.uniform()
    return told


LIES: dict[str, Lie] = {f.__name__: f for f in (any_two_levels, nearly_true, one_swap)}
INSTANCES = {
    "one swap": (np.array([0.4, 0.9, 0.9, 0.1, 0.1, 0.1]), 3, 1),
    "many swaps": (np.array([0.45] * 6 + [0.45] * 6), 6, 6),
    "one of few": (np.array([0.5, 0.2, 0.2, 0.2]), 1, 1),
    "all but one": (np.array([0.5, 0.8, 0.8, 0.8]), 3, 1),
}


def losing(name: str, epsilon: float) -> tuple[FloatArray, int]:
    """Means of which the first k lose just more than epsilon: the last arms are better."""
    means, k, swaps = INSTANCES[name]
    means = means.copy()
    means[-swaps:] = means[:swaps] + LOSS * epsilon * k / swaps
    return means, k


def lied_to(
    problem: Problem, told: FloatArray, bandit: Bandit, rng: np.random.Generator
) -> Answer | None:
    """Run a search whose exploration sees rewards of other means; fresh pulls have a round."""
    search = split_search(problem, rng)
    liar = bandit.with_means(told)
    reply: Rewards | None = None
    for _ in range(MOST_REQUESTS):
        turn = advance(search, reply)
        if isinstance(turn, Answer):
            return turn
        reply = answered(turn, bandit if turn.progress.round else liar, rng)
    return None


def answered(turn: Pulls, bandit: Bandit, rng: np.random.Generator) -> Rewards:
    return bandit.pull(turn.arms, turn.times, rng)


@pytest.mark.parametrize("kind", ["0/1", "0 or 1", "beta"])
def test_no_lie_makes_losing_sets_pass_more_often_than_delta(kind: str) -> None:
    print(f"seed {SEED}, {SCALE} times the runs")
    failed = 0
    for name in INSTANCES:
        for lie in LIES.values():
            failed += sum(failures(name, lie, kind))
    runs = RUNS * SCALE * len(INSTANCES) * len(LIES)
    assert binom.sf(failed - 1, runs, DELTA) > BELIEVABLE, failed


def failures(name: str, lie: Lie, kind: str) -> list[bool]:
    """Whether a set that loses too much was certified, in every run."""
    means, k = losing(name, EPSILON)
    assert aggregate_regret(means, np.arange(k)) > EPSILON
    model: RewardModel = Binary() if kind == "0/1" else Bounded()
    bandit: Bandit = BetaBandit(means, 3.0) if kind == "beta" else BernoulliBandit(means)
    problem = Problem(means.size, k, FixedConfidence(EPSILON, DELTA), model)
    failed = []
    for run in range(RUNS * SCALE):
        rng = np.random.default_rng([SEED, means.size, k, len(kind), run])
        told = np.clip(lie(means, k, rng), 0.02, 0.98)
        answer = lied_to(problem, told, bandit, rng)
        failed.append(answer is not None and fails(answer, means))
    return failed


def fails(answer: Answer, means: FloatArray) -> bool:
    bound = math.inf if answer.regret_bound is None else answer.regret_bound
    return aggregate_regret(means, answer.top) > bound
