"""Who is pulled next where one arm is to be evidence from all others."""

import numpy as np
import pytest

from shortlist.certificates.pairs.planning import SHARES, LeaderSampling

PULLS = np.array([60, 10, 10, 25])
MEANS = np.array([0.97, 0.9, 0.7, 0.85])
RIVALS = np.array([1, 2, 3])


def test_rivals_that_are_least_told_are_pulled_first() -> None:
    chase = LeaderSampling.of(PULLS, MEANS, 0, RIVALS, 0.09, best=True)
    assert np.argmin(chase.evidence) == 0
    rng = np.random.default_rng(0)
    for own in (1, 2, 6):
        moved = chase.rivals_to_pull(own, np.ones(3, dtype=np.int64), rng)
        assert moved.tolist() == np.argsort(chase.evidence)[: moved.size].tolist()


def test_to_leave_one_arm_out_is_the_mirror_image() -> None:
    chosen = LeaderSampling.of(PULLS, MEANS, 0, RIVALS, 0.09, best=True)
    left_out = LeaderSampling.of(PULLS, 1 - MEANS, 0, RIVALS, 0.09, best=False)
    assert left_out.evidence == pytest.approx(
        chosen.evidence, rel=0.05
    )  # least favourable but for little
    assert left_out.share == pytest.approx(chosen.share, rel=0.05)


def test_the_nominee_gets_its_share_of_the_pulls() -> None:
    rng = np.random.default_rng(1)
    chase = LeaderSampling(np.ones(40), np.full(40, 0.5))
    moved = [chase.rivals_to_pull(6, np.ones(40, dtype=np.int64), rng).size for _ in range(50)]
    assert np.mean(moved) == pytest.approx(6, abs=0.5)
    most = (
        LeaderSampling(np.ones(40), np.full(40, 1.0))
        .rivals_to_pull(90, np.ones(40, dtype=np.int64), rng)
        .size
    )
    assert most == pytest.approx(90 * (1 - SHARES[1]) / SHARES[1], abs=1)


def test_ties_are_broken_by_lot() -> None:
    rng = np.random.default_rng(2)
    chase = LeaderSampling(np.ones(5), np.full(5, 0.5))
    firsts = {int(chase.rivals_to_pull(3, np.ones(5, dtype=np.int64), rng)[0]) for _ in range(60)}
    assert firsts == set(range(5))
