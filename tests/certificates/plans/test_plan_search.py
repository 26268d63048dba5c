"""The search by plans: what it declares, what it asks for, and when it gives way."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from plan_looks import Stream, asked, small_look, tape

from shortlist.algorithms import Algorithm
from shortlist.certificates.plans import search as plans_search_module
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.belief import Belief
from shortlist.certificates.plans.bound import Boundaries, Stakes
from shortlist.certificates.plans.planning import Policy, predict_cost
from shortlist.certificates.plans.search import PlanLook, plans_search
from shortlist.certificates.plans.stage import PlanStage
from shortlist.exploration.posterior import Posterior
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary, Bounded
from shortlist.search import Answer, Pulls, Rewards, Search, advance
from shortlist.simulation.simulate import simulate
from shortlist.simulation.worlds import BetaBandit

PLANS = Algorithm("plans", plans_search, (FixedConfidence,))
MEANS = np.linspace(0.95, 0.05, 120)
ONES = np.ones(120)
PROBLEM = Problem(120, 40, FixedConfidence(0.05, 0.1), Binary())


def run(stream: Stream, seed: int = 1, problem: Problem = PROBLEM) -> tuple[list[Pulls], Answer]:
    search = plans_search(problem, np.random.default_rng(seed))
    requests = []
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        requests.append(turn)
        turn = advance(search, stream(turn))
    return requests, turn


@pytest.mark.parametrize("seed", range(5))
def test_stages_lead_to_where_the_last_one_leads_alone(seed: int) -> None:
    means = np.linspace(0.9, 0.1, 30)
    by_stages, alone = small_look(), small_look()

    asked(by_stages, tape(means, seed))
    asked(alone, tape(means, seed), [len(alone.drafts) - 1])

    assert by_stages.pulls.tolist() == alone.pulls.tolist()
    assert by_stages.successes.tolist() == alone.successes.tolist()
    first = small_look()
    asked(first, tape(means, seed), [0])
    assert first.pulls.sum() < alone.pulls.sum()
    assert (first.pulls <= alone.pulls).all()


@pytest.mark.parametrize("arm", [3, 22, 26])
def test_opposite_rewards_of_one_arm_change_no_other_arms_requests(arm: int) -> None:
    means = np.linspace(0.9, 0.1, 30)

    one = asked(small_look(), tape(means, 3))
    other = asked(small_look(), tape(means, 3, flipped=arm))

    assert one.pop(arm) != other.pop(arm)
    assert one == other


def test_what_is_declared_depends_on_the_pilot_alone() -> None:
    one, other = small_look(), small_look()
    asked(one, tape(np.linspace(0.9, 0.1, 30), 3), [0])
    asked(other, tape(np.linspace(0.1, 0.9, 30), 4), [0])
    assert "drafts" not in vars(one)  # later stages are made when they are needed

    for number in range(len(one.drafts)):
        mine, theirs = one.stage(number), other.stage(number)
        assert (mine.boundaries.values == theirs.boundaries.values).all()
        for plan, same in zip(mine.plans, theirs.plans, strict=True):
            assert (plan.stops == same.stops).all()
            assert (plan.scores == same.scores).all()


def test_shares_of_delta_add_up_to_delta() -> None:
    boundaries = Boundaries.around(0.3, 0.02, 0.07)

    assert np.exp(-boundaries.thresholds).sum() == pytest.approx(0.07)
    assert boundaries.thresholds.shape == boundaries.values.shape
    stages = [each.thresholds for each in small_look().boundaries]
    assert sum(np.exp(-each).sum() for each in stages) == pytest.approx(0.2)
    near_the_end = Boundaries.around(0.002, 0.01, 0.07)
    assert np.exp(-near_the_end.thresholds).sum() == pytest.approx(0.07)


def test_it_proves_its_choice_with_few_failures() -> None:
    runs = simulate(PLANS, MEANS, k=40, epsilon=0.05, delta=0.1, runs=3, seed=3)

    assert not runs.failed.any()
    assert runs.pulls.mean() < 6000


def test_the_answer_says_what_it_rests_on() -> None:
    requests, answer = run(tape(MEANS, 5))

    assert answer.evidence["certificate"] == "plans"
    assert answer.regret_bound is not None
    assert answer.regret_bound <= 0.05
    assert answer.top.size == 40
    counted = [answer.evidence[f"pulls {each}"] for each in ("explored", "certified")]
    assert sum(map(int, map(str, counted))) == sum(each.total for each in requests)


def test_the_same_rewards_give_the_same_answer() -> None:
    one, other = run(tape(MEANS, 5)), run(tape(MEANS, 5))

    assert [each.times.tolist() for each in one[0]] == [each.times.tolist() for each in other[0]]
    assert one[1].top.tolist() == other[1].top.tolist()


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Pulls so far and looks that failed, when the split certificate takes over."""
    seen: list[tuple[int, int]] = []

    def spy(posterior: Posterior, problem: Problem, *_: object, failed: int) -> Search:
        seen.append((posterior.spent, failed))
        return Answer(np.arange(problem.k))
        yield

    monkeypatch.setattr(plans_search_module, "split_search_from", spy)
    return seen


def test_other_rewards_in_the_pilot_leave_all_of_delta_to_the_split_certificate(
    handed_over: list[tuple[int, int]],
) -> None:
    rng = np.random.default_rng(2)
    problem = replace(PROBLEM, rewards=Bounded())

    requests, _ = run(
        lambda each: BetaBandit(MEANS).pull(each.arms, each.times, rng), problem=problem
    )

    assert handed_over == [(requests[0].total, 0)]


def test_other_rewards_in_the_middle_void_the_look(handed_over: list[tuple[int, int]]) -> None:
    honest, drawn = tape(MEANS, 5), 0

    def stream(request: Pulls) -> Rewards:
        nonlocal drawn
        drawn += request.total
        rewards = honest(request)
        odd = 1.0 if drawn < tuning.PILOT * MEANS.size + 3 * MEANS.size else 0.999
        return Rewards(rewards.sums, rewards.squares * odd)

    requests, _ = run(stream, problem=replace(PROBLEM, rewards=Bounded()))

    assert handed_over == [(sum(each.total for each in requests), 1)]


@pytest.mark.parametrize(("rounded", "binary"), [(1e-14, True), (0.3, False)])
def test_rewards_of_another_range_are_counted_whole(rounded: float, *, binary: bool) -> None:
    look, honest = small_look(), small_look()
    means = np.linspace(0.9, 0.1, 30)
    exact, again = tape(means, 3), tape(means, 3)

    def below(request: Pulls) -> Rewards:  # as after a division that rounds down
        sums = again(request).sums
        sums = np.where(sums > 0, sums - rounded, sums)
        return Rewards(sums, sums)

    asked(honest, exact, [0])
    asked(look, below, [0])

    assert look.binary == binary
    if binary:
        assert look.successes.tolist() == honest.successes.tolist()


def test_looks_that_fail_are_pilot_of_the_next(
    monkeypatch: pytest.MonkeyPatch, handed_over: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(tuning, "PLAN_LOOKS", 2)
    monkeypatch.setattr(PlanStage, "proof", lambda stage, *_: 1.05 * stage.reach)

    requests, _ = run(tape(MEANS, 6))

    assert handed_over == [(sum(each.total for each in requests), 2)]


def test_stages_without_hope_are_not_drawn(
    monkeypatch: pytest.MonkeyPatch, handed_over: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(tuning, "PLAN_LOOKS", 1)
    monkeypatch.setattr(PlanStage, "proof", lambda stage, *_: 1.05 * stage.reach)
    run(tape(MEANS, 6))
    monkeypatch.setattr(PlanStage, "proof", lambda stage, *_: 20 * stage.reach)
    run(tape(MEANS, 6))

    assert [failed for _, failed in handed_over] == [1, 1]
    all_stages, one_stage = (spent for spent, _ in handed_over)
    assert one_stage < all_stages


def test_a_bound_that_is_far_off_is_left_to_another_look(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = (tuning.WRONG_BOUND + 0.01) * PROBLEM.k * 0.05
    monkeypatch.setattr(PlanStage, "proof", lambda *_: bound)
    stages: list[int] = []
    monkeypatch.setattr(PlanLook, "stage", noted(PlanLook.stage, stages))

    run(tape(MEANS, 4))

    assert stages == [0] * tuning.PLAN_LOOKS


def noted(
    stage: Callable[[PlanLook, int], PlanStage], numbers: list[int]
) -> Callable[[PlanLook, int], PlanStage]:
    """That also keeps the numbers of the stages that were drawn."""

    def drawn(look: PlanLook, number: int) -> PlanStage:
        numbers.append(number)
        return stage(look, number)

    return drawn


def test_plans_that_promise_nothing_are_not_drawn(
    monkeypatch: pytest.MonkeyPatch, handed_over: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(PlanLook, "promising", False)
    requests, _ = run(tape(MEANS, 6))
    assert handed_over == [(sum(each.total for each in requests), 0)]
    monkeypatch.setattr(tuning, "MOST_PLAN_PULLS", 2)  # not even a prediction promises anything

    requests, _ = run(tape(MEANS, 6))

    assert handed_over[1:] == [(sum(each.total for each in requests), 0)]
    assert handed_over[1][0] == tuning.PILOT * MEANS.size  # before, it is too small to tell


def test_the_split_certificate_ends_what_plans_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PLAN_LOOKS", 0)

    _, answer = run(tape(MEANS, 6))

    assert answer.evidence["certificate"] == "split"


def test_charges_beyond_reach_promise_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert small_look().promising
    monkeypatch.setattr(tuning, "MOST_PLAN_PULLS", 2)

    assert not small_look().promising


def test_a_pilot_that_is_small_beside_the_plans_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PILOT_PART", 40.0)
    monkeypatch.setattr(tuning, "MOST_PILOT_SHARE", 4.0)

    _, answer = run(tape(MEANS, 5))

    assert int(str(answer.evidence["pulls explored"])) > tuning.PILOT * MEANS.size


@pytest.mark.parametrize(
    ("part", "share"), [(0.0, "LEAST_PILOT_SHARE"), (100.0, "MOST_PILOT_SHARE")]
)
def test_a_pilot_keeps_within_shares_of_the_fresh_pulls(
    monkeypatch: pytest.MonkeyPatch, part: float, share: str
) -> None:
    monkeypatch.setattr(tuning, "PILOT_PART", part)
    posterior = Posterior(120, 40, Binary())
    posterior.add(Pulls(np.arange(120), np.full(120, 50)), Rewards(25 * ONES, 25 * ONES))
    belief = small_look().belief

    fresh = 20_000.0
    usual = plans_search_module._wanted(fresh, posterior, belief)
    monkeypatch.setattr(tuning, share, 1.05 * getattr(tuning, share))

    assert tuning.LEAST_PILOT_SHARE / 120 ** (1 / 3) < tuning.MOST_PILOT_SHARE
    assert plans_search_module._wanted(fresh, posterior, belief) == pytest.approx(1.05 * usual)


def test_a_stronger_look_counts_on_less_of_what_is_predicted() -> None:
    look = small_look()
    just = tuning.WEAK_LOOK * look.boundaries[0].least_threshold / look.reach
    stages: list[list[int]] = []
    for strength in (0.999 * just, 1.001 * just):
        look.strength = strength
        stages.append([])
        for times in np.linspace(1.05, 1.45, 9).tolist():
            look.bound = times * look.reach
            number = look._next(0)
            stages[-1].append(len(look.drafts) if number is None else number)
    weak, strong = np.array(stages)

    assert (weak <= strong).all()
    assert (weak < strong).any()


def test_the_first_level_is_a_share_of_the_pulls_so_far() -> None:
    first = set()
    for times in (4, 50):
        pulls = np.full(30, times)
        belief = Belief(pulls, np.rint(pulls * np.linspace(0.9, 0.1, 30)), 10, 0.6)
        policy = Policy(belief.group(np.arange(30)), belief, Stakes(0.6, 30.0, 1.0), [(0.6, 1.0)])
        policy.levels(0.0)
        first.add(policy._bands[0].pulls)

    assert first == {tuning.FIRST_LEVEL, int(tuning.FIRST_LEVEL_SHARE * 50)}


def test_arms_are_stopped_by_a_smoother_belief_than_they_are_forecast_by() -> None:
    look = small_look()
    for plan in look.drafts[0].plans:
        sharper = look.belief.group_belief(plan.policy.group)
        smoother = plan.policy.group_belief

        assert smoother.prior.sum() == pytest.approx(sharper.prior.sum())
        assert np.abs(np.diff(smoother.prior)).sum() < np.abs(np.diff(sharper.prior)).sum()
        assert (smoother.believed == sharper.believed).all()
        assert (smoother.sharp == sharper.sharp).all()


def test_a_sketch_of_the_usual_strength_alone_promises_no_more() -> None:
    belief = small_look().belief

    usual, best = (predict_cost(belief, 1.0, 0.2, usual=each) for each in (True, False))

    first = Boundaries.around(belief.boundary, belief.error, 0.2 * tuning.STAGE_AIMS[0][1])
    assert usual.stakes.strength == pytest.approx(tuning.STRENGTHS_TRIED[0] * first.least_threshold)
    assert best.pulls <= usual.pulls


def test_levels_are_farther_apart_where_few_arms_are_in_doubt() -> None:
    ratios = set()
    for plan in small_look().drafts[0].plans:
        plan.policy.levels(0.0)
        pulls = [each.pulls for each in plan.policy._bands]
        for before, after in pairwise(pulls[:-1]):  # the last is no more than MOST_PULLS
            few = plan.policy._in_doubt(before) <= tuning.FEW_IN_DOUBT
            assert after == before * (tuning.FAR_LEVEL_RATIO if few else tuning.LEVEL_RATIO)
            ratios.add(after / before)

    assert ratios == {tuning.LEVEL_RATIO, tuning.FAR_LEVEL_RATIO}


def test_arms_beyond_all_pulls_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "MOST_PLAN_PULLS", 50)
    look = small_look()
    policy = look.drafts[0].plans[0].policy

    assert policy.levels(0.0)[-1].pulls == 50


def test_a_boundary_between_groups_is_put_where_few_arms_are_hard() -> None:
    rng = np.random.default_rng(5)
    pulls = np.full(1000, 40)
    groups = rng.binomial(pulls, np.repeat([0.7, 0.3], [100, 900])).astype(np.float64)

    belief = Belief(pulls, groups, 100, 0.4)

    assert 0.5 < belief.boundary < 0.65  # 0.4 and 0.6 part the groups as well


def test_arms_far_from_the_boundary_are_told_by_weaker_looks() -> None:
    rng = np.random.default_rng(6)
    pulls = np.full(200, 30)
    strengths = []
    for means in (np.repeat([0.8, 0.2], 100), 0.5 + 0.5 * np.linspace(1, -1, 200) ** 5):
        successes = rng.binomial(pulls, means).astype(np.float64)
        belief = Belief(pulls, successes, 100, 0.5)
        strengths.append(predict_cost(belief, 2.0, 0.01).stakes.strength)

    assert strengths[0] < strengths[1]


def test_0_1_rewards_need_not_be_declared() -> None:
    _, answer = run(tape(MEANS, 5), problem=replace(PROBLEM, rewards=Bounded()))

    assert answer.evidence["certificate"] == "plans"


@pytest.mark.parametrize(("mean", "k"), [(1.0, 20), (0.0, 180)])
def test_more_than_k_arms_at_the_end_of_the_range_are_no_obstacle(mean: float, k: int) -> None:
    means = np.append(np.full(150, mean), np.full(50, 0.5))
    problem = Problem(means.size, k, FixedConfidence(0.05, 0.05), Binary())

    _, answer = run(tape(means, 3), problem=problem)

    assert answer.regret_bound is not None
    assert aggregate_regret(means, answer.top) <= answer.regret_bound
