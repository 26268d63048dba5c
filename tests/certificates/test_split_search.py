"""The split search: what its guarantee rests on, what a budget does to it, and what it costs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from shortlist.algorithms import Algorithm
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.frame import share_after
from shortlist.certificates.split.bound import Holdout
from shortlist.certificates.split.planning import Draft, Drafter
from shortlist.certificates.split.search import Looks, split_search
from shortlist.errors import InvalidInput
from shortlist.exploration.posterior import Posterior
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import ROUNDING, aggregate_regret
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian
from shortlist.search import Answer, Pulls, Rewards
from shortlist.simulation.simulate import simulate
from shortlist.simulation.worlds import BernoulliBandit, BetaBandit, GaussianBandit

SPLIT = Algorithm("split", split_search, (FixedConfidence,), capped=True)

Stream = Callable[[Pulls], Rewards]
TWO_GROUPS = np.array([0.9, 0.9, 0.9, 0.2, 0.2, 0.2, 0.2])


@dataclass
class Record:
    """Everything that was asked for, and which requests were for certification."""

    arms: list[list[int]] = field(default_factory=list)
    times: list[list[int]] = field(default_factory=list)
    fresh: list[bool] = field(default_factory=list)
    answer: Answer | None = None

    @property
    def requests(self) -> list[tuple[list[int], list[int], bool]]:
        return list(zip(self.arms, self.times, self.fresh, strict=True))

    @property
    def pulls(self) -> int:
        return sum(map(sum, self.times))


@pytest.fixture
def certifying(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A list that is not empty while the pulls asked for are for certification."""
    now: list[bool] = []
    original = Holdout.fill_up

    def spied(self: Holdout, *arguments: Any) -> Any:
        now.append(True)
        yield from original(self, *arguments)
        now.clear()

    monkeypatch.setattr(Holdout, "fill_up", spied)
    return now


def drive(
    problem: Problem, exploring: Stream, fresh: Stream, certifying: list[bool], most: int = 200
) -> Record:
    """Answer up to `most` requests, from one stream to explore and another to certify."""
    search, record, reply = (
        SPLIT.start(problem, np.random.default_rng(1)),
        Record(),
        None,
    )
    for _ in range(most):
        certifying.clear()
        try:
            request = search.send(reply) if reply is not None else next(search)
        except StopIteration as stop:
            record.answer = stop.value
            break
        record.arms.append(request.arms.tolist())
        record.times.append(request.times.tolist())
        record.fresh.append(bool(certifying))
        reply = fresh(request) if certifying else exploring(request)
    return record


def bernoulli(means: FloatArray, seed: int) -> Stream:
    bandit, rng = BernoulliBandit(means), np.random.default_rng(seed)
    return lambda request: bandit.pull(request.arms, request.times, rng)


def constant(means: FloatArray) -> Stream:
    return lambda request: Rewards(
        request.times * means[request.arms], request.times * means[request.arms] ** 2
    )


FRESH: dict[str, Callable[[], Stream]] = {
    "all 0": lambda: constant(np.zeros(7)),
    "all 1": lambda: constant(np.ones(7)),
    "as expected": lambda: bernoulli(TWO_GROUPS, 3),
    "the contrary": lambda: bernoulli(1 - TWO_GROUPS, 4),
    "at random": lambda: bernoulli(np.full(7, 0.5), 5),
    "for the choice": lambda: constant((TWO_GROUPS > 0.5).astype(float)),
    "against the choice": lambda: constant((TWO_GROUPS < 0.5).astype(float)),
}


@pytest.mark.parametrize("budget", [None, 60, 700])
@pytest.mark.parametrize("rewards", [Binary(), Bounded()])
def test_certification_rewards_never_influence_what_is_asked_for(
    budget: int | None, rewards: RewardModel, certifying: list[bool]
) -> None:
    problem = Problem(7, 3, FixedConfidence(0.2, 0.1, budget), rewards)
    records = {
        name: drive(problem, bernoulli(TWO_GROUPS, 2), stream(), certifying, most=25)
        for name, stream in FRESH.items()
    }
    longest = max((record.requests for record in records.values()), key=len)
    assert any(fresh for *_, fresh in longest)
    for name, record in records.items():
        assert record.requests == longest[: len(record.requests)], name
    if budget is None:
        # the one thing that may differ: where it ends
        assert len(records["for the choice"].requests) < len(longest)
        assert sum(records["against the choice"].fresh) > 1
        assert len(records["against the choice"].requests) == len(longest)


def test_the_shares_of_all_looks_add_up_to_delta() -> None:
    problem = Problem(4, 2, FixedConfidence(0.1, 0.05), Binary())
    looks = Looks(problem, Posterior(4, 2, Binary()))
    used = 0.0
    for failed in range(60):
        looks.failed = failed
        # what the final one gets
        assert used + share_after(problem.delta, failed) == pytest.approx(problem.delta)
        used += looks.delta
    assert used == pytest.approx(problem.delta)


def explored(
    means: FloatArray, k: int, times: IntArray, rewards: RewardModel, seed: int
) -> Posterior:
    posterior, request = Posterior(means.size, k, rewards), Pulls(np.arange(means.size), times)
    posterior.add(request, bernoulli(means, seed)(request))
    posterior.refresh()
    return posterior


@pytest.mark.parametrize(
    ("k", "epsilon", "pulls"), [(1, 0.2, 40), (6, 0.1, 25), (6, 0.02, 300), (11, 0.02, 60)]
)
def test_what_is_drafted_passes_no_arm_that_loses_too_much_more_often_than_delta(
    k: int, epsilon: float, pulls: int
) -> None:
    """Exact: every arm in turn is just too far beyond the boundary, all others out of the way."""
    for seed in range(3):
        problem, times = (
            Problem(12, k, FixedConfidence(epsilon, 0.1), Binary()),
            np.arange(12) * 3 + pulls,
        )
        looks = Looks(problem, explored(np.linspace(0.95, 0.05, 12), k, times, Binary(), seed))
        found = looks.promising(
            np.zeros(12, dtype=np.int64), np.random.default_rng(seed), last=True
        )
        assert found is not None
        certificate = looks.declared(found)
        for arm in range(12):
            count = int(found.pulls[arm])
            sums = np.tile(np.where(found.chosen, found.pulls, 0.0), (count + 1, 1))
            sums[:, arm] = np.arange(count + 1)
            passed = [certificate.bound(row) <= epsilon for row in sums]
            assert isinstance(found.boundary, float)
            beyond = found.boundary + (-1 if found.chosen[arm] else 1) * looks.reach * (1 + 1e-9)
            if 0 <= beyond <= 1:
                assert binom.pmf(np.arange(count + 1), count, beyond)[passed].sum() <= looks.delta


def looks_of_costs(monkeypatch: pytest.MonkeyPatch, costs: list[int | None]) -> Looks:
    """Looks whose drafts cost these shares of what was explored, in percent, by strength."""
    means = np.linspace(0.95, 0.05, 12)
    posterior = explored(means, 6, np.full(12, 300), Binary(), 0)
    looks = Looks(Problem(12, 6, FixedConfidence(0.1, 0.1), Binary()), posterior)
    spent, nothing = int(posterior.pulls.sum()), np.zeros(12)

    def draft(drafter: Drafter, strength: float) -> Draft | None:
        cost = costs[looks.strengths.ladder.tolist().index(strength)]
        if cost is None:
            return None
        return Draft(
            drafter.chosen,
            drafter.boundary,
            1.0,
            drafter.made,
            nothing,
            nothing,
            cost * spent // 100,
            0.0,
        )

    monkeypatch.setattr(looks, "_draft", draft)
    return looks


@pytest.mark.parametrize(
    ("costs", "best"),
    [
        ([None, None, None, None, 260, 270, 220, 180], 180),
        ([None, None, None, None, None, 200, 170, 180], 170),
        ([90, 80, 100, 110, 120, 130, 140, 150], 80),
        ([150, 140, 130, 120, 110, 100, 80, 90], 80),
        ([None, None, None, 110, None, None, None, None], 110),
    ],
)
def test_a_draft_is_refined_from_its_own_strength_to_the_cheapest(
    costs: list[int | None], best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = looks_of_costs(monkeypatch, costs)
    found = looks.promising(np.zeros(12, dtype=np.int64), np.random.default_rng(0), last=True)
    assert found is not None
    assert looks.refined(found).cost == best * 3600 // 100 <= found.cost


def test_what_costs_too_much_is_drafted_again_later_or_at_the_last_chance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, made = looks_of_costs(monkeypatch, [400] * 8), np.zeros(12, dtype=np.int64)
    rng = np.random.default_rng(0)
    assert looks.promising(made, rng, last=False) is not None
    assert looks.promising(made, rng, last=False) is None
    assert looks.promising(made, rng, last=True) is not None
    looks.posterior.pulls += 90  # by 30 %
    assert looks.promising(made, rng, last=False) is not None


@pytest.mark.parametrize(
    ("believed", "true", "k"),
    [
        (np.array([1.0, 0.0]), np.array([0.35, 0.66]), 1),
        (np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.2, 0.2, 0.51, 0.51]), 2),
    ],
)
def test_exploration_that_is_deceived_is_seldom_certified(
    believed: FloatArray, true: FloatArray, k: int, certifying: list[bool]
) -> None:
    """The choice loses more than epsilon, and exploration keeps saying that it is right."""
    delta, wrong, looks, runs = 0.2, 0, 0, 8
    for seed in range(runs):
        problem = Problem(believed.size, k, FixedConfidence(0.3, delta, 60), Binary())
        record = drive(problem, bernoulli(believed, seed), bernoulli(true, 1000 + seed), certifying)
        assert record.answer is not None
        bound = record.answer.regret_bound
        wrong += bound is not None and aggregate_regret(true, record.answer.top) > bound
        looks += sum(record.fresh)
    assert looks > runs
    assert binom.sf(wrong - 1, runs, delta) > 1e-4


@pytest.mark.parametrize("budget", [7, 13, 14, 31, 80, 300])
@pytest.mark.parametrize("fresh", ["as expected", "against the choice"])
def test_a_cap_is_never_exceeded_and_the_bound_is_marked(
    budget: int, fresh: str, certifying: list[bool]
) -> None:
    problem = Problem(7, 3, FixedConfidence(0.15, 0.1, budget), Binary())
    record = drive(problem, bernoulli(TWO_GROUPS, budget), FRESH[fresh](), certifying)
    answer = record.answer
    assert answer is not None
    assert record.pulls <= budget
    if budget < 14:  # not one fresh pull of every arm
        assert answer.regret_bound is None
        assert answer.confidence is None
    else:
        assert answer.confidence == pytest.approx(0.9)
        assert answer.regret_bound is not None
        assert 0 < answer.regret_bound <= 1
        assert answer.evidence["looks"] >= sum(record.fresh)  # type: ignore[operator]
        parts = (answer.evidence["pulls certified"], answer.evidence["pulls explored"])
        assert sum(parts) == record.pulls  # type: ignore[arg-type]
    if fresh == "against the choice" and budget >= 14:
        assert answer.regret_bound == 1


def test_a_cap_that_suffices_changes_nothing_and_one_that_does_not_still_bounds_the_regret() -> (
    None
):
    means = np.linspace(0.9, 0.1, 12)
    ample = simulate(SPLIT, means, k=4, epsilon=0.1, delta=0.1, budget=10**6, runs=3)
    free = simulate(SPLIT, means, k=4, epsilon=0.1, delta=0.1, runs=3)
    assert ample.pulls.tolist() == free.pulls.tolist()
    short = simulate(SPLIT, means, k=4, epsilon=0.01, delta=0.1, budget=600, runs=8)
    assert short.pulls.max() <= 600
    assert np.all(short.bound > 0.01)
    assert np.median(short.bound) < 0.5
    assert binom.sf(int(np.sum(short.regret > short.bound)) - 1, 8, 0.1) > 1e-4


def test_easy_problems_are_looked_at_early_and_on_a_small_budget_too() -> None:
    means = np.repeat([0.9, 0.1], [50, 150])
    assert simulate(SPLIT, means, k=50, epsilon=0.3, delta=0.1, runs=20).pulls.mean() < 4.7 * 200
    assert simulate(SPLIT, [1.0, 0.0], k=1, epsilon=0.9, delta=0.3).pulls.mean() <= 6
    capped = simulate(SPLIT, means, k=50, epsilon=0.2, delta=0.1, budget=799, runs=20)
    assert np.mean(capped.bound <= 0.2) > 0.8


@pytest.mark.parametrize(("k", "most"), [(3, 1900), (1, 2700)])
def test_small_problems_are_cheap(k: int, most: int) -> None:
    runs = simulate(SPLIT, np.linspace(0.9, 0.1, 10), k=k, epsilon=0.05, delta=0.05, runs=40)
    assert runs.pulls.mean() <= most
    assert runs.failed.sum() <= 1
    assert np.all(runs.bound <= 0.05)


@pytest.mark.parametrize(
    ("means", "k", "epsilon"),
    [
        (np.full(5, 0.5), 2, 0.3),
        (np.full(5, 0.0), 1, 0.3),
        (np.full(5, 1.0), 4, 0.3),
        (np.repeat([0.0, 1.0], 3), 3, 0.2),
        (np.array([0.5, 0.51]), 1, 0.5),
        (np.array([0.71, 0.5, 0.5]), 1, 0.2),
        (np.array([0.69, 0.5, 0.5]), 2, 0.2),
        (np.linspace(0.1, 0.9, 6), 3, 5.0),
    ],
)
def test_it_ends_on_ties_sure_arms_and_gaps_of_epsilon(
    means: FloatArray, k: int, epsilon: float
) -> None:
    runs = simulate(SPLIT, means, k=k, epsilon=epsilon, delta=0.1, runs=2)
    assert np.all(runs.bound <= epsilon + ROUNDING)
    assert np.all(runs.regret <= runs.bound + ROUNDING)


@pytest.mark.parametrize("bandit", [BetaBandit, GaussianBandit])
def test_other_rewards_are_certified_too(bandit: type, finish: Callable[..., Answer]) -> None:
    means = np.array([0.8, 0.75, 0.3, 0.25, 0.2])
    rewards: RewardModel = SubGaussian(0.5) if bandit is GaussianBandit else Bounded()
    problem = Problem(5, 2, FixedConfidence(0.1, 0.1), rewards)
    for seed in range(3):
        answer = finish(
            SPLIT.start(problem, np.random.default_rng(seed)),
            bandit(means),
            np.random.default_rng(seed),
        )
        assert set(answer.top) == {0, 1}
        assert answer.regret_bound is not None
        assert 0 < answer.regret_bound <= 0.1
        assert answer.confidence == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("means", "k", "epsilon", "rewards"),
    [
        ([0.5] * 5, 1, 0.001, "bernoulli"),
        ([0.5] * 2, 1, 0.001, "gaussian"),
        ([0.7] * 2 + [0.4] * 8, 1, 5e-4, "bernoulli"),
        ([0.03] * 4, 2, 1e-4, "bernoulli"),
        ([0.5] * 2, 1, 3e-5, "bernoulli"),
    ],
)
def test_hard_problems_are_finished(
    means: list[float], k: int, epsilon: float, rewards: str
) -> None:
    runs = simulate(SPLIT, means, k=k, epsilon=epsilon, delta=0.05, rewards=rewards)
    assert runs.pulls.max() < 1e12
    assert np.all(runs.bound <= epsilon)


def test_a_problem_that_would_take_more_pulls_than_can_be_counted_is_refused() -> None:
    with pytest.raises(InvalidInput, match="split asks for too many pulls"):
        simulate(SPLIT, [0.5, 0.5], k=1, epsilon=1e-10)
