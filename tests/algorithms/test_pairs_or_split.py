"""Which certificate the spread of the first scores speaks for."""

import numpy as np
import pytest

from shortlist.algorithms.certified import certified, search_by_spread, worth_a_pilot
from shortlist.arrays import FloatArray
from shortlist.certificates.frame import SLACK, fixed_design
from shortlist.certificates.pairs.planning import BatchSizes
from shortlist.certificates.pairs.search import PairsRace, run
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian
from shortlist.search import Answer, Pulls, Rewards, Search, advance, rewards_of


def problem(n: int = 10, k: int = 3, epsilon: float = 0.05, delta: float = 0.05) -> Problem:
    return Problem(n, k, FixedConfidence(epsilon, delta), Bounded()).unit()


def scores(turn: Pulls, means: FloatArray, half: float, rng: np.random.Generator) -> Rewards:
    """Uniform around the means, at most `half` away."""
    entries = np.repeat(np.arange(turn.arms.size), turn.times)
    drawn = means[turn.arms][entries] + rng.uniform(-half, half, entries.size)
    return rewards_of(drawn, entries, turn.arms.size)


def tosses(turn: Pulls, means: FloatArray, rng: np.random.Generator) -> Rewards:
    sums = rng.binomial(turn.times, means[turn.arms]).astype(np.float64)
    return Rewards(sums, sums)


def played(search: Search, means: FloatArray, half: float, seed: int) -> tuple[Answer, list[int]]:
    """The answer, and how many pulls every request had."""
    rng = np.random.default_rng(seed)
    turn, totals = advance(search, None), []
    while isinstance(turn, Pulls):
        totals.append(turn.total)
        turn = advance(search, scores(turn, means, half, rng))
    return turn, totals


@pytest.mark.parametrize(("half", "certificate"), [(0.03, "split"), (0.25, "pairs")])
def test_scores_of_small_variance_are_split(half: float, certificate: str) -> None:
    rng = np.random.default_rng(5)
    means = rng.permutation(np.linspace(0.3, 0.7, 10))
    answer, totals = played(certified(problem(), rng), means, half, seed=6)
    assert answer.evidence["certificate"] == certificate
    assert totals[:2] == [10, 10]
    assert set(answer.top) == set(np.argsort(means)[-3:])


def test_tosses_race_after_one_pull_an_arm() -> None:
    rng = np.random.default_rng(7)
    means = rng.permutation(np.linspace(0.1, 0.9, 10))
    search = certified(problem(), rng)
    turn, requests = advance(search, None), 0
    while isinstance(turn, Pulls):
        requests += 1
        turn = advance(search, tosses(turn, means, rng))
    assert turn.evidence["certificate"] == "pairs"
    assert requests > 2


def test_nothing_rests_on_the_pilot() -> None:
    """No bet is made on it, and it is no part of the fixed samples: whatever it gave."""
    rng = np.random.default_rng(8)
    race = PairsRace(problem(), rng, BatchSizes(), pilot_apart=True)
    raced = run(race)
    turn = next(raced)
    sums = rng.uniform(0, 1, 10)
    raced.send(Rewards(sums, sums**2))
    assert turn.total == 10
    assert not race.stages.clock(1).any()
    assert np.abs(race.stages.up(1, np.arange(10))).max() < 1e-290
    assert np.abs(race.stages.down(1, np.arange(10))).max() < 1e-290
    assert race.fallback.skipped.tolist() == [1] * 10
    assert race.fallback.skipped_sums.tolist() == sums.tolist()


@pytest.mark.parametrize(("n", "k"), [(8, 4), (10, 2), (10, 3), (20, 10), (40, 8)])
@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("delta", [0.001, 0.05, 0.3])
def test_the_pilot_is_within_what_the_net_allows(
    n: int, k: int, epsilon: float, delta: float
) -> None:
    race = PairsRace(
        problem(n, k, epsilon, delta), np.random.default_rng(1), BatchSizes(), pilot_apart=True
    )
    design = fixed_design(n, k, epsilon, delta, Binary())
    assert race.fallback.size + 1 <= SLACK * design


def test_there_is_no_pilot_where_nothing_is_to_be_raced() -> None:
    rng = np.random.default_rng(9)
    alone = search_by_spread(problem(10, 3, epsilon=0.5, delta=0.6), rng, None)
    assert next(alone).total == 30  # the fixed design, at once
    nothing_asked = search_by_spread(problem(10, 8, epsilon=0.3), rng, None)
    assert isinstance(advance(nothing_asked, None), Answer)


def test_the_race_continues_with_the_rewards_it_asked_for() -> None:
    """After a pilot of wide scores the race asks what it would have asked for without the second
    half of it."""
    means = np.random.default_rng(3).permutation(np.linspace(0.3, 0.7, 10))
    race = PairsRace(problem(), np.random.default_rng(4), BatchSizes(), pilot_apart=True)
    raced = run(race)
    first = scores(next(raced), means, 0.25, np.random.default_rng(6))
    search = search_by_spread(problem(), np.random.default_rng(4), None)
    again = next(search), search.send(first)
    wide = scores(again[1], means, 0.25, np.random.default_rng(11))
    expected, found = raced.send(first), search.send(wide)
    assert found.arms.tolist() == expected.arms.tolist()
    assert found.times.tolist() == expected.times.tolist()


@pytest.mark.parametrize(
    ("rewards", "budget", "n", "k", "worth"),
    [
        (Bounded(), None, 10, 3, True),
        (Binary(), None, 10, 3, False),
        (SubGaussian(1.0), None, 10, 3, False),
        (Bounded(), 500, 10, 3, False),
        (Bounded(), None, 10, 1, False),
        (Bounded(), None, 6, 3, False),
    ],
)
def test_where_a_pilot_is_made(
    rewards: RewardModel, budget: int | None, n: int, k: int, worth: bool
) -> None:
    goal = FixedConfidence(0.05, 0.05, budget)
    assert worth_a_pilot(Problem(n, k, goal, rewards)) is worth
