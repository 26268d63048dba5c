"""The certification stream and alpha spending: every pull counts once, every share of delta too."""

import numpy as np
import pytest

from shortlist.certificates.frame import FIRST_LOOK, MOST_LOOKS, share_after, share_of
from shortlist.certificates.split.bound import Holdout
from shortlist.search import Progress, Rewards


def test_the_holdout_counts_every_pull_once_and_only_adds() -> None:
    holdout = Holdout(3, blur=0.0)
    for wanted, asked in (([2, 0, 5], [2, 5]), ([3, 1, 5], [1, 1]), ([3, 1, 5], [])):
        steps = holdout.fill_up(np.array(wanted), Progress())
        request = next(steps, None)
        assert (request.times.tolist() if request else []) == asked
        if request:
            with pytest.raises(StopIteration):
                steps.send(
                    Rewards(request.times.astype(np.float64), request.times.astype(np.float64))
                )
    assert holdout.pulls.tolist() == holdout.sums.tolist() == [3, 1, 5]
    assert holdout.spent == 9


def test_a_draft_that_takes_pulls_back_is_refused() -> None:
    holdout = Holdout(2, blur=0.0)
    holdout.pulls[:] = 5, 3
    with pytest.raises(ValueError, match="4 pulls of arm 0 are wanted, but 5 were drawn"):
        next(holdout.fill_up(np.array([4, 9]), Progress()))


def test_shares_of_looks_add_up_to_delta_and_what_is_left_is_what_was_not_spent() -> None:
    spent = 0.0
    for look in range(40):
        assert share_after(0.2, look) == pytest.approx(0.2 - spent, abs=1e-15)
        spent += share_of(0.2, look)
    assert share_of(0.2, 0) == pytest.approx(0.2 * FIRST_LOOK)
    assert spent == pytest.approx(0.2)


def test_the_share_of_the_last_look_there_can_be_is_still_a_number() -> None:
    assert 0 < share_of(1e-200, MOST_LOOKS) < share_of(1e-200, MOST_LOOKS - 1)
