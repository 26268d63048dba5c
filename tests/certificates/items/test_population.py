"""Repeats, clusters and the distribution behind the items: exact on small sets, and as rates."""

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from attack_scale import number_of_runs
from scipy.stats import binomtest
from services import serving

import shortlist
from shortlist import Experiment
from shortlist.arrays import FloatArray, IntArray
from shortlist.cells import Cells, Drawn
from shortlist.certificates.items import race as items_race
from shortlist.certificates.items.bound import (
    BettingUpperBound,
    GroupedCells,
    PairWealth,
    every,
)
from shortlist.confidence import intervals
from shortlist.errors import InvalidInput
from shortlist.problem import FixedConfidence, Items, Problem
from shortlist.reward_models import Bounded
from shortlist.stores.base import MemoryStore

DELTA = 0.3


def played(wealth: PairWealth, scores: FloatArray) -> FloatArray:
    """The largest wealth of arm 1 against arm 0 on the way, at every point of the grid."""
    pairs = every(np.array([0]), np.array([1]))
    most = np.zeros(wealth.grid.size)
    for place in range(scores.shape[1]):
        wealth.bet(pairs, scores[:, place], np.zeros(2, dtype=bool), 0.25)
        most = np.maximum(most, wealth.against(pairs)[:, 0, 0])
    return most


def test_wealth_on_a_sample_has_mean_at_most_one_at_the_difference_of_the_distribution() -> None:
    """Every sequence of five items of three kinds, weighed by its probability."""
    kinds = np.array([[1.0, 0.0], [0.0, 1.0], [0.2, 0.7]])  # scores of two arms
    chances = np.array([0.3, 0.3, 0.4])
    lead = float(chances @ (kinds[:, 1] - kinds[:, 0]))
    grid, gaps, weights = np.array([lead]), np.array([0.1, 0.4]), np.array([0.5, 0.5])
    mean = crossed = 0.0
    for sequence in itertools.product(range(3), repeat=5):
        scores = kinds[list(sequence)].T
        chance = float(np.prod(chances[list(sequence)]))
        wealth = PairWealth(grid, gaps, weights, np.full((2, 5), np.nan), sampled=True)
        crossed += chance * float(played(wealth, scores)[0] >= 1 / DELTA)
        mean += chance * float(wealth.by_stake[:, 0, 0, 1].sum())
    assert mean <= 1 + 1e-9
    assert crossed <= DELTA


def test_bounds_on_single_arms_of_a_sample_are_right_at_confidence() -> None:
    """Every sequence of seven 0/1 scores of an arm with mean 0.7, weighed."""
    theta, wrong = 0.7, 0.0
    gaps, weights = np.array([0.2, 0.5]), np.array([0.5, 0.5])
    for sequence in itertools.product((0.0, 1.0), repeat=7):
        x = np.array([sequence])
        fresh, none = np.ones(x.shape, dtype=bool), np.zeros(1)
        band = BettingUpperBound(x, fresh, 7, none, none, np.full(7, 0.1), gaps, sampled=True)
        upper = band.upper(weights, 1 / DELTA, np.ones(1))[0]
        wrong += (upper < theta) * float(np.prod(np.where(x == 1, theta, 1 - theta)))
    assert 0 < wrong <= DELTA


def test_groups_have_the_sums_of_their_cells_in_any_batches() -> None:
    rng = np.random.default_rng(0)
    widths = np.array([2, 1, 3, 2])
    scores = rng.random((2, 8))
    known = np.where(rng.random(scores.shape) < 0.4, scores, np.nan)
    cells = GroupedCells(Items(8, known, widths), 2)
    starts = np.cumsum(widths) - widths
    sums = np.add.reduceat(scores, starts, axis=1) / 3
    now = np.zeros(2, dtype=np.int64)
    for targets in ([1, 2], [1, 4], [4, 4]):
        target = np.array(targets)
        missing = cells.missing(target)
        fresh = [
            scores[arm, place]
            for arm in range(2)
            for place in range(int(widths[: now[arm]].sum()), int(widths[: target[arm]].sum()))
            if np.isnan(known[arm, place])
        ]
        assert int(missing.sum()) == len(fresh)
        cells.take(target, np.array(fresh))
        now = np.maximum(now, target)
    np.testing.assert_allclose(cells.scores, sums, atol=1e-12)


def test_clusters_stay_together_in_random_order_and_every_cell_comes_once() -> None:
    clusters = ("a", "b", "a", "c", "b", "a")
    firsts: Counter[str] = Counter()
    for seed in range(300):
        cells = Cells(6, 2, Bounded(), seed, drawn=Drawn(2, clusters))
        order = [cells.item(0, draw) for draw in range(12)]
        assert sorted(order) == sorted(list(range(6)) * 2)
        turns = [clusters[item] for item in order]
        assert len(list(itertools.groupby(turns))) == 3
        assert {(cells.item(1, t), cells.repetition(1, t)) for t in range(12)} == set(
            itertools.product(range(6), range(2))
        )
        firsts[turns[0]] += 1
    assert min(firsts.values()) > 60  # each is first with probability 1/3


def truth_of(scores: FloatArray) -> FloatArray:
    means: FloatArray = scores.reshape(len(scores), -1).mean(1)
    return means


class Case:
    """A small world: what is drawn, and how scores come about."""

    def __init__(self, means: tuple[float, ...], k: int, **settings: Any) -> None:
        self.means, self.k, self.settings = np.array(means), k, settings

    def drawn(self, rng: np.random.Generator, items: int, repeats: int) -> FloatArray:
        """Scores of all arms: (arms, items, repeats). Arms share the difficulty of a cluster."""
        clusters = self.settings.get("clusters")
        names = np.arange(items) if clusters is None else np.array(clusters)
        luck = {name: rng.random() for name in np.unique(names).tolist()}
        level = np.array([luck[name] for name in names.tolist()])
        noise = rng.random((self.means.size, items, repeats))
        mixed = np.where(rng.random((1, items, 1)) < 0.7, level[None, :, None], noise)
        return (mixed < self.means[:, None, None]).astype(float)


UNEQUAL = [int(item**0.6) for item in range(18)]
CASES = {
    "repeats": Case((0.75, 0.6, 0.5), 1, items=8, repeats=3),
    "repeats one by one": Case((0.75, *[0.55] * 8), 1, items=8, repeats=3),
    "clusters": Case((0.75, 0.6, 0.5), 1, items=18, clusters=[i // 3 for i in range(18)]),
    "unequal clusters": Case((0.75, 0.6, 0.5), 1, items=18, clusters=UNEQUAL),
    "most of them, in clusters": Case((0.7, 0.6, 0.4), 2, items=12, clusters=[*range(6)] * 2),
    "like these": Case((0.75, 0.6, 0.5), 1, items=24, population="like these"),
    "like these, one by one": Case((0.8, *[0.6] * 8), 1, items=24, population="like these"),
    "like these, repeated": Case((0.75, 0.6, 0.5), 1, items=16, repeats=2, population="like these"),
    "clusters like these": Case(
        (0.75, 0.6, 0.5), 1, items=32, clusters=[i // 2 for i in range(32)], population="like these"
    ),
}  # fmt: skip


def failed(case: Case, rng: np.random.Generator, *, ahead: bool) -> tuple[bool, bool]:
    """Whether the bound is wrong, and whether an interval is, at the end of one run."""
    items, repeats = case.settings["items"], case.settings.get("repeats", 1)
    means = case.means[rng.permutation(case.means.size)]
    shuffled = Case(tuple(means), case.k, **case.settings)
    scores = shuffled.drawn(rng, items, repeats)
    sampled = case.settings.get("population") == "like these"
    truth = means if sampled else truth_of(scores)
    width: dict[str, Any] = {"min_batch": 6, "window": 18} if ahead else {}
    seed = int(rng.integers(2**31))
    experiment = Experiment.create(
        means.size, case.k, epsilon=0.1, delta=DELTA, seed=seed, **case.settings, **width
    )
    done: Counter[tuple[Any, Any]] = Counter()

    def pull(arm: Any, item: Any) -> float:
        done[arm, item] += 1
        return float(scores[arm, item, done[arm, item] - 1])

    result = experiment.run(pull)
    assert max(done.values()) <= repeats
    assert result.regret_bound is not None
    best = np.sort(truth)[::-1][: case.k].mean()
    lost = best - truth[list(result.top)].mean()
    off = any(
        not arm.low - 1e-9 <= mean <= arm.high + 1e-9
        for arm, mean in zip(result.arms, truth, strict=True)
    )
    return bool(lost > result.regret_bound + 1e-9), off


@pytest.mark.rates
@pytest.mark.parametrize("name", CASES)
def test_bounds_and_intervals_hold_at_confidence(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items_race, "FIRST_ITEMS", 2)  # look early
    monkeypatch.setattr(items_race, "SINGLE_FIRST", 2)
    rng, runs = np.random.default_rng(3), number_of_runs(20, 2000)
    found = np.array([failed(CASES[name], rng, ahead=bool(turn % 2)) for turn in range(runs)])
    for wrong in found.sum(axis=0).tolist():
        assert binomtest(wrong, runs, DELTA, alternative="greater").pvalue > 1e-4


@pytest.mark.parametrize("budget", [None, 25.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_no_stake_on_a_sample_depends_on_which_scores_are_known(
    budget: float | None, seed: int
) -> None:
    """The same scores in the same order, with masks that pay for more or fewer first items."""
    scores = np.random.default_rng(seed).random((3, 40))
    learned = set()
    for share in (0.01, 0.3, 0.9):
        mask = np.random.default_rng([seed, 1]).random(scores.shape) < share
        mask[0, 0] = True
        items = Items(40, np.where(mask, scores, np.nan), sampled=True)
        problem = Problem(3, 1, FixedConfidence(0.1, DELTA, budget), items=items)
        race = items_race.ItemsRace(problem, np.random.default_rng(0))
        first = items_race.FIRST_ITEMS
        affordable = 40 if budget is None else int((~mask[:, :first]).sum())
        places = first if budget is None or affordable <= budget else int(budget) // 3
        targets = np.full(3, places)
        fresh = np.concatenate(
            [row[:places][~known[:places]] for row, known in zip(scores, mask, strict=True)]
        )
        race.take(targets, fresh)
        learned.add(race.evidence.variance)
    assert len(learned) == 1
    assert (items_race.VARIANCE in learned) is (budget == 25.0)


def test_intervals_of_groups_hold_within_a_group() -> None:
    """Two of the three groups are complete; the pull beyond them says nothing by itself."""
    widths: IntArray = np.array([2, 2, 2])
    problem = Problem(2, 1, FixedConfidence(0.1, DELTA), items=Items(6, None, widths))
    low, high = intervals(problem, np.array([4, 5]), np.array([0.5, 0.6]))
    assert 0 <= low[1] <= 0.5 <= high[1] <= 1
    assert low[0] >= 2 / 6 - 1e-9
    assert high[0] <= 4 / 6 + 1e-9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clusters": [0, 1]}, "one for each of 4 items"),
        ({"clusters": "ab"}, "must be a list"),
        ({"clusters": [0.5] * 4}, "a text or a whole number"),
        ({"clusters": [0, 0, 0, 1], "population": "like these"}, "from 1 to 3 items"),
        ({"clusters": [0, 0, 1, 1], "order": "independent"}, "needs a shared order"),
        ({"population": "like these", "order": "independent"}, "needs a shared order"),
        ({"population": "like these", "epsilon": None, "budget": 4}, "only 'certified'"),
        ({"clusters": [0, 0, 1, 1], "epsilon": None, "budget": 4}, "only 'certified'"),
        ({"repeats": 2, "items": None}, "without `items`"),
        ({"repeats": 0}, "repeats"),
        ({"population": "all"}, "population"),
    ],
)
def test_what_is_not_proved_is_refused_before_any_pull(
    settings: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"items": 4, "epsilon": 0.1, **settings}
    with pytest.raises(InvalidInput, match=message):
        Experiment.create(3, 1, **given)


def test_repetitions_of_a_run_are_known_scores_of_the_next(tmp_path: Path) -> None:
    scores = np.random.default_rng(0).random((4, 12, 3))
    seeds = []

    def pull(arm: int, item: int, seed: int) -> float:
        seeds.append(seed)
        return float(scores[arm, item, len(seeds) % 3])

    how: dict[str, Any] = {"arms": 4, "k": 1, "items": 12, "repeats": 3, "progress": False}
    run = shortlist.select(pull, budget=60, **how)
    assert len(set(seeds)) == len(seeds) == 60
    keys = {(cell.arm, cell.item, cell.repetition) for cell in run.cells or ()}
    assert len(keys) == 60
    for name in ("cells.csv", "cells.parquet"):
        assert run.cells is not None
        run.cells.write(tmp_path / name)
        again = shortlist.select(pull, epsilon=0.2, scores=tmp_path / name, **how)
        assert again.reached
        more = {(cell.arm, cell.item, cell.repetition) for cell in again.cells or ()}
        assert not keys & more
        assert sum(arm.known for arm in again.arms) == 60


def test_lines_of_one_cell_are_its_repetitions_and_no_more_than_there_are(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("arm,item,score\na,x,0.5\na,x,1\nb,x,0\n")
    known = Experiment.create(
        ["a", "b"], 1, items=["x", "y"], repeats=2, scores=path, epsilon=0.1
    ).settings.cells
    assert known is not None
    assert known.known is not None
    np.testing.assert_array_equal(
        known.known, [[0.5, 1, np.nan, np.nan], [0, np.nan, np.nan, np.nan]]
    )
    path.write_text("arm,item,score\na,x,0.5\na,x,1\na,x,0\n")
    with pytest.raises(InvalidInput, match="repetition 3 of its arm and item"):
        Experiment.create(["a", "b"], 1, items=["x", "y"], repeats=2, scores=path, epsilon=0.1)


def test_a_matrix_of_scores_may_have_repetitions_or_the_first_of_each() -> None:
    scores = np.random.default_rng(0).random((2, 3, 2))
    for given in (scores, scores.reshape(2, 6)):
        cells = Experiment.create(
            2, 1, items=3, repeats=2, scores=given, epsilon=0.1
        ).settings.cells
        assert cells is not None
        np.testing.assert_array_equal(cells.known, scores.reshape(2, 6))
    cells = Experiment.create(
        2, 1, items=3, repeats=2, scores=scores[:, :, 0], epsilon=0.1
    ).settings.cells
    assert cells is not None
    assert cells.known is not None
    assert np.isnan(cells.known[:, 1::2]).all()
    named = polars.DataFrame(scores[:, ::-1, 0], schema=["2", "1", "0"])
    cells = Experiment.create(2, 1, items=3, repeats=2, scores=named, epsilon=0.1).settings.cells
    assert cells is not None
    assert cells.known is not None
    np.testing.assert_array_equal(cells.known[:, ::2], scores[:, :, 0])
    with pytest.raises(InvalidInput, match="or for each of 2 repetitions"):
        Experiment.create(2, 1, items=3, repeats=2, scores=scores[:, :2, 0], epsilon=0.1)


def test_an_experiment_is_read_again_with_the_same_cells(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    settings: dict[str, Any] = {"clusters": ["p", "q", "p", "q"], "repeats": 2, "items": 4}
    first = Experiment.create(3, 1, store=store, epsilon=0.1, **settings)
    second = Experiment.open(store)
    assert first.settings.cells is not None
    assert first.settings.cells.same(second.settings.cells)
    assert second.settings.cells is not None
    assert (second.settings.cells.orders == first.settings.cells.orders).all()
    tickets = first.ask(6)
    assert [each.item for each in tickets] == [
        second.settings.item(int(each.arm), each.draw) for each in tickets
    ]


def test_a_sample_that_ends_has_the_bound_that_is_proved() -> None:
    scores = np.random.default_rng(1).integers(0, 2, (3, 20)).astype(float)
    result = shortlist.select(
        lambda arm, item: scores[arm, item],
        arms=3, k=1, items=20, epsilon=0.01, population="like these", progress=False,
    )  # fmt: skip
    assert result.pulls == 60
    assert result.reached is False
    assert result.regret_bound is not None
    assert result.regret_bound > 0.01
    assert result.evidence["exact"] is False
    assert all(arm.low < arm.high for arm in result.arms)  # all scores, and still an interval


def test_a_client_draws_the_same_cells_as_an_experiment_here() -> None:
    given: dict[str, Any] = {
        "arms": 3, "k": 1, "epsilon": 0.2, "items": 6, "repeats": 2,
        "clusters": [0, 0, 1, 1, 2, 2], "population": "like these",
    }  # fmt: skip
    scores = np.random.default_rng(0).integers(0, 2, (3, 6)).astype(float)

    def pull(arm: int, item: int) -> float:
        return float(scores[arm, item])

    with serving(MemoryStore()) as url:
        there, here = shortlist.Client(url).create(**given), Experiment.create(**given)
        for experiment in (there, here):
            experiment.run(pull, progress=False)
        assert there.result() == here.result()
        keys = [
            [(cell.arm, cell.item, cell.repetition) for cell in each.cells()]
            for each in (there, here)
        ]
        assert keys[0] == keys[1]


@pytest.mark.parametrize("population", ["these", "like these"])
def test_the_bound_is_about_the_others_when_an_arm_retires(population: str) -> None:
    scores = np.array([[1.0] * 12, [0.0, 1.0] * 6, [0.0] * 12])
    experiment = Experiment.create(
        3, 1, epsilon=0.3, items=12, clusters=[item // 2 for item in range(12)],
        population=population,  # type: ignore[arg-type]
    )  # fmt: skip
    for ticket in experiment.ask(4):
        experiment.tell(ticket, scores[int(ticket.arm), int(ticket.item or 0)])
    experiment.retire(0, "too expensive")
    result = experiment.run(lambda arm, item: float(scores[arm, item]))
    assert result.top == (1,)
    assert result.tiers is None
    assert result.regret_bound is not None
