"""Which arms lie near 0 or near 1: the wealth against the contrary is no more than fair."""

from itertools import product

import numpy as np
import pytest

from shortlist.arrays import FloatArray
from shortlist.certificates.pairs.fallback import END_MEANS, NEAR_END, log_wealth
from shortlist.certificates.pairs.planning import BatchSizes
from shortlist.certificates.pairs.search import PairsRace
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary


def mean_wealth(values: FloatArray, chances: FloatArray, pulls: int) -> float:
    """Over all sequences of rewards."""
    total = 0.0
    for indices in product(range(values.size), repeat=pulls):
        chosen = list(indices)
        log = log_wealth(np.array([pulls]), np.array([values[chosen].sum()]))
        total += float(np.prod(chances[chosen]) * np.exp(log[0]))
    return total


@pytest.mark.parametrize("pulls", [1, 2, 6])
def test_means_at_the_edge_are_fair_and_larger_ones_are_not_to_be_betted_against(
    pulls: int,
) -> None:
    bits = np.array([0.0, 1.0])
    assert mean_wealth(bits, np.array([1 - NEAR_END, NEAR_END]), pulls) == pytest.approx(1)
    assert mean_wealth(bits, np.array([0.5, 0.5]), pulls) < 1
    assert mean_wealth(bits, np.array([1 - NEAR_END / 2, NEAR_END / 2]), pulls) > 1
    between = NEAR_END * np.array([0.0, 0.5, 2.0])
    assert mean_wealth(between, np.array([0.4, 0.2, 0.4]), pulls) < mean_wealth(
        bits, np.array([1 - 0.9 * NEAR_END, 0.9 * NEAR_END]), pulls
    )


def test_all_means_that_are_betted_on_lie_below_the_edge() -> None:
    assert ((END_MEANS > 0) & (END_MEANS < NEAR_END)).all()


@pytest.mark.parametrize("side", [0, 1])
def test_arms_are_placed_by_what_came_after_the_pilot(side: int) -> None:
    race = PairsRace(
        Problem(3, 1, FixedConfidence(0.1, 0.05)), np.random.default_rng(0), BatchSizes()
    )
    assert race.fallback.pilot_apart
    pilot = np.array([1, 1, 1])
    race.pulls += pilot
    race.sums += side
    race.squares += side
    race.look(first=True)
    race.pulls += np.array([60, 100, 200])
    race.sums = side * race.pulls.astype(float)
    race.squares = race.sums.copy()
    race.look(first=False)
    enough = np.log(2 * 3 / (race.fallback.placing * 0.05))
    assert enough == pytest.approx(np.log(12_000))
    reached = log_wealth(np.array([60, 100, 200]), np.zeros(3)) >= enough
    assert reached.tolist() == [False, True, True]
    assert race.near[side].tolist() == [False, True, True]
    assert not race.near[1 - side].any()


def test_arms_are_not_placed_where_all_of_delta_is_the_same_at_the_edge() -> None:
    race = PairsRace(
        Problem(3, 1, FixedConfidence(0.1, 0.05), Binary()), np.random.default_rng(0), BatchSizes()
    )
    race.fallback.edge_share = race.fallback.share
    race.pulls += 500
    race.look(first=False)
    assert not race.near.any()
