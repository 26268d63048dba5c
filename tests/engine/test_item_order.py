"""The order of items does not depend on what may have chosen the scores that are known."""

from pathlib import Path

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

import shortlist
from shortlist import Experiment
from shortlist.arrays import FloatArray
from shortlist.cells import Cells
from shortlist.reward_models import Binary
from shortlist.stores.base import MemoryStore

RUNS, ITEMS, DELTA = number_of_runs(6, 300), 500, 0.1


def scores_of(seed: int) -> FloatArray:
    """Arm 0 is right on 55 % of the items and arm 1 on the others: (2, items)."""
    right = np.random.default_rng(seed).permutation(np.arange(ITEMS) < 0.55 * ITEMS)
    return np.array([right, ~right], dtype=np.float64)


def chosen_by_value(scores: FloatArray, seed: int) -> FloatArray:
    """The scores that are known where, of the items that the seed alone would put first, those are
    known on which the better arm wins."""
    order = Cells(ITEMS, 2, Binary(), seed).orders[0]
    known = np.full(scores.shape, np.nan)
    first = order[:150]
    won = first[scores[0, first] == 1]
    known[:, won] = scores[:, won]
    return known


@pytest.mark.rates
def test_the_promise_stands_if_the_first_items_of_the_seed_are_known_because_of_their_scores() -> (
    None
):
    wrong = 0
    for seed in range(RUNS):
        scores = scores_of(seed)
        found = shortlist.select(
            lambda arm, item, scores=scores: float(scores[arm, item]),
            arms=2,
            k=1,
            epsilon=0.05,
            delta=DELTA,
            items=ITEMS,
            scores=chosen_by_value(scores, seed),
            seed=seed,
            progress=False,
        )
        wrong += found.top != (0,)  # which loses 0.1

    assert wrong <= binom.ppf(1 - 1e-6, RUNS, DELTA)


def test_the_order_depends_on_which_scores_are_known_and_not_on_their_values() -> None:
    known = np.full((2, 50), np.nan)
    known[0, :9] = 1.0
    other = known.copy()
    other[1, 0] = 0.0
    orders = [
        Cells(50, 2, Binary(), 7, scores).orders[0].tolist()
        for scores in (None, known, 1 - known, other)
    ]
    assert orders[1] == orders[2]
    assert len({tuple(order) for order in orders}) == 3
    assert all(sorted(order) == list(range(50)) for order in orders)


def made(store: MemoryStore | Path, **more: object) -> Experiment:
    known = np.full((3, 40), np.nan)
    known[:, ::4] = 1.0
    settings: dict[str, object] = {
        "epsilon": 0.1,
        "items": 40,
        "scores": known,
        "rewards": "binary",
    }
    return Experiment.create(3, 1, store=store, **{**settings, "scores": known, **more})  # type: ignore[arg-type]


def asked(experiment: Experiment) -> list[tuple[object, object]]:
    return [(ticket.arm, ticket.item) for ticket in experiment.ask(200)]


def test_an_experiment_that_is_opened_again_has_its_order(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with made(path) as experiment:
        cells = asked(experiment)
        experiment.release(tickets=range(len(cells)))
    with Experiment.open(path) as again:
        assert asked(again) == cells
        again.release(tickets=range(len(cells)))
    with made(path, exist_ok=True) as same:
        assert asked(same) == cells
