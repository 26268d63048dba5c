"""Bounds of arms judged one by one are never above what unseen cells allow."""

import numpy as np
import pytest

from shortlist.certificates.items.race import ItemsRace, SingleEvidence
from shortlist.problem import FixedConfidence, Items, Problem


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share_known", [0.0, 0.3])
def test_no_bound_exceeds_the_difference_if_an_arm_wins_every_unseen_cell(
    seed: int, share_known: float
) -> None:
    rng = np.random.default_rng(seed)
    n, size, k = 50, 30, 3
    scores = rng.random((n, size)) if seed % 2 else rng.integers(0, 2, (n, size)).astype(float)
    known = np.where(rng.random((n, size)) < share_known, scores, np.nan)
    items = Items(size, known if share_known else None)
    race = ItemsRace(Problem(n, k, FixedConfidence(0.02, 0.1), items=items), rng)
    assert isinstance(race.evidence, SingleEvidence)
    reached = np.full(n, race.evidence.first)
    while (reached < size).any():
        missing = np.isnan(known) & (np.arange(size) < reached[:, None])
        missing &= np.arange(size) >= race.cells.reached[:, None]
        assert np.array_equal(race.cells.missing(reached), missing.sum(1))
        race.take(reached, scores[missing])
        race.choose()
        certain = race.cells.certain(race.top, race.outside)
        open_pairs = ~race.evidence.out[race.outside]  # the others are 0
        assert (race.bounds <= certain + 1e-9)[:, open_pairs].all()
        reached = np.minimum(reached + rng.integers(0, 9, n), size)
    seen = (np.arange(size) < race.cells.reached[:, None]) | ~np.isnan(known)
    assert np.array_equal(np.where(seen, race.cells.scores, 0.0), np.where(seen, scores, 0.0))


def test_of_two_arms_in_doubt_the_cheaper_one_gets_more_items() -> None:
    items, goal = Items(1000), FixedConfidence(0.02, 0.1)
    doubtful = ~np.eye(3, dtype=np.bool_)
    reached = np.full(3, 100)
    alike = SingleEvidence(Problem(3, 1, goal, items=items, costs=(2.0, 2.0, 2.0)))
    free = SingleEvidence(Problem(3, 1, goal, items=items))
    dear = SingleEvidence(Problem(3, 1, goal, items=items, costs=(1.0, 1.0, 9.0)))
    assert (alike.thrift == 1).all()
    assert (
        alike.targets(doubtful, reached, 1000).tolist()
        == free.targets(doubtful, reached, 1000).tolist()
    )
    following = dear.targets(doubtful, reached, 1000)
    assert following[0] == following[1] > following[2] == 100
