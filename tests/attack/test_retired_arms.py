"""Arms that retire when it hurts most: what is promised about the arms that stay, simulated.

delta = .3, so that failures are seen, and the best of the arms that stay is better by just more
than is allowed. Four opponents know the true means and all rewards so far, those of the arm that
leaves among them. A run fails if it loses more among the arms that stay than its bound says.
`make attack` makes 2,000 runs of each certificate and opponent, and 200 of plans, of which a run
takes a second."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from attack_scale import AGAIN, SEED, number_of_runs
from scipy.stats import binom

from shortlist.algorithms import find
from shortlist.arrays import FloatArray, IntArray
from shortlist.driver import Outcome, counted
from shortlist.engine.replay import staying
from shortlist.problem import FixedConfidence, Items, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary, Bounded
from shortlist.search import Pulls, advance, rewards_of

pytestmark = pytest.mark.rates

DELTA = 0.3
RUNS = number_of_runs(16, 2000)  # of 16 about 13 must fail to be noticed, of 2,000 about 680
UNBELIEVABLE = 1e-4  # chance of this many failures below which the guarantee is taken for broken


@dataclass
class Seen:
    """What an opponent knows."""

    means: FloatArray  # the truth
    k: int
    pulls: IntArray
    sums: FloatArray
    asked: IntArray  # pulls of every arm in the last batch
    batch: int = 0

    @property
    def best(self) -> int:
        return int(self.means.argmax())

    @property
    def estimates(self) -> FloatArray:
        result: FloatArray = (self.sums + 0.5) / (self.pulls + 1)
        return result


Opponent = Callable[[Seen, np.random.Generator], int | None]


def best_at_once(seen: Seen, _: np.random.Generator) -> int | None:
    """The best arm leaves in the first batch, when it has put others out."""
    return seen.best


def best_at_random(seen: Seen, rng: np.random.Generator) -> int | None:
    """The best arm leaves some time."""
    return seen.best if rng.random() < 0.3 else None


def best_after_rejections(seen: Seen, _: np.random.Generator) -> int | None:
    """The best arm leaves as soon as some arm is asked for no more."""
    return seen.best if (seen.asked == 0).any() else None


def leader_when_others_mislead(seen: Seen, _: np.random.Generator) -> int | None:
    """The arm that looks best leaves when the best of the others seem to be the wrong ones."""
    order = np.argsort(-seen.estimates)
    rest = order[1:]
    lost = np.sort(seen.means[rest])[-seen.k :].sum() - seen.means[rest[: seen.k]].sum()
    return int(order[0]) if lost > 0 and seen.batch > 0 else None


OPPONENTS: tuple[Opponent, ...] = (
    best_at_once,
    best_at_random,
    best_after_rejections,
    leader_when_others_mislead,
)


class World:
    """Rewards of arms, which may be scores on the items of a shared order."""

    def __init__(self, means: FloatArray, rng: np.random.Generator, scores: FloatArray | None):
        self.means, self.rng, self.scores = means, rng, scores
        self.drawn = np.zeros(means.size, dtype=np.int64)

    def draw(self, arms: IntArray) -> FloatArray:
        """One reward of each of these arms, in their order."""
        if self.scores is None:
            return (self.rng.random(arms.size) < self.means[arms]).astype(np.float64)
        rewards = np.empty(arms.size)
        for place, arm in enumerate(arms):
            rewards[place] = self.scores[arm, self.drawn[arm]]
            self.drawn[arm] += 1
        return rewards


def played(
    problem: Problem, world: World, opponent: Opponent, seed: int, **options: object
) -> tuple[Outcome, list[int]]:
    """A run in which at most one arm leaves, and who left."""
    run = counted(find("certified"), problem, np.random.default_rng(seed), **options)
    n, gone = problem.n_arms, np.zeros(problem.n_arms, dtype=np.bool_)
    nothing = np.zeros(n, dtype=np.int64)
    seen = Seen(world.means, problem.k, nothing.copy(), np.zeros(n), nothing)
    turn = advance(run, None)
    while isinstance(turn, Pulls):
        entries = np.repeat(np.arange(turn.arms.size), turn.times)
        arms = turn.arms[entries]
        rewards = np.where(gone[arms], 0.0, world.draw(arms))
        np.add.at(seen.pulls, arms, 1)
        np.add.at(seen.sums, arms, rewards)
        seen.asked = np.bincount(arms, minlength=n)
        leaves = None if gone.any() else opponent(seen, world.rng)
        if leaves is not None:
            gone[leaves] = True
        retired = np.flatnonzero(gone) if gone.any() else None
        turn = advance(run, rewards_of(rewards, entries, turn.arms.size, retired))
        seen.batch += 1
    left = np.flatnonzero(gone).tolist()
    return staying(turn, left, problem, "certified", seed), left


def failed(ended: Outcome, means: FloatArray, left: list[int]) -> bool:
    """Whether more is lost among the arms that stay than was promised."""
    bound = ended.answer.regret_bound
    assert bound is not None
    stay = np.setdiff1d(np.arange(means.size), left)
    assert np.isin(ended.answer.top, stay).all()
    lost = aggregate_regret(means[stay], np.searchsorted(stay, ended.answer.top).tolist())
    return bool(lost > bound + 1e-9)


def judged(runs: int, one: Callable[[int], bool]) -> None:
    wrong = sum(one(seed) for seed in range(SEED, SEED + runs))
    print(f"{wrong} of {runs}")
    assert wrong <= binom.ppf(1 - UNBELIEVABLE, runs, DELTA), AGAIN


CASES: dict[str, tuple[FloatArray, int, float, dict[str, object]]] = {
    "pairs": (np.array([0.9, 0.56, 0.35, 0.35]), 1, 0.2, {}),
    "pairs of two": (np.array([0.9, 0.9, 0.56, 0.35, 0.35]), 2, 0.1, {}),
    "pairs, three rounds": (np.array([0.9, 0.6, *[0.47] * 6]), 1, 0.12, {"max_rounds": 3}),
    "split": (np.array([0.9, 0.9, 0.6, 0.35, 0.35]), 2, 0.12, {"certificate": "split"}),
}


@pytest.mark.parametrize("opponent", OPPONENTS)
@pytest.mark.parametrize("case", CASES)
def test_no_time_of_retirement_makes_a_bound_fail_more_often_than_delta(
    case: str, opponent: Opponent
) -> None:
    means, k, epsilon, options = CASES[case]
    problem = Problem(means.size, k, FixedConfidence(epsilon, DELTA), Binary())

    def one(seed: int) -> bool:
        rng = np.random.default_rng([seed, 1])
        world = World(rng.permutation(means), rng, None)
        return failed(*_of(played(problem, world, opponent, seed, **options), world))

    judged(RUNS, one)


@pytest.mark.parametrize("opponent", [best_at_random, leader_when_others_mislead])
def test_no_time_of_retirement_makes_plans_fail_more_often_than_delta(opponent: Opponent) -> None:
    """A run takes a second. In `make test` there is one, which only shows that no retired arm is
    chosen; rates are for `make attack`, and test_plans_retired.py has exact expectations."""
    means = np.repeat([0.9, 0.5, 0.1], 4)
    problem = Problem(means.size, 6, FixedConfidence(0.1, DELTA), Binary())

    def one(seed: int) -> bool:
        rng = np.random.default_rng([seed, 1])
        world = World(rng.permutation(means), rng, None)
        return failed(*_of(played(problem, world, opponent, seed, certificate="plans"), world))

    judged(number_of_runs(1, 200), one)


def put_out(n: int, k: int, size: int, rng: np.random.Generator) -> FloatArray:
    """Scores of k best arms, one that they beat on every item, and others that win now and then.

    The best put the one out that is next to them before they put out the others."""
    scores = np.zeros((n, size))
    scores[:k], scores[k] = 1.0, 0.5
    for arm in range(k + 1, n):
        scores[arm, rng.permutation(size)[: round(0.4 * size)]] = 1.0
    return np.asarray(rng.permutation(scores), dtype=np.float64)


@pytest.mark.parametrize("opponent", OPPONENTS)
@pytest.mark.parametrize(("n", "k", "size"), [(10, 2, 30), (9, 1, 20), (5, 3, 20)])
def test_no_time_of_retirement_makes_items_fail_more_often_than_delta(
    n: int, k: int, size: int, opponent: Opponent
) -> None:
    problem = Problem(n, k, FixedConfidence(0.08 / k, DELTA), Bounded(), items=Items(size))

    def one(seed: int) -> bool:
        rng = np.random.default_rng([seed, 1])
        scores = put_out(n, k, size, rng)
        world = World(scores.mean(axis=1), rng, rng.permutation(scores, axis=1))
        return failed(*_of(played(problem, world, opponent, seed), world))

    judged(RUNS if opponent is not best_at_once else number_of_runs(20, 2000), one)


def _of(ended: tuple[Outcome, list[int]], world: World) -> tuple[Outcome, FloatArray, list[int]]:
    return ended[0], world.means, ended[1]
