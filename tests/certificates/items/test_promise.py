"""What the race on items promises: wrong in no more than delta of the runs, never more than all.

More sets that are built to break it, and more runs of each: `python benchmarks/item_failures.py`"""

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

import shortlist
from shortlist import instances, simulate
from shortlist.arrays import FloatArray
from shortlist.certificates.items import race as items_race
from shortlist.certificates.items.race import ItemsRace, SingleEvidence
from shortlist.certificates.items.search import items_search
from shortlist.problem import FixedConfidence, Items, Problem
from shortlist.regret import aggregate_regret
from shortlist.search import Answer, Pulls, advance, rewards_of
from shortlist.spec import Order, Population

RUNS = number_of_runs(20, 2000)


def at_most(failures: int, runs: int, delta: float) -> bool:
    """Whether so many failures, or more, are no surprise if each has probability delta."""
    return bool(binom.sf(failures - 1, runs, delta) > 1e-3)


def tied(size: int) -> FloatArray:
    """Arms of equal means that share no item."""
    return np.repeat(np.eye(4), size // 4, axis=1)


def decisive(size: int) -> FloatArray:
    """One item decides: it alone outweighs a small lead on all others."""
    scores = np.full((3, size), 0.5)
    scores[1] -= 0.6 / (size - 1)
    scores[2] -= 0.6 / (size - 1)
    scores[0, 0] = 0.0
    scores[1, 0] = 1.0
    return scores


BUILT_TO_BREAK = {
    "one item": np.array([[0.0], [1.0], [1.0]]),
    "two items": np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]),
    "three items": np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "ties": tied(16),
    "one item that decides": decisive(12),
    "all items alike": np.tile(np.array([[0.2], [0.5], [0.8]]), (1, 10)),
    "half the items": np.repeat([[1.0, 0.0], [0.4, 0.5]], 6, axis=1),
}


@pytest.mark.attack
@pytest.mark.parametrize("name", BUILT_TO_BREAK)
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("lopsided", [0, 99], ids=["single", "paired"])
def test_small_sets_built_to_break_it_do_not(
    name: str, k: int, lopsided: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items_race, "FIRST_ITEMS", 1)  # look as early and as often as can be
    monkeypatch.setattr(items_race, "SINGLE_FIRST", 1)
    monkeypatch.setattr(items_race, "LOPSIDED", lopsided)
    scores = BUILT_TO_BREAK[name]
    if k >= len(scores):
        return
    # bounds on single arms take longer, and are tested on all orders beside
    tries = RUNS if lopsided else RUNS // 4
    runs = simulate("certified", scores=scores, k=k, epsilon=0.02, delta=0.3, runs=tries, seed=5)
    failures = int(runs.failed.sum())

    assert (runs.pulls <= scores.size).all()
    assert at_most(failures, tries, 0.3)


@pytest.mark.attack
@pytest.mark.parametrize(
    ("k", "order", "lopsided"),
    [(1, "shared", 0), (3, "independent", 0), (3, "shared", 99), (3, "independent", 99)],
)
def test_item_response_sets_are_chosen_from_with_the_promise_kept(
    k: int, order: Order, lopsided: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items_race, "LOPSIDED", lopsided)
    failures, sets = 0, number_of_runs(3, 200)
    for seed in range(sets):
        scores = instances.item_response(12, 60, np.random.default_rng(seed))
        runs = simulate(
            *("certified",), scores=scores, k=k, epsilon=0.02, delta=0.3, runs=4, order=order
        )
        failures += int(runs.failed.sum())
        assert (runs.pulls <= scores.size).all()
        assert (runs.bound <= 0.02 + 1e-9).all()

    assert at_most(failures, 4 * sets, 0.3)


@pytest.mark.attack
@pytest.mark.parametrize("lopsided", [0, 99], ids=["single", "paired"])
def test_bounds_that_a_budget_leaves_hold_as_often_as_promised(
    lopsided: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items_race, "LOPSIDED", lopsided)
    wrong, sets = 0, number_of_runs(4, 200)
    for seed in range(sets):
        scores = instances.item_response(10, 80, np.random.default_rng(seed), graded=5.0)
        runs = simulate(
            *("certified",), scores=scores, k=3, epsilon=0.001, delta=0.3, budget=300, runs=4
        )
        wrong += int((runs.regret > runs.bound + 1e-9).sum())

    assert at_most(wrong, 4 * sets, 0.3)


def answered(known: FloatArray | None, scores: FloatArray, budget: int | None) -> Answer:
    """What a race answers on items in this order, of which some scores are known."""
    n, size = scores.shape
    problem = Problem(n, 2, FixedConfidence(0.05, 0.1, budget), items=Items(size, known))
    search = items_search(problem, np.random.default_rng(0))
    left = [list(np.flatnonzero(np.isnan(row))) for row in Items(size, known).by_position(n)]
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        pulls = list(zip(turn.arms.tolist(), turn.times.tolist(), strict=True))
        each = [scores[arm, left[arm].pop(0)] for arm, times in pulls for _ in range(times)]
        entries = np.repeat(np.arange(turn.arms.size), turn.times)
        turn = advance(search, rewards_of(np.array(each), entries, turn.arms.size))
    return turn


@pytest.mark.parametrize("lopsided", [0, 99], ids=["single", "paired"])
def test_what_is_known_is_taken_up_and_not_asked_for(
    lopsided: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items_race, "LOPSIDED", lopsided)
    scores = instances.item_response(6, 50, np.random.default_rng(2))
    everything = answered(scores.copy(), scores, None)
    half = answered(np.where(np.arange(50) % 2, scores, np.nan), scores, None)
    uneven = scores.copy()
    uneven[::2, 5:] = np.nan
    for answer in (everything, half, answered(uneven, scores, None)):
        assert aggregate_regret(scores.mean(1), answer.top) <= 0.05
        assert answer.regret_bound is not None
        assert answer.regret_bound <= 0.05 + 1e-9


@pytest.mark.parametrize("lopsided", [0, 99], ids=["single", "paired"])
def test_a_budget_of_one_item_an_arm_is_enough_to_begin(
    lopsided: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items_race, "LOPSIDED", lopsided)
    scores = instances.item_response(6, 50, np.random.default_rng(2))
    answer = answered(None, scores, 6)

    assert answer.regret_bound is not None
    assert 0.5 < answer.regret_bound <= 1


@pytest.mark.parametrize(
    ("lopsided", "delta"), [(0, 0.9), (99, 0.01)], ids=["single", "paired"]
)  # so that bounds tell something, and so that no arm is out
def test_no_stake_on_the_first_items_looks_at_how_many_were_affordable(
    lopsided: int, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items_race, "LOPSIDED", lopsided)
    monkeypatch.setattr(items_race, "HOPELESS_ARM", 99.0)
    scores = instances.item_response(6, 40, np.random.default_rng(4), graded=5.0)
    problem = Problem(6, 1, FixedConfidence(0.05, delta), items=Items(40))

    def evidence(*stops: int) -> FloatArray:
        race, before = ItemsRace(problem, np.random.default_rng(0)), 0
        for stop in stops:
            race.take(np.full(6, stop), scores[:, before:stop].ravel())
            before = stop
        race.choose()
        judged = race.evidence
        return race.bounds if isinstance(judged, SingleEvidence) else judged.wealth.by_stake

    assert np.array_equal(evidence(2, 4), evidence(4))
    assert not np.array_equal(evidence(2, 20), evidence(4, 20))


def test_arms_that_are_alike_on_every_item_need_no_more_than_all_cells() -> None:
    scores = np.tile(instances.item_response(2, 40, np.random.default_rng(0))[0], (6, 1))
    runs = simulate("certified", scores=scores, k=2, epsilon=0.02, runs=3)

    assert (runs.regret == 0).all()
    assert (runs.pulls <= 240).all()


def test_many_arms_are_judged_one_by_one_with_fewer_cells_than_in_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = instances.item_response(40, 200, np.random.default_rng(5))
    single = simulate("certified", scores=scores, k=2, epsilon=0.03, seed=1)
    monkeypatch.setattr(items_race, "LOPSIDED", 99)
    monkeypatch.setattr(items_race, "MANY_ARMS", 99)
    paired = simulate("certified", scores=scores, k=2, epsilon=0.03, seed=1)

    assert single.pulls.mean() < 0.8 * paired.pulls.mean()


def test_small_variance_saves_cells() -> None:
    def cells(noise: float) -> float:
        rng = np.random.default_rng(1)
        scores = np.linspace(0.3, 0.7, 10)[:, None] + noise * rng.normal(size=(10, 200))
        clipped = np.clip(scores, 0, 1)
        return float(simulate("certified", scores=clipped, k=2, epsilon=0.02, runs=3).pulls.mean())

    assert cells(0.02) < 0.7 * cells(0.3)


def test_an_arm_that_is_out_is_not_asked_again_and_most_choose_the_least() -> None:
    scores = instances.item_response(20, 300, np.random.default_rng(3))
    chosen = simulate("certified", scores=scores, k=18, epsilon=0.01, runs=2)

    assert (chosen.regret <= 0.01).all()
    assert chosen.pulls.mean() < 0.9 * scores.size


@pytest.mark.parametrize("others", [0, 8])  # judged in pairs, and one by one
@pytest.mark.parametrize("population", ["these", "like these"])
def test_an_arm_that_known_scores_show_to_be_better_is_chosen(
    others: int, population: Population
) -> None:
    """Arm 1 is known on all 40 items, with 20 right; arm 0 on 36, with 22 right."""
    known = np.zeros((2 + others, 40))
    known[0, :22], known[1, 20:] = 1.0, 1.0
    known[0, 36:] = np.nan
    for seed in range(12):
        result = shortlist.select(
            lambda arm, item: 0.0,
            arms=2 + others,
            k=1,
            epsilon=0.4,
            items=40,
            scores=known,
            population=population,
            seed=seed,
            progress=False,
        )
        assert result.top == (0,)
