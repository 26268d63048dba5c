"""Predicted offsets against those that would be declared."""

import numpy as np
import pytest

from shortlist.arrays import FloatArray
from shortlist.certificates.split import expected_charges
from shortlist.certificates.split.expected_charges import Candidates, PredictedOffsets
from shortlist.certificates.split.offsets import offsets
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian

EDGE, REACH = 0.5, 0.5


def candidates_of(pulls: FloatArray, deviations: float) -> Candidates:
    """Charges that begin so many standard deviations beyond the boundary; -inf: at once."""
    start = np.floor(pulls * EDGE + deviations * np.sqrt(pulls / 4))
    return Candidates(
        pulls, start, np.ones(pulls.size), np.full(pulls.size, EDGE), np.full(pulls.size, REACH)
    )


def exact(
    candidates: Candidates, strength: float, rewards: RewardModel
) -> tuple[FloatArray, FloatArray]:
    return offsets(
        candidates.pulls,
        EDGE,
        strength,
        REACH,
        rewards,
        slope=candidates.part * strength,
        start=candidates.start,
    )


@pytest.mark.parametrize("rewards", [Binary(), Bounded(), SubGaussian(0.5)])
@pytest.mark.parametrize("strength", [3.0, 30.0, 300.0])
def test_without_a_start_they_are_exact(rewards: RewardModel, strength: float) -> None:
    candidates = candidates_of(np.array([1.0, 7, 40, 1000, 10**9, 2.0**61]), -np.inf)
    found = PredictedOffsets(candidates, 0.25, rewards).at(strength)
    assert found == pytest.approx(exact(candidates, strength, rewards)[1], rel=1e-9)


@pytest.mark.parametrize("deviations", [0.3, 0.9, 1.5])
@pytest.mark.parametrize(
    ("strength", "pulls"), [(3.2, (28, 36, 60, 100, 150, 300)), (12, (300, 500, 800))]
)
def test_with_a_start_they_are_close(
    deviations: float, strength: float, pulls: tuple[int, ...]
) -> None:
    assert 60 <= expected_charges.EXACT_OFFSETS < 100  # so that there are offsets of both kinds
    candidates = candidates_of(np.array(pulls, dtype=np.float64), deviations)
    begin, least = exact(candidates, strength, Binary())
    assert np.array_equal(begin, candidates.start)
    assert PredictedOffsets(candidates, 0.25, Binary()).at(strength) == pytest.approx(
        least, rel=0.15
    )


def test_where_all_or_no_rewards_are_free_there_is_none() -> None:
    candidates = Candidates(
        *np.array([[4.0, 4, 90, 90], [-1, 4, -1, 90], [1] * 4, [EDGE] * 4, [REACH] * 4])
    )
    assert np.all(PredictedOffsets(candidates, 0.25, Binary()).at(10.0) == np.inf)
