"""Arms are decided block by block, and what one is charged rests on the arms before it alone."""

import itertools

import numpy as np
import pytest

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.belief import Belief
from shortlist.certificates.plans.bound import Stakes
from shortlist.certificates.plans.planning import above, predict_cost
from shortlist.certificates.plans.search import PlanLook
from shortlist.certificates.plans.stage import (
    AcceptanceCounts,
    AcceptanceThreshold,
    ArmBlock,
    PlanStage,
    SetCharges,
    StoppedArms,
    best,
    blocks,
    cheapest,
    stopped_arms,
)
from shortlist.regret import aggregate_regret

ARMS = 60
K = 20


@pytest.fixture(scope="module")
def stage() -> PlanStage:
    """The first stage of a look at arms whose means are spread evenly."""
    rng = np.random.default_rng(7)
    pulls = np.full(ARMS, 10)
    successes = rng.binomial(pulls, np.linspace(0.9, 0.1, ARMS)).astype(np.float64)
    belief = Belief(pulls, successes, K, 0.6)
    return PlanLook(belief, predict_cost(belief, 0.1 * K, 0.2).stakes, 0.2).stage(0)


def stopped(
    stage: PlanStage, means: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Where arms of these means stop: pulls and successes."""
    ended = np.zeros((2, ARMS), dtype=np.int64)
    while (times := stage.missing(*ended)).any():
        ended[0] += times
        ended[1] += rng.binomial(times, means)
    return ended[0], ended[1]


def settle(stage: PlanStage, pulls: IntArray, successes: IntArray) -> StoppedArms:
    return next(stopped_arms(stage.plans, stage.belief, pulls, successes))


def declared(part: ArmBlock, stakes: Stakes) -> list[FloatArray]:
    """All that an arm of this part may be charged, whatever its state."""
    leads = stakes.capped(part.places - stakes.boundary)
    likely = part._likely(stakes.boundary)
    return [part.scores, leads, likely, part.plan.charges(leads, stakes, 1e-3, likely)]


@pytest.fixture
def all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of few arms, too, have them in all blocks."""
    monkeypatch.setattr(tuning, "FEW_ARMS", 1)


@pytest.mark.usefixtures("all_blocks")
@pytest.mark.parametrize("changed", range(len(tuning.BLOCKS)))
@pytest.mark.parametrize("times", [0.0, -1.5])
@pytest.mark.parametrize("otherwise", [np.linspace(0.1, 0.9, ARMS), np.full(ARMS, 0.05)])
def test_rewards_change_what_later_blocks_are_charged_and_no_others(
    stage: PlanStage,
    changed: int,
    times: float,
    otherwise: FloatArray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "TRACKS", ((times, 1.0),))  # which one is taken may depend on all
    rng = np.random.default_rng(3)
    means = np.linspace(0.9, 0.1, ARMS)
    block = blocks(stage.plans, ARMS)
    one = stopped(stage, means, rng)
    other = stopped(stage, otherwise, rng)
    mixed = [np.where(block == changed, b, a) for a, b in zip(one, other, strict=True)]
    stakes = Stakes(0.55, stage.strength, stage.reach)

    before, after = settle(stage, *one).parts, settle(stage, *mixed).parts

    differ = set()
    for mine, theirs in zip(before, after, strict=True):
        assert mine.plan is theirs.plan
        assert mine.arms.tolist() == theirs.arms.tolist()
        pairs = zip(declared(mine, stakes), declared(theirs, stakes), strict=True)
        if not all((a == b).all() for a, b in pairs):
            differ |= set(block[mine.arms].tolist())
    assert differ == set(range(changed + 1, len(tuning.BLOCKS)))


@pytest.mark.usefixtures("all_blocks")
def test_every_arm_is_in_one_block_and_one_part(stage: PlanStage) -> None:
    block = blocks(stage.plans, ARMS)
    ended = settle(stage, *stopped(stage, np.full(ARMS, 0.5), np.random.default_rng(1)))

    arms = np.concatenate([each.arms for each in ended.parts])
    assert np.sort(arms).tolist() == list(range(ARMS))
    assert set(block.tolist()) == set(range(len(tuning.BLOCKS)))
    shares = np.bincount(block) / ARMS
    assert np.abs(shares - tuning.BLOCKS).max() < 0.15
    for part in ended.parts:
        assert len(set(block[part.arms].tolist())) <= 1


def test_few_arms_of_a_plan_are_in_the_last_block(
    stage: PlanStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "FEW_ARMS", ARMS + 1)

    assert (blocks(stage.plans, ARMS) == len(tuning.BLOCKS) - 1).all()


def test_no_set_loses_more_than_its_arms_are_charged() -> None:
    rng = np.random.default_rng(8)
    seen = set()
    for _ in range(3000):  # (b) and (c) of the theorem, for whatever leads and charges
        stakes = Stakes(float(rng.choice([0.1, 0.35, 0.5, 0.8])), 1.0, float(rng.choice([0.2, 9])))
        means = rng.choice([0.0, stakes.boundary, 0.5, 0.9, 1.0], 6)
        leads = stakes.capped(rng.choice([-np.inf, -0.3, -0.1, 0.0, 0.2, np.inf], 6))
        charges = rng.normal(0, 0.1, 6)
        k = int(rng.integers(1, 6))
        charged = SetCharges(float(charges.sum()), leads)
        excess = float((np.diag(stakes.losses(means, leads)) - charges).sum())
        for chosen in itertools.combinations(range(6), k):
            lost = min(k * aggregate_regret(means, np.array(chosen)), stakes.reach)
            short = lost - charged.by(np.array(chosen)) - excess
            assert short < 1e-12
            seen.add(short > -1e-12)

    assert True in seen  # it could not have been less


def test_the_best_set_has_the_largest_leads_and_is_charged_least() -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        leads = rng.choice([-0.3, -0.1, 0.0, 0.1, 0.2], 7)
        order = rng.permutation(7)
        charged = SetCharges(0.5, leads)
        for k in range(1, 7):
            sets = [np.array(each) for each in itertools.combinations(range(7), k)]
            least = min(charged.by(each) for each in sets)
            assert charged.by(best(leads, order, k)) == pytest.approx(least)


def test_equal_leads_go_by_the_order() -> None:
    leads = np.array([0.1, 0.3, 0.1, 0.1])

    assert best(leads, np.array([3, 2, 1, 0]), 2).tolist() == [1, 3]
    assert best(leads, np.array([0, 1, 2, 3]), 3).tolist() == [0, 1, 2]


def test_leads_are_no_larger_than_what_can_be_lost() -> None:
    stakes = Stakes(0.7, 5.0, 0.4)
    leads = np.array([-np.inf, -0.2, 0.0, 0.1, np.inf])

    capped = stakes.capped(leads)

    assert capped.tolist() == pytest.approx([-0.4, -0.2, 0.0, 0.1, 0.3])
    means = np.linspace(0, 1, 101)
    assert stakes.losses(means, capped) == pytest.approx(stakes.losses(means, leads))


def test_arms_that_are_told_apart_have_leads_of_their_side(stage: PlanStage) -> None:
    ended = settle(stage, *stopped(stage, np.linspace(0.95, 0.05, ARMS), np.random.default_rng(5)))
    stakes = Stakes(stage.belief.boundary, stage.strength, stage.reach)

    charged = ended.charged(stakes)

    assert (charged.leads[:8] > 0).all()
    assert (charged.leads[-25:] < 0).all()
    assert (ended.scores[:8] > stakes.boundary).all()


def test_blocks_fill_the_set_and_one_track_has_nearly_k(
    stage: PlanStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "FEW_ARMS", 1)
    wanted = []
    original = AcceptanceCounts.threshold

    def spy(counts: AcceptanceCounts, still: float) -> AcceptanceThreshold:
        wanted.append((sum(each.arms.size for each in counts.ahead), still))
        return original(counts, still)

    monkeypatch.setattr(AcceptanceCounts, "threshold", spy)
    ended = settle(stage, *stopped(stage, np.linspace(0.9, 0.1, ARMS), np.random.default_rng(2)))

    stakes = Stakes(stage.belief.boundary, stage.strength, stage.reach)
    inside = ended.charged(stakes, roughly=True).leads > 0
    assert abs(inside.sum() - K) <= 3
    last = [still for left, still in wanted if left == min(left for left, _ in wanted)]
    assert len(set(last)) > 1  # tracks aim at different numbers
    assert ended.share in [share for _, share in tuning.TRACKS]


def test_shares_of_tracks_and_blocks_add_up_to_1() -> None:
    assert sum(share for _, share in tuning.TRACKS) <= 1
    assert sum(tuning.BLOCKS) == pytest.approx(1)


def test_every_track_is_settled_the_one_with_nearly_k_arms_first(stage: PlanStage) -> None:
    ended = stopped(stage, np.linspace(0.9, 0.1, ARMS), np.random.default_rng(2))
    stakes = Stakes(stage.belief.boundary, stage.strength, stage.reach)

    tracks = list(stopped_arms(stage.plans, stage.belief, *ended))

    assert sorted(each.share for each in tracks) == sorted(share for _, share in tuning.TRACKS)
    inside = [(each.charged(stakes, roughly=True).leads > 0).sum() for each in tracks]
    assert abs(inside[0] - K) <= abs(inside[-1] - K)


def test_an_outline_has_one_part_a_plan(stage: PlanStage) -> None:
    ended = settle(stage, *stopped(stage, np.linspace(0.9, 0.1, ARMS), np.random.default_rng(2)))

    outline = ended.outline()

    assert len(outline.parts) == len(stage.plans)
    assert sum(each.arms.size for each in outline.parts) == ARMS


def test_how_likely_scores_are_above() -> None:
    scores, likely = np.array([0.5, 0.1, 0.5, 0.9]), np.array([0.1, 0.2, 0.3, 0.4])

    found = above(np.array([0.0, 0.1, 0.4, 0.5, 0.95]), scores, likely)

    assert found.tolist() == pytest.approx([1.0, 0.8, 0.8, 0.4, 0.0])


@pytest.mark.parametrize(("start", "least"), [(0, 17), (30, 3), (12, 12), (40, 0), (5, 40)])
def test_the_cheapest_boundary_is_found_downhill(start: int, least: int) -> None:
    assert cheapest(lambda j: (j - least) ** 2, start, 40) == least
