"""Arms that retire during a split search: fresh pulls before that prove nothing."""

import numpy as np
import pytest

from shortlist.certificates.frame import Retired, among, informed
from shortlist.certificates.split import search as module
from shortlist.certificates.split.bound import Holdout
from shortlist.certificates.split.search import FixedSamples, split_search
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Answer, Pulls, Rewards, Search, advance

N, K = 40, 15
MEANS = np.repeat([0.9, 0.1], [K + 1, N - K - 1])


class Spied(Holdout):
    """Fresh pulls that say when they are drawn."""

    drawn: list[int]

    def fill_up(self, wanted, progress):  # type: ignore[no-untyped-def]
        Spied.drawn.append(int(wanted.size))
        yield from super().fill_up(wanted, progress)


@pytest.fixture(autouse=True)
def spied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Holdout", Spied)
    monkeypatch.setattr(Spied, "drawn", [], raising=False)


def played(problem: Problem, leaves: str, samples: FixedSamples | None = None) -> Answer:
    """A search in which arm 0 leaves at first, or in the first look, and is asked for no more."""
    rng, retired = np.random.default_rng(3), Retired(problem.n_arms)
    search = informed(split_search(problem, rng, samples, retired), retired)
    turn: Pulls | Answer = advance(search, None)
    while isinstance(turn, Pulls):
        assert not retired.arms[turn.arms].any()
        sums = rng.binomial(turn.times, MEANS[: problem.n_arms][turn.arms]).astype(np.float64)
        now = leaves == "first" or bool(Spied.drawn)
        turn = advance(search, Rewards(sums, sums, retired=np.array([0]) if now else None))
    return turn


@pytest.mark.parametrize(("leaves", "looks"), [("first", 1), ("in a look", 2)])
def test_a_look_in_which_an_arm_retires_is_void(leaves: str, looks: int) -> None:
    problem = Problem(N, K, FixedConfidence(0.05, 0.1), Binary())
    answer = played(problem, leaves)
    assert answer.evidence["looks"] == looks
    assert answer.top.tolist() == list(range(1, K + 1))
    assert Spied.drawn == ([N - 1] if looks == 1 else [N, N - 1])  # fresh pulls of the others only


def test_samples_of_the_arms_that_stay_decide_where_no_look_does() -> None:
    problem = Problem(6, 2, FixedConfidence(0.1, 0.1), Binary())
    samples = FixedSamples.of(problem, np.random.default_rng(0))
    assert samples is not None
    answer = played(problem, "first", samples)
    assert answer.evidence["fallback design"]
    assert 0 not in answer.top
    fewer = samples.among(np.arange(1, 6), 7)
    assert fewer.size == samples.size
    assert fewer.share == samples.share
    assert fewer.explorable == 5 * samples.size
    assert fewer.provable == max(0, samples.provable - 7)


@pytest.mark.parametrize("costs", [None, (2.0, *[1.0] * (N - 1)), (1.0, *[2.0] * (N - 1))])
def test_a_budget_ends_it_as_ever(costs: tuple[float, ...] | None) -> None:
    budget = 4000
    goal = FixedConfidence(0.001, 0.1, budget if costs is None else 2.0 * budget)
    problem = Problem(N, K, goal, Binary(), costs=costs)
    rng, retired = np.random.default_rng(3), Retired(N)
    search = informed(split_search(problem, rng, None, retired), retired)
    turn: Pulls | Answer = advance(search, None)
    spent, batches = 0.0, 0
    while isinstance(turn, Pulls):
        spent += float((turn.times * problem.declared_costs[turn.arms]).sum())
        sums = rng.binomial(turn.times, MEANS[turn.arms]).astype(np.float64)
        batches += 1
        turn = advance(search, Rewards(sums, sums, retired=np.array([0]) if batches > 2 else None))
    assert problem.goal.budget is not None
    assert 0.9 * problem.goal.budget <= spent <= problem.goal.budget or costs is not None
    assert spent <= problem.goal.budget
    assert turn.regret_bound is not None
    assert 0 not in turn.top


def test_arms_have_other_numbers_inside_and_the_same_outside() -> None:
    def inner() -> Search:
        reply = yield Pulls(np.array([0, 2]), np.array([1, 1]))
        assert reply.retired is not None
        assert reply.retired.tolist() == [1]
        return Answer(np.array([2]))

    search = among(np.array([3, 5, 8]), inner())
    turn = advance(search, None)
    assert isinstance(turn, Pulls)
    assert turn.arms.tolist() == [3, 8]
    end = advance(search, Rewards(np.ones(2), np.ones(2), retired=np.array([1, 5])))
    assert isinstance(end, Answer)
    assert end.top.tolist() == [8]


def test_fresh_pulls_that_are_void_still_count_against_limits() -> None:
    limits = (400, *[400] * (N - 2), None)
    problem = Problem(N, K, FixedConfidence(0.05, 0.1), Binary(), limits=limits)
    rng, retired = np.random.default_rng(3), Retired(N)
    search = informed(split_search(problem, rng, None, retired), retired)
    pulls = np.zeros(N, dtype=np.int64)
    turn: Pulls | Answer = advance(search, None)
    while isinstance(turn, Pulls):
        np.add.at(pulls, turn.arms, turn.times)
        sums = rng.binomial(turn.times, MEANS[turn.arms]).astype(np.float64)
        now = bool(Spied.drawn)
        turn = advance(search, Rewards(sums, sums, retired=np.array([0]) if now else None))
    assert 0 not in turn.top
    assert (pulls[:-1] <= 400).all()
