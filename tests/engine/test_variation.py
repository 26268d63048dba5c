"""Notes that arms never varied: what they see, and how seldom honest rewards look so."""

import numpy as np
import pytest
from scipy.stats import binomtest

import shortlist
from shortlist.arrays import FloatArray
from shortlist.engine.checks import Checks
from shortlist.engine.exchangeability import LEVEL, Variation
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary

GOAL = FixedConfidence(0.1, 0.05)


def note_of(rewards: FloatArray, k: int, problem: Problem | None = None) -> str | None:
    """The note on the best k of arms with these rewards, a row per arm."""
    n_arms, pulls = rewards.shape
    seen = Variation(problem or Problem(n_arms, k, GOAL), n_arms)
    seen.take(np.repeat(np.arange(n_arms), pulls), rewards.ravel())
    return seen.note(range(n_arms), np.argsort(-rewards.sum(axis=1))[:k])


def constant(*values: float, pulls: int = 30) -> FloatArray:
    return np.repeat(np.array(values, dtype=float)[:, None], pulls, axis=1)


def bernoulli(rng: np.random.Generator, means: FloatArray, pulls: int) -> FloatArray:
    return (rng.random((means.size, pulls)) < means[:, None]).astype(float)


def test_rare_events_and_rare_failures_are_not_noted() -> None:
    assert note_of(constant(0, 0), 1) is None
    assert note_of(constant(0, 0, 0, pulls=3000), 1) is None
    assert note_of(constant(1, 1, 1), 1) is None
    late = constant(0, 0, 0)
    late[1, -1] = 1
    assert note_of(late, 1) is None


def test_a_cache_for_all_arms_but_one_is_noted() -> None:
    rewards = constant(1, 1, 1, 1, 0, 0, 0, 0, 0, 0)
    rewards[9] = np.arange(30) % 2
    said = note_of(rewards, 3)
    assert said is not None
    assert "never varied: 0 gave 1 in all of 30" in said


def test_a_number_of_its_own_for_each_chosen_arm_is_noted_if_others_vary() -> None:
    rewards = constant(0.91, 0.92, 0.93, 0.3, 0.4)
    rewards[3:] = np.random.default_rng(0).random((2, 30))
    said = note_of(rewards, 2)
    assert said is not None
    assert "2 gave 0.93 in all of 30" in said
    assert "0 gave" not in said  # was not chosen


def test_arms_that_fail_always_are_not_noted_if_the_chosen_ones_vary() -> None:
    rewards = constant(*[0] * 10, *[1] * 10)
    rewards[10:] = bernoulli(np.random.default_rng(1), np.full(10, 0.4), 30)
    assert note_of(rewards, 3) is None


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (1, 1000), (30, 1), (2, 2)])
def test_honest_rewards_are_noted_at_most_as_often_as_the_level_says(
    shape: tuple[float, float],
) -> None:
    """Arms are pulled until a look at the note ends it, the worst moment there is."""
    rng, noted, runs = np.random.default_rng(2), 0, 200
    for _ in range(runs):
        rewards = bernoulli(rng, rng.beta(*shape, 5), 80)
        noted += any(note_of(rewards[:, :pulls], 2) for pulls in (5, 10, 20, 40, 80))
    assert binomtest(noted, runs, LEVEL, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize(
    ("share", "k", "asked"),
    [
        (0.02, 1, {"arms": 2, "budget": 30, "rewards": "binary"}),
        (0.001, 1, {"arms": 3, "epsilon": 0.1, "rewards": "binary"}),
        (0.95, 1, {"arms": 5, "epsilon": 0.2, "rewards": "binary"}),
    ],
)
def test_honest_selections_of_rare_events_are_silent(
    share: float, k: int, asked: dict[str, object]
) -> None:
    said = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        found = shortlist.select(
            lambda arm, rng=rng: float(rng.random() < share),
            k=k,
            seed=seed,
            progress=False,
            **asked,  # type: ignore[arg-type]
        )
        said += bool(found.warnings + found.notes)
    assert said <= 1


def test_scores_that_are_mostly_one_number_are_not_warned_of(recwarn: object) -> None:
    for seed in range(15):
        rng = np.random.default_rng(seed)
        found = shortlist.select(
            lambda arm, rng=rng: 0.5 if rng.random() < 0.95 else float(rng.random() < 0.5),
            arms=3,
            k=1,
            epsilon=0.2,
            seed=seed,
            progress=False,
        )
        assert found.notes == found.warnings == ()
    assert list(recwarn) == []  # type: ignore[call-overload]


def test_an_order_that_only_all_arms_together_refute_is_not_blamed_on_one() -> None:
    n_arms = 20
    checks = Checks(Problem(n_arms, 1, GOAL, Binary()), range(n_arms))
    blocks = np.tile(np.repeat([0.0, 1.0], 5), 2)  # five pulls are one visitor
    checks.take(np.repeat(np.arange(n_arms), blocks.size), np.tile(blocks, n_arms))
    (message,) = checks.warnings
    assert "(p < 1e-06, all arms together); most in arm" in message
    alone = Checks(Problem(2, 1, GOAL, Binary()), range(2))
    alone.take(np.zeros(200, dtype=np.int64), np.tile(np.repeat([0.0, 1.0], 20), 5))
    assert "large and small ones of arm 0 make" in alone.warnings[0]
    assert "together" not in alone.warnings[0]
