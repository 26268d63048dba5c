"""What every algorithm owes, whatever it is: these run over the registry, so a new one is covered
by its entry there.

The golden records hold what each asks for and answers at one seed. Where a change of that is meant,
raise the version of the algorithm in the registry, if that version is released, and write them
again: `python tests/contracts/test_algorithms.py`."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

from shortlist.algorithms import ALGORITHMS, find
from shortlist.arrays import FloatArray, IntArray
from shortlist.driver import Outcome
from shortlist.errors import UnsupportedGoal
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem
from shortlist.regret import ROUNDING
from shortlist.reward_models import Bounded, Normal, RewardModel
from shortlist.search import Pulls, Rewards
from shortlist.simulation.simulate import Runs, drive, simulate
from shortlist.simulation.worlds import Bandit, BernoulliBandit, NormalBandit

RUNS = number_of_runs(200, 2000)
DELTA = 0.1
SCREENED = 40  # runs that may be enough: if 2 DELTA failed, one of these would, but for 0.01 %
EPSILON = 0.3
# a test fails when what it saw has a smaller chance than this if the claim is true
BELIEVABLE = 1e-4
GOLDEN = Path(__file__).with_name("golden_algorithms.json")

# Fewer, larger batches: the guarantee is the same, and a run takes a few milliseconds.
QUICK: dict[str, dict[str, Any]] = {
    name: {"growth": 1.0} for name in ("clucb-pac", "lucb", "kl-lucb", "track-and-stop")
}
NORMAL_ONLY = [name for name, each in ALGORITHMS.items() if each.only_normal]
LARGEST_K = {"track-and-stop": 1, **dict.fromkeys(NORMAL_ONLY, 1)}
UNBOUNDED = ("kn",)  # what it promises is no bound on the regret
# it plans more than it pulls here; test_certificate.py tries its bound a million times
FEWER_RUNS = {"certified": number_of_runs(40, 1000)}
# they compute more than they pull; tests/algorithms tries their bounds again
FEWER_RUNS |= {"kl-lucb": 80, "track-and-stop": 80}

GUARANTEED = [name for name, each in ALGORITHMS.items() if FixedConfidence in each.goals]
FOR_ANY_REWARDS = [name for name in GUARANTEED if name not in NORMAL_ONLY]
BUDGETED = [name for name, each in ALGORITHMS.items() if FixedBudget in each.goals]
GOALS: dict[str, Goal] = {"confidence": FixedConfidence(EPSILON, DELTA), "budget": FixedBudget(150)}
SEARCHES = [
    (name, kind)
    for name, each in ALGORITHMS.items()
    for kind, goal in GOALS.items()
    if type(goal) in each.goals
]

INSTANCES: dict[str, tuple[FloatArray, int]] = {
    "two arms": (np.array([0.9, 0.59]), 1),
    "one of 20": (np.linspace(0.1, 0.9, 20), 1),
    "half of 20": (np.linspace(0.1, 0.9, 20), 10),
    "all but one of 20": (np.linspace(0.1, 0.9, 20), 19),
    "equal arms": (np.full(6, 0.5), 2),
    "zeros and ones": (np.repeat([0.0, 1.0], 3), 3),
    "gap just above epsilon": (np.array([0.81, 0.5, 0.5, 0.5]), 1),
    "gap just below epsilon": (np.array([0.79, 0.5, 0.5, 0.5]), 1),
}


@dataclass
class ConstantBandit:
    """Arms that always give their mean, so that ties and gaps are exact; it remembers what it was
    asked for."""

    means: FloatArray
    requests: list[Pulls] = field(default_factory=list)
    model: RewardModel = field(default_factory=Bounded)

    def with_means(self, means: FloatArray) -> "ConstantBandit":
        return ConstantBandit(means, model=self.model)

    def pull(self, arms: IntArray, times: IntArray, rng: np.random.Generator) -> Rewards:
        self.requests.append(Pulls(arms, times))
        each = np.repeat(self.means[arms], times)
        return Rewards(times * self.means[arms], times * self.means[arms] ** 2, each)


def constant(name: str, means: FloatArray) -> ConstantBandit:
    """Arms without noise, declared as this algorithm needs it."""
    return ConstantBandit(means, model=Normal() if name in NORMAL_ONLY else Bounded())


def noisy(name: str, means: FloatArray) -> Bandit:
    """0/1 rewards, or normal ones where an algorithm rests on them."""
    return NormalBandit(means, sd=0.5) if name in NORMAL_ONLY else BernoulliBandit(means)


def run(
    name: str, kind: str, bandit: Bandit, k: int, seed: int, goal: Goal | None = None
) -> Outcome:
    """One run on arms as they stand, not shuffled."""
    problem = Problem(bandit.means.size, most(name, k), goal or GOALS[kind], bandit.model)
    return drive(find(name), problem, bandit, np.random.default_rng(seed), **QUICK.get(name, {}))


def many(name: str, means: FloatArray, k: int, **settings: Any) -> Runs:
    """Many runs with shuffled arms."""
    options = QUICK.get(name)
    if name in NORMAL_ONLY:
        settings = {"rewards": "normal", "sd": 0.5, **settings}
    return simulate(name, means, k=most(name, k), delta=DELTA, options=options, **settings)


def most(name: str, k: int) -> int:
    """As many arms as are wanted, or as the algorithm can choose."""
    return min(k, LARGEST_K.get(name, k))


def seldom(failures: int, runs: int, rate: float) -> bool:
    """Whether that many failures are believable if each run fails with probability at most
    `rate`."""
    return bool(binom.sf(failures - 1, runs, rate) > BELIEVABLE)


@pytest.mark.rates
@pytest.mark.parametrize("instance", INSTANCES)
@pytest.mark.parametrize("name", GUARANTEED)
def test_regret_exceeds_epsilon_or_the_bound_in_at_most_delta_of_the_runs(
    name: str, instance: str
) -> None:
    means, k = INSTANCES[instance]
    for tries in (SCREENED, FEWER_RUNS.get(name, RUNS)):
        runs = many(name, means, k, epsilon=EPSILON, runs=tries)
        exceeded = runs.regret > runs.bound + ROUNDING
        assert name in UNBOUNDED or np.all(runs.bound <= EPSILON + ROUNDING)
        if not (runs.failed.any() or exceeded.any()):
            return
    assert seldom(int(runs.failed.sum()), tries, DELTA)
    assert seldom(int(exceeded.sum()), tries, DELTA)


@pytest.mark.parametrize("rewards", ["beta", "gaussian"])
@pytest.mark.parametrize("name", FOR_ANY_REWARDS)
def test_the_guarantee_holds_for_other_rewards(name: str, rewards: str) -> None:
    means = np.array([0.81, 0.81, 0.5, 0.5]) + (
        7.0 if rewards == "gaussian" else 0.0
    )  # sub-Gaussian means have no range
    runs = many(name, means, 2, epsilon=EPSILON, runs=20, rewards=rewards)
    assert seldom(int(runs.failed.sum()), 20, DELTA)


@pytest.mark.parametrize("rewards", ["beta", "gaussian"])
@pytest.mark.parametrize("name", BUDGETED)
def test_budgets_work_with_other_reward_models(name: str, rewards: str) -> None:
    runs = many(name, np.array([0.9, 0.9, 0.1, 0.1]), 2, budget=400, runs=20, rewards=rewards)
    assert runs.pulls.max() <= 400
    assert runs.regret.max() == 0


@pytest.mark.parametrize(("n", "k"), [(2, 1), (20, 1), (20, 10), (20, 19)])
@pytest.mark.parametrize(("name", "kind"), SEARCHES)
def test_the_answer_is_k_distinct_arms(name: str, kind: str, n: int, k: int) -> None:
    outcome = run(name, kind, noisy(name, np.linspace(0, 1, n)), k, seed=3)
    top = outcome.answer.top
    assert top.size == np.unique(top).size == most(name, k)
    assert top.min() >= 0
    assert top.max() < n
    assert (outcome.answer.regret_bound is None) == (outcome.answer.confidence is None)


@pytest.mark.parametrize(("name", "kind"), SEARCHES)
def test_every_request_is_for_arms_that_exist_and_at_least_one_pull_each(
    name: str, kind: str
) -> None:
    bandit = constant(name, np.array([0.2, 0.9, 0.4, 0.4, 0.8]))
    run(name, kind, bandit, 2, seed=0)
    assert bandit.requests
    for request in bandit.requests:
        assert request.arms.dtype == request.times.dtype == np.int64
        assert request.arms.size == request.times.size > 0
        assert request.arms.min() >= 0
        assert request.arms.max() < 5
        assert request.times.min() >= 1


@pytest.mark.parametrize("more", [1, 2, 7, 40, 1000])
@pytest.mark.parametrize("k", [1, 4, 11])
@pytest.mark.parametrize("name", BUDGETED)
def test_a_budget_is_never_exceeded(name: str, k: int, more: int) -> None:
    outcome = run(
        name,
        "budget",
        BernoulliBandit(np.linspace(0.1, 0.9, 12)),
        k,
        seed=more,
        goal=FixedBudget(12 + more),
    )
    assert outcome.pulls.sum() <= 12 + more


@pytest.mark.parametrize(("name", "kind"), SEARCHES)
def test_runs_with_the_same_seed_are_identical(name: str, kind: str) -> None:
    means = np.array([0.5, 0.5, 0.5, 0.7, 0.3, 0.5])
    first, second = constant(name, means), constant(name, means)
    tops = [run(name, kind, bandit, 3, seed=11).answer.top.tolist() for bandit in (first, second)]
    assert tops[0] == tops[1]
    assert len(first.requests) == len(second.requests)
    for one, other in zip(first.requests, second.requests, strict=True):
        assert one.arms.tolist() == other.arms.tolist()
        assert one.times.tolist() == other.times.tolist()


@pytest.mark.parametrize(("name", "kind"), SEARCHES)
def test_relabelling_the_arms_relabels_the_answer(name: str, kind: str) -> None:
    # Exact rewards and an epsilon below the loss of one swap leave a single right answer.
    goal = FixedConfidence(0.06, DELTA) if kind == "confidence" else None
    rng = np.random.default_rng(5)
    for seed in range(8):
        means = rng.permutation(np.linspace(0, 1, 6))
        top = run(name, kind, constant(name, means), 3, seed, goal).answer.top
        assert set(top) == set(np.argsort(-means)[: most(name, 3)])


@pytest.mark.parametrize(("name", "kind"), SEARCHES)
def test_arms_with_equal_rewards_are_chosen_equally_often(name: str, kind: str) -> None:
    # The other half of relabelling: where only the rng decides, no position may be preferred (E18).
    n, k, runs = 5, most(name, 2), 200
    bandit = constant(name, np.full(n, 0.5))
    chosen = np.zeros(n, dtype=np.int64)
    for seed in range(runs):
        goal = FixedConfidence(1.0, DELTA) if kind == "confidence" else FixedBudget(23)
        chosen[run(name, kind, bandit, k, seed, goal).answer.top] += 1
    tails = np.minimum(binom.cdf(chosen, runs, k / n), binom.sf(chosen - 1, runs, k / n))
    assert tails.min() > BELIEVABLE


@pytest.mark.parametrize(
    ("name", "kind"), [(n, k) for n in ALGORITHMS for k in GOALS if (n, k) not in SEARCHES]
)
def test_an_unsupported_goal_is_refused_with_the_name_of_the_algorithm(
    name: str, kind: str
) -> None:
    with pytest.raises(UnsupportedGoal, match=f"{name} needs "):
        find(name).start(Problem(5, 2, GOALS[kind]), np.random.default_rng(0))


def golden_record(name: str, kind: str) -> dict[str, object]:
    """What one small run asks for in all and answers, with its default options."""
    means = np.array([0.3, 0.9, 0.1, 0.6, 0.8, 0.5, 0.2, 0.7])
    bandit = noisy(name, means)
    model = bandit.model if name in NORMAL_ONLY else Bounded()
    problem = Problem(8, most(name, 3), GOALS[kind], model)
    outcome = drive(find(name), problem, bandit, np.random.default_rng(2017))
    return {
        "version": find(name).version,
        "pulls": outcome.pulls.tolist(),
        "top": sorted(outcome.answer.top.tolist()),
    }


@pytest.mark.parametrize(("name", "kind"), SEARCHES)
def test_the_golden_record_still_holds(name: str, kind: str) -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert f"{name}, {kind}" in golden, "a new algorithm needs its record: see the top of this file"
    assert golden_record(name, kind) == golden[f"{name}, {kind}"], (
        "if meant, raise its version: see the top of this file"
    )


def write_golden_records() -> None:
    """Write the records again, one a line."""
    records = {f"{name}, {kind}": golden_record(name, kind) for name, kind in SEARCHES}
    lines = [f"  {json.dumps(key)}: {json.dumps(record)}" for key, record in records.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write_golden_records()
