"""The fallback: sizes and shares of its samples, and what the first rewards change."""

import numpy as np
import pytest

from shortlist.arrays import FloatArray
from shortlist.certificates.frame import fixed_design
from shortlist.certificates.pairs import fallback as fallback
from shortlist.certificates.pairs.fallback import Fallback
from shortlist.certificates.pairs.planning import BatchSizes
from shortlist.certificates.pairs.search import PairsRace
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.2, 0.4])
@pytest.mark.parametrize(
    "rewards", [Binary(), Bounded(), SubGaussian(0.5)], ids=lambda m: type(m).__name__
)
def test_samples_of_the_net_are_within_its_promise(delta: float, rewards: RewardModel) -> None:
    judged = Binary() if isinstance(rewards, Bounded) else rewards
    for n, k in [(2, 1), (3, 1), (5, 4), (6, 3), (20, 1), (50, 25), (100, 1), (100, 99)]:
        problem = Problem(n, k, FixedConfidence(0.1, delta), rewards)
        race = PairsRace(problem, np.random.default_rng(0), BatchSizes())
        most = 1.5 * fixed_design(n, k, 0.1, delta, judged)
        skipped = race.fallback.pilot if race.fallback.only_binary and race.racing else 0
        assert race.fallback.size + skipped <= most
        spent = race.fallback.share + race.fallback.late + race.fallback.placing
        assert spent <= 1 + 1e-9
        assert race.fallback.delta_left + spent * delta <= delta * (1 + 1e-9)


def test_a_reward_that_is_late_to_be_no_bit_enlarges_the_samples_once() -> None:
    race = PairsRace(
        Problem(2, 1, FixedConfidence(0.1, 0.05)), np.random.default_rng(0), BatchSizes()
    )
    pulls, sums = np.array([2, 2]), np.array([1.0, 1.0])
    race.fallback.look(pulls, sums, sums, first=True)
    before = race.fallback.size
    race.fallback.look(2 * pulls, sums + 0.5, sums + 0.25, first=False)
    assert not race.fallback.only_binary
    assert race.fallback.size == fixed_design(2, 1, 0.1, fallback.LATE * 0.05, Bounded()) > before
    assert (race.fallback.caps == race.fallback.size + pulls).all()


def test_where_the_net_needs_most_of_delta_the_run_is_the_fixed_design() -> None:
    goal = FixedConfidence(0.05, 0.3, 10**6)  # with a budget, no lead decides
    for model in (Binary(), Bounded()):
        race = PairsRace(Problem(2, 1, goal, model), np.random.default_rng(0), BatchSizes())
        assert race.fallback.alone
        assert not race.racing


@pytest.mark.parametrize("first", [True, False])
def test_rewards_that_turn_out_not_to_be_0_or_1_make_samples_larger(first: bool) -> None:
    problem = Problem(2, 1, FixedConfidence(0.1, 0.05))
    judged = fallback.Fallback(problem, 2, np.random.default_rng(0))
    assert judged.only_binary
    size = judged.size
    pulls, sums = np.array([2, 2]), np.array([1.0, 1.0])
    if not first:
        judged.look(pulls, sums, sums, first=True)
        assert (judged.size, judged.only_binary) == (size, True)
    judged.look(pulls, sums, np.array([0.5, 0.5]), first=first)
    assert not judged.only_binary
    assert judged.size > size
    judged.look(pulls, sums, sums, first=False)  # nothing is judged any more
    assert judged.size > size


def test_arms_are_not_placed_where_that_would_leave_a_race_too_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged = fallback.Fallback(
        Problem(3, 1, FixedConfidence(0.05, 0.05)), 2, np.random.default_rng(0)
    )
    assert judged.placed
    judged.placing = 0.0
    monkeypatch.setattr(fallback, "MOST_FALLBACK", 0.0)
    judged._place()
    assert not judged.placed


def two(rewards: Binary | Bounded, delta: float = 0.05, budget: int | None = None) -> Fallback:
    problem = Problem(2, 1, FixedConfidence(0.1, delta, budget), rewards)
    return Fallback(problem, 2, np.random.default_rng(0))


def test_shares_of_two_arms_add_up_to_delta() -> None:
    for rewards, late in ((Binary(), 0.0), (Bounded(), fallback.LATE)):
        judged = two(rewards)
        assert judged.lead is not None
        assert judged.leads
        assert judged.delta_left == pytest.approx(0.05 * fallback.RACE)
        assert judged.delta_left_at_edge == judged.delta_left
        assert (judged.lead.boundary.errors < 0.05 * (1 - fallback.RACE - late)).all()


def test_where_no_pilot_tells_the_kind_of_rewards_the_race_keeps_more() -> None:
    problem = Problem(2, 1, FixedConfidence(0.1, 0.05))
    judged = Fallback(problem, 0, np.random.default_rng(0))
    assert judged.lead is not None
    assert not judged.leads
    assert judged.delta_left == pytest.approx(0.05 * fallback.RACE_IN_DOUBT)


def test_two_arms_are_not_led_by_a_boundary_with_a_budget_or_where_delta_is_large() -> None:
    assert two(Binary(), budget=1000).lead is None
    assert two(Binary(), delta=0.5).lead is None
    problem = Problem(3, 1, FixedConfidence(0.1, 0.05), Binary())
    assert Fallback(problem, 2, np.random.default_rng(0)).lead is None


def test_a_leader_is_as_far_ahead_as_it_must_be_without_the_pilot() -> None:
    judged = two(Bounded())
    assert judged.worth(np.zeros(2)) > 1
    pilot = np.array([2.0, 0.0])
    judged.look(np.array([2, 2]), pilot, pilot, first=True)
    assert judged.lead is not None
    judged.look(np.array([42, 42]), np.array([27.0, 15.0]), np.array([27.0, 15.0]), first=False)
    assert (judged.lead.pulls, judged.lead.total) == (40, 40.0)
    c = judged.lead.boundary.distance
    assert judged.leader(np.array([c - 3.0, 0.0])) is None
    assert judged.leader(np.array([c + 2.0, 0.0])) == 0
    assert judged.leader(np.array([2.0, c])) == 1
    assert judged.worth(np.array([2.0, 0.0])) == judged.lead.worth(0.0)


def test_if_neither_arm_is_ahead_when_a_lead_decides_one_is_drawn() -> None:
    """A long tie is evidence enough; which arm comes first in the list does not matter."""
    drawn = set()
    for seed in range(20):
        problem = Problem(2, 1, FixedConfidence(0.01, 0.05), Binary())
        judged = Fallback(problem, 0, np.random.default_rng(seed))
        sums = np.zeros(2)
        for pulls in range(200, 8000, 200):
            judged.look(np.full(2, pulls), sums := np.full(2, pulls // 50), sums, first=False)
        drawn.add(judged.leader(sums))
    assert drawn == {0, 1}


def test_a_pilot_that_is_not_binary_leaves_the_race_what_the_larger_samples_do() -> None:
    problem = Problem(2, 1, FixedConfidence(0.1, 0.05))
    race = PairsRace(problem, np.random.default_rng(0), BatchSizes())
    pulls, sums = np.array([2, 2]), np.array([1.0, 1.0])
    before, large = race.levels[0], race.mixture
    assert large.multiples[0] > 1
    race.pulls += pulls
    race.sums += sums
    race.squares += sums / 2
    race.stages.at[:] = 1
    race.look(first=True)
    assert race.fallback.lead is None
    assert race.fallback.worth(race.sums) == np.inf
    assert race.levels[0] < before  # no boundary takes part of delta any more
    spent = race.fallback.share + fallback.LATE
    assert race.levels[0] == pytest.approx(-np.log(0.05 * (1 - spent)))
    assert race.fallback.size == fixed_design(
        2, 1, 0.1, (race.fallback.share + fallback.LATE) * 0.05, Bounded()
    )
    assert race.mixture.multiples[0] == 1  # ties are left to bets again
    assert race.stages.at.tolist() == [1, 1]
    assert (race.stages.planned == 2).all()


HIGH_PILOT = np.array([1.0] * 8 + [0.0])


def many(k: int = 1, rewards: RewardModel | None = None, budget: int | None = None) -> Fallback:
    problem = Problem(9, k, FixedConfidence(0.09 / k, 0.05, budget), rewards or Bounded())
    return Fallback(problem, 1, np.random.default_rng(0))


def see_pilot(judged: Fallback, sums: FloatArray, squares: FloatArray) -> None:
    judged.look(np.ones(9, dtype=np.int64), sums, squares, first=True)


@pytest.mark.parametrize("rewards", [Binary(), Bounded()], ids=str)
@pytest.mark.parametrize("k", [1, 8])
def test_the_pilot_decides_whether_likelihoods_are_compared(k: int, rewards: RewardModel) -> None:
    mirrored = 1 - HIGH_PILOT if k > 1 else HIGH_PILOT
    for pilot, compares in ((mirrored, True), (1 - mirrored, False)):
        judged = many(k, rewards)
        assert judged.pilot_apart
        see_pilot(judged, pilot, pilot)
        assert judged.compares == compares
        assert judged.skipped.tolist() == [1] * 9
        spent = 0.05 * (judged.share + judged.late) + judged.delta_left + judged.delta_compared
        assert spent == pytest.approx(0.05)
        assert (judged.delta_compared > judged.delta_left) == compares
        assert judged.caps.max() <= 1.5 * fixed_design(9, k, 0.09 / k, 0.05, Binary())


def test_likelihoods_are_not_compared_where_other_rewards_or_ends_are_to_be_met() -> None:
    judged = many()
    see_pilot(judged, HIGH_PILOT, 0.9 * HIGH_PILOT)
    assert not judged.compares
    assert not many(k=2).compares
    assert not many(rewards=SubGaussian(0.5)).compares
    assert not many(budget=500).compares
    few = Problem(7, 1, FixedConfidence(0.09, 0.05))
    assert not Fallback(few, 1, np.random.default_rng(0)).compares
    assert not Fallback(many().problem, 0, np.random.default_rng(0)).compares  # no pilot
