"""How pulls are cut into requests: at most so many rounds, or at least so many pulls at a time."""

from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

import shortlist
from shortlist.algorithms import find
from shortlist.arrays import FloatArray
from shortlist.driver import counted
from shortlist.errors import InvalidInput
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem
from shortlist.reward_models import Bounded, RewardModel, SubGaussian
from shortlist.search import advance
from shortlist.simulation.worlds import BernoulliBandit, GaussianBandit

BELIEVABLE = 1e-3  # an event of smaller probability refutes a claim
FEW = np.array([0.6, 0.5, 0.5, 0.4])
SURE = FixedConfidence(0.05, 0.05)
# name, means, k, epsilon: ties, near ties and clear cases
INSTANCES = {
    ".6, 4 × .5": ((0.6, 0.5, 0.5, 0.5, 0.5), 1, 0.09),
    ".5 .5": ((0.5, 0.5), 1, 0.05),
    "5 × .5": ((0.5,) * 5, 1, 0.05),
    ".5 .45 .45 .4 .4": ((0.5, 0.45, 0.45, 0.4, 0.4), 1, 0.05),
    ".6 .5": ((0.6, 0.5), 1, 0.05),
    "10 × .5": ((0.5,) * 10, 3, 0.05),
}


def requests(
    name: str,
    means: FloatArray,
    goal: Goal,
    seed: int = 0,
    rewards: RewardModel = Bounded(),  # noqa: B008
    k: int = 1,
    **options: object,
) -> list[int]:
    """The pulls of every request of one run."""
    rng = np.random.default_rng(seed)
    kinds = {"bounded": BernoulliBandit, "sub-gaussian": GaussianBandit}
    bandit = kinds[rewards.kind](rng.permutation(means))
    problem = Problem(means.size, k, goal, rewards)
    run = counted(find(name), problem, rng, **options)
    sizes = []
    turn = advance(run, None)
    while isinstance(turn, shortlist.Pulls):
        sizes.append(turn.total)
        turn = advance(run, bandit.pull(turn.arms, turn.times, rng))
    assert turn.rounds == len(sizes)
    return sizes


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_the_swap_race_makes_no_more_rounds_than_allowed(rounds: int, seed: int) -> None:
    assert len(requests("certified", FEW, SURE, seed, max_rounds=rounds)) <= rounds


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("model", [Bounded(), SubGaussian(0.5)])
def test_every_request_of_the_swap_race_is_large_but_those_that_complete_samples(
    model: RewardModel, seed: int
) -> None:
    sizes = requests("certified", FEW, SURE, seed, model, min_batch=300)
    assert min(sizes[:-2], default=300) >= 300
    assert sizes[0] >= 300


def test_both_may_be_said() -> None:
    sizes = requests("certified", FEW, SURE, 1, max_rounds=4, min_batch=400)
    assert len(sizes) <= 4
    assert sizes[0] >= 400


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rounds", [1, 3, 6])
def test_expected_loss_spends_its_budget_in_so_many_rounds(rounds: int, seed: int) -> None:
    sizes = requests(
        "expected-loss", np.linspace(0.1, 0.9, 40), FixedBudget(2003), seed, k=5, max_rounds=rounds
    )
    assert len(sizes) <= rounds
    assert 2003 - 40 < sum(sizes) <= 2003
    assert sizes[0] >= 2003 // rounds**2 - 40


def test_expected_loss_asks_for_at_least_so_many() -> None:
    sizes = requests(
        "expected-loss", np.linspace(0.1, 0.9, 40), FixedBudget(2003), k=5, min_batch=400
    )
    assert min(sizes) >= 400
    assert sum(sizes) == 2003


def test_a_holdout_is_a_round() -> None:
    goal = FixedBudget(900)
    sizes = requests("expected-loss", FEW, goal, holdout=0.4, max_rounds=3)
    assert len(sizes) <= 3
    with pytest.raises(
        InvalidInput, match="`max_rounds` is 1, but a holdout is a round of its own"
    ):
        requests("expected-loss", FEW, goal, holdout=0.4, max_rounds=1)


def test_the_split_certificate_explores_in_large_batches() -> None:
    means = np.linspace(0.1, 0.9, 60)
    goal = FixedConfidence(0.1, 0.05)
    assert requests("certified", means, goal, k=20, min_batch=1500)[0] >= 1500
    with pytest.raises(
        InvalidInput, match="`max_rounds` is 5, but the split certificate, which 60"
    ):
        requests("certified", means, goal, k=20, max_rounds=5)


def test_a_search_that_cannot_be_told_says_so() -> None:
    with pytest.raises(
        InvalidInput, match="`max_rounds` is 3, but sar cannot set the size or number"
    ):
        shortlist.simulate("sar", FEW, k=1, budget=100, max_rounds=3)
    with pytest.raises(InvalidInput, match="`min_batch` is 9, but is among the options, too"):
        shortlist.simulate(
            "certified", FEW, k=1, epsilon=0.2, min_batch=9, options={"min_batch": 8}
        )
    with pytest.raises(
        InvalidInput, match="`max_rounds` is 0, but must be a whole number of at least 1"
    ):
        shortlist.select(lambda _: 1.0, arms=3, k=1, epsilon=0.2, max_rounds=0)


def test_select_and_simulate_take_both() -> None:
    result = shortlist.select(
        lambda arm, seed: np.random.default_rng(seed).random() < FEW[arm],
        arms=4,
        k=1,
        epsilon=0.2,
        max_rounds=3,
        min_batch=40,
    )
    assert result.reached
    runs = shortlist.simulate("certified", FEW, k=1, epsilon=0.2, runs=3, max_rounds=2)
    assert runs.rounds.max() <= 2
    assert runs.rounds.min() >= 1


@pytest.mark.rates
@pytest.mark.parametrize("name", INSTANCES)
def test_five_rounds_are_hardly_dearer_than_many(name: str) -> None:
    means, k, epsilon = INSTANCES[name]
    size = number_of_runs(3 if k > 1 else 8, 400)
    shared: dict[str, Any] = {"k": k, "epsilon": epsilon, "runs": size, "seed": 3}
    # rounds that are quick to simulate, and hardly dearer than any number of them
    free = shortlist.simulate("certified", means, max_rounds=30, **shared)
    five = shortlist.simulate("certified", means, max_rounds=5, **shared)
    assert five.rounds.max() <= 5
    assert free.rounds.mean() > 10
    # three standard errors, as these runs are few; docs/late.md has a table of many
    scatter = 3 * np.hypot(five.pulls.std(), 1.6 * free.pulls.std()) / np.sqrt(size)
    assert five.pulls.mean() <= 1.6 * free.pulls.mean() + scatter
    assert binom.sf(int(five.failed.sum()) - 1, size, 0.05) > BELIEVABLE


@pytest.mark.rates
@pytest.mark.parametrize("pace", [{"min_batch": 64}, {"max_rounds": 4}])
def test_the_regret_stays_within_epsilon_however_pulls_are_cut(pace: dict[str, int]) -> None:
    delta, n_runs = 0.3, number_of_runs(20, 2000)
    runs = shortlist.simulate(
        "certified",
        [0.61, 0.5, 0.5],
        k=1,
        epsilon=0.1,
        delta=delta,
        runs=n_runs,
        seed=6,
        rewards="bernoulli",
        **pace,  # type: ignore[arg-type]
    )
    assert binom.sf(int(runs.failed.sum()) - 1, n_runs, delta) > BELIEVABLE


def test_rewards_between_0_and_1_are_taken_in_large_requests_too() -> None:
    runs = shortlist.simulate(
        "certified", [0.8, 0.6, 0.5], k=1, epsilon=0.1, runs=10, rewards="beta", min_batch=100
    )
    assert not runs.failed.any()
