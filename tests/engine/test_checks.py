"""Tests that run along with a search: how often they are wrong, and what they see."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from shortlist.arrays import FloatArray, IntArray
from shortlist.engine.checks import TOGETHER, Checks, DeclaredSigma, Independence
from shortlist.engine.exchangeability import (
    FIRST,
    GROUPS,
    MEMORY,
    STAY,
    SWITCH,
    Bits,
    Exchangeability,
)
from shortlist.problem import FixedConfidence, Items, Problem
from shortlist.reward_models import Binary, Bounded, SubGaussian

RUNS = 2000
GOAL = FixedConfidence(0.1, 0.05)
Draw = Callable[[np.random.Generator, IntArray], FloatArray | IntArray]


def within(failed: int, alpha: float, runs: int = RUNS) -> bool:
    """Whether this many false alarms are likely enough if each has probability `alpha`."""
    return binomtest(failed, runs, alpha, alternative="greater").pvalue > 1e-3


def seldom(most: FloatArray) -> bool:
    """Whether capital that is never larger than this reaches 1 / alpha seldom enough."""
    levels = (0.3, 0.05, 0.01)
    return all(within(int((most >= -math.log(each)).sum()), each, most.size) for each in levels)


def ever(
    test: Any, draw: Draw, capital: Callable[[Any], FloatArray], batches: int = 60
) -> FloatArray:
    """The largest logarithm of capital that every arm ever has; arms are sampled adaptively.

    An arm is pulled again while its last rewards are not large: where a test took the order of
    rewards for random although counts depend on them, this would deceive it."""
    rng = np.random.default_rng(5)
    most = np.full(RUNS, -np.inf)
    going = np.arange(RUNS)
    for batch in range(batches):
        arms = np.repeat(going, 1 + batch % 3)
        values = draw(rng, arms)
        test.take(arms, values)
        most = np.maximum(most, capital(test))
        last = values[np.flatnonzero(np.diff(arms, append=-1))]
        going = going[(last <= np.median(values)) | (rng.random(going.size) < 0.9)]
    return most


@pytest.mark.parametrize("mean", [0.5, 0.9, 0.02])
def test_bits_in_random_order_are_seldom_refuted(mean: float) -> None:
    def draw(rng: np.random.Generator, arms: IntArray) -> IntArray:
        return (rng.random(arms.size) < mean).astype(np.int64)

    most = ever(Exchangeability(RUNS), draw, lambda test: test.log_capital()[1])
    assert seldom(most)


def test_neither_are_items_drawn_without_replacement() -> None:
    rng = np.random.default_rng(1)
    scores = rng.permuted(np.tile(np.arange(16) % 2, (RUNS, 1)), axis=1)  # half of 16 items are 1
    test, most = Exchangeability(RUNS, items=True), np.full(RUNS, -np.inf)
    for item in range(16):
        test.take(np.arange(RUNS), scores[:, item])
        most = np.maximum(most, test.log_capital()[1])
    assert seldom(most)


def test_independent_arms_are_seldom_taken_for_dependent_ones() -> None:
    rng = np.random.default_rng(2)
    test, pairs = Independence(1000), slice(None, None, 2)  # pairs that share no arm
    most = np.full(500, -np.inf)
    for _ in range(40):
        arms = np.sort(rng.integers(0, 1000, 2000))
        test.take(arms, (rng.random(arms.size) < 0.3 + 0.4 * (arms % 2)).astype(np.int64))
        most = np.maximum(most, test.log_capital()[pairs])
    assert seldom(most)


@pytest.mark.parametrize("kind", ["normal", "signs"])
def test_a_true_sigma_is_seldom_refuted(kind: str) -> None:
    def draw(rng: np.random.Generator, arms: IntArray) -> FloatArray:
        noise = rng.standard_normal(arms.size)
        return 1e6 + 3 * arms + 2 * (noise if kind == "normal" else np.sign(noise))

    most = ever(DeclaredSigma(RUNS, 2.0), draw, lambda test: test.log_capital()[1], 30)
    assert seldom(most)


@pytest.mark.no_cover
def test_no_test_of_a_run_warns_too_often() -> None:
    """Three claims are tested at alpha each, on three arms that are sampled adaptively."""
    alpha = 0.3
    asked = Problem(3, 1, GOAL, SubGaussian(0.5))
    warned = {"sigma": 0, "random order": 0, "together": 0}
    rng = np.random.default_rng(3)
    for _ in range(RUNS):
        checks = Checks(asked, "abc", alpha=alpha)
        sums = np.zeros(3)
        for _ in range(2):
            best = int(sums.argmax())
            arms = np.repeat(np.arange(3), np.where(np.arange(3) == best, 40, 12))
            rewards = rng.normal(0, 0.5, arms.size)
            np.add.at(sums, arms, rewards)
            checks.take(arms, rewards)
        checks.finish(np.array([0]))
        for message in checks.warnings:
            warned[next(name for name in warned if name in message)] += 1
    assert all(within(count, alpha) for count in warned.values())


def _log_predicted(bits: list[int], one: float = 0.5, zero: float = 0.5) -> float:
    """Bit by bit: each is predicted by the mean of Beta(one, zero) after those before it."""
    total = 0.0
    for place, bit in enumerate(bits):
        share = (one + sum(bits[:place])) / (one + zero + place)
        total += math.log(share if bit else 1 - share)
    return total


def _slow(bits: list[int]) -> float:
    """Logarithm of the capital of one arm, from the definitions."""
    states = [[bit for before, bit in pairwise(bits) if before == state] for state in (0, 1)]
    switches = [[int(bit != state) for bit in states[state]] for state in (0, 1)]
    logs = [sum(_log_predicted(each, SWITCH, STAY) for each in switches) + math.log(0.5)]
    bits = bits[1:]
    for size in GROUPS:
        log = math.log(0.5 / len(GROUPS))
        for start in range(0, len(bits), size):
            weight = min(start, MEMORY)
            mean = (sum(bits[:start]) + 0.5) / (start + 1)
            priors = 0.5 + weight * mean, 0.5 + weight * (1 - mean)
            log += _log_predicted(bits[start : start + size], *priors)
        logs.append(log)
    share = sum(bits) / len(bits)
    null = sum(math.log(share if bit else 1 - share) for bit in bits)
    return float(np.logaddexp.reduce(logs)) - null


@pytest.mark.parametrize("seed", range(4))
def test_capital_is_that_of_the_definition_however_bits_are_cut_into_batches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = (3, 9, 31, 70)
    bits = [(rng.random(length) < 0.2 + 0.1 * seed).astype(np.int64) for length in lengths]
    test, done = Exchangeability(4), np.zeros(4, dtype=np.int64)
    while (done < lengths).any():
        times = np.minimum(rng.integers(0, 20, 4), np.array(lengths) - done)
        new = [
            each[start : start + more] for each, start, more in zip(bits, done, times, strict=True)
        ]
        test.take(np.repeat(np.arange(4), times), np.concatenate(new))
        done += times
    expected = [_slow(each.tolist()) for each in bits]
    assert test.log_capital()[1] == pytest.approx(expected, abs=1e-9)


def test_the_capital_of_a_sigma_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    arms, rewards = np.sort(rng.integers(0, 3, 50)), rng.normal(1e8, 1, 50)
    test = DeclaredSigma(3, 0.5)
    cut = 20
    test.take(arms[:cut], rewards[:cut])
    test.take(arms[cut:], rewards[cut:])
    squares = sum(
        ((own := rewards[arms == arm]) - own.mean()) @ (own - own.mean()) for arm in range(3)
    )
    logs = [s * squares / (2 * 0.25) + 50 / 2 * math.log(1 - s) for s in (0.1, 0.4, 0.8)]
    expected = float(np.logaddexp.reduce(logs)) - math.log(3)
    assert test.log_capital()[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("first", "later", "bits"),
    [
        ([0, 0, 1, 1, 1, 1, 0], [0, 1], [0, 1]),
        ([0, 0, 0, 0, 1, 0, 0], [0, 1], [0, 1]),
        ([1, 1, 1, 1, 1, 1, 1], [0, 1], [1, 0]),  # whether a reward differs
        ([5, 1, 4, 2, 3, 6, 7], [3.4, 3.6, 9, 0], [0, 1, 1, 0]),
    ],
)
def test_first_rewards_fix_a_threshold_that_later_ones_cross(
    first: list[float], later: list[float], bits: list[int]
) -> None:
    reduced = Bits(2, Bounded(0, 10))
    assert reduced.of(np.full(3, 1), np.array(first[:3], dtype=float))[0].size == 0
    rest = np.array([*first[3:], *later], dtype=float)
    arms, found = reduced.of(np.full(rest.size, 1), rest)
    assert arms.tolist() == [1] * len(later)
    assert found.tolist() == bits
    assert len(first) == FIRST


def test_rewards_of_0_and_1_are_bits_but_for_the_first_where_none_were_declared() -> None:
    arms, rewards = np.array([0, 0, 1, 1]), np.array([0.0, 1, 1, 0])
    assert Bits(2, Binary()).of(arms, rewards)[1].tolist() == [0, 1, 1, 0]
    undeclared = Bits(2, Bounded())
    undeclared.begin(arms, rewards)
    assert undeclared.of(arms, rewards)[1].tolist() == [1, 0]
    later = np.array([0.7, 0.2])
    assert undeclared.of(np.array([0, 1]), later)[1].tolist() == [1, 0]


def warnings_of(draw: Callable[[int, int], float], pulls: int, **asked: Any) -> tuple[str, ...]:
    """What is said after this many pulls of each of four arms, in batches of 4."""
    checks = Checks(Problem(4, 1, GOAL, **asked), "abcd")
    sums = np.zeros(4)
    for start in range(0, pulls, 4):
        rewards = [float(draw(arm, start + each)) for arm in range(4) for each in range(4)]
        checks.take(np.repeat(np.arange(4), 4), np.array(rewards))
        sums += np.array(rewards).reshape(4, 4).sum(axis=1)
    checks.finish(np.array([sums.argmax()]))
    return checks.warnings + checks.notes


def uniform(*key: int) -> float:
    return float(np.random.default_rng(key).random())


@pytest.mark.parametrize(
    ("draw", "pulls", "said"),
    [
        (lambda arm, draw: uniform(arm, draw // 5) < 0.5, 60, "random order"),  # 5 pulls a visitor
        (lambda arm, draw: uniform(arm, draw // 50) < 0.5, 200, "random order"),
        (lambda arm, draw: uniform(arm, draw // 3), 60, "random order"),  # real numbers, too
        (lambda arm, draw: uniform(arm, draw) < 0.1 + 0.5 * (draw > 100), 200, "random order"),
        (lambda arm, draw: (uniform(arm, draw) + draw / 200) / 3, 300, "random order"),
        (lambda arm, draw: draw % 2, 40, "random order"),
        (lambda arm, draw: uniform(draw) < 0.3 + 0.1 * arm, 200, "together"),  # one seed for all
        (lambda arm, draw: (uniform(draw) + arm) / 5, 60, "together"),
        (lambda arm, draw: arm > 1, 12, "never varied"),
        (lambda arm, draw: arm / 7, 12, "never varied"),
    ],
)
def test_misuse_is_seen(draw: Callable[[int, int], float], pulls: int, said: str) -> None:
    (message,) = warnings_of(draw, pulls)
    assert said in message
    assert "docs/must-not.md" in message


@pytest.mark.parametrize(
    "draw",
    [
        lambda arm, draw: uniform(arm, draw) < 0.3,
        lambda arm, draw: uniform(arm, draw) < 0.004,  # rare conversions, and some arms have none
        lambda arm, draw: uniform(arm, draw),
        lambda arm, draw: (uniform(arm, draw) < 0.5) if arm else 1,
    ],
)
def test_honest_rewards_are_not_complained_about(draw: Callable[[int, int], float]) -> None:
    assert warnings_of(draw, 400) == ()


def test_one_arm_of_many_with_a_wrong_sigma_is_named() -> None:
    checks = Checks(Problem(50, 1, GOAL, SubGaussian(1.0)), range(50))
    rng = np.random.default_rng(0)
    for _ in range(30):
        rewards = rng.normal(0, 0.3, 50)
        rewards[7] *= 20
        checks.take(np.arange(50), rewards)
    (message,) = checks.warnings
    assert "arm 7 have a standard deviation" in message


def test_arms_that_retired_and_arms_on_shared_items_are_left_out() -> None:
    checks = Checks(Problem(2, 1, GOAL, Binary()), "ab")
    for _ in range(30):
        arms = np.repeat([0, 1], 4)
        rewards = np.random.default_rng(8).random(8).round()
        checks.take(arms, np.where(arms == 0, np.arange(8) % 2, rewards), without={0, 1})
    checks.finish(np.array([0]))
    assert checks.warnings + checks.notes == ()
    items = Items(400)
    shared = warnings_of(lambda arm, draw: uniform(draw) < 0.5, 200, items=items)
    assert shared == ()
    assert len(warnings_of(lambda arm, draw: draw < 100, 200, items=items)) == 1


def test_a_few_rewards_wait_until_there_are_more() -> None:
    checks = Checks(Problem(2, 1, GOAL, SubGaussian(0.01)), "ab")
    rewards = np.array([5.0, -5.0] * (TOGETHER // 4))
    checks.take(np.zeros(rewards.size, dtype=np.int64), rewards)
    assert checks.warnings == ()
    checks.finish(np.array([0]))
    assert len(checks.warnings) == 1
