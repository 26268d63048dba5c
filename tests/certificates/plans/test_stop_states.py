"""Stop states against enumeration of all paths."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product as sequences

import numpy as np
import pytest

from shortlist.certificates.plans.bound import NOT_THERE, Level, StopStates, binomial, stop_states


def random_levels(rng: np.random.Generator, largest: int) -> list[Level]:
    """Two or three levels that stop at random, the last one always."""
    pulls = np.sort(rng.choice(np.arange(1, largest + 1), size=rng.integers(2, 4), replace=False))
    levels = [Level(int(each), rng.random(each + 1) < 0.5) for each in pulls[:-1]]
    return [*levels, Level(int(pulls[-1]), np.ones(pulls[-1] + 1, dtype=np.bool_))]


def counted(levels: Sequence[Level]) -> dict[tuple[int, int], int]:
    """The number of paths to every stop state, one path after the other."""
    paths: dict[tuple[int, int], int] = {}
    ways = {0: 1}
    before = 0
    for level in levels:
        reached: dict[int, int] = {}
        for rewards in sequences((0, 1), repeat=level.pulls - before):
            for successes, count in ways.items():
                total = successes + sum(rewards)
                reached[total] = reached.get(total, 0) + count
        ended = {key: each for key, each in reached.items() if level.stops[key]}
        paths |= {(level.pulls, key): each for key, each in ended.items()}
        ways = {key: each for key, each in reached.items() if not level.stops[key]}
        before = level.pulls
    return paths


def exact(states: dict[tuple[int, int], int], mean: Fraction) -> list[Fraction]:
    """The probability of every state, rising."""
    return [
        paths * mean**successes * (1 - mean) ** (pulls - successes)
        for (pulls, successes), paths in sorted(states.items())
    ]


@pytest.mark.parametrize("seed", range(20))
def test_every_state_has_its_exact_probability(seed: int) -> None:
    levels = random_levels(np.random.default_rng(seed), 9)
    states = stop_states(levels, 0.37)
    means = [Fraction(1, 100), Fraction(2, 7), Fraction(1, 2), Fraction(97, 100)]

    found = np.exp(states.log_probability(np.array([float(each) for each in means])))

    paths = counted(levels)
    assert list(zip(states.pulls, states.successes, strict=True)) == sorted(paths)
    expected = [[float(each) for each in exact(paths, mean)] for mean in means]
    assert np.allclose(found, expected, rtol=1e-12)


def test_probabilities_add_up_to_one() -> None:
    levels = [
        Level(pulls, np.abs(np.arange(pulls + 1) / pulls - 0.9) > 1 / np.sqrt(pulls))
        for pulls in (10, 100, 1000, 5000)
    ]
    levels.append(Level(20_000, np.ones(20_001, dtype=np.bool_)))
    states = stop_states(levels, 0.9)

    total = np.exp(states.log_probability(np.array([0.88, 0.9, 0.92]))).sum(axis=1)

    assert np.abs(total - 1).max() < 1e-9


def test_states_that_underflow_are_left_out() -> None:
    states = stop_states([Level(2000, np.ones(2001, dtype=np.bool_))], 0.5)

    found = states.find(np.array([2000, 2000, 7]), np.array([1000, 0, 3]))

    assert states.successes[found[0]] == 1000
    assert found[1] == found[2] == NOT_THERE


def test_some_states_are_kept() -> None:
    states = StopStates(np.array([1.0, 1.0]), np.array([0.0, 1.0]), np.zeros(2))

    assert states.only(np.array([False, True])).successes.tolist() == [1.0]


def test_binomial_is_that_of_fractions() -> None:
    from math import comb

    mean = Fraction(3, 10)
    exact_law = [comb(30, s) * mean**s * (1 - mean) ** (30 - s) for s in range(31)]

    assert np.allclose(binomial(30, 0.3), [float(each) for each in exact_law], rtol=1e-12)
