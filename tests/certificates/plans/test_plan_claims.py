"""What tracks and boundaries prove for one set together, and that nothing unchecked counts."""

import math

import numpy as np
import pytest

from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.bound import Boundaries
from shortlist.certificates.plans.stage import CombinedBounds, StoppedArms

STRENGTH = 12.0
BOUNDARIES = Boundaries.around(0.5, 0.02, 0.1)
AT = (10, 20, 30)


def track(share: float) -> StoppedArms:
    return StoppedArms([], np.zeros(3, dtype=np.int64), 0.5, share)


def claims(true: dict[tuple[float, int], float]) -> tuple[CombinedBounds, list[tuple[float, int]]]:
    """Bounds with these charges, by share and boundary, once checked; and the checked ones."""
    checked: list[tuple[float, int]] = []

    def check(stopped_arms: StoppedArms, j: int) -> float:
        checked.append((stopped_arms.share, j))
        return true[stopped_arms.share, j]

    return CombinedBounds(BOUNDARIES, STRENGTH, check), checked


def test_claims_together_prove_no_more_than_their_weighted_mean() -> None:
    made, _ = claims({})
    charges = np.array([0.4, 0.3, 0.35])
    made.add(track(0.5), AT, charges)
    made.add(track(0.2), AT, charges + 0.1)

    bound = made.together(made.all)

    shares = [each.track.share * np.exp(-BOUNDARIES.thresholds[each.j]) for each in made.all]
    lost = [np.exp(STRENGTH * (bound - each.charges)) for each in made.all]
    assert (np.array(shares) * lost).sum() == pytest.approx(1)  # Lemma 4
    assert bound < min(made.together([each]) for each in made.all)


def test_a_claim_pays_for_the_shares_of_its_track_and_boundary() -> None:
    made, _ = claims({})
    made.add(track(0.2), AT[:1], np.array([0.4]))

    paid = BOUNDARIES.thresholds[AT[0]] + math.log(1 / 0.2)

    assert made.together(made.all) == pytest.approx(0.4 + paid / STRENGTH)


def test_no_claims_prove_nothing() -> None:
    made, _ = claims({})

    assert made.together([]) == math.inf


def test_what_is_not_checked_does_not_count() -> None:
    true = {(0.5, j): 0.3 + 0.01 * j for j in AT}
    made, checked = claims(true)
    made.add(track(0.5), AT, np.array([0.4, 0.5, 0.6]))
    enough = made.together(made.all) + 0.05

    bound = made.bound(enough)

    assert bound <= enough
    assert checked == [(0.5, each.j) for each in made.all if each.checked]
    assert bound == made.together([each for each in made.all if each.checked])
    assert all(each.charges == true[0.5, each.j] for each in made.all if each.checked)


def test_claims_are_checked_from_the_one_that_matters_most_until_they_suffice() -> None:
    made, checked = claims({(0.5, j): 0.5 for j in AT})
    made.add(track(0.5), AT, np.array([0.5, 0.4, 0.5]))
    alone = 0.5 + (BOUNDARIES.thresholds[20] + math.log(2)) / STRENGTH

    assert made.bound(alone + 1e-9) == pytest.approx(alone)
    assert checked == [(0.5, 20)]


def test_others_are_asked_only_while_they_may_make_up_for_what_is_missing() -> None:
    made, checked = claims({(0.5, j): 1.5 for j in AT})
    made.add(track(0.5), AT, np.full(3, 0.5))
    reach = made.together(made.all)

    assert made.bound(reach) > reach
    assert len(checked) == 1  # the others are taken to be as wrong
    assert made.bound(reach / 2) > reach / 2
    assert len(checked) == 1


def test_estimates_within_reach_are_no_proof_when_all_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "CHECKED_ERROR", 1.0)
    made, checked = claims({(0.5, j): 0.51 for j in AT})
    made.add(track(0.5), AT, np.full(3, 0.5))
    reach = made.together(made.all)

    assert made.bound(reach) > reach
    assert len(checked) == len(AT)
    made.add(track(0.2), AT[:1], np.array([0.1]))
    made.check = lambda stopped_arms, j: 0.1
    assert made.bound(reach) <= reach  # another track makes up for it


@pytest.mark.parametrize("charges", [math.nan, math.inf])
def test_charges_that_are_no_number_prove_nothing(charges: float) -> None:
    made, checked = claims({(0.5, j): charges for j in AT})
    made.add(track(0.5), AT, np.full(3, 0.1))

    assert made.bound(1.0) > 1.0
    assert len(checked) == 1


def test_a_negative_bound_proves_nothing() -> None:
    made, _ = claims({(0.5, j): -9.0 for j in AT})
    made.add(track(0.5), AT, np.full(3, -9.0))

    assert made.bound(1.0) > 1.0
