"""The wealth of every swap, summed over all sequences of rewards, is at most 1 on average."""

from copy import deepcopy
from itertools import product
from math import fsum

import numpy as np
import pytest
from attack_scale import number_of_runs

from shortlist.arrays import FloatArray
from shortlist.certificates.pairs import planning as state
from shortlist.certificates.pairs.bound import StageRewards, log_gains
from shortlist.certificates.pairs.planning import BatchSizes
from shortlist.certificates.pairs.search import PairsRace
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Bounded, RewardModel, SubGaussian
from shortlist.search import Rewards


def branches(race: PairsRace, values: tuple[float, ...]) -> list[tuple[FloatArray, PairsRace]]:
    """The race after one more request, for every reply: each entry is pulled once or twice."""
    stages, arms = race.movers()
    assert race.ready(stages)
    times = race.stages.times(stages, arms)
    found = []
    for rewards in product(values, repeat=int(times.sum())):
        entries = np.split(np.array(rewards), np.cumsum(times)[:-1])
        sums = np.array([entry.sum() for entry in entries])
        squares = np.array([(entry**2).sum() for entry in entries])
        after = deepcopy(race)
        after.book(stages, arms, Rewards(sums, squares))
        after.stand()
        seen = np.array([[arms[i], x] for i, entry in enumerate(entries) for x in entry])
        found.append((seen, after))
    return found


def tree(
    race: PairsRace, values: tuple[float, ...], most: int
) -> list[tuple[FloatArray, PairsRace]]:
    """All courses of a race with at most so many pulls: (arm, reward) in order, and its end."""
    ends: list[tuple[FloatArray, PairsRace]] = []
    open_: list[tuple[FloatArray, PairsRace]] = [(np.empty((0, 2)), race)]
    while open_:
        seen, at = open_.pop()
        if len(seen) + 2 * race.problem.n_arms > most or not at.open.any():
            ends.append((seen, at))
            continue
        open_ += [(np.concatenate([seen, new]), after) for new, after in branches(at, values)]
    return ends


def wealths(
    ends: list[tuple[FloatArray, PairsRace]], a: int, b: int
) -> tuple[FloatArray, FloatArray]:
    """Of the bets that `a` is not better than `b`: log wealths and clocks, (course, clock)."""
    log_wealths, clocks = [], []
    for _, race in ends:
        q = int(min(race.stages.at[a], race.stages.at[b]))  # the last stage both completed
        log_wealths.append(race.stages.down(q, np.array(a)) + race.stages.up(q, np.array(b)))
        clocks.append(race.stages.clock(q))
    return np.array(log_wealths), np.array(clocks)


@pytest.mark.rates
@pytest.mark.parametrize("epsilon", [0.4, 0.1, 0.001])
def test_wealth_of_a_race_is_at_most_one_on_average(epsilon: float) -> None:
    problem = Problem(2, 1, FixedConfidence(epsilon, 0.001))
    race = PairsRace(problem, np.random.default_rng(3), BatchSizes(batch=2))
    ends = tree(race, (0.0, 1.0), 12)
    assert len(ends) > 200
    counts = np.array(
        [
            [[((s[:, 0] == i) & (s[:, 1] == x)).sum() for x in (0, 1)] for i in (0, 1)]
            for s, _ in ends
        ]
    ).astype(float)  # (course, arm, reward)
    known = {(a, 1 - a): wealths(ends, a, 1 - a) for a in (0, 1)}
    rng = np.random.default_rng(4)
    for _ in range(number_of_runs(20, 1000)):
        means = rng.beta(0.6, 0.6, 2)
        a, b = int(means.argmax()), int(means.argmin())
        gap = float(means[a] - means[b])
        law = np.stack([1 - means, means], axis=1)  # (arm, reward)
        chances = np.prod(law**counts, axis=(1, 2))
        assert fsum(chances) == pytest.approx(1)
        log_wealths, clocks = known[a, b]
        terms = chances * (np.exp(log_wealths + clocks * gap) @ race.mixture.weights)
        assert fsum(terms) <= 1 + 1e-12


@pytest.mark.parametrize("model", [Bounded(), SubGaussian(0.5)])
def test_bets_from_sums_and_squares_are_fair_for_other_rewards(model: RewardModel) -> None:
    rng = np.random.default_rng(5)
    values = np.array([0.0, 0.3, 1.0])
    for _ in range(60):
        law = rng.dirichlet([0.4, 0.4, 0.4])
        mean = float(law @ values)
        advance = rng.uniform(0.05, 6, 2)
        low, high = rng.random((2, 1))
        ups, downs = [], []
        for path in product(range(3), repeat=4):  # one stage of four pulls
            x = values[list(path)]
            draws = StageRewards(np.array([4]), np.array([x.sum()]), np.array([(x**2).sum()]))
            up, down = log_gains(draws, advance, low, high, model)
            chance = np.prod(law[list(path)])
            ups.append(chance * np.exp(up[0] - advance * mean))
            downs.append(chance * np.exp(down[0] + advance * mean))
        assert (np.sum(ups, axis=0) <= 1 + 1e-9).all()
        assert (np.sum(downs, axis=0) <= 1 + 1e-9).all()


def test_an_arm_that_is_not_pulled_keeps_its_place() -> None:
    draws = StageRewards(np.array([0]), np.zeros(1), np.zeros(1))
    up, down = log_gains(draws, np.array([0.7]), np.array([0.4]), np.array([0.6]), Bounded())
    for mean in (0.0, 0.4, 1.0):
        assert up[0, 0] - 0.7 * mean <= 0
        assert down[0, 0] + 0.7 * mean <= 0


def test_a_pilot_makes_no_bets() -> None:
    assert not state.pilot_stage(3, 4, 2).advance.any()
