"""Coverage of all that is printed before and at the end: intervals, places, lift and bounds, where
results are late because of their values, or arms leave because of theirs.

Each claim may be wrong with probability DELTA. Failures of RUNS runs are compared with that by an
exact binomial test. The functions that make all printed numbers are called once for every state
that occurs; that every display shows their numbers is tested in test_counted_rewards.py."""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom, binomtest

from shortlist.algorithms import find
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.confidence import OUT_OF_STEP, BetaMixture, _pair_levels, counted_pulls
from shortlist.driver import Outcome, counted
from shortlist.engine.status import ArmsTold, Counted, arms_told
from shortlist.interim import Tally
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Pulls, Rewards, advance
from shortlist.service.pages.view import regret_bound

RUNS, DELTA, PULLS = (
    number_of_runs(300, 2000),
    0.3,
    25,
)  # pulls of an arm that are asked for in one batch
GOAL = FixedConfidence(0.1, DELTA)


@pytest.fixture(autouse=True)
def _without_chances(monkeypatch: pytest.MonkeyPatch) -> None:
    """They promise nothing, and take longer than all the rest."""
    monkeypatch.setattr(
        "shortlist.engine.status.chances", lambda problem, *_: np.full(problem.n_arms, np.nan)
    )


class World(NamedTuple):
    """All runs at once: what would be drawn of every arm, pull by pull, and what is told."""

    means: FloatArray  # (runs, arms) shuffled
    rewards: FloatArray  # (runs, arms, pulls)
    told: BoolArray  # (runs, arms, pulls)


def world(
    means: list[float], seed: int, told: Callable[[FloatArray, np.random.Generator], BoolArray]
) -> World:
    """Rewards of 0 and 1; `told` says which of them are, by their values."""
    rng = np.random.default_rng(seed)
    each = rng.permuted(np.tile(means, (RUNS, 1)), axis=1)
    rewards = (rng.random((*each.shape, PULLS)) < each[..., None]).astype(np.float64)
    return World(each, rewards, told(rewards, rng))


def counts_of(seen: World) -> tuple[IntArray, IntArray]:
    """Pulls that are counted of every arm of every run, and successes among them."""
    runs, arms, pulls = seen.rewards.shape
    owner = np.repeat(np.arange(runs * arms), pulls)
    counted = counted_pulls(owner, seen.told.ravel(), runs * arms).reshape(seen.told.shape)
    return counted.sum(axis=2), (seen.rewards * counted).sum(axis=2).astype(np.int64)


@cache
def shown(pulls: tuple[int, ...], wins: tuple[int, ...], retired: tuple[int, ...]) -> ArmsTold:
    """What a status shows of arms with these counts."""
    problem = Problem(len(pulls), 1, GOAL, Binary())
    tally = Tally(len(pulls))
    sums = np.array(wins, dtype=np.float64)
    tally.add(np.arange(len(pulls)), np.array(pulls), Rewards(sums, sums))
    asked = np.full(len(pulls), PULLS)
    state = Counted(0, problem, tally, asked, None, frozenset(retired))
    return arms_told(state, tuple(map(str, range(len(pulls)))))


def few(wrong: int) -> bool:
    """Whether failures are as few as a probability DELTA allows."""
    return bool(binomtest(int(wrong), RUNS, DELTA, alternative="greater").pvalue > 1e-3)


def failures(seen: World, retired: Callable[[int], tuple[int, ...]]) -> dict[str, int]:
    """In how many runs an interval, a place or the bound of the page is wrong."""
    wrong = {"interval": 0, "place": 0, "bound": 0}
    pulls, wins = counts_of(seen)
    for run, means in enumerate(seen.means):
        left = retired(run)
        arms = shown(tuple(pulls[run].tolist()), tuple(wins[run].tolist()), left)
        stay = np.array([arm not in left for arm in range(means.size)])
        wrong["interval"] += bool(((means < arms.low) | (means > arms.high)).any())
        best = means[stay].max()
        surely = {
            place: np.array([each == place for each in arms.places]) for place in ("in", "out")
        }
        alone = (means[stay] == best).sum() == 1  # of several that are best, one is chosen
        misplaced = means[surely["in"]] < best
        wrong["place"] += bool(misplaced.any() or (alone and (means[surely["out"]] == best).any()))
        ends = arms.means[stay], arms.low[stay], arms.high[stay]
        leader = np.argsort(-np.nan_to_num(ends[0], nan=-np.inf), kind="stable")[0]
        problem = Problem(int(stay.sum()), 1, GOAL, Binary())
        wrong["bound"] += bool(best - means[stay][leader] > regret_bound(*ends, problem) + 1e-12)
    return wrong


def wrong_lifts(seen: World, *, in_step: bool) -> int:
    """In how many runs of two arms there is too much evidence against the true pair of means.

    Only then can a lift be wrong: its intervals hold all pairs with less
    (tests/test_confidence.py)."""
    pulls, wins = counts_of(seen)
    evidence = [
        BetaMixture(pulls[:, arm].astype(np.float64), wins[:, arm].astype(np.float64))
        for arm in range(2)
    ]
    both = sum(each._against(seen.means[:, arm]) for arm, each in enumerate(evidence))
    level = _pair_levels(Problem(2, 1, GOAL, Binary()), np.full(2, in_step))[0]
    return int((both > level).sum())


def quick_if_good(rewards: FloatArray, rng: np.random.Generator) -> BoolArray:
    """Successes are told at once, failures with probability one tenth."""
    early: BoolArray = (rewards == 1) | (rng.random(rewards.shape) < 0.1)
    return early


def quick_if_bad(rewards: FloatArray, rng: np.random.Generator) -> BoolArray:
    """The other way round."""
    return quick_if_good(1 - rewards, rng)


def when_it_is_worst(rewards: FloatArray, _rng: np.random.Generator) -> BoolArray:
    """Told up to where a mean of one half looks least likely: results come in order, and one is
    late at the worst moment."""
    pulls = np.arange(1, rewards.shape[-1] + 1)
    off = np.abs(rewards.cumsum(axis=-1) / pulls - 0.5) ** 2 * pulls
    result: BoolArray = pulls <= off.argmax(axis=-1)[..., None] + 1
    return result


LATE = (
    (quick_if_good, [0.1, 0.1, 0.4]),
    (quick_if_bad, [0.9, 0.6]),
    (when_it_is_worst, [0.5, 0.5]),
)


@pytest.mark.rates
@pytest.mark.parametrize(("late", "means"), LATE)
def test_what_is_shown_is_wrong_as_seldom_as_promised_while_results_are_late_by_their_values(
    late: Callable[[FloatArray, np.random.Generator], BoolArray], means: list[float]
) -> None:
    wrong = failures(world(means, 1, late), lambda _: ())
    assert all(map(few, wrong.values())), wrong
    assert few(wrong_lifts(world(means[-2:], 2, late), in_step=False))


def left_after_bad_luck(rewards: FloatArray, _rng: np.random.Generator) -> BoolArray:
    """The first arm is told up to its second failure in a row, and has left by then; of the others
    everything is told."""
    bad = (rewards[:, 0, 1:] == 0) & (rewards[:, 0, :-1] == 0)  # (runs, pulls - 1)
    last = np.where(bad.any(axis=1), bad.argmax(axis=1) + 1, rewards.shape[-1])
    told = np.ones(rewards.shape, dtype=np.bool_)
    told[:, 0] = np.arange(rewards.shape[-1]) <= last[:, None]
    return told


@pytest.mark.rates
def test_what_is_shown_of_arms_that_leave_because_of_their_rewards_is_wrong_as_seldom() -> None:
    seen = world([0.5, 0.7, 0.7], 3, left_after_bad_luck)
    wrong = failures(seen, lambda run: (0,) if not seen.told[run].all() else ())
    assert all(map(few, wrong.values())), wrong
    assert few(wrong_lifts(world([0.5, 0.7], 4, left_after_bad_luck), in_step=False))


def test_what_was_told_without_regard_to_order_would_be_wrong_nearly_always() -> None:
    """The worlds above are hard: counting whatever was told fails in them."""
    seen = world([0.1, 0.1, 0.4], 1, quick_if_good)
    pulls, wins = seen.told.sum(axis=2), (seen.rewards * seen.told).sum(axis=2).astype(np.int64)
    wrong = 0
    for run in range(200):
        arms = shown(tuple(pulls[run].tolist()), tuple(wins[run].tolist()), ())
        wrong += bool(((seen.means[run] < arms.low) | (seen.means[run] > arms.high)).any())
    assert wrong > 0.45 * 200


def test_a_lift_of_arms_out_of_step_needs_more_than_one_of_arms_in_step() -> None:
    """Both arms are stopped where they look worst: the tenth of DELTA that is left for such pairs
    is not enough at the level for arms in step."""
    seen = world([0.5, 0.5], 2, when_it_is_worst)
    tenth = DELTA * OUT_OF_STEP
    apart, together = (wrong_lifts(seen, in_step=in_step) for in_step in (False, True))
    assert binomtest(apart, RUNS, tenth, alternative="greater").pvalue > 1e-3
    assert binomtest(together, RUNS, tenth, alternative="greater").pvalue < 1e-3


@cache
def ended_by_limits(wins: tuple[int, int]) -> Outcome:
    """What comes of a search whose arms may be pulled eight times each, all in one batch."""
    problem = Problem(2, 1, FixedConfidence(0.05, DELTA), Binary(), limits=(8, 8))
    run = counted(find("certified"), problem, np.random.default_rng(0), min_batch=16)
    turn = advance(run, None)
    assert isinstance(turn, Pulls)
    sums = np.array(wins, dtype=np.float64)[turn.arms]
    outcome = advance(run, Rewards(sums, sums))
    assert isinstance(outcome, Outcome)
    return outcome


@pytest.mark.rates
@pytest.mark.parametrize("means", [(0.5, 0.5), (0.4, 0.7), (0.05, 0.95), (0.0, 0.3), (1.0, 0.8)])
def test_a_result_that_limits_end_is_wrong_as_seldom(means: tuple[float, float]) -> None:
    """Its bound is, and the interval of every arm: over all histories, by their probabilities."""
    truth, wrong = np.array(means), np.zeros(2)
    for wins in product(range(9), repeat=2):
        outcome = ended_by_limits(wins)
        assert outcome.answer.regret_bound is not None
        lost = truth.max() - truth[outcome.answer.top].mean()
        arms = shown((8, 8), wins, ())
        missed = ((truth < arms.low) | (truth > arms.high)).any()
        chance = float(np.prod(binom.pmf(wins, 8, truth)))
        wrong += chance * np.array([lost > outcome.answer.regret_bound, missed])
    assert (wrong <= DELTA).all()
