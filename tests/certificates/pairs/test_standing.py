"""How a stage is fixed: nothing of it bears on the guarantee, all of it on the number of pulls."""

from dataclasses import replace

import numpy as np

from shortlist.certificates.pairs.planning import BatchSizes, RaceState, next_stage
from shortlist.reward_models import Bounded, SubGaussian

LEADER = RaceState(
    pulls=np.array([60, 40, 40, 40]),
    sums=np.array([58.0, 39.0, 28.0, 28.0]),
    squares=np.array([58.0, 39.0, 28.0, 28.0]),
    rewards=Bounded(),
    top=np.array([True, False, False, False]),
    open=np.ones(4, dtype=np.bool_),
    swapped=1,
    edge=np.array([1, 0]),
    mean=0.85,
    unit=0.05,
    multiples=np.array([1.0, 2.0]),
    level=5.0,
    sample=5_000,
    planned=np.array([60, 40, 40, 40]),
    left=np.array([4_940, 4_960, 4_960, 4_960]),
)


def test_arms_that_may_be_the_best_are_pulled_like_the_leader() -> None:
    stage = next_stage(LEADER, BatchSizes(batch=40), 1)
    assert stage.times[0] > stage.times[2]
    assert stage.times[1] > stage.times[2]
    assert stage.times[2] == stage.times[3]


def test_bets_are_centred_between_the_arms_that_they_are_to_tell_apart() -> None:
    stage = next_stage(LEADER, BatchSizes(batch=40), 1)
    assert (stage.lower > 0).all()  # bets up on a mean below, bets down on one above
    assert (stage.higher > 0).all()
    assert stage.higher[2] > stage.higher[0]


def test_bets_on_rewards_with_a_small_variance_are_centred_on_the_mean() -> None:
    sums = np.array([36.0, 22.0, 20.0, 20.0])
    narrow = replace(LEADER, sums=sums, squares=sums**2 / LEADER.pulls + 0.01, mean=0.55)
    stage = next_stage(narrow, BatchSizes(batch=40), 1)
    assert not stage.lower.any()
    assert not stage.higher.any()
    wide = next_stage(replace(narrow, squares=sums), BatchSizes(batch=40), 1)
    assert stage.advance[0] / stage.times.min() > wide.advance[0] / wide.times.min()


def test_arms_clearly_behind_bear_stronger_bets_than_arms_in_doubt() -> None:
    clear = replace(LEADER, sums=np.array([58.0, 20.0, 20.0, 20.0]), unit=0.3, mean=0.6)
    doubtful = replace(clear, sums=np.array([58.0, 39.0, 38.0, 38.0]))
    strengths = [
        (stage.advance / stage.times.min()).max()
        for stage in (next_stage(each, BatchSizes(batch=40), 1) for each in (clear, doubtful))
    ]
    assert strengths[0] > strengths[1]


def test_rewards_without_a_range_are_pulled_by_how_many_arms_are_on_a_side() -> None:
    stage = next_stage(replace(LEADER, rewards=SubGaussian(0.5)), BatchSizes(batch=40), 1)
    assert stage.times[0] > stage.times[2]
    assert not stage.lower.any()
