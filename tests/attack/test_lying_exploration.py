"""Exploration lies as it likes, certification is honest: failures stay below delta.

Whoever answers the exploration picks the set, the boundary and the plan of the certificate; it
picks sets that lose just more than epsilon. All that can still go wrong is the fresh rewards, and
that must not happen more often than delta allows, by an exact binomial bound. Where lies hurt most
there are enough runs to see it if every charge were half of what it should be."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from attack_scale import AGAIN, SCALE, SEED
from scipy.stats import binom

from shortlist.arrays import FloatArray
from shortlist.certificates.split.bound import Certificate
from shortlist.certificates.split.search import split_search
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary, Bounded, RewardModel
from shortlist.search import Answer, Pulls, Rewards, advance
from shortlist.simulation.worlds import Bandit, BernoulliBandit, BetaBandit

DELTA = 0.05
FEW, MANY = 2, 60  # runs of every lie on every instance, and of the worst
EPSILON = 0.15
BELIEVABLE = 1e-4  # a test fails if what it saw has a smaller chance than this
MOST_REQUESTS = 14  # a liar may keep a search from ending
LOSS = 1.02  # of the set that the liar praises, in units of epsilon
KINDS = ("0/1", "0 or 1", "beta")  # declared and drawn as 0/1, only drawn so, neither

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


def well_apart(means: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    """The praised arms look better by so much that a certificate is cheap."""
    return np.where(np.arange(means.size) < k, 0.76, 0.62)


LIES: tuple[Lie, ...] = (any_two_levels, nearly_true, one_swap, well_apart)
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


def believable(failed: int, runs: int) -> bool:
    """Whether so many failures can be those of runs that fail with probability delta at most."""
    return bool(binom.sf(failed - 1, runs, DELTA) > BELIEVABLE)


@pytest.mark.rates
@pytest.mark.parametrize("kind", KINDS)
def test_false_exploration_rewards_certify_losing_sets_in_at_most_delta_of_the_runs(
    kind: str,
) -> None:
    runs = FEW * SCALE
    failed = sum(failures(name, lie, kind, runs) for name in INSTANCES for lie in LIES)
    assert believable(failed, runs * len(INSTANCES) * len(LIES)), (failed, AGAIN)


@pytest.mark.rates
@pytest.mark.parametrize("kind", KINDS)
def test_the_worst_false_exploration_certifies_losing_sets_in_at_most_delta_of_the_runs(
    kind: str,
) -> None:
    failed = failures("one swap", well_apart, kind, MANY * SCALE)
    assert believable(failed, MANY * SCALE), (failed, AGAIN)


@pytest.mark.rates
@pytest.mark.parametrize("kind", KINDS)
def test_halved_charges_are_detected(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Certificate.charges
    monkeypatch.setattr(Certificate, "charges", lambda self, *sums: right(self, *sums) / 2)
    failed = failures("one swap", well_apart, kind, MANY, seed=0)
    assert not believable(failed, MANY), failed


def failures(name: str, lie: Lie, kind: str, runs: int, seed: int = SEED) -> int:
    """In how many runs a set that loses too much was certified."""
    means, k = losing(name, EPSILON)
    assert aggregate_regret(means, np.arange(k)) > EPSILON
    model: RewardModel = Binary() if kind == "0/1" else Bounded()
    bandit: Bandit = BetaBandit(means, 3.0) if kind == "beta" else BernoulliBandit(means)
    problem = Problem(means.size, k, FixedConfidence(EPSILON, DELTA), model)
    failed = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, means.size, k, len(kind), run])
        told = np.clip(lie(means, k, rng), 0.02, 0.98)
        answer = lied_to(problem, told, bandit, rng)
        failed += answer is not None and fails(answer, means)
    return failed


def fails(answer: Answer, means: FloatArray) -> bool:
    bound = math.inf if answer.regret_bound is None else answer.regret_bound
    return aggregate_regret(means, answer.top) > bound
