"""A fixed number of cells: effects of arms and items, and where cells go."""

import numpy as np
import pytest

from shortlist import instances, simulate
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.exploration import items as item_tuning
from shortlist.exploration.items import ItemEffects, ItemSums, explore_items
from shortlist.problem import FixedBudget, Items, Problem
from shortlist.regret import aggregate_regret
from shortlist.search import Answer, Pulls, advance, rewards_of


def fitted(scores: FloatArray, seen: FloatArray | BoolArray, times: int = 30) -> ItemEffects:
    known = np.where(seen, scores, np.nan)
    effects = ItemEffects(ItemSums(Items(known.shape[1], known), len(known)))
    for _ in range(times):
        effects.refresh()
    return effects


def explored(
    scores: FloatArray, k: int, budget: int, known: FloatArray | None = None
) -> tuple[IntArray, IntArray]:
    """The choice, and how many cells of every arm were asked for."""
    n, size = scores.shape
    items = Items(size, known)
    problem = Problem(n, k, FixedBudget(budget), items=items)
    search = explore_items(problem, np.random.default_rng(0))
    left = [np.flatnonzero(np.isnan(row)).tolist() for row in items.by_position(n)]
    drawn = np.zeros(n, dtype=np.int64)
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        assert (turn.times > 0).all()
        each = [scores[arm, left[arm].pop(0)] for arm in np.repeat(turn.arms, turn.times)]
        drawn[turn.arms] += turn.times
        entry = np.repeat(np.arange(turn.arms.size), turn.times)
        turn = advance(search, rewards_of(np.array(each), entry, turn.arms.size))
    assert isinstance(turn, Answer)
    return turn.top, drawn


def test_means_are_exact_once_all_cells_are_seen() -> None:
    scores = np.random.default_rng(0).random((5, 12))
    effects = fitted(scores, np.ones((5, 12)), times=1)
    assert np.allclose(effects.means - effects.means.mean(), scores.mean(1) - scores.mean())
    assert np.array_equal(effects.apart(2), np.zeros(5))


def test_sums_are_those_of_the_cells_seen() -> None:
    rng = np.random.default_rng(8)
    scores, seen = rng.random((4, 9)), rng.random((4, 9)) < 0.4
    sums = ItemSums(Items(9, np.where(seen, scores, np.nan)), 4)
    assert np.array_equal(sums.missing_among(5), (~seen[:, :5]).sum(1))
    for times in (np.array([1, 0, 2, 1]), np.array([0, 3, 1, 0])):
        new = ~seen & (np.cumsum(~seen, axis=1) <= times[:, None])
        sums.take(times, scores[new])
        seen |= new
        filled = np.where(seen, scores, 0.0)
        assert np.array_equal(sums.seen, seen)
        assert np.array_equal(sums.missing, (~seen).sum(1))
        assert np.array_equal(sums.counts, seen.sum(1))
        assert np.array_equal(sums.seers, seen.sum(0))
        assert np.allclose(sums.by_arm, filled.sum(1))
        assert np.allclose(sums.by_item, filled.sum(0))
        assert sums.squares == pytest.approx((filled**2).sum())


def joint_variances(effects: ItemEffects, opponent: int) -> FloatArray:
    """Variances of differences of the a_i to that of one arm, by the joint posterior of all."""
    seen, ratio = effects.sums.seen, effects.of_items / effects.noise
    of_item = ratio / (1 + ratio * seen.sum(0))  # each b_s integrated out
    prior = effects.noise / effects.of_arms
    n = len(seen)
    precision = np.diag(seen.sum(1) + prior) - (seen * of_item) @ seen.T - prior / n
    covariance = effects.noise * np.linalg.inv(precision)
    own = np.diag(covariance)
    variances: FloatArray = own + own[opponent] - 2 * covariance[opponent]
    return variances


def test_variances_of_differences_are_close_to_those_of_the_joint_posterior() -> None:
    rng = np.random.default_rng(9)
    counts = np.array([400, 380, 200, 120, 100, 60] + [30] * 10 + [12] * 24)
    scores = np.zeros((40, 40_000))  # so many items that what is left to be seen is nearly all
    scores[:, :400] = instances.item_response(40, 400, rng)
    effects = fitted(scores, np.arange(40_000) < counts[:, None])
    for opponent in (0, 2, 5):
        others = np.arange(40) != opponent
        ratios = effects.apart(opponent)[others] / joint_variances(effects, opponent)[others]
        assert (np.abs(np.log(ratios)) < 0.2).all()


def test_effects_of_arms_and_items_explain_each_other() -> None:
    rng = np.random.default_rng(1)
    scores, seen = rng.random((4, 9)), rng.random((4, 9)) < 0.6
    seen[:, 0] = True
    effects = fitted(scores, seen, times=1)
    variances = effects.of_arms, effects.of_items, effects.noise
    for _ in range(400):  # with variances held where they are, alternating ends at a fixed point
        effects.of_arms, effects.of_items, effects.noise = variances
        effects.refresh()
    there = np.flatnonzero(seen.any(0))
    rows, columns = np.nonzero(seen[:, there])
    y = scores[:, there][rows, columns]
    arm = effects.arm
    seers = seen[:, there].sum(0)
    raw = np.array([(y - arm[rows])[columns == s].mean() for s in range(there.size)])
    item = raw.mean() + (raw - raw.mean()) * seers / (seers + variances[2] / variances[1])
    rest = np.array([(y - item[columns])[rows == i].sum() for i in range(4)])
    again = rest / (seen.sum(1) + variances[2] / variances[0])
    assert np.allclose(arm, again - again.mean(), atol=1e-9)


def test_an_arm_that_met_easy_items_is_not_taken_for_a_good_one() -> None:
    rng = np.random.default_rng(2)
    hard = np.where(np.arange(200) < 100, 0.9, 0.3)
    scores = (rng.random((12, 200)) < hard + np.linspace(-0.05, 0.05, 12)[:, None]).astype(float)
    seen = np.ones((12, 200), dtype=bool)
    seen[0, 100:] = False  # the worst of them saw the easy half only
    effects = fitted(scores, seen)
    naive = np.where(seen, scores, 0).sum(1) / seen.sum(1)
    assert np.argmax(naive) == 0
    assert np.argsort(effects.means)[-4:].min() > 0


def test_variances_are_learned_where_nothing_is_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(item_tuning, "BELIEF", 0.0)
    rng = np.random.default_rng(3)
    arm, item = rng.normal(0, 0.1, 40), rng.normal(0, 0.3, 400)
    scores = 0.5 + arm[:, None] + item + rng.normal(0, 0.2, (40, 400))
    effects = fitted(scores, rng.random((40, 400)) < 0.5, times=60)
    assert effects.of_arms == pytest.approx(arm.var(), rel=0.1)
    assert effects.of_items == pytest.approx(item.var(), rel=0.1)
    assert effects.noise == pytest.approx(0.04, rel=0.05)


def test_places_in_orders_of_their_own_have_nothing_in_common() -> None:
    rng = np.random.default_rng(4)
    scores = rng.permuted(instances.item_response(40, 400, rng), axis=1)
    effects = fitted(scores, np.ones((40, 400)), times=200)
    assert effects.of_items < 0.02 * effects.noise


@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize("budget", [8, 11, 50, 200, 319, 320, 9999])
def test_the_budget_is_spent_and_no_cell_twice(k: int, budget: int) -> None:
    scores = instances.item_response(8, 40, np.random.default_rng(5))
    top, drawn = explored(scores, k, budget)
    assert drawn.sum() == min(budget, 320)
    assert drawn.max() <= 40
    assert np.unique(top).size == k
    if budget >= 320:
        assert aggregate_regret(scores.mean(1), top) == 0


def test_known_scores_are_not_asked_for() -> None:
    scores = instances.item_response(8, 40, np.random.default_rng(6))
    known = np.where(np.random.default_rng(0).random((8, 40)) < 0.9, scores, np.nan)
    top, drawn = explored(scores, 2, 10_000, known)
    assert np.array_equal(drawn, np.isnan(known).sum(1))
    assert aggregate_regret(scores.mean(1), top) == 0
    top, drawn = explored(scores, 2, 10, scores)
    assert drawn.sum() == 0
    assert aggregate_regret(scores.mean(1), top) == 0


@pytest.mark.parametrize("scores", [np.zeros((5, 30)), np.ones((5, 30)), np.eye(5, 30)])
def test_scores_without_noise_are_handled(scores: FloatArray) -> None:
    for size in (1, 2, 3, 30):
        top, drawn = explored(scores[:, :size], 2, 10_000)
        assert drawn.sum() == 5 * size
        assert aggregate_regret(scores[:, :size].mean(1), top) == 0


def test_cells_go_to_arms_near_the_boundary() -> None:
    scores = instances.item_response_with(
        [0.2] * 6 + [0.5, 0.55] + [0.9] * 2, 400, np.random.default_rng(7)
    )
    _, drawn = explored(scores, 3, 1200)
    assert drawn[6:8].min() > 2 * drawn[:6].mean()
    assert drawn[6:8].min() > 2 * drawn[8:].mean()


def test_regret_is_smaller_than_with_equal_shares() -> None:
    lost, alike = 0.0, 0.0
    for seed in range(6):
        scores = instances.item_response(40, 400, np.random.default_rng(100 + seed))
        lost += simulate("expected-loss", scores=scores, k=3, budget=1600, runs=10).regret.mean()
        for run in range(10):
            first = np.random.default_rng(run).permutation(400)[:40]
            best = np.argsort(-scores[:, first].mean(1))[:3]
            alike += aggregate_regret(scores.mean(1), best) / 10
    assert lost < 0.75 * alike
