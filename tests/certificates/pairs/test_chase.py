"""Who is pulled next where one arm is to be told from all others."""

import numpy as np
import pytest

from shortlist.certificates.pairs.planning import SHARES, Chase

PULLS = np.array([60, 10, 10, 25])
MEANS = np.array([0.97, 0.9, 0.7, 0.85])
RIVALS = np.array([1, 2, 3])


def test_rivals_that_are_least_told_are_pulled_first() -> None:
    chase = Chase.of(PULLS, MEANS, 0, RIVALS, 0.09, best=True)
    assert np.argmin(chase.told) == 0
    rng = np.random.default_rng(0)
    for own in (1, 2, 6):
        moved = chase.beside(own, np.ones(3, dtype=np.int64), rng)
        assert moved.tolist() == np.argsort(chase.told)[: moved.size].tolist()


def test_to_leave_one_arm_out_is_the_mirror_image() -> None:
    chosen = Chase.of(PULLS, MEANS, 0, RIVALS, 0.09, best=True)
    left_out = Chase.of(PULLS, 1 - MEANS, 0, RIVALS, 0.09, best=False)
    assert left_out.told == pytest.approx(chosen.told, rel=0.05)  # least favourable but for little
    assert left_out.share == pytest.approx(chosen.share, rel=0.05)


def test_the_nominee_gets_its_share_of_the_pulls() -> None:
    rng = np.random.default_rng(1)
    chase = Chase(np.ones(40), np.full(40, 0.5))
    moved = [chase.beside(6, np.ones(40, dtype=np.int64), rng).size for _ in range(50)]
    assert np.mean(moved) == pytest.approx(6, abs=0.5)
    most = Chase(np.ones(40), np.full(40, 1.0)).beside(90, np.ones(40, dtype=np.int64), rng).size
    assert most == pytest.approx(90 * (1 - SHARES[1]) / SHARES[1], abs=1)


def test_ties_are_broken_by_lot() -> None:
    rng = np.random.default_rng(2)
    chase = Chase(np.ones(5), np.full(5, 0.5))
    firsts = {int(chase.beside(3, np.ones(5, dtype=np.int64), rng)[0]) for _ in range(60)}
    assert firsts == set(range(5))
