"""Pairs with batches that are planned ahead: what holds for them, whatever the timing.

docs/pairs.md, "Batches planned ahead". Replies come in the order of batches, so timing cannot
matter here; tests/engine/test_ahead.py has it."""

from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

from shortlist import Arm, simulate
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.frame import Retired, informed
from shortlist.certificates.pairs.bound import BetStage
from shortlist.certificates.pairs.planning import BatchSizes
from shortlist.certificates.pairs.search import PairsRace, run_ahead
from shortlist.errors import InvalidInput
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian
from shortlist.search import Answer, Dialogue, rewards_of
from shortlist.selection import select

MOST = 6000  # rewards per arm


class Played:
    """A race on a table of rewards, (arm, pull), from its beginning to its answer."""

    def __init__(
        self, table: FloatArray, problem: Problem, pace: BatchSizes, seed: int = 0
    ) -> None:
        retired = Retired(problem.n_arms)
        self.race = PairsRace(problem, np.random.default_rng(seed), pace, retired)
        self.under_way: list[int] = []  # pulls, whenever a reply is sent
        self.open: list[int] = []  # batches, at the same times
        self.asked: IntArray = np.zeros(problem.n_arms, dtype=np.int64)
        dialogue = Dialogue(informed(run_ahead(self.race), retired))
        new = list(dialogue.new)
        answered: IntArray = np.zeros(problem.n_arms, dtype=np.int64)
        while dialogue.result is None:
            for each in new:
                np.add.at(self.asked, each.arms, each.times)
            self.under_way.append(sum(each.total for each in dialogue.unanswered))
            self.open.append(len(dialogue.unanswered))
            batch = dialogue.unanswered[0]
            entries = np.repeat(np.arange(batch.arms.size), batch.times)
            rewards = []
            for arm, times in zip(batch.arms.tolist(), batch.times.tolist(), strict=True):
                rewards.append(table[arm, answered[arm] : answered[arm] + times])
                answered[arm] += times
            dialogue.reply(rewards_of(np.concatenate(rewards), entries, batch.arms.size))
            new = list(dialogue.new)
        self.answer: Answer = dialogue.result


def table_of(means: Any, seed: int) -> FloatArray:
    rng = np.random.default_rng([seed, 7])
    return (rng.random((len(means), MOST)) < np.array(means)[:, None]).astype(np.float64)


def problem_of(
    n: int, k: int, epsilon: float, delta: float = 0.05, rewards: RewardModel | None = None
) -> Problem:
    return Problem(n, k, FixedConfidence(epsilon, delta), Binary() if rewards is None else rewards)


@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 1), (6, 3)])
@pytest.mark.parametrize(("window", "least"), [(60, None), (200, 40), (90, 90), (7, 1)])
def test_batches_keep_to_the_window_and_are_several(
    n: int, k: int, window: int, least: Any
) -> None:
    pace = BatchSizes.ahead(window, least)
    played = Played(table_of(np.linspace(0.7, 0.3, n), 1), problem_of(n, k, 0.1), pace)
    for pulls, batches in zip(played.under_way, played.open, strict=True):
        assert pulls <= window + n * batches or batches == 1  # whole pulls per arm
    several = max(played.open) > 1
    assert several or window < 2 * max(pace.least, n)
    assert not several or window >= 2 * pace.least


def test_traffic_is_nearly_always_in_use() -> None:
    """A window is full but for one batch, until the end."""
    pace = BatchSizes.ahead(300, 50)
    played = Played(table_of([0.5] * 4, 2), problem_of(4, 1, 0.1), pace)
    full = [pulls for pulls in played.under_way if pulls >= 300 - 2 * 60]
    assert len(full) > 0.8 * len(played.under_way)


@pytest.mark.parametrize("rewards", [Binary(), Bounded()])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 1), (4, 2)])
def test_no_arm_is_asked_for_beyond_its_sample(n: int, k: int, rewards: RewardModel) -> None:
    """The fixed design compares samples of one size: docs/pairs.md, "The fallback design"."""
    for seed in range(number_of_runs(3, 40)):
        table = table_of([0.5] * n, seed)
        if seed % 2 and not rewards.is_binary:
            table[:, 30 + seed] = 0.5  # not 0/1 after all: samples become larger
        played = Played(table, problem_of(n, k, 0.1, rewards=rewards), BatchSizes.ahead(400, 50))
        race = played.race
        assert (played.asked <= race.fallback.caps).all()
        if played.answer.evidence["fallback design"]:
            complete = race.pulls[race.pulls == race.fallback.caps]
            assert complete.size >= 2


def settings_of(race: PairsRace, q: int) -> tuple[Any, ...]:
    """All that is fixed of stage q."""
    stage: BetStage = race.stages.fixed[q - 1]
    arrays = (stage.times, stage.advance, stage.lower, stage.higher)
    return (*(each.tolist() for each in arrays), stage.mean, stage.weight)


@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 1), (6, 3)])
def test_a_stage_is_fixed_without_its_own_rewards_and_later_ones(n: int, k: int) -> None:
    """What the theorem rests on, though its pulls and those of later stages are under way."""
    means = np.linspace(0.55, 0.45, n)
    rng = np.random.default_rng(3)
    for seed in range(number_of_runs(2, 20)):
        table, problem = table_of(means, seed), problem_of(n, k, 0.08)
        pace = BatchSizes.ahead(240, 40)
        first = Played(table, problem, pace).race
        for q in rng.integers(2, len(first.stages.fixed) + 1, size=3).tolist():
            changed = table.copy()
            for arm in range(n):
                before = int(first.stages.times(np.arange(1, q), np.full(q - 1, arm)).sum())
                changed[arm, before:] = 1 - changed[arm, before:]
            second = Played(changed, problem, pace).race
            assert len(second.stages.fixed) >= q
            for stage in range(1, q + 1):
                assert settings_of(first, stage) == settings_of(second, stage)


def test_two_arms_stay_in_step() -> None:
    """The lead of one arm decides among equally many pulls of both."""
    for seed in range(number_of_runs(3, 30)):
        pace = BatchSizes.ahead(100 + 37 * seed, None)
        played = Played(table_of([0.5, 0.5], seed), problem_of(2, 1, 0.1), pace)
        assert played.asked[0] == played.asked[1]
        assert played.race.fallback.lead is not None


def allowed(runs: int, delta: float) -> int:
    """Failures in this many runs that more than delta would explain in one of 10,000 tests."""
    return int(binom.isf(1e-4, runs, delta))


@pytest.mark.rates
@pytest.mark.parametrize(
    ("n", "k", "level", "window", "least"),
    [
        (2, 1, 0.5, 60, None),
        (2, 1, 0.1, 400, None),
        (2, 1, 0.5, 300, 7),
        (3, 1, 0.5, 40, 5),
        (5, 1, 0.1, 200, None),
        (5, 4, 0.3, 200, 20),
        (6, 3, 0.5, 120, None),
    ],
)
def test_wrong_answers_are_rarer_than_delta(
    n: int, k: int, level: float, window: int, least: Any
) -> None:
    """The k best are ahead by just more than the loss that is allowed, and arms are shuffled."""
    runs, failed, epsilon, delta = number_of_runs(16, 2000), 0, 0.08, 0.3
    gap = 1.02 * k * epsilon if min(k, n - k) == 1 else 1.02 * epsilon * k / min(k, n - k)
    for seed in range(runs):
        rng = np.random.default_rng([seed, window])
        means = np.full(n, level - gap / 2)
        means[:1] += gap if k == 1 or k < n - 1 else 0.0
        if k > 1:
            means[:k] = level + gap / 2
            means[k:] = level - gap / 2
        means = rng.permutation(np.clip(means, 0.0, 1.0))
        table = (rng.random((n, MOST)) < means[:, None]).astype(np.float64)
        pace = BatchSizes.ahead(window, least)
        answer = Played(table, problem_of(n, k, epsilon, delta), pace, seed).answer
        assert answer.regret_bound is not None
        loss = (np.sort(means)[-k:].sum() - means[answer.top].sum()) / k
        failed += loss > answer.regret_bound
    assert failed <= allowed(runs, delta)


def test_rewards_without_a_range_are_planned_ahead_too() -> None:
    rng = np.random.default_rng(5)
    table = rng.normal(np.array([0.3, 0.0, 0.0, 0.0])[:, None], 0.5, (4, MOST))
    problem = Problem(4, 1, FixedConfidence(0.2, 0.05), SubGaussian(0.5)).unit()
    played = Played(table / 1.0, problem, BatchSizes.ahead(120, 20))
    assert played.answer.top.tolist() == [0]


def test_a_budget_pays_for_all_that_is_asked_for() -> None:
    settings: dict[str, Any] = {"epsilon": 0.02, "budget": 700, "rewards": "bernoulli"}
    runs = simulate("certified", means=[0.6, 0.5, 0.5, 0.4], k=1, window=200, runs=5, **settings)
    assert (np.array(runs.pulls) <= 700).all()
    assert (np.array(runs.pulls) > 600).all()


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"arms": 200, "k": 40, "rewards": "binary"}, "and not by 'plans'"),
        ({"arms": 60, "k": 30, "certificate": "split"}, "and not by 'split'"),
        ({"arms": 4, "k": 1, "rewards": "normal"}, "and not by 'differences'"),
        ({"arms": 4, "k": 1, "seeds": "shared"}, "and not by 'differences'"),
        ({"arms": 4, "k": 1, "max_rounds": 3}, "`max_rounds` is 3, but `window` is 90"),
        ({"arms": 4, "k": 1, "min_batch": 100}, "at least `min_batch` = 100"),
        ({"arms": [Arm(i, 1, 40) for i in range(4)], "k": 1}, "where arms have limits"),
    ],
)
def test_what_cannot_be_planned_ahead_is_refused(settings: Any, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        select(lambda arm, seed: 0.0, epsilon=0.1, window=90, progress=False, **settings)


def test_samples_that_end_at_different_stages_end_the_search_with_its_bound() -> None:
    """With costs, samples differ: a batch planned ahead may find its arms at their ends."""
    costs = [1.0 + 9 * (arm % 2) for arm in range(8)]
    settings: dict[str, Any] = {"epsilon": 0.4, "delta": 0.2, "rewards": "bernoulli"}
    runs = simulate(
        "certified", means=[0.5] * 8, k=1, window=10, costs=costs, runs=3, seed=1, **settings
    )
    again = simulate("certified", means=[0.5] * 8, k=1, costs=costs, runs=3, seed=1, **settings)
    assert (np.array(runs.bound) <= 0.4).all()
    assert (np.array(runs.pulls) <= 3 * np.array(again.pulls)).all()
